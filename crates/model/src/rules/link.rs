//! PCIe links.

use super::{ControllerScope, Judgement, Symptom};
use crate::finding::{Severity, Since};
use crate::history::aer::correctable;
use crate::link::{judge, words};
use crate::phrase;
use crate::reading::Reading;
use crate::sample::pcie::PcieLink;
use crate::view::LinkView;

/// Good samples in a row that end a downgrade.
const GOOD_SAMPLES: u32 = 2;

pub(super) fn downgraded(scope: &ControllerScope<'_>) -> Judgement {
    let link = match fresh(scope) {
        Ok(link) => link,
        Err(judgement) => return judgement,
    };
    let history = &scope.history.link;
    let Some(run) = history.downgrade() else {
        let settled = scope.open.is_none() || history.good() >= GOOD_SAMPLES;
        return if settled { Judgement::Clear } else { Judgement::Unknown };
    };
    let needed = if scope.facts.captured { 1 } else { scope.facts.limits.link_samples };
    if scope.open.is_none() && run.narrow < needed && run.slow_at_work < scope.facts.limits.link_samples {
        return Judgement::Clear;
    }
    let Some(view) = judge(link) else {
        return Judgement::Unknown;
    };
    let (Some(now), Some(full)) = (words(view.current), words(view.expected)) else {
        return Judgement::Unknown;
    };
    Judgement::Found(Symptom {
        severity: Severity::Warning,
        title: format!("PCIe link downgraded to {now}; drive and slot can do {full}"),
        evidence: evidence(scope, &view),
        next: "reseat the drive, check riser and cable, then look here again".to_owned(),
        since: Some(Since::Boot(run.since)),
        at_once: true,
    })
}

pub(super) fn flapping(scope: &ControllerScope<'_>) -> Judgement {
    let link = match fresh(scope) {
        Ok(link) => link,
        Err(judgement) => return judgement,
    };
    let limits = scope.facts.limits;
    let recent = scope.history.link.recent_changes(scope.facts.now, limits.flapping_window);
    let holds = recent >= limits.flapping_changes || (scope.open.is_some() && recent > 0);
    if !holds {
        return Judgement::Clear;
    }
    let window = phrase::duration(limits.flapping_window);
    let mut evidence = vec![format!("{} since the agent started", phrase::count(changes(scope), "change"))];
    if let Some(view) = judge(link) {
        if let Some(now) = words(view.current) {
            evidence.push(format!("now {now}"));
        }
        evidence.extend(self::evidence(scope, &view));
    }
    Judgement::Found(Symptom {
        severity: Severity::Warning,
        title: format!("PCIe link changed speed or width {} in {window}", times(recent)),
        evidence,
        next: "check slot, riser and cable; if only an idle link slows down, it is power saving (ASPM policy)"
            .to_owned(),
        since: None,
        at_once: true,
    })
}

fn fresh<'a>(scope: &'a ControllerScope<'_>) -> Result<&'a PcieLink, Judgement> {
    match &scope.state.link {
        Reading::Fresh(sample) => Ok(&sample.value),
        Reading::Never | Reading::Unsupported { .. } => Err(Judgement::Clear),
        _ => Err(Judgement::Unknown),
    }
}

fn changes(scope: &ControllerScope<'_>) -> usize {
    usize::try_from(scope.history.link.changes()).unwrap_or(usize::MAX)
}

fn times(n: usize) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

fn evidence(scope: &ControllerScope<'_>, view: &LinkView) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(now), Some(full)) = (view.bandwidth_bytes_per_second, view.expected_bandwidth_bytes_per_second) {
        lines.push(format!("{:.1} of {:.1} GB/s on the way to the root", now / 1e9, full / 1e9));
    }
    if let Some(narrow) = &view.narrow_hop {
        lines.push(format!("narrowest hop: below {narrow}"));
    }
    for function in scope.state.aer.fresh().iter().flat_map(|aer| &aer.functions) {
        let errors = correctable(std::slice::from_ref(function));
        if errors > 0 {
            let what = if Some(&function.address) == view.port.as_ref() { "port" } else { "function" };
            lines.push(format!("{errors} correctable errors on {what} {}", function.address));
        }
    }
    if let Some(rate) = scope.history.aer.per_minute().filter(|rate| *rate > 0.0) {
        lines.push(format!("{rate:.1} correctable errors a minute over the last 10 min"));
    }
    lines
}
