//! The same events at the same times give the same view, to the byte.

use crate::arbitrary::event;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;
use storscope_model::analysis::analyse;
use storscope_model::event::Event;
use storscope_model::history::History;
use storscope_model::limits::Limits;
use storscope_model::probe_plan::{ProbePolicy, plan};
use storscope_model::snapshot::Snapshot;
use storscope_model::time::BootTime;
use storscope_model::view::AgentStatus;

fn run(events: &[Event]) -> String {
    let (limits, agent) = (Limits::default(), Arc::new(AgentStatus::default()));
    let (mut snapshot, mut history) = (Snapshot::default(), History::default());
    let mut said = String::new();
    for (n, event) in (1_u64..).zip(events) {
        let now = BootTime::from_secs(n * 5);
        snapshot.apply(event.clone(), now);
        snapshot.expire(now, &|source| limits.freshness(source));
        let view = analyse(&mut history, &snapshot, &agent, &limits, now);
        let plan = plan(&snapshot, &mut history, &ProbePolicy::default(), now);
        said.push_str(&format!("{view:?}\n{plan:?}\n"));
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_replay_says_the_same(events in vec(event(), 1..40)) {
        prop_assert_eq!(run(&events), run(&events));
    }
}
