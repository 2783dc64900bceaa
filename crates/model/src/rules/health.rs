//! What the drive says of itself: NVMe log page 02h, with the error log as evidence.

use super::{ControllerScope, Judgement, Symptom};
use crate::finding::Severity;
use crate::history::media_errors::WINDOW;
use crate::phrase;
use crate::reading::Reading;
use crate::sample::nvme::{CRITICAL_WARNING_FLAGS, ErrorLog, SmartHealth};
use std::collections::BTreeMap;

/// What the bits of Critical Warning mean, bit 0 first.
const WARNINGS: [&str; 6] = [
    "available spare is below its threshold",
    "temperature is past a threshold",
    "reliability is degraded by errors of the medium or the drive",
    "the medium is read-only",
    "volatile memory backup failed",
    "the persistent memory region is unreliable or read-only",
];
const TEMPERATURE_BIT: u8 = 1 << 1;
const BACKUP_BIT: u8 = 1 << 4;
const DEFINED_BITS: u8 = 0x3F;
/// Slack by which a window of an hour may be short and still be called one.
const NEARLY: u64 = 55;

fn fresh<'a>(scope: &'a ControllerScope<'_>) -> Result<&'a SmartHealth, Judgement> {
    match &scope.state.smart {
        Reading::Fresh(sample) => Ok(&sample.value),
        Reading::Never | Reading::Unsupported { .. } => Err(Judgement::Clear),
        _ => Err(Judgement::Unknown),
    }
}

pub(super) fn critical_warning(scope: &ControllerScope<'_>) -> Judgement {
    let smart = match fresh(scope) {
        Ok(smart) => smart,
        Err(judgement) => return judgement,
    };
    let bits = smart.critical_warning;
    if bits == 0 {
        return Judgement::Clear;
    }
    let mut said = Vec::new();
    let mut evidence = Vec::new();
    for bit in (0_u8..8).filter(|bit| bits & 1 << bit != 0) {
        let index = usize::from(bit);
        let name = CRITICAL_WARNING_FLAGS.get(index).copied().unwrap_or("reserved");
        said.push(WARNINGS.get(index).copied().unwrap_or("a reserved bit is set"));
        evidence.push(format!("critical warning {bits:02x}h: bit {bit}, {name}"));
    }
    evidence.push(format!(
        "spare {} % (threshold {} %), used {} %, media errors {}",
        smart.available_spare_percent,
        smart.available_spare_threshold_percent,
        smart.percentage_used,
        smart.media_errors
    ));
    if let Some(temperature) = smart.temperature_c.filter(|_| bits & TEMPERATURE_BIT != 0) {
        evidence.push(format!("temperature {temperature} °C"));
    }
    let severe = bits & DEFINED_BITS & !TEMPERATURE_BIT;
    let next = if severe == 0 {
        "check air flow, fans and dust".to_owned()
    } else if severe == BACKUP_BIT {
        "expect the loss of cached writes at a power cut; replace the drive".to_owned()
    } else {
        with_mirrors(scope, "save what it carries and replace the drive")
    };
    Judgement::Found(Symptom {
        severity: if severe == 0 { Severity::Warning } else { Severity::Critical },
        title: format!("the drive warns: {}", said.join("; ")),
        evidence,
        next,
        since: None,
        at_once: true,
    })
}

fn with_mirrors(scope: &ControllerScope<'_>, step: &str) -> String {
    let mirrors = (scope.mirrors)();
    if mirrors.is_empty() { step.to_owned() } else { format!("{step}; {}", mirrors.join("; ")) }
}

pub(super) fn spare_low(scope: &ControllerScope<'_>) -> Judgement {
    let smart = match fresh(scope) {
        Ok(smart) => smart,
        Err(judgement) => return judgement,
    };
    let (spare, threshold) = (smart.available_spare_percent, smart.available_spare_threshold_percent);
    if !(1..=100).contains(&threshold) || spare >= threshold {
        return Judgement::Clear;
    }
    Judgement::Found(Symptom {
        severity: Severity::Critical,
        title: format!("spare blocks are down to {spare} %, below the drive's threshold of {threshold} %"),
        evidence: vec![format!("used {} %, media errors {}", smart.percentage_used, smart.media_errors)],
        next: with_mirrors(scope, "replace the drive"),
        since: None,
        at_once: true,
    })
}

