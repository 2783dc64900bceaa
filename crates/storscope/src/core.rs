//! The state and its analysis: one owner, no locks. Events in, views and requests out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use storscope_export::wall;
use storscope_model::analysis;
use storscope_model::event::{Event, Outcome};
use storscope_model::finding::{Finding, Severity};
use storscope_model::history::History;
use storscope_model::identity::Subject;
use storscope_model::limits::Limits;
use storscope_model::memory::Memory;
use storscope_model::probe_plan::{self, ProbePolicy};
use storscope_model::request::{ProbeTarget, Request};
use storscope_model::sample::Source;
use storscope_model::snapshot::Snapshot;
use storscope_model::time::{BootTime, ClockSync};
use storscope_model::view::{AgentStatus, View};
use storscope_model::wall_clock::WallClock;

/// Most open findings that are logged again when the wall clock was set.
const MAX_RETOLD: usize = 24;

/// Everything the serving side knows.
pub(crate) struct Core {
    snapshot: Snapshot,
    history: History,
    /// Thresholds and periods.
    pub(crate) limits: Limits,
    /// What is probed and how often.
    pub(crate) probes: ProbePolicy,
    planned: Option<Vec<ProbeTarget>>,
    /// What a new collector has not told of yet.
    unseen: BTreeSet<Subject>,
    open: BTreeMap<(&'static str, Subject), Finding>,
    wall: WallClock,
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
        let (open, wall) = (BTreeMap::new(), WallClock::default());
        Self {
            snapshot,
            history,
            limits,
            probes,
            planned: None,
            unseen: BTreeSet::new(),
            open,
            wall,
            begun: false,
            agent,
        }
    }

    /// Takes in one event.
    pub(crate) fn apply(&mut self, event: Event, now: BootTime) {
        match event {
            Event::Engine { engine, fallback } => self.agent.engine = Some((engine, fallback)),
            Event::DeviceAppeared(device) => {
                self.seen(&Subject::Device(device.id.clone()));
                if !self.snapshot.devices.contains_key(&device.id) {
                    tracing::info!(device = %device.name, id = %device.id, "device appeared");
                }
                self.snapshot.apply(Event::DeviceAppeared(device), now);
            }
            Event::ControllerAppeared(controller) => {
                self.seen(&Subject::Controller(controller.id.clone()));
                self.snapshot.apply(Event::ControllerAppeared(controller), now);
            }
            Event::Vanished(subject) => self.vanished(subject, now),
            event => {
                let scanned =
                    matches!(&event, Event::Read { source: Source::Discovery, outcome: Outcome::Value(_), .. });
                self.snapshot.apply(event, now);
                if scanned {
                    // The collector tells what is there before it tells that it has looked.
                    for subject in std::mem::take(&mut self.unseen) {
                        self.vanished(subject, now);
                    }
                }
            }
        }
    }

    fn seen(&mut self, subject: &Subject) {
        self.unseen.remove(subject);
    }

