//! What timed reads tell: errors, and reads that do not come back.

use super::health::media_entries;
use super::{DeviceScope, Judgement, Symptom};
use crate::finding::{Severity, Since};
use crate::phrase;
use crate::reading::Reading;
use crate::sample::probe::{ProbeOp, ProbeReport};
use crate::time::BootTime;
use crate::view::ProbeWindow;
use std::time::Duration;

/// Failed reads within the hour, with none that succeeded in [`SILENT`], from which the device counts as unreadable.
const UNREADABLE: u64 = 3;
/// See [`UNREADABLE`].
const SILENT: Duration = Duration::from_secs(300);
/// Failed reads in a row, for as long as [`DEAD_AFTER`], from which it does so already.
const DEAD: u64 = 8;
/// See [`DEAD`].
const DEAD_AFTER: Duration = Duration::from_secs(30);

pub(super) fn errors(scope: &DeviceScope<'_>) -> Judgement {
    let probes = &scope.history.probes;
    let errors = probes.recent_errors();
    let total = errors.iter().fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
    if total == 0 {
        return Judgement::Clear;
    }
    let unreadable = unreadable(scope, total);
    let mut evidence: Vec<String> =
        errors.iter().map(|(errno, n)| format!("{n} x {} in the last hour", phrase::errno_words(*errno))).collect();
    evidence.push(successes(scope, unreadable));
    evidence.extend(nvme_log(scope).unwrap_or_default());
    let names: Vec<&str> =
        errors.iter().map(|(errno, _)| phrase::errno(*errno).map_or("an unnamed errno", |(name, _)| name)).collect();
    let locked =
        if scope.state.device.transport.is_nvme() { "; a locked range (286h) is no fault of the medium" } else { "" };
    Judgement::Found(Symptom {
        severity: if unreadable { Severity::Critical } else { Severity::Warning },
        title: if unreadable {
            format!("no read succeeds: {}", names.join(", "))
        } else {
            format!("reads fail: {}", names.join(", "))
        },
        evidence,
        next: format!("look at the kernel log and the drive's error log{locked}"),
        since: None,
        at_once: true,
    })
}

fn unreadable(scope: &DeviceScope<'_>, total: u64) -> bool {
    let probes = &scope.history.probes;
    let dead = probes.failing().is_some_and(|run| run.reads >= DEAD && scope.facts.now.since(run.since) >= DEAD_AFTER);
    let answered = |window: &ProbeWindow| window.op != ProbeOp::ReadAfterIdle && window.count > 0;
    dead || total >= UNREADABLE && !probes.windows().iter().any(|window| window.window == SILENT && answered(window))
}

/// How many reads succeeded, and when the last one did if none has since.
fn successes(scope: &DeviceScope<'_>, unreadable: bool) -> String {
    let probes = &scope.history.probes;
    let windows = probes.windows();
    let hour = windows.iter().filter(|window| window.window == Duration::from_secs(3600));
    let good = hour.fold(0_u64, |sum, window| sum.saturating_add(window.count));
    let reads = if good == 1 { "1 timed read".to_owned() } else { format!("{good} timed reads") };
    match (probes.last_success(), probes.failing()) {
        (Some(last), failing) if unreadable || failing.is_some() => {
            let ago = phrase::duration(scope.facts.now.since(last));
            format!("last success {ago} ago; {reads} succeeded in the hour before")
        }
        (None, Some(run)) => format!("{} reads failed in a row, none succeeded yet", run.reads),
        _ => format!("{reads} succeeded in the same hour"),
    }
}

fn nvme_log(scope: &DeviceScope<'_>) -> Option<Vec<String>> {
    let nvme = scope.state.device.nvme.as_ref()?;
    let logs = nvme.controllers.iter().filter_map(|id| (scope.controller)(id)?.error_log.fresh());
    Some(logs.flat_map(media_entries).collect())
}

pub(super) fn stalled(scope: &DeviceScope<'_>) -> Judgement {
    let report: &ProbeReport = match &scope.state.probe {
        Reading::Fresh(sample) => &sample.value,
        Reading::Never | Reading::Unsupported { .. } => return Judgement::Clear,
        _ => return Judgement::Unknown,
    };
    let now = scope.facts.now;
    if let Some(since) = report.outstanding_since {
        let age = now.since(since);
        let critical = age >= scope.facts.limits.stall_critical;
        let severity = if critical { Severity::Critical } else { Severity::Warning };
        let title = format!("a read has not come back for {}", phrase::duration(age));
        return found(scope, report, severity, title, since);
    }
    let Some(since) = hang(scope) else {
        return Judgement::Clear;
    };
    let age = phrase::duration(now.since(since));
    let title = format!("the queue is full and nothing has completed for {age}");
    found(scope, report, Severity::Critical, title, since)
}

/// Since when the queue has been full without a completion, where that is long enough to be a hang.
fn hang(scope: &DeviceScope<'_>) -> Option<BootTime> {
    let full = scope.history.probes.queue_full_since()?;
    scope.history.fresh_counters(scope.state)?;
    let since = scope.history.counters.last_completion()?.max(full);
    (scope.facts.now.since(since) > scope.facts.limits.hang).then_some(since)
}

fn found(
    scope: &DeviceScope<'_>,
    report: &ProbeReport,
    severity: Severity,
    title: String,
    since: BootTime,
) -> Judgement {
    let mut evidence = Vec::new();
    if let Some(counters) = scope.history.fresh_counters(scope.state) {
        let depth = scope.state.queue.fresh().and_then(|queue| queue.nr_requests);
        let depth = depth.map(|depth| format!(", the queue holds {depth}")).unwrap_or_default();
        let requests = phrase::count(usize::try_from(counters.in_flight).unwrap_or(usize::MAX), "request");
        evidence.push(format!("{requests} in flight{depth}"));
        if let Some(last) = scope.history.counters.last_completion() {
            let ago = phrase::duration(scope.facts.now.since(last));
            evidence.push(format!("no completion seen for {ago}"));
        }
    }
    if let Some((errno, at)) = report.last_error {
        let ago = phrase::duration(scope.facts.now.since(at));
        evidence.push(format!("last failed read {ago} ago: {}", phrase::errno_words(errno)));
    }
    Judgement::Found(Symptom {
        severity,
        title,
        evidence,
        next: "look for time-outs in the kernel log; processes that touch it will hang: take it out of its array or \
               fail over"
            .to_owned(),
        since: Some(Since::Boot(since)),
        at_once: true,
    })
}
