//! Everything counted about one device since the prober started.

use crate::histogram::{Latencies, nanoseconds};
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::time::Duration;
use storscope_model::sample::probe::{Engine, ProbeClass, ProbeOp, ProbeReport, SkipReason};
use storscope_model::time::BootTime;

/// Counts of one device.
#[derive(Default)]
pub(crate) struct Tally {
    classes: BTreeMap<(ProbeOp, bool), Latencies>,
    errors: BTreeMap<i32, u64>,
    skipped: BTreeMap<SkipReason, u64>,
    last_skip: Option<SkipReason>,
    last_error: Option<(i32, BootTime)>,
    in_flight_before: Option<u64>,
    busy: Duration,
}

impl Tally {
    pub(crate) fn read(&mut self, op: ProbeOp, busy: bool, took: Duration) {
        self.busy = self.busy.saturating_add(took);
        self.classes.entry((op, busy)).or_insert_with(Latencies::new).record(took);
    }

    /// A read that failed after `took`. Its length is no latency of the device, but it did take the device's time.
    pub(crate) fn failed_read(&mut self, errno: Errno, took: Duration, at: BootTime) {
        self.busy = self.busy.saturating_add(took);
        self.failed(errno, at);
    }

    pub(crate) fn failed(&mut self, errno: Errno, at: BootTime) {
        let number = errno as i32;
        increment(self.errors.entry(number).or_default());
        self.last_error = Some((number, at));
    }

    pub(crate) fn skipped(&mut self, reason: SkipReason) {
        increment(self.skipped.entry(reason).or_default());
        self.last_skip = Some(reason);
    }

    pub(crate) fn burst_began(&mut self) {
        self.last_skip = None;
    }

    pub(crate) fn in_flight_before(&mut self, requests: Option<u64>) {
        self.in_flight_before = requests;
    }

    pub(crate) fn report(&self, engine: Engine, outstanding_since: Option<BootTime>) -> ProbeReport {
        ProbeReport {
            engine,
            classes: self
                .classes
                .iter()
                .map(|((op, busy), latencies)| ProbeClass { op: *op, busy: *busy, latencies: latencies.distribution() })
                .collect(),
            errors: self.errors.iter().map(|(n, count)| (*n, *count)).collect(),
            skipped: self.skipped.iter().map(|(reason, count)| (*reason, *count)).collect(),
            last_skip: self.last_skip,
            last_error: self.last_error,
            outstanding_since,
            in_flight_before: self.in_flight_before,
            busy_ns: nanoseconds(self.busy),
        }
    }
}

fn increment(count: &mut u64) {
    *count = count.saturating_add(1);
}
