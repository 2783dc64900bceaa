//! The state and its analysis: one owner, no locks. Events in, views and requests out.

use std::collections::BTreeMap;
use std::sync::Arc;
use storscope_model::analysis;
use storscope_model::codec::CodecError;
use storscope_model::event::Event;
use storscope_model::finding::{Finding, Severity};
use storscope_model::history::History;
use storscope_model::identity::Subject;
use storscope_model::limits::Limits;
use storscope_model::memory::Memory;
use storscope_model::probe_plan::{self, ProbePolicy};
use storscope_model::request::{ProbeTarget, Request};
use storscope_model::snapshot::Snapshot;
use storscope_model::time::{BootTime, ClockSync};
use storscope_model::view::{AgentStatus, View};

/// Everything the serving side knows.
pub(crate) struct Core {
    snapshot: Snapshot,
    history: History,
    /// Thresholds and periods.
    pub(crate) limits: Limits,
    /// What is probed and how often.
    pub(crate) probes: ProbePolicy,
    planned: Option<Vec<ProbeTarget>>,
    open: BTreeMap<(&'static str, Subject), Finding>,
    begun: bool,
    /// What the binary says of itself.
    pub(crate) agent: AgentStatus,
}

/// What one analysis gave.
pub(crate) struct Turn {
    /// The newest view.
    pub(crate) view: Arc<View>,
    /// What to probe from now on, when that changed.
    pub(crate) request: Option<Request>,
    /// True when a finding opened or closed, and at the first turn: what is remembered over a restart is new.
    pub(crate) changed: bool,
}

impl Core {
    /// A state that knows nothing but what `history` brings over from a former run.
    pub(crate) fn new(limits: Limits, probes: ProbePolicy, agent: AgentStatus, history: History) -> Self {
        let snapshot = Snapshot::default();
        Self { snapshot, history, limits, probes, planned: None, open: BTreeMap::new(), begun: false, agent }
    }

    /// Takes in one event, or that one could not be read.
    pub(crate) fn apply(&mut self, event: Result<Event, CodecError>, now: BootTime) {
        match event {
            Ok(event) => {
                if let Event::DeviceAppeared(device) = &event
                    && !self.snapshot.devices.contains_key(&device.id)
                {
                    tracing::info!(device = %device.name, id = %device.id, "device appeared");
                } else if let Event::Vanished(subject) = &event {
                    match subject {
                        Subject::Host => {}
                        Subject::Controller(id) => {
                            let known = self.snapshot.controllers.get(id);
                            let name = known.map(|known| known.controller.name.as_str());
                            tracing::info!(controller = name, %id, "controller vanished");
                        }
                        Subject::Device(id) => {
                            let known = self.snapshot.devices.get(id);
                            let name = known.map(|known| known.device.name.as_str());
                            tracing::info!(device = name, %id, "device vanished");
                        }
                    }
                }
                self.snapshot.apply(event, now);
            }
            Err(error) => {
                tracing::error!(%error, "event cannot be read");
                self.agent.frames_refused = self.agent.frames_refused.saturating_add(1);
            }
        }
    }

    /// Works out a view at `now`.
    pub(crate) fn turn(&mut self, now: BootTime, clock: ClockSync) -> Turn {
        self.snapshot.clock = clock;
        self.snapshot.expire(now, &|source| self.limits.freshness(source));
        let agent = Arc::new(self.agent.clone());
        let view = Arc::new(analysis::analyse(&mut self.history, &self.snapshot, &agent, &self.limits, now));
        let changed = self.log_changes(&view) || !std::mem::replace(&mut self.begun, true);
        Turn { view, request: self.plan(now), changed }
    }

    /// What to remember over a restart.
    pub(crate) fn memory(&self) -> Memory {
        self.history.memory(&self.snapshot.clock)
    }

    fn plan(&mut self, now: BootTime) -> Option<Request> {
        let targets = probe_plan::plan(&self.snapshot, &mut self.history, &self.probes, now).targets;
        if self.planned.as_ref() == Some(&targets) {
            return None;
        }
        self.planned = Some(targets.clone());
        Some(Request::ProbeTargets(targets))
    }

    /// The plan was not taken by the prober; it is sent again at the next turn.
    pub(crate) fn forget_plan(&mut self) {
        self.planned = None;
    }

    /// True when a finding opened or closed.
    fn log_changes(&mut self, view: &View) -> bool {
        let now: BTreeMap<(&'static str, Subject), Finding> =
            view.findings.iter().map(|found| ((found.rule, found.subject.clone()), found.clone())).collect();
        for (key, found) in &now {
            if !self.open.contains_key(key) {
                log_opened(found);
            }
        }
        for (key, found) in &self.open {
            if !now.contains_key(key) {
                tracing::info!(
                    rule = found.rule,
                    device = found.device,
                    controller = found.controller,
                    "finding closed: {}",
                    found.title
                );
            }
        }
        let changed = !now.keys().eq(self.open.keys());
        self.open = now;
        changed
    }
}

fn log_opened(found: &Finding) {
    macro_rules! opened {
        ($level:ident) => {
            tracing::$level!(
                rule = found.rule,
                severity = found.severity.as_str(),
                device = found.device,
                controller = found.controller,
                evidence = found.evidence.join("; "),
                "finding opened: {}",
                found.title
            )
        };
    }
    match found.severity {
        Severity::Info => opened!(info),
        Severity::Warning => opened!(warn),
        Severity::Critical => opened!(error),
    }
}
