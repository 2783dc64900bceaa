//! A finding.

use crate::wall;
use jiff::Timestamp;
use serde::Serialize;
use storscope_model::identity::Subject;
use storscope_model::view::View;

#[derive(Serialize)]
pub(super) struct Finding<'v> {
    rule: &'static str,
    severity: &'static str,
    subject: &'static str,
    id: Option<&'v str>,
    device: Option<&'v str>,
    controller: Option<&'v str>,
    since: Option<Timestamp>,
    age_seconds: f64,
    ended: Option<Timestamp>,
    title: &'v str,
    evidence: &'v [String],
    carries: &'v [String],
    next: &'v str,
}

impl<'v> Finding<'v> {
    pub(super) fn of(view: &'v View, finding: &'v storscope_model::finding::Finding) -> Self {
        let (subject, id) = match &finding.subject {
            Subject::Host => ("host", None),
            Subject::Controller(id) => ("controller", Some(id.0.as_str())),
            Subject::Device(id) => ("device", Some(id.0.as_str())),
        };
        Self {
            rule: finding.rule,
            severity: finding.severity.as_str(),
            subject,
            id,
            device: finding.device.as_deref(),
            controller: finding.controller.as_deref(),
            since: wall::since(&view.clock, finding.since),
            age_seconds: finding.since.elapsed(view.now, view.clock.wall_offset_ns).as_secs_f64(),
            ended: finding.ended.and_then(|at| super::time(view, at)),
            title: &finding.title,
            evidence: &finding.evidence,
            carries: &finding.carries,
            next: &finding.next,
        }
    }
}
