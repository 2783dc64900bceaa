//! What holds for every input.

use crate::arbitrary::{distribution, event};
use crate::scenario::{nvme_controller, nvme_device};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use storscope_model::analysis::analyse;
use storscope_model::codec::{self, CodecError, HEADER, MAX_PAYLOAD, PROTOCOL};
use storscope_model::distribution::{Bucket, Distribution, MAX_BUCKETS};
use storscope_model::event::{Event, Slot};
use storscope_model::fault::Fault;
use storscope_model::finding::Verdict;
use storscope_model::history::History;
use storscope_model::limits::Limits;
use storscope_model::outbox::Outbox;
use storscope_model::probe_plan::{ProbePolicy, plan};
use storscope_model::reading::Reading;
use storscope_model::snapshot::Snapshot;
use storscope_model::time::BootTime;
use storscope_model::view::AgentStatus;

fn header(frame: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header.copy_from_slice(&frame[..HEADER]);
    header
}

#[test]
fn foreign_protocols_and_hostile_lengths_are_refused_before_anything_is_allocated() {
    assert_eq!(codec::payload_length([PROTOCOL + 1, 0, 0, 0, 0]), Err(CodecError::Protocol(PROTOCOL + 1)));
    let [a, b, c, d] = u32::MAX.to_le_bytes();
    assert!(matches!(codec::payload_length([PROTOCOL, a, b, c, d]), Err(CodecError::TooLong(_))));
    let [a, b, c, d] = u32::try_from(MAX_PAYLOAD).unwrap().to_le_bytes();
    assert_eq!(codec::payload_length([PROTOCOL, a, b, c, d]), Ok(MAX_PAYLOAD));
    assert!(matches!(codec::encode(&vec![0_u8; MAX_PAYLOAD + 1]), Err(CodecError::TooLong(_))));
    let endless_list = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1, 2, 3];
    assert!(matches!(codec::decode::<Vec<String>>(&endless_list), Err(CodecError::Malformed(_))));
    assert!(matches!(codec::decode::<String>(&endless_list), Err(CodecError::Malformed(_))));
    assert!(codec::decode::<u8>(&[1, 2]).is_err(), "bytes left over");
}

#[test]
fn a_full_distribution_keeps_every_count() {
    let buckets = (0..10_000).map(|n| Bucket { upper_ns: n, count: 1 }).collect();
    let full = Distribution::new(buckets, 1);
    assert_eq!((full.buckets().len(), full.count()), (MAX_BUCKETS, 10_000));
    assert_eq!(full.quantile_ns(1.0), Some(9_999));
}

#[test]
fn what_appears_goes_before_what_waits_and_only_the_superseded_is_lost() {
    let mut outbox = Outbox::default();
    let stalled = |since| Event::Stalled {
        subject: storscope_model::identity::Subject::Host,
        source: storscope_model::sample::Source::Cpu,
        since: BootTime(since),
    };
    outbox.put(stalled(1));
    outbox.put(Event::DeviceAppeared(Box::new(nvme_device(0))));
    outbox.put(Event::ControllerAppeared(Box::new(nvme_controller(0))));
    outbox.put(stalled(2));
    assert_eq!(outbox.superseded(), 1);
    assert!(matches!(outbox.take(), Some(Event::DeviceAppeared(_))));
    assert!(matches!(outbox.take(), Some(Event::ControllerAppeared(_))));
    assert_eq!(outbox.take(), Some(stalled(2)));
    assert!(outbox.is_empty() && outbox.take().is_none());
}

#[derive(Debug, Clone)]
enum Change {
    Succeed(u32),
    Fail,
    Stall,
    Withhold,
    Unsupport,
    Expire,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<u32>().prop_map(Change::Succeed),
        Just(Change::Fail),
        Just(Change::Stall),
        Just(Change::Withhold),
        Just(Change::Unsupport),
        Just(Change::Expire),
    ]
}

