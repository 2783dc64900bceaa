//! From snapshot and history to what is shown. Pure: no I/O, no clock.

use crate::carries::{Carriers, MAX_LINES};
use crate::finding::{Finding, Severity, Verdict};
use crate::history::episodes::Bearing;
use crate::history::gone::Gone;
use crate::history::{ControllerHistory, DeviceHistory, History};
use crate::identity::{ControllerId, DeviceId, Subject};
use crate::io_ticks;
use crate::limits::Limits;
use crate::link;
use crate::phrase;
use crate::reading::Reading;
use crate::request_times;
use crate::rules::{
    Check, ControllerScope, DEVICE_GONE, DeviceScope, Facts, GoneScope, HostScope, RULES, Rule, Troubles,
};
use crate::snapshot::{ControllerState, DeviceState, Snapshot};
use crate::time::BootTime;
use crate::unread::Unread;
use crate::view::{AgentStatus, ControllerView, DeviceView, IoRates, ProbeView, View};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Names of devices that the headline lists.
const HEADLINE_NAMES: usize = 3;
/// How long after a new configuration devices vanish because it does not select them.
const RESELECTION: Duration = Duration::from_secs(15);

/// Works out everything that is shown. `history` takes in what is new in `snapshot` first.
pub fn analyse(
    history: &mut History,
    snapshot: &Snapshot,
    agent: &Arc<AgentStatus>,
    limits: &Limits,
    now: BootTime,
) -> View {
    history.observe(snapshot, limits, deselects(agent, now), now);
    let carriers = snapshot.host.stack.fresh().map(Carriers::new);
    let relations = Relations::of(snapshot, carriers.as_ref());
    judge(history, snapshot, &relations, agent, limits, now);
    let findings = history.episodes.open(now, snapshot.clock.wall_offset_ns);
    let unread = Unread::of(snapshot, now);
    history.ready |= looked_around(snapshot) && unread.waiting.is_empty();
    let (verdict, headline) = verdict(snapshot, &relations, &findings, &unread, history.ready);
    let controllers = controllers(history, snapshot, &relations);
    View {
        now,
        clock: snapshot.clock.clone(),
        clock_step: snapshot.clock_step,
        host: snapshot.host.clone(),
        cpu: history.cpu.shares(),
        agent_cpu: history.cpu.agent_share(),
        agent: Arc::clone(agent),
        verdict,
        headline,
        unread,
        ready: history.ready,
        findings,
        closed: history.episodes.closed(),
        devices: devices(history, snapshot, relations),
        controllers,
        events_refused: snapshot.events_refused,
    }
}

/// True just after another configuration was taken: what vanishes then is no longer selected.
fn deselects(agent: &AgentStatus, now: BootTime) -> bool {
    agent.config_reloads.0 > 1 && now.since(agent.config_loaded) < RESELECTION
}

/// What hangs together.
struct Relations<'a> {
    devices_of: BTreeMap<&'a ControllerId, Vec<&'a DeviceState>>,
    /// What each device carries, by identity.
    carries: Vec<(&'a DeviceId, Vec<String>)>,
    carriers: Option<&'a Carriers<'a>>,
    names: Vec<&'a str>,
}

impl<'a> Relations<'a> {
    fn of(snapshot: &'a Snapshot, carriers: Option<&'a Carriers<'a>>) -> Self {
        let mut devices_of: BTreeMap<&ControllerId, Vec<&DeviceState>> = BTreeMap::new();
        let mut carries = Vec::with_capacity(snapshot.devices.len());
        for (id, state) in &snapshot.devices {
            for controller in state.device.nvme.iter().flat_map(|nvme| &nvme.controllers) {
                devices_of.entry(controller).or_default().push(state);
            }
            carries.push((id, carriers.map(|known| known.lines(&state.device.name)).unwrap_or_default()));
        }
        for devices in devices_of.values_mut() {
            devices.sort_by(|a, b| phrase::natural_order(&a.device.name, &b.device.name));
        }
        let names = snapshot.devices.values().map(|state| state.device.name.as_str()).collect();
        Self { devices_of, carries, carriers, names }
    }

