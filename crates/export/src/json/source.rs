//! The state of a source.

use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use storscope_model::snapshot::SourceStatus;
use storscope_model::view::View;

#[derive(Serialize)]
pub(super) struct Source {
    source: &'static str,
    state: &'static str,
    age_seconds: Option<f64>,
    since: Option<Timestamp>,
    reason: Option<String>,
    reads: u64,
    failures: BTreeMap<&'static str, u64>,
    last_duration_seconds: Option<f64>,
}

impl Source {
    pub(super) fn all(view: &View, statuses: Vec<SourceStatus>) -> Vec<Self> {
        statuses
            .into_iter()
            .map(|status| Self {
                source: status.source.as_str(),
                state: status.state,
                age_seconds: status.last_good.map(|at| view.now.since(at).as_secs_f64()),
                since: status.since.and_then(|at| super::time(view, at)),
                reason: status.why,
                reads: status.stats.reads,
                failures: status.stats.failures,
                last_duration_seconds: status.stats.last_duration.map(|took| took.as_secs_f64()),
            })
            .collect()
    }
}