proptest! {
    #[test]
    fn events_survive_the_codec(event in event()) {
        let frame = codec::encode(&event).unwrap();
        prop_assert_eq!(codec::payload_length(header(&frame)), Ok(frame.len() - HEADER));
        prop_assert_eq!(&codec::decode::<Event>(&frame[HEADER..]).unwrap(), &event);
        for cut in [HEADER, HEADER + (frame.len() - HEADER) / 2, frame.len() - 1] {
            prop_assert!(codec::decode::<Event>(&frame[HEADER..cut]).is_err());
        }
    }

    #[test]
    fn no_bytes_make_the_codec_panic(bytes in vec(any::<u8>(), 0..400), head in any::<[u8; HEADER]>()) {
        if let Ok(event) = codec::decode::<Event>(&bytes) {
            prop_assert!(codec::encode(&event).is_ok());
        }
        if let Ok(length) = codec::payload_length(head) {
            prop_assert!(length <= MAX_PAYLOAD);
        }
    }

    #[test]
    fn what_is_added_can_be_taken_away(a in distribution(), b in distribution()) {
        let mut both = a.clone();
        both.add(&b);
        prop_assert_eq!(both.count(), a.count() + b.count());
        let rest = both.minus(&a).unwrap();
        prop_assert_eq!(rest.buckets(), b.buckets());
        let mut other = b.clone();
        other.add(&a);
        prop_assert_eq!(both.buckets(), other.buckets());
        if a.count() > b.count() {
            prop_assert!(b.minus(&a).is_none());
        }
    }

    #[test]
    fn quantiles_rise_and_lie_within(d in distribution(), p in 0.0_f64..=1.0, q in 0.0_f64..=1.0) {
        let (low, high) = if p <= q { (p, q) } else { (q, p) };
        prop_assert_eq!(d.quantile_ns(low).is_some(), d.count() > 0);
        prop_assert!(d.quantile_ns(low) <= d.quantile_ns(high));
        prop_assert_eq!(d.quantiles_ns([low, high]), [d.quantile_ns(low), d.quantile_ns(high)]);
        if let Some(bound) = d.quantile_ns(low) {
            prop_assert!(d.buckets().iter().any(|bucket| bucket.upper_ns == bound));
            #[expect(clippy::cast_precision_loss, reason = "small counts")]
            let share = d.count_up_to(bound) as f64 / d.count() as f64;
            prop_assert!(share >= low - 1e-9);
        }
    }

    #[test]
    fn a_value_is_fresh_only_after_a_good_read_and_its_last_one_is_kept(changes in vec(change(), 1..20)) {
        let mut reading: Reading<u32> = Reading::Never;
        let mut last = None;
        let mut failing: Option<(BootTime, u64)> = None;
        for (n, change) in (1_u64..).zip(changes) {
            let now = BootTime::from_secs(n * 10);
            let was_fresh = reading.fresh().is_some();
            match &change {
                Change::Succeed(value) => {
                    reading.succeed(*value, now, now);
                    last = Some(*value);
                }
                Change::Fail => reading.fail(Fault::Gone, now),
                Change::Stall => reading.stall(now),
                Change::Withhold => reading.withhold("asleep".to_owned(), now),
                Change::Unsupport => {
                    reading.unsupport("no".to_owned());
                    last = None;
                }
                Change::Expire => reading.expire(now, Duration::from_secs(5)),
            }
            failing = match change {
                Change::Fail => failing.map(|(since, count)| (since, count + 1)).or(Some((now, 1))),
                Change::Expire => failing,
                _ => None,
            };
            if was_fresh && matches!(change, Change::Expire) {
                prop_assert_eq!(reading.state(), "stalled");
            }
            prop_assert_eq!(reading.fresh().is_some(), matches!(change, Change::Succeed(_)));
            prop_assert_eq!(reading.up() == Some(true), reading.fresh().is_some());
            prop_assert_eq!(reading.last().map(|stamped| *stamped.value), last);
            let told = if let Reading::Failed { count, since, .. } = &reading { Some((*since, *count)) } else { None };
            prop_assert_eq!(told, failing);
        }
    }

    #[test]
    fn the_outbox_loses_only_what_a_newer_event_replaces(events in vec(event(), 0..60)) {
        let mut outbox = Outbox::default();
        let mut newest = Vec::new();
        for event in &events {
            newest.retain(|older: &Event| older.slot() != event.slot());
            newest.push(event.clone());
            outbox.put(event.clone());
        }
        let mut taken = Vec::new();
        while let Some(event) = outbox.take() {
            taken.push(event);
        }
        prop_assert_eq!(taken.len() as u64 + outbox.superseded(), events.len() as u64);
        let slots: BTreeSet<_> = taken.iter().map(Event::slot).collect();
        prop_assert_eq!(slots.len(), taken.len());
        for event in &newest {
            prop_assert!(taken.contains(event));
        }
        let first_read = taken.iter().position(|event| !matches!(event.slot(), Slot::Presence(_))).unwrap_or(taken.len());
        prop_assert!(taken[first_read..].iter().all(|event| !matches!(event.slot(), Slot::Presence(_))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_events_make_the_analysis_panic_or_say_a_number_that_is_none(
        events in vec((event(), any::<u64>()), 0..80)
    ) {
        let (limits, agent) = (Limits::default(), Arc::new(AgentStatus::default()));
        let (mut snapshot, mut history) = (Snapshot::default(), History::default());
        snapshot.clock.boot_id = "boot".to_owned();
        for (event, now) in events {
            let now = BootTime(now);
            snapshot.apply(event, now);
            snapshot.expire(now, &|source| limits.freshness(source));
            let view = analyse(&mut history, &snapshot, &agent, &limits, now);
            let plan = plan(&snapshot, &mut history, &ProbePolicy::default(), now);
            prop_assert_eq!(plan.targets.len() + plan.not_probed.len(), snapshot.devices.len());
            prop_assert!(view.verdict != Verdict::Ok || !view.devices.is_empty() || !view.controllers.is_empty());
            prop_assert!(!view.headline.is_empty());
            for device in &view.devices {
                for window in &device.probe.windows {
                    prop_assert!(window.count > 0 && (0.0..=1.0).contains(&window.busy_share));
                }
            }
            for bandwidth in view.controllers.iter().filter_map(|c| c.link.as_ref()?.bandwidth_bytes_per_second) {
                prop_assert!(bandwidth.is_finite() && bandwidth >= 0.0);
            }
            let keys: BTreeSet<_> = view.findings.iter().map(|finding| (finding.rule, &finding.subject)).collect();
            prop_assert_eq!(keys.len(), view.findings.len(), "one finding a rule and subject");
        }
        let memory = history.memory(&snapshot.clock);
        let again = History::restore(&memory, &snapshot.clock).memory(&snapshot.clock);
        prop_assert_eq!(again.episodes, memory.episodes);
    }
}
