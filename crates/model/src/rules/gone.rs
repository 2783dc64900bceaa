//! Devices that are no longer there.

use super::{GoneScope, Judgement, Symptom};
use crate::finding::Severity;

pub(super) fn gone(scope: &GoneScope<'_>) -> Judgement {
    let gone = scope.gone;
    let mut identity: Vec<String> = gone.model.iter().cloned().collect();
    identity.extend(gone.serial.iter().map(|serial| format!("S/N {serial}")));
    identity.push(gone.place.clone());
    let (severity, title) = match &gone.trouble {
        Some(trouble) => (Severity::Critical, format!("drive is gone; before that: {trouble}")),
        None => (Severity::Warning, "drive is gone".to_owned()),
    };
    Judgement::Found(Symptom {
        severity,
        title,
        evidence: vec![identity.join(", ")],
        next:
            "look at the kernel log for its bus or link, and whether it is still in lspci and in its slot; if it was \
               removed on purpose nothing is to be done: this ends by itself after a day"
                .to_owned(),
        since: Some(gone.since),
        at_once: true,
    })
}