    fn devices_of(&self, id: &ControllerId) -> &[&'a DeviceState] {
        self.devices_of.get(id).map_or(&[], Vec::as_slice)
    }

    fn carries(&self, id: &DeviceId) -> Vec<String> {
        let place = self.carries.binary_search_by(|(other, _)| (*other).cmp(id));
        place.ok().and_then(|at| self.carries.get(at)).map(|(_, lines)| lines.clone()).unwrap_or_default()
    }

    fn of_device(&self, state: &DeviceState, snapshot: &Snapshot) -> Bearing {
        let controllers = controllers_of(state, snapshot);
        Bearing {
            device: Some(state.device.name.clone()),
            controller: if let [only] = &controllers[..] { Some(only.clone()) } else { None },
            carries: self.carries(&state.device.id),
        }
    }

    fn of_controller(&self, state: &ControllerState) -> Bearing {
        let devices = self.devices_of(&state.controller.id);
        let mut carries: Vec<String> = Vec::new();
        for line in devices.iter().flat_map(|device| self.carries(&device.device.id)) {
            if carries.len() < MAX_LINES && !carries.contains(&line) {
                carries.push(line);
            }
        }
        Bearing {
            device: devices.first().map(|device| device.device.name.clone()),
            controller: Some(state.controller.name.clone()),
            carries,
        }
    }

    fn mirrors(&self, id: &ControllerId) -> Vec<String> {
        let Some(carriers) = self.carriers else {
            return Vec::new();
        };
        let mut said: Vec<String> = Vec::new();
        for device in self.devices_of(id) {
            for mirror in carriers.mirrors(&device.device.name, &self.names) {
                if !said.contains(&mirror) {
                    said.push(mirror);
                }
            }
        }
        said
    }
}

fn of_gone(gone: &Gone) -> Bearing {
    Bearing { device: Some(gone.name.clone()), controller: None, carries: gone.carries.clone() }
}

fn controllers_of(state: &DeviceState, snapshot: &Snapshot) -> Vec<String> {
    let ids = state.device.nvme.iter().flat_map(|nvme| &nvme.controllers);
    ids.filter_map(|id| Some(snapshot.controllers.get(id)?.controller.name.clone())).collect()
}

fn judge(
    history: &mut History,
    snapshot: &Snapshot,
    relations: &Relations<'_>,
    agent: &AgentStatus,
    limits: &Limits,
    now: BootTime,
) {
    let troubles = Troubles::gather(snapshot, limits, now);
    let facts = Facts {
        limits,
        troubles: &troubles,
        captured: agent.captured,
        wall_offset_ns: snapshot.clock.wall_offset_ns,
        now,
    };
    let mut episodes = std::mem::take(&mut history.episodes);
    let wait = |rule: &Rule| if facts.captured { Duration::ZERO } else { (rule.opens_after)(limits) };
    let devices: Vec<(Subject, &DeviceState, &DeviceHistory)> = history
        .devices(snapshot)
        .map(|(state, remembered)| (Subject::Device(state.device.id.clone()), state, remembered))
        .collect();
    let controllers: Vec<(Subject, &ControllerState, &ControllerHistory)> = history
        .controllers(snapshot)
        .map(|(state, remembered)| (Subject::Controller(state.controller.id.clone()), state, remembered))
        .collect();
    for (rule, check) in RULES.iter().flat_map(|rule| rule.checks.iter().map(move |check| (rule, check))) {
        match check {
            Check::Host(check) => {
                let judgement = check(&HostScope { facts, state: &snapshot.host });
                episodes.judge(rule, &Subject::Host, judgement, wait(rule), now, Bearing::default);
            }
            Check::Controller(check) => {
                for (subject, state, history) in &controllers {
                    let mirrors = &|| relations.mirrors(&state.controller.id);
                    let open = episodes.severity(rule.id, subject);
                    let judgement = check(&ControllerScope { facts, state, history, mirrors, open });
                    episodes.judge(rule, subject, judgement, wait(rule), now, || relations.of_controller(state));
                }
            }
            Check::Gone(check) => {
                for (id, gone) in history.gone.iter(snapshot) {
                    let judgement = check(&GoneScope { facts, gone });
                    let subject = Subject::Device(id.clone());
                    episodes.judge(rule, &subject, judgement, wait(rule), now, || of_gone(gone));
                }
            }
            Check::Device(check) => {
                for (subject, state, history) in &devices {
                    let controller = &|id: &ControllerId| snapshot.controllers.get(id);
                    let open = episodes.severity(rule.id, subject);
                    let judgement = check(&DeviceScope { facts, state, history, controller, open });
                    episodes.judge(rule, subject, judgement, wait(rule), now, || relations.of_device(state, snapshot));
                }
            }
        }
    }
    history.episodes = episodes;
    history.remember(snapshot, relations.carries.iter().map(|(id, lines)| (*id, lines.as_slice())), now);
}

