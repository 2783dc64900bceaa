//! The parts that run, and the state that they feed.

use super::memory::{self, Keeper, State};
use super::pipe::{self, Link, Sender};
use super::{collector, reload};
use crate::cli::ServeArgs;
use crate::config::Config;
use crate::core::Core;
use crate::http::Requests;
use crate::prober::Adapter as Prober;
use crate::{logging, settings};
use anyhow::Context;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use storscope_collect::clock;
use storscope_collect::root::Root;
use storscope_model::codec::CodecError;
use storscope_model::event::Event;
use storscope_model::history::History;
use storscope_model::sample::Source;
use storscope_model::view::View;
use tokio::sync::watch;

/// A running agent.
pub(super) struct Agent {
    /// The configuration in use.
    pub(super) config: Config,
    /// Where views are published.
    pub(super) views: watch::Sender<Option<Arc<View>>>,
    /// Events of the collector.
    pub(super) collected: Link,
    /// Events of the prober.
    pub(super) probed: Link,
    core: Core,
    collector: collector::Adapter,
    senders: [Arc<Sender>; 2],
    keeper: Option<Keeper>,
    /// False when it was not wanted at the start.
    prober_runs: bool,
    /// The newest view waits for first readings.
    waits: bool,
    requests: Arc<Requests>,
    root: Root,
}

impl Agent {
    /// Starts collector and prober, each behind a socket pair.
    ///
    /// # Errors
    /// A want of threads or descriptors, or a demanded probe engine that cannot be had.
    pub(super) fn start(args: &ServeArgs, config: Config, requests: Arc<Requests>) -> anyhow::Result<Self> {
        let root = args.select.checked_host()?;
        let (keeper, state) = match &config.state_dir {
            Some(directory) => {
                let (keeper, state) = memory::open(directory);
                (Some(keeper), state)
            }
            None => (None, State::default()),
        };
        let mut status = settings::agent(&config, &root);
        status.config_file = args.config.as_ref().map(|file| file.display().to_string());
        status.config_reloads = (1, 0);

        let (here, there) = UnixStream::pair().context("cannot make a socket pair")?;
        let sender = Arc::new(Sender::default());
        let collector = collector::Adapter::start(root.clone(), &config, state.refusals(), Arc::clone(&sender))
            .context("cannot start the collector")?;
        let collect_sender = Arc::clone(&sender);
        pipe::attach(there, "collect", sender, |_| {})?;
        let collected = Link::new(here)?;

        let (here, there) = UnixStream::pair().context("cannot make a socket pair")?;
        let sender = Arc::new(Sender::default());
        let prober_runs = status.probes_off.is_none();
        if prober_runs {
            let prober =
                Prober::start(root.clone(), &config, Arc::clone(&sender) as _).context("cannot start the prober")?;
            status.engine = Some(prober.engine());
            pipe::attach(there, "probe", Arc::clone(&sender), move |request| prober.request(request))?;
        } else {
            pipe::attach(there, "probe", Arc::clone(&sender), |_| {})?;
        }
        let probed = Link::new(here)?;

        let history = History::restore(&state.memory, &clock::sync(&root));
        let core = Core::new(settings::limits(&config), settings::probes(&config, &root), status, history);
        let views = watch::Sender::new(None);
        let senders = [collect_sender, sender];
        Ok(Self {
            config,
            views,
            collected,
            probed,
            core,
            collector,
            senders,
            keeper,
            prober_runs,
            waits: true,
            requests,
            root,
        })
    }

    /// Takes in one event. True when the analysis is due: it was a read of the counters, or it may be what the verdict
    /// waits for.
    pub(super) fn apply(&mut self, event: Result<Event, CodecError>) -> bool {
        let counters = matches!(&event, Ok(Event::Read { source: Source::Diskstats, .. }));
        self.core.apply(event, clock::now());
        counters || self.waits
    }

    /// Works out a view, publishes it, and tells the prober what to probe.
    pub(super) fn turn(&mut self) {
        self.core.agent.http_requests = self.requests.counts();
        self.core.agent.state_error = self.keeper.as_ref().and_then(Keeper::error);
        self.collector.count(self.senders.iter().map(|sender| sender.superseded()).sum());
        let turn = self.core.turn(clock::now(), clock::sync(&self.root));
        if let Some(request) = turn.request
            && !self.probed.send(request)
        {
            self.core.forget_plan();
        }
        self.waits = !turn.view.ready || !turn.view.unread.waiting.is_empty();
        self.views.send_replace(Some(turn.view));
        if turn.changed {
            self.save();
        }
    }

    /// Hands what is to be remembered to the thread that writes it.
    pub(super) fn save(&self) {
        let Some(keeper) = &self.keeper else { return };
        keeper.write(self.state());
    }

    fn state(&self) -> State {
        State::new(self.core.memory(), &self.collector.refusals())
    }

    /// Reads the configuration again. A bad one changes nothing and is told in log, metric and status.
    pub(super) fn reload(&mut self, args: &ServeArgs, log: &logging::Log) {
        let read = reload::read(args).and_then(|new| self.collector.reconfigure(&new).map(|()| new));
        let new = match read {
            Ok(new) => new,
            Err(error) => {
                let mistakes = reload::mistakes(&error);
                for mistake in &mistakes {
                    tracing::error!("configuration is kept as it was: {mistake}");
                }
                self.core.agent.config_errors = mistakes;
                self.core.agent.config_reloads.1 += 1;
                self.turn();
                return;
            }
        };
        for key in reload::needs_restart(&self.config, &new) {
            tracing::warn!(key, "takes effect at the next start");
        }
        log.set(new.log_level);
        self.core.limits = settings::limits(&new);
        self.core.probes = settings::probes(&new, &self.root);
        if !self.prober_runs && settings::probes_off(&new, &self.root).is_none() {
            tracing::warn!(key = "probe.enabled", "takes effect at the next start");
        } else {
            self.core.agent.probes_off = settings::probes_off(&new, &self.root).map(str::to_owned);
        }
        self.core.agent.config_errors.clear();
        self.core.agent.config_loaded = clock::now();
        self.core.agent.config_reloads.0 += 1;
        self.config = new;
        tracing::info!("configuration read again");
        self.turn();
    }

    /// Ends the collector and writes the state; what waits for a device is left to itself.
    pub(super) fn end(mut self) {
        self.collector.stop();
        let Some(keeper) = self.keeper.take() else { return };
        if !keeper.finish(self.state()) {
            tracing::warn!("the last state could not be written in time");
        }
    }
}