    fn vanished(&mut self, subject: Subject, now: BootTime) {
        self.seen(&subject);
        match &subject {
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
        self.snapshot.apply(Event::Vanished(subject), now);
    }

    /// A collector begins anew: what it does not tell of until it has looked for devices is gone.
    pub(crate) fn expect_all_again(&mut self) {
        let devices = self.snapshot.devices.keys().cloned().map(Subject::Device);
        let controllers = self.snapshot.controllers.keys().cloned().map(Subject::Controller);
        self.unseen = devices.chain(controllers).collect();
    }

    /// Takes note of an event that is not taken in.
    pub(crate) fn refuse(&mut self, why: &dyn std::fmt::Display) {
        tracing::error!(%why, "event is not taken in");
        self.agent.frames_refused = self.agent.frames_refused.saturating_add(1);
    }

    /// Works out a view at `now`.
    pub(crate) fn turn(&mut self, now: BootTime, clock: ClockSync) -> Turn {
        let (clock, stepped) = self.wall.follow(clock, now);
        self.snapshot.clock = clock;
        self.snapshot.clock_step = self.wall.step();
        self.snapshot.expire(now, &|source| self.limits.freshness(source));
        let agent = Arc::new(self.agent.clone());
        let view = Arc::new(analysis::analyse(&mut self.history, &self.snapshot, &agent, &self.limits, now));
        if stepped {
            log_step(&view);
        }
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
                log_opened(view, found);
            }
        }
        for (key, found) in &self.open {
            if !now.contains_key(key) {
                tracing::info!(
                    rule = found.rule,
                    device = found.device,
                    controller = found.controller,
                    since = since(view, found),
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

/// When a finding began, as `/status` tells it: before it opened, where it had to last first.
fn since(view: &View, found: &Finding) -> Option<String> {
    wall::since(&view.clock, found.since).map(|at| format!("{at:.0}"))
}

/// Says that the wall clock was set, and when what is open began by the clock as it is now.
fn log_step(view: &View) {
    let Some(step) = view.clock_step else { return };
    tracing::warn!(
        seconds = step.by_ns / 1_000_000_000,
        "the wall clock was set: lines before this one bear the former time, /status and metrics tell every time by the \
         present one"
    );
    for found in view.findings.iter().take(MAX_RETOLD) {
        tracing::info!(
            rule = found.rule,
            device = found.device,
            controller = found.controller,
            since = since(view, found),
            "finding is open: {}",
            found.title
        );
    }
}

fn log_opened(view: &View, found: &Finding) {
    macro_rules! opened {
        ($level:ident) => {
            tracing::$level!(
                rule = found.rule,
                severity = found.severity.as_str(),
                device = found.device,
                controller = found.controller,
                since = since(view, found),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::Mutex;
    use storscope_export::{json, text};
    use storscope_model::fault::Fault;
    use tracing_subscriber::fmt::MakeWriter;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// What a turn at `seconds` logs, and its view, with the wall clock `offset` seconds ahead of boot time.
    fn turn(core: &mut Core, seconds: u64, offset: i128) -> (Vec<String>, Arc<View>) {
        let lines = Lines::default();
        let log = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).without_time().finish();
        let clock = ClockSync { boot_id: "one".to_owned(), wall_offset_ns: offset * 1_000_000_000 };
        let turn = tracing::subscriber::with_default(log, || core.turn(BootTime::from_secs(seconds), clock));
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        (text.lines().map(str::to_owned).collect(), turn.view)
    }

    fn failing() -> Core {
        let limits = Limits::default();
        let mut core = Core::new(limits, ProbePolicy::default(), AgentStatus::default(), History::default());
        for second in [100, 105, 110] {
            let at = BootTime::from_secs(second);
            let outcome = Outcome::Failed(Fault::Gone);
            let read = Event::Read { subject: Subject::Host, source: Source::Diskstats, began: at, ended: at, outcome };
            core.apply(read, at);
        }
        core
    }

    #[test]
    fn log_text_and_json_tell_one_beginning_also_after_the_clock_was_set() {
        let mut core = failing();
        let day = 1_790_000_000 / 86_400 * 86_400;
        let (log, view) = turn(&mut core, 110, day);
        assert!(log[0].contains("finding opened: ") && log[0].contains("00:01:40Z"), "{log:?}");
        assert!(text::render(&view, &text::Options::default()).contains("since 00:01 (10 s)"));
        assert_eq!(turn(&mut core, 115, day).0, Vec::<String>::new());

        let (log, view) = turn(&mut core, 120, day + 7200);
        assert!(log[0].contains("the wall clock was set") && log[0].contains("seconds=7200"), "{log:?}");
        assert!(log[1].contains("finding is open: ") && log[1].contains("02:01:40Z"), "{log:?}");
        let page = text::render(&view, &text::Options::default());
        assert!(page.contains("since 02:01 (20 s)") && page.contains("clock     set 2 h forward 0 s ago"), "{page}");
        let status: serde_json::Value = serde_json::from_str(&json::render(&view).unwrap()).unwrap();
        assert!(status["findings"][0]["since"].as_str().unwrap().ends_with("02:01:40Z"), "{}", status["findings"]);
        assert_eq!(status["host"]["clock_set_by_seconds"].as_f64(), Some(7200.0));
        assert!(status["agent"]["started"].as_str().unwrap().ends_with("02:00:00Z"), "{}", status["agent"]);
        assert_eq!(turn(&mut core, 125, day + 7200).0, Vec::<String>::new());
    }
}
