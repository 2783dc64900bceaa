//! The controller as the kernel sees it, and its firmware.

use super::{ControllerScope, Judgement, Symptom};
use crate::finding::Severity;
use crate::reading::Reading;

pub(super) fn not_live(scope: &ControllerScope<'_>) -> Judgement {
    let sample = match &scope.state.state {
        Reading::Fresh(sample) => sample,
        Reading::Never | Reading::Unsupported { .. } => return Judgement::Clear,
        _ => return Judgement::Unknown,
    };
    if sample.value.is_live() {
        return Judgement::Clear;
    }
    let state = sample.value.state.as_str();
    let dead = state == "dead";
    let next = if dead {
        "the kernel gave the drive up: look for its last messages in the kernel log, power-cycle or reseat it, then \
         replace it"
    } else {
        "look for resets and time-outs in the kernel log; if it does not come back, power-cycle or reseat the drive"
    };
    Judgement::Found(Symptom {
        severity: if dead { Severity::Critical } else { Severity::Warning },
        title: format!("controller is {}, not live", if state.is_empty() { "in no known state" } else { state }),
        evidence: vec![format!("state of {}: {state}", scope.state.controller.name)],
        next: next.to_owned(),
        since: None,
        at_once: dead || scope.facts.captured,
    })
}

pub(super) fn firmware_pending(scope: &ControllerScope<'_>) -> Judgement {
    let slots = match &scope.state.firmware {
        Reading::Fresh(sample) => &sample.value,
        Reading::Never | Reading::Unsupported { .. } => return Judgement::Clear,
        _ => return Judgement::Unknown,
    };
    let Some(next) = slots.next.filter(|next| *next != 0 && *next != slots.active) else {
        return Judgement::Clear;
    };
    let revision = |slot: u8| {
        let index = usize::from(slot).checked_sub(1);
        index.and_then(|index| slots.revisions.get(index)).and_then(Option::as_deref).unwrap_or("an unnamed revision")
    };
    Judgement::Found(Symptom {
        severity: Severity::Info,
        title: format!("firmware {} becomes active at the next reset", revision(next)),
        evidence: vec![format!("slot {} is active ({}), slot {next} is next", slots.active, revision(slots.active))],
        next: "expect the new firmware after the next controller reset or power cycle".to_owned(),
        since: None,
        at_once: true,
    })
}
