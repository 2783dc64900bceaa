//! The collector, as the configuration asks for it.

use super::pipe::Sender;
use crate::config::Config;
use crate::{logging, settings};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use storscope_collect::collector::{AgentCounts, Collector};
use storscope_collect::root::Root;
use storscope_drive::Refusals;

/// A running collector.
pub(super) struct Adapter {
    collector: Collector,
    counts: Arc<AgentCounts>,
}

impl Adapter {
    /// Starts a collector whose events go to `sender`.
    ///
    /// # Errors
    /// A pattern that cannot be used, or a want of threads.
    pub(super) fn start(root: Root, config: &Config, refusals: Refusals, sender: Arc<Sender>) -> anyhow::Result<Self> {
        let counts = Arc::new(AgentCounts::default());
        let settings = settings::collector(config, refusals, Arc::clone(&counts))?;
        let collector = Collector::start(root, settings, sender)?;
        Ok(Self { collector, counts })
    }

    /// Brings the counts that the agent keeps itself up to date.
    pub(super) fn count(&self, superseded: u64) {
        self.counts.log_lines_dropped.store(logging::dropped(), Ordering::Relaxed);
        self.counts.events_superseded.store(superseded, Ordering::Relaxed);
    }

    /// Takes up new periods and another selection, and looks for devices again.
    ///
    /// # Errors
    /// A pattern that cannot be used.
    pub(super) fn reconfigure(&self, config: &Config) -> anyhow::Result<()> {
        let settings = settings::collector(config, Refusals::default(), Arc::clone(&self.counts))?;
        self.collector.reconfigure(settings);
        Ok(())
    }

    /// What drives refused up to now.
    pub(super) fn refusals(&self) -> Refusals {
        self.collector.refusals()
    }

    /// Ends the collector.
    pub(super) fn stop(&self) {
        self.collector.stop();
    }
}
