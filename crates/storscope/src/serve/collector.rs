//! The collector's end of a socket pair.

use super::pipe::Sender;
use crate::config::Config;
use crate::{logging, settings};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use storscope_collect::collector::{AgentCounts, Collector};
use storscope_collect::root::Root;
use storscope_drive::Refusals;
use storscope_model::request::Request;

/// A running collector, fed by requests.
pub(super) struct Adapter {
    collector: Arc<Collector>,
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
        let collector = Arc::new(Collector::start(root, settings, sender)?);
        Ok(Self { collector, counts })
    }

    /// What takes in requests.
    pub(super) fn requests(&self) -> impl FnMut(Request) + Send + 'static {
        let collector = Arc::clone(&self.collector);
        move |request| match request {
            Request::Rescan => collector.rescan(),
            Request::ProbeTargets(_) => {}
        }
    }

    /// Brings the counts that the agent keeps itself up to date.
    pub(super) fn count(&self, superseded: u64) {
        self.counts.log_lines_dropped.store(logging::dropped(), Ordering::Relaxed);
        self.counts.events_superseded.store(superseded, Ordering::Relaxed);
    }

    /// Takes up new periods and another selection.
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
