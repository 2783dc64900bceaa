//! The state, what feeds it, and what is made of it.

use super::link::{Link, Untaken};
use super::memory::{Keeper, State};
use crate::config::Config;
use crate::core::Core;
use crate::http::Requests;
use crate::parts::Part;
use crate::parts::order::{Order, Setup};
use crate::settings;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use storscope_collect::clock;
use storscope_model::event::Event;
use storscope_model::history::History;
use storscope_model::privacy::{self, Serials};
use storscope_model::refused::Refused;
use storscope_model::request::Request;
use storscope_model::sample::Source;
use storscope_model::time::ClockSync;
use storscope_model::view::View;
use tokio::sync::watch;

/// The server's state.
pub(super) struct Agent {
    /// The configuration in use.
    pub(super) config: Config,
    /// Where views are published.
    pub(super) views: watch::Sender<Option<Arc<View>>>,
    /// Events of the collector.
    pub(super) collected: Link,
    /// Events of the prober.
    pub(super) probed: Link,
    /// Requests answered.
    pub(super) requests: Arc<Requests>,
    core: Core,
    keeper: Option<Keeper>,
    refused: Vec<Refused>,
    boot_id: String,
    live: bool,
    /// The newest view waits for first readings.
    waits: bool,
}

impl Agent {
    /// A state that knows what was remembered, and hears of nothing yet.
    pub(super) fn new(setup: &Setup, boot_id: String, opened: Option<(Keeper, State)>) -> Self {
        let root = setup.host.root();
        let config = setup.config.clone();
        let (keeper, state) = match opened {
            Some((keeper, state)) => (Some(keeper), state),
            None => (None, State::default()),
        };
        let mut status = settings::agent(&config, root.live, setup.started);
        status.config_file.clone_from(&setup.config_file);
        status.config_reloads = (1, 0);
        let history = History::restore(&state.memory, &clock::sync(boot_id.clone()));
        Self {
            core: Core::new(settings::limits(&config), settings::probes(&config, root.live), status, history),
            config,
            views: watch::Sender::new(None),
            collected: Link::none(),
            probed: Link::none(),
            requests: Arc::default(),
            keeper,
            refused: state.refused,
            boot_id,
            live: root.live,
            waits: true,
        }
    }

    fn clock(&self) -> ClockSync {
        clock::sync(self.boot_id.clone())
    }

    /// Takes in one event. True when the analysis is due: it was a read of the counters, or it may be what the verdict
    /// waits for.
    pub(super) fn apply(&mut self, event: Result<Event, Untaken>) -> bool {
        let counters = matches!(&event, Ok(Event::Read { source: Source::Diskstats, .. }));
        match event {
            Ok(Event::Refusals(list)) => {
                self.refused = list;
                self.save();
            }
            Ok(event) => self.core.apply(event, clock::now()),
            Err(why) => self.core.refuse(&why),
        }
        counters || self.waits
    }

    /// Works out a view, publishes it, and tells the prober what to probe.
    pub(super) fn turn(&mut self) {
        self.core.agent.http_requests = self.requests.counts();
        self.core.agent.state_error = self.keeper.as_ref().and_then(Keeper::error);
        let turn = self.core.turn(clock::now(), self.clock());
        if let Some(request) = turn.request
            && !self.probed.send(request)
        {
            self.core.forget_plan();
        }
        self.waits = !turn.view.ready || !turn.view.unread.waiting.is_empty();
        let view = match self.config.serials {
            Serials::Full => turn.view,
            how => Arc::new(privacy::veiled(turn.view.as_ref().clone(), how)),
        };
        self.views.send_replace(Some(view));
        if turn.changed {
            self.save();
        }
    }

    /// Hands what is to be remembered to the thread that writes it.
    pub(super) fn save(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.write(self.state());
        }
    }

    fn state(&self) -> State {
        State::new(self.core.memory(), self.refused.clone())
    }

    /// Carries out an order that concerns the state.
    pub(super) fn obey(&mut self, order: Order, passed: Option<OwnedFd>) {
        match (order, passed) {
            (Order::Link(part), Some(stream)) => match Link::new(part, UnixStream::from(stream)) {
                Ok(link) => self.linked(part, link),
                Err(error) => tracing::error!(%error, process = part.as_str(), "no link"),
            },
            (Order::Parts { own, former }, _) => {
                self.core.agent.parts = own;
                self.core.agent.former = former;
                self.turn();
            }
            (Order::Refused(mistakes), _) => {
                self.core.agent.config_errors = mistakes;
                self.core.agent.config_reloads.1 += 1;
                self.turn();
            }
            _ => {}
        }
    }

    fn linked(&mut self, part: Part, link: Link) {
        match part {
            Part::Collector => {
                self.core.expect_all_again();
                link.send(Request::Refusals(self.refused.clone()));
                self.collected = link;
            }
            Part::Prober => {
                self.core.forget_plan();
                self.probed = link;
            }
            Part::Server => {}
        }
    }

    /// Uses another configuration.
    pub(super) fn reconfigure(&mut self, new: Config) {
        self.core.limits = settings::limits(&new);
        self.core.probes = settings::probes(&new, self.live);
        self.core.agent.probes_off = settings::probes_off(&new, self.live).map(str::to_owned);
        self.core.agent.config_errors.clear();
        self.core.agent.config_loaded = clock::now();
        self.core.agent.config_reloads.0 += 1;
        self.config = new;
        tracing::info!("configuration read again");
        self.turn();
    }

    /// Writes the state.
    pub(super) fn end(mut self) {
        let Some(keeper) = self.keeper.take() else { return };
        if !keeper.finish(self.state()) {
            tracing::warn!("the last state could not be written in time");
        }
    }
}
