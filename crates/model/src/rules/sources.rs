//! Sources that give nothing: failing ones by subject, what fails everywhere once for the host, what is denied apart.

use super::{ControllerScope, DeviceScope, HostScope, Judgement, Symptom};
use crate::fault::Fault;
use crate::finding::{Severity, Since};
use crate::limits::Limits;
use crate::phrase;
use crate::sample::Source;
use crate::sample::probe::SkipReason;
use crate::snapshot::{DeviceState, Snapshot, Trouble};
use crate::time::BootTime;
use std::collections::{BTreeMap, BTreeSet};

/// Subjects on which a source must fail to be one finding of the host, if they are at least half of those that have it.
const FOLD: usize = 3;
/// Names and reasons that one line lists.
const MOST_NAMES: usize = 3;
/// Names that the title of what is denied lists.
const TITLE_NAMES: usize = 2;
/// Sources that one finding lists.
const MOST_LINES: usize = 12;

/// Sources in trouble, host-wide.
#[derive(Debug, Clone, Default)]
pub struct Troubles {
    /// Sources that fail on most of their subjects: reason, names.
    folded: BTreeMap<Source, (String, Vec<String>)>,
    /// What is denied: needs (empty when not known), source, names.
    denied: BTreeMap<(String, Source), Vec<String>>,
}

impl Troubles {
    /// Gathers what is in trouble all over the host.
    pub fn gather(snapshot: &Snapshot, limits: &Limits, now: BootTime) -> Self {
        let mut all = Self::default();
        let mut failing: BTreeMap<Source, (String, Vec<String>)> = BTreeMap::new();
        let mut note = |trouble: &Trouble<'_>, name: &str| match trouble.fault {
            Some(Fault::Denied { needs, .. }) => all.deny(needs, trouble.source, name),
            _ if persists(trouble, limits, now) => {
                let (_, names) = failing.entry(trouble.source).or_insert_with(|| (reason(trouble), Vec::new()));
                names.push(name.to_owned());
            }
            _ => {}
        };
        for state in snapshot.devices.values() {
            // A device that is not in the plan owes no report.
            let due = |trouble: &&Trouble<'_>| own(trouble) && (trouble.source != Source::Probe || trouble.count > 0);
            state.troubles().iter().filter(due).for_each(|trouble| note(trouble, &state.device.name));
        }
        for state in snapshot.controllers.values() {
            state.troubles().iter().for_each(|trouble| note(trouble, &state.controller.name));
        }
        for state in snapshot.devices.values().filter(|state| probes_denied(state)) {
            all.deny("", Source::Probe, &state.device.name);
        }
        for trouble in snapshot.host.troubles() {
            if let Some(Fault::Denied { path, needs }) = trouble.fault {
                all.deny(needs, trouble.source, path);
            }
        }
        let on_controllers = |source| {
            !matches!(source, Source::Diskstats | Source::Queue | Source::AtaPower | Source::Namespace | Source::Probe)
        };
        failing.retain(|source, (_, names)| {
            let subjects = if on_controllers(*source) { snapshot.controllers.len() } else { snapshot.devices.len() };
            names.len() >= FOLD && names.len() * 2 >= subjects
        });
        all.folded = failing;
        all
    }

    fn deny(&mut self, needs: &str, source: Source, name: &str) {
        self.denied.entry((needs.to_owned(), source)).or_default().push(name.to_owned());
    }
}

/// A device's counters come from a host-wide file: when that is not read at all, the host says so, and a line that is
/// missing is told by the device.
fn own(trouble: &Trouble<'_>) -> bool {
    trouble.source != Source::Diskstats || matches!(trouble.fault, Some(Fault::Parse { .. }))
}

fn probes_denied(state: &DeviceState) -> bool {
    state.probe.fresh().is_some_and(|report| report.last_skip == Some(SkipReason::Denied))
}

/// True when it failed often enough, for long enough, or has not answered for long enough.
fn persists(trouble: &Trouble<'_>, limits: &Limits, now: BootTime) -> bool {
    let age = now.since(trouble.since);
    let periods = limits.period(trouble.source).saturating_mul(3);
    match trouble.fault {
        Some(Fault::Denied { .. }) => false,
        Some(_) => trouble.count >= limits.failures || (trouble.count >= 2 && age > periods),
        None => age > periods.clamp(limits.no_answer.0, limits.no_answer.1),
    }
}

fn reason(trouble: &Trouble<'_>) -> String {
    trouble.fault.map_or_else(|| "no answer".to_owned(), ToString::to_string)
}

pub(super) fn device_failing(scope: &DeviceScope<'_>) -> Judgement {
    let troubles = scope.state.troubles();
    // Without a place in the plan no report is due.
    let unplanned = scope.history.plan.interval().is_none();
    let due = |trouble: &&Trouble<'_>| own(trouble) && !(unplanned && trouble.source == Source::Probe);
    let troubles: Vec<&Trouble<'_>> = troubles.iter().filter(due).collect();
    failing(&troubles, &scope.facts.troubles.folded, scope.facts.limits, scope.facts.now)
}