/// True when it was looked for devices, and for their counters.
fn looked_around(snapshot: &Snapshot) -> bool {
    snapshot.host.discovery.last().is_some() && !matches!(snapshot.host.diskstats, Reading::Never)
}

/// One word and one sentence. Ok takes a fresh value of every selected device, and that everything that is asked of it was
/// answered or refused once.
fn verdict(
    snapshot: &Snapshot,
    relations: &Relations<'_>,
    findings: &[Finding],
    unread: &Unread,
    ready: bool,
) -> (Verdict, String) {
    let alone = |state: &&ControllerState| relations.devices_of(&state.controller.id).is_empty();
    let total = snapshot.devices.len();
    let worst = findings.first().map(|finding| finding.severity).filter(|severity| *severity > Severity::Info);
    if let Some(worst) = worst {
        let verdict = if worst == Severity::Critical { Verdict::Critical } else { Verdict::Degraded };
        return (verdict, attention(snapshot, relations, findings));
    }
    if total == 0 && snapshot.controllers.is_empty() {
        let seen = snapshot.host.discovery.fresh().map(|discovery| discovery.seen);
        let headline = match seen {
            None if !ready => "starting: drives are looked for".to_owned(),
            None => "no drive is known: nothing was found".to_owned(),
            Some(0) => "this host has no block device".to_owned(),
            Some(seen) => {
                let seen = phrase::count(usize::try_from(seen).unwrap_or(usize::MAX), "block device");
                format!("no drive is selected; {seen} seen")
            }
        };
        return (Verdict::Unknown, headline);
    }
    if !unread.waiting.is_empty() {
        let drives = phrase::count(total + snapshot.controllers.values().filter(alone).count(), "drive");
        let prefix = if ready { "" } else { "starting: " };
        let names = phrase::names(&unread.waiting, HEADLINE_NAMES);
        let n = unread.waiting.len();
        return (Verdict::Unknown, format!("{prefix}{n} of {drives} not yet read: {names}"));
    }
    if !unread.silent.is_empty() {
        return (Verdict::Unknown, format!("no answer yet from {}", phrase::names(&unread.silent, HEADLINE_NAMES)));
    }
    let mut silent: Vec<&str> = snapshot
        .devices
        .values()
        .filter(|state| !looked_at(state, snapshot))
        .map(|state| state.device.name.as_str())
        .collect();
    let controllers = snapshot.controllers.values().filter(alone).filter(|state| !controller_looked_at(state));
    silent.extend(controllers.map(|state| state.controller.name.as_str()));
    if !silent.is_empty() {
        silent.sort_by(|a, b| phrase::natural_order(a, b));
        let names = phrase::names(&silent, HEADLINE_NAMES);
        return (Verdict::Unknown, format!("neither counters nor health are known of {names}"));
    }
    let drives = if total == 0 {
        phrase::count(snapshot.controllers.len(), "controller")
    } else {
        phrase::count(total, "drive")
    };
    (Verdict::Ok, format!("{drives}, nothing wrong"))
}