pub(super) fn media_errors(scope: &ControllerScope<'_>) -> Judgement {
    if let Err(judgement) = fresh(scope) {
        return judgement;
    }
    let history = &scope.history.media_errors;
    let Some(growth) = history.growth() else {
        return Judgement::Clear;
    };
    let now = scope.facts.now;
    let ago = growth.last.elapsed(now, scope.facts.wall_offset_ns);
    let recent = history.recent(now).filter(|(before, _)| *before < growth.to);
    let mut evidence = Vec::new();
    if let Some((before, time)) = recent {
        let hour = time.as_secs() / 60 >= NEARLY && time <= WINDOW * 2;
        let window = if hour { "the last hour".to_owned() } else { format!("the last {}", phrase::duration(time)) };
        evidence.push(format!("media errors {before} -> {} in {window}", growth.to));
    }
    if recent.is_none_or(|(before, _)| before != growth.from) {
        let since = growth.since.elapsed(now, scope.facts.wall_offset_ns);
        evidence.push(format!("media errors {} -> {} in {}", growth.from, growth.to, phrase::duration(since)));
    }
    if recent.is_none() {
        evidence.push(format!("newest growth {} ago", phrase::duration(ago)));
    }
    if let Some(log) = scope.state.error_log.fresh() {
        evidence.extend(media_entries(log));
    }
    let verb = if recent.is_some() { "are growing" } else { "grew" };
    Judgement::Found(Symptom {
        severity: Severity::Critical,
        title: format!("uncorrected media errors {verb}"),
        evidence,
        next: with_mirrors(scope, "replace the drive"),
        since: Some(growth.since),
        at_once: true,
    })
}

/// Entries of the error log with a media status (SCT 2), a line each status.
pub(super) fn media_entries(log: &ErrorLog) -> Vec<String> {
    let mut by_status: BTreeMap<u16, usize> = BTreeMap::new();
    for entry in log.entries.iter().filter(|entry| media_status(entry.status).is_some()) {
        *by_status.entry(entry.status & 0x7FF).or_default() += 1;
    }
    by_status
        .into_iter()
        .filter_map(|(status, n)| Some(format!("error log: {n} x {} ({status:03x}h)", media_status(status)?)))
        .collect()
}

/// Media and data integrity statuses (NVMe base specification, status code type 2h).
const fn media_status(status: u16) -> Option<&'static str> {
    Some(match status & 0x7FF {
        0x280 => "write fault",
        0x281 => "unrecovered read error",
        0x282 => "guard check error",
        0x283 => "application tag check error",
        0x284 => "reference tag check error",
        0x286 => "access denied",
        0x288 => "storage tag check error",
        _ => return None,
    })
}

pub(super) fn temperature(scope: &ControllerScope<'_>) -> Judgement {
    let smart = match fresh(scope) {
        Ok(smart) => smart,
        Err(judgement) => return judgement,
    };
    let identify = match &scope.state.identify {
        Reading::Fresh(sample) => &sample.value,
        Reading::Never | Reading::Unsupported { .. } => return Judgement::Clear,
        _ => return Judgement::Unknown,
    };
    let Some(now) = smart.temperature_c else {
        return Judgement::Clear;
    };
    let slack = scope.facts.limits.temperature_hysteresis;
    let past = |threshold: Option<i32>, held: bool| {
        threshold.filter(|threshold| now >= threshold.saturating_sub(if held { slack } else { 0 }))
    };
    let critical = past(identify.critical_temperature_c, scope.open == Some(Severity::Critical));
    let (severity, threshold, which) = match critical {
        Some(threshold) => (Severity::Critical, threshold, "critical"),
        None => match past(identify.warning_temperature_c, scope.open.is_some()) {
            Some(threshold) => (Severity::Warning, threshold, "warning"),
            None => return Judgement::Clear,
        },
    };
    let mut evidence = vec![format!(
        "minutes past the warning threshold {}, past the critical one {}, over the drive's life",
        smart.warning_temperature_minutes, smart.critical_temperature_minutes
    )];
    if smart.thermal_transitions.iter().any(|n| *n > 0) {
        let [light, heavy] = smart.thermal_transitions;
        evidence.push(format!("throttled {light} times lightly, {heavy} times heavily"));
    }
    Judgement::Found(Symptom {
        severity,
        title: format!("{now} °C; the drive's own {which} threshold is {threshold} °C"),
        evidence,
        next: "check air flow, fans and dust; a hot drive throttles itself".to_owned(),
        since: None,
        at_once: true,
    })
}

pub(super) fn wear(scope: &ControllerScope<'_>) -> Judgement {
    let smart = match fresh(scope) {
        Ok(smart) => smart,
        Err(judgement) => return judgement,
    };
    let used = smart.percentage_used;
    if used < scope.facts.limits.wear_percent {
        return Judgement::Clear;
    }
    let more = if used == u8::MAX { " or more" } else { "" };
    Judgement::Found(Symptom {
        severity: Severity::Warning,
        title: format!("rated endurance is used up: {used} %{more}"),
        evidence: vec![format!(
            "spare {} % (threshold {} %), media errors {}",
            smart.available_spare_percent, smart.available_spare_threshold_percent, smart.media_errors
        )],
        next: "no failure in itself: plan its replacement, watch spare and media errors".to_owned(),
        since: None,
        at_once: true,
    })
}