pub(super) fn controller_failing(scope: &ControllerScope<'_>) -> Judgement {
    let troubles = scope.state.troubles();
    // A controller that is not live gives nothing, which is its own finding.
    let live = scope.state.state.fresh().is_none_or(|state| state.is_live());
    let troubles: Vec<&Trouble<'_>> =
        troubles.iter().filter(|trouble| live || trouble.source == Source::ControllerState).collect();
    failing(&troubles, &scope.facts.troubles.folded, scope.facts.limits, scope.facts.now)
}

fn failing(
    troubles: &[&Trouble<'_>],
    folded: &BTreeMap<Source, (String, Vec<String>)>,
    limits: &Limits,
    now: BootTime,
) -> Judgement {
    let lasting: Vec<&&Trouble<'_>> = troubles
        .iter()
        .filter(|trouble| persists(trouble, limits, now) && !folded.contains_key(&trouble.source))
        .collect();
    let Some(oldest) = lasting.iter().map(|trouble| trouble.since).min() else {
        return Judgement::Clear;
    };
    let sources: Vec<&str> = lasting.iter().map(|trouble| trouble.source.as_str()).collect();
    let line = |trouble: &&&Trouble<'_>| {
        let ago = phrase::duration(now.since(trouble.since));
        let often = if trouble.count > 0 { format!("{} failures in a row, ", trouble.count) } else { String::new() };
        format!("{}: {}; {often}for {ago}", trouble.source.as_str(), reason(trouble))
    };
    Judgement::Found(Symptom {
        severity: Severity::Warning,
        title: format!("no data from {}", phrase::names(&sources, MOST_NAMES)),
        evidence: lasting.iter().take(MOST_LINES).map(line).collect(),
        next: "see the reason; what these sources would show is not judged meanwhile".to_owned(),
        since: Some(Since::Boot(oldest)),
        at_once: true,
    })
}

pub(super) fn host_failing(scope: &HostScope<'_>) -> Judgement {
    let facts = scope.facts;
    let mut evidence = Vec::new();
    let mut sources: Vec<&str> = Vec::new();
    let mut severity = Severity::Info;
    let mut since: Option<BootTime> = None;
    for trouble in scope.state.troubles().iter().filter(|trouble| persists(trouble, facts.limits, facts.now)) {
        if matches!(trouble.source, Source::Diskstats | Source::Discovery | Source::Stack) {
            severity = Severity::Warning;
        }
        sources.push(trouble.source.as_str());
        since = Some(since.map_or(trouble.since, |known| known.min(trouble.since)));
        let ago = phrase::duration(facts.now.since(trouble.since));
        evidence.push(format!("{}: {}, for {ago}", trouble.source.as_str(), reason(trouble)));
    }
    for (source, (reason, names)) in &facts.troubles.folded {
        severity = Severity::Warning;
        sources.push(source.as_str());
        evidence.push(format!("{}: fails on {}: {reason}", source.as_str(), phrase::names(names, MOST_NAMES)));
    }
    if sources.is_empty() {
        return Judgement::Clear;
    }
    evidence.truncate(MOST_LINES);
    Judgement::Found(Symptom {
        severity,
        title: format!("no data from {}", phrase::names(&sources, MOST_NAMES)),
        evidence,
        next: "see the reason; storscope doctor says what this host lacks".to_owned(),
        since: since.map(Since::Boot),
        at_once: true,
    })
}

pub(super) fn denied(scope: &HostScope<'_>) -> Judgement {
    let denied = &scope.facts.troubles.denied;
    if denied.is_empty() {
        return Judgement::Clear;
    }
    let line = |((needs, source), names): (&(String, Source), &Vec<String>)| {
        let needs = if needs.is_empty() { String::new() } else { format!("; needs {needs}") };
        format!("{}: denied on {}{needs}", source.as_str(), phrase::names(names, MOST_NAMES))
    };
    let sources: BTreeSet<Source> = denied.keys().map(|(_, source)| *source).collect();
    let mut names: Vec<&str> = denied.values().flatten().map(String::as_str).collect();
    names.sort_by(|a, b| phrase::natural_order(a, b));
    names.dedup();
    let only_probes = sources.iter().all(|source| *source == Source::Probe);
    let words: Vec<&str> = sources.iter().map(|source| spoken(*source)).collect();
    let verb = if words.len() > 1 || only_probes { "are" } else { "is" };
    let (what, whom) = (phrase::names(&words, MOST_NAMES), phrase::names(&names, TITLE_NAMES));
    Judgement::Found(Symptom {
        severity: if only_probes { Severity::Info } else { Severity::Warning },
        title: format!("{what} {verb} denied on {whom}"),
        evidence: denied.iter().take(MOST_LINES).map(line).collect(),
        next: "storscope doctor says why and what mends it".to_owned(),
        since: None,
        at_once: true,
    })
}

/// A source as people call it.
const fn spoken(source: Source) -> &'static str {
    match source {
        Source::Probe => "probes",
        Source::SmartHealth => "SMART",
        other => other.as_str(),
    }
}