fn attention(snapshot: &Snapshot, relations: &Relations<'_>, findings: &[Finding]) -> String {
    let urgent = |finding: &&Finding| finding.severity > Severity::Info;
    let sick = |state: &&DeviceState| {
        findings.iter().filter(urgent).any(|finding| match &finding.subject {
            Subject::Host => false,
            Subject::Device(id) => *id == state.device.id,
            Subject::Controller(id) => {
                relations.devices_of(id).iter().any(|device| device.device.id == state.device.id)
            }
        })
    };
    let n = snapshot.devices.values().filter(sick).count();
    let gone = findings.iter().filter(|finding| finding.rule == DEVICE_GONE).count();
    let away = if gone == 1 { "1 is gone".to_owned() } else { format!("{gone} are gone") };
    if n > 0 {
        let verb = if n == 1 { "needs" } else { "need" };
        let said = format!("{n} of {} {verb} attention", phrase::count(snapshot.devices.len(), "drive"));
        return if gone > 0 { format!("{said}, {away}") } else { said };
    }
    if gone > 1 {
        return format!("{gone} drives are gone");
    }
    findings.first().map_or_else(String::new, |finding| match (&finding.device, &finding.controller) {
        (Some(name), _) | (None, Some(name)) => format!("{name}: {}", finding.title),
        (None, None) => finding.title.clone(),
    })
}

fn looked_at(state: &DeviceState, snapshot: &Snapshot) -> bool {
    let own = state.counters.fresh().is_some() || state.probe.fresh().is_some();
    let controllers = state.device.nvme.iter().flat_map(|nvme| &nvme.controllers);
    own || controllers.filter_map(|id| snapshot.controllers.get(id)).any(controller_looked_at)
}

fn controller_looked_at(state: &ControllerState) -> bool {
    state.smart.fresh().is_some()
}

fn devices(history: &History, snapshot: &Snapshot, relations: Relations<'_>) -> Vec<DeviceView> {
    let mut all: Vec<_> = history.devices(snapshot).zip(relations.carries).collect();
    all.sort_by(|((a, _), _), ((b, _), _)| phrase::natural_order(&a.device.name, &b.device.name));
    all.into_iter()
        .map(|((state, history), (_, carries))| {
            let counted = state.counters.fresh().is_some() && !state.uncounted();
            let io_time_reliable = io_ticks::reliable(state, &snapshot.host);
            DeviceView {
                state: state.clone(),
                counters: history.fresh_counters(state).copied(),
                rates: if counted { rates(history, state, snapshot, io_time_reliable) } else { None },
                probe: probe(history),
                controllers: controllers_of(state, snapshot),
                carries,
                asleep: asleep(state),
                io_time_reliable,
            }
        })
        .collect()
}

fn rates(history: &DeviceHistory, state: &DeviceState, snapshot: &Snapshot, io_time_reliable: bool) -> Option<IoRates> {
    let counters = &history.counters;
    let rates = if io_time_reliable { counters.rates() } else { counters.rates_by_completion() }?;
    let resolution = |of_one_line: f64| request_times::resolution(of_one_line, state, &snapshot.host);
    Some(IoRates {
        read_await_resolution_seconds: rates.read_await_resolution_seconds.map(resolution),
        write_await_resolution_seconds: rates.write_await_resolution_seconds.map(resolution),
        ..rates
    })
}

fn probe(history: &DeviceHistory) -> ProbeView {
    ProbeView {
        windows: history.probes.windows(),
        not_planned: history.plan.why_not().map(str::to_owned),
        interval: history.plan.interval(),
        recent_skips: history.probes.recent_skips(),
        recent_errors: history.probes.recent_errors(),
        only_fails: history.probes.only_fails(),
    }
}

fn asleep(state: &DeviceState) -> bool {
    state.power.fresh().is_some_and(|power| power.suspended)
        || state.ata_power.fresh().is_some_and(|power| power.asleep())
}

fn controllers(history: &History, snapshot: &Snapshot, relations: &Relations<'_>) -> Vec<ControllerView> {
    let mut all: Vec<_> = history.controllers(snapshot).collect();
    all.sort_by(|(a, _), (b, _)| phrase::natural_order(&a.controller.name, &b.controller.name));
    all.into_iter()
        .map(|(state, history)| {
            let devices = relations.devices_of(&state.controller.id);
            ControllerView {
                state: state.clone(),
                link: state.link.fresh().and_then(link::judge),
                link_changes: history.link.changes(),
                aer_correctable_per_minute: state.aer.fresh().and_then(|_| history.aer.per_minute()),
                devices: devices.iter().map(|device| device.device.name.clone()).collect(),
            }
        })
        .collect()
}
