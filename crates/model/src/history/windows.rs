//! Probe latencies over the last minute, five minutes and hour, from the prober's cumulative distributions.
//!
//! A window is a ring of slices plus their running total; what leaves the oldest slice is taken from the total. With
//! the newest slice still filling, a window is short by up to one slice: 10 s of 1 min, 30 s of 5 min, 5 min of 1 h.

use crate::distribution::{Bucket, Distribution};
use crate::sample::probe::{ProbeClass, ProbeOp, ProbeReport, SkipReason};
use crate::time::BootTime;
use crate::view::ProbeWindow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Windows: length of a slice in seconds, slices.
pub const WINDOWS: [(u64, u64); 3] = [(10, 6), (30, 10), (300, 12)];
/// Quantiles that are shown.
pub const QUANTILES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];
/// Most kinds (errno, reason) that one slice of counts tells apart.
pub const MAX_KINDS: usize = 32;
/// Slice and number of slices over which skipped bursts are counted: 5 min.
const SKIP_SLICES: (u64, u64) = (30, 10);
/// Slice and number of slices over which errors are counted: 1 h.
const ERROR_SLICES: (u64, u64) = (300, 12);
/// Failed reads in a row from which a device counts as one that only fails.
const ONLY_FAILS: u64 = 3;
/// Fewest samples of any quantile.
const MIN_SAMPLES: u64 = 10;

/// Fewest samples that quantile `q` is said from: two must lie above it, and at least ten in all.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the quotient is positive and far below 2^63 for every q below 1"
)]
pub fn samples_needed(q: f64) -> u64 {
    let above = 1.0 - q;
    if above < 1e-9 {
        return u64::MAX;
    }
    // Rounded down by a hair first: 2 / (1 - 0.99) is 200.00000000000017 in binary.
    ((2.0 / above - 1e-6).ceil() as u64).max(MIN_SAMPLES)
}

/// Buckets of one slice, a word each: 40 bits of nanoseconds (18 min), 24 bits of count.
#[derive(Debug, Clone, Default)]
struct Packed(Vec<u64>);

const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const UPPER_MAX: u64 = (1 << (64 - COUNT_BITS)) - 1;

impl Packed {
    fn add(&mut self, latencies: &Distribution) -> Distribution {
        let mut taken = Vec::with_capacity(latencies.buckets().len());
        for bucket in latencies.buckets() {
            let upper = bucket.upper_ns.min(UPPER_MAX);
            let place = self.0.binary_search_by_key(&upper, |word| word >> COUNT_BITS);
            let count = match place {
                Ok(at) => {
                    let old = self.0[at] & COUNT_MASK;
                    let new = old.saturating_add(bucket.count).min(COUNT_MASK);
                    self.0[at] = upper << COUNT_BITS | new;
                    new - old
                }
                Err(at) => {
                    let new = bucket.count.min(COUNT_MASK);
                    self.0.insert(at, upper << COUNT_BITS | new);
                    new
                }
            };
            taken.push(Bucket { upper_ns: upper, count });
        }
        Distribution::new(taken, 0)
    }

    fn distribution(&self) -> Distribution {
        let unpack = |word: &u64| Bucket { upper_ns: word >> COUNT_BITS, count: word & COUNT_MASK };
        Distribution::new(self.0.iter().map(unpack).collect(), 0)
    }
}

#[derive(Debug, Clone, Default)]
struct Slice {
    index: u64,
    busy: u64,
    latencies: Packed,
}

/// One window of one op.
#[derive(Debug, Clone)]
struct Ring {
    slice: u64,
    slices: u64,
    ring: VecDeque<Slice>,
    total: Distribution,
    busy: u64,
}

impl Ring {
    fn new((slice, slices): (u64, u64)) -> Self {
        Self { slice, slices, ring: VecDeque::new(), total: Distribution::default(), busy: 0 }
    }

    fn index(&self, at: BootTime) -> u64 {
        at.0 / 1_000_000_000 / self.slice
    }

    fn add(&mut self, latencies: &Distribution, busy: bool, at: BootTime) {
        let index = self.index(at);
        if self.ring.back().is_none_or(|newest| newest.index < index) {
            self.forget(at);
            self.ring.push_back(Slice { index, ..Slice::default() });
        }
        let Some(slice) = self.ring.back_mut() else {
            return;
        };
        let taken = slice.latencies.add(latencies);
        if busy {
            slice.busy = slice.busy.saturating_add(taken.count());
            self.busy = self.busy.saturating_add(taken.count());
        }
        self.total.add(&taken);
    }

    fn forget(&mut self, now: BootTime) {
        let index = self.index(now);
        while self.ring.front().is_some_and(|oldest| oldest.index.saturating_add(self.slices) <= index) {
            let Some(oldest) = self.ring.pop_front() else {
                return;
            };
            self.busy = self.busy.saturating_sub(oldest.busy);
            self.total = match self.total.minus(&oldest.latencies.distribution()) {
                Some(rest) => rest,
                None => self.ring.iter().fold(Distribution::default(), |mut sum, slice| {
                    sum.add(&slice.latencies.distribution());
                    sum
                }),
            };
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share and a latency need no digits past 2^53")]
    fn view(&self, op: ProbeOp) -> Option<ProbeWindow> {
        let count = self.total.count();
        let bounds = self.total.quantiles_ns(QUANTILES);
        let quantile = |n: usize| {
            let q = QUANTILES[n];
            (q, bounds[n].filter(|_| count >= samples_needed(q)).map(|ns| ns as f64 / 1e9))
        };
        (count > 0).then(|| ProbeWindow {
            op,
            window: Duration::from_secs(self.slice * self.slices),
            count,
            busy_share: (self.busy as f64 / count as f64).min(1.0),
            quantiles: std::array::from_fn(quantile),
        })
    }
}

/// Counts by kind over a window.
#[derive(Debug, Clone)]
struct Tally<K> {
    slice: u64,
    slices: u64,
    ring: VecDeque<(u64, BTreeMap<K, u64>)>,
}

impl<K: Ord + Copy> Tally<K> {
    const fn new((slice, slices): (u64, u64)) -> Self {
        Self { slice, slices, ring: VecDeque::new() }
    }

    fn add(&mut self, kind: K, count: u64, at: BootTime) {
        let index = at.0 / 1_000_000_000 / self.slice;
        if self.ring.back().is_none_or(|(newest, _)| *newest < index) {
            self.forget(at);
            self.ring.push_back((index, BTreeMap::new()));
        }
        if let Some((_, kinds)) = self.ring.back_mut()
            && (kinds.len() < MAX_KINDS || kinds.contains_key(&kind))
        {
            let sum = kinds.entry(kind).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    fn forget(&mut self, now: BootTime) {
        let index = now.0 / 1_000_000_000 / self.slice;
        while self.ring.front().is_some_and(|(oldest, _)| oldest.saturating_add(self.slices) <= index) {
            self.ring.pop_front();
        }
    }

    fn sums(&self) -> Vec<(K, u64)> {
        let mut sums: BTreeMap<K, u64> = BTreeMap::new();
        for (kind, count) in self.ring.iter().flat_map(|(_, kinds)| kinds) {
            let sum = sums.entry(*kind).or_default();
            *sum = sum.saturating_add(*count);
        }
        sums.into_iter().collect()
    }
}

/// Reads that failed in a row, as far as reports tell: none succeeded in a report in which one failed, or since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailingRun {
    /// End of the first report of the run.
    pub since: BootTime,
    /// Failed reads.
    pub reads: u64,
}

/// What is remembered of one device's probes.
#[derive(Debug, Clone)]
pub struct ProbeHistory {
    ops: BTreeMap<ProbeOp, [Ring; 3]>,
    skips: Tally<SkipReason>,
    errors: Tally<i32>,
    newest: Option<(BootTime, Arc<ProbeReport>)>,
    reads: u64,
    queue_full_since: Option<BootTime>,
    failing: Option<FailingRun>,
    last_success: Option<BootTime>,
}

impl Default for ProbeHistory {
    fn default() -> Self {
        Self {
            ops: BTreeMap::new(),
            skips: Tally::new(SKIP_SLICES),
            errors: Tally::new(ERROR_SLICES),
            newest: None,
            reads: 0,
            queue_full_since: None,
            failing: None,
            last_success: None,
        }
    }
}

impl ProbeHistory {
    /// Takes in the newest report, which ended at `ended`; the same report seen again changes nothing.
    ///
    /// After a restart of the prober, which shows as a count that fell, the whole report is new.
    pub fn take(&mut self, report: &Arc<ProbeReport>, ended: BootTime) {
        let before = self.newest.as_ref();
        if before.is_some_and(|(at, _)| *at == ended) {
            return;
        }
        let before = before.map(|(_, report)| Arc::clone(report));
        let gains = before.as_deref().and_then(|before| Gains::between(before, report));
        let gains = gains.unwrap_or_else(|| Gains::whole(report));
        for (op, busy, latencies) in &gains.classes {
            self.reads = self.reads.saturating_add(latencies.count());
            for ring in self.ops.entry(*op).or_insert_with(|| WINDOWS.map(Ring::new)) {
                ring.add(latencies, *busy, ended);
            }
        }
        for (errno, count) in &gains.errors {
            self.reads = self.reads.saturating_add(*count);
            self.errors.add(*errno, *count, ended);
        }
        self.note_run(&gains, ended);
        for (reason, count) in &gains.skipped {
            self.skips.add(*reason, *count, ended);
        }
        self.queue_full_since = match (report.last_skip, self.queue_full_since) {
            (Some(SkipReason::QueueFull), since) => since.or(Some(ended)),
            _ => None,
        };
        self.newest = Some((ended, Arc::clone(report)));
    }

    fn note_run(&mut self, gains: &Gains, ended: BootTime) {
        let failed = gains.errors.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        if gains.classes.iter().any(|(_, _, latencies)| latencies.count() > 0) {
            self.failing = None;
            self.last_success = Some(ended);
        } else if failed > 0 {
            let run = self.failing.get_or_insert(FailingRun { since: ended, reads: 0 });
            run.reads = run.reads.saturating_add(failed);
        }
    }

    /// Lets go of what is older than its window.
    pub fn forget(&mut self, now: BootTime) {
        self.ops.values_mut().flatten().for_each(|ring| ring.forget(now));
        self.skips.forget(now);
        self.errors.forget(now);
    }

    /// Windows with samples, by op, shortest window first.
    pub fn windows(&self) -> Vec<ProbeWindow> {
        self.ops.iter().flat_map(|(op, rings)| rings.iter().filter_map(|ring| ring.view(*op))).collect()
    }

    /// Bursts skipped in the last 5 min.
    pub fn recent_skips(&self) -> Vec<(SkipReason, u64)> {
        self.skips.sums()
    }

    /// Failed reads in the last hour by errno(3).
    pub fn recent_errors(&self) -> Vec<(i32, u64)> {
        self.errors.sums()
    }

    /// Reads that ended, well or not, since the device was first probed.
    pub const fn reads(&self) -> u64 {
        self.reads
    }

    /// Reads that failed since one succeeded; `None` when the newest report with reads has one that did.
    pub const fn failing(&self) -> Option<FailingRun> {
        self.failing
    }

    /// True when so many reads failed in a row that former latencies say nothing of the device as it is.
    pub fn only_fails(&self) -> bool {
        self.failing.is_some_and(|run| run.reads >= ONLY_FAILS)
    }

    /// End of the newest report of a read that succeeded.
    pub const fn last_success(&self) -> Option<BootTime> {
        self.last_success
    }

    /// Since when every burst was skipped because the queue was full; `None` when the newest one was not.
    pub const fn queue_full_since(&self) -> Option<BootTime> {
        self.queue_full_since
    }
}

struct Gains {
    classes: Vec<(ProbeOp, bool, Distribution)>,
    errors: Vec<(i32, u64)>,
    skipped: Vec<(SkipReason, u64)>,
}

impl Gains {
    fn whole(report: &ProbeReport) -> Self {
        Self {
            classes: report.classes.iter().map(|class| (class.op, class.busy, class.latencies.clone())).collect(),
            errors: report.errors.clone(),
            skipped: report.skipped.clone(),
        }
    }

    /// What came between two reports; `None` when anything counted is gone.
    fn between(old: &ProbeReport, new: &ProbeReport) -> Option<Self> {
        let same = |class: &ProbeClass, op, busy| class.op == op && class.busy == busy;
        new.busy_ns.checked_sub(old.busy_ns)?;
        for class in &old.classes {
            let gone = !new.classes.iter().any(|other| same(other, class.op, class.busy));
            if gone && !class.latencies.buckets().is_empty() {
                return None;
            }
        }
        let mut classes = Vec::with_capacity(new.classes.len());
        for class in &new.classes {
            let before = old.classes.iter().find(|other| same(other, class.op, class.busy));
            let gained = match before {
                Some(before) => class.latencies.minus(&before.latencies)?,
                None => class.latencies.clone(),
            };
            if !gained.buckets().is_empty() {
                classes.push((class.op, class.busy, gained));
            }
        }
        Some(Self { classes, errors: gained(&old.errors, &new.errors)?, skipped: gained(&old.skipped, &new.skipped)? })
    }
}

fn gained<K: PartialEq + Copy>(old: &[(K, u64)], new: &[(K, u64)]) -> Option<Vec<(K, u64)>> {
    let count = |counts: &[(K, u64)], kind: K| counts.iter().find(|(other, _)| *other == kind).map_or(0, |(_, n)| *n);
    if old.iter().any(|(kind, n)| count(new, *kind) < *n) {
        return None;
    }
    Some(new.iter().map(|(kind, n)| (*kind, n - count(old, *kind))).filter(|(_, n)| *n > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::probe::Engine;

    fn latencies(buckets: &[(u64, u64)]) -> Distribution {
        let sum = buckets.iter().map(|(upper, count)| upper * count).sum();
        Distribution::new(
            buckets.iter().map(|(upper_ns, count)| Bucket { upper_ns: *upper_ns, count: *count }).collect(),
            sum,
        )
    }

    fn report(read: &[(u64, u64)]) -> ProbeReport {
        let latencies = latencies(read);
        ProbeReport {
            engine: Engine::IoUring,
            busy_ns: latencies.sum_ns(),
            classes: vec![ProbeClass { op: ProbeOp::Read, busy: false, latencies }],
            errors: Vec::new(),
            skipped: Vec::new(),
            last_skip: None,
            last_error: None,
            outstanding_since: None,
            in_flight_before: None,
        }
    }

    fn counts(history: &ProbeHistory) -> Vec<(u64, u64)> {
        history.windows().iter().map(|window| (window.window.as_secs(), window.count)).collect()
    }

    fn at(seconds: u64) -> BootTime {
        BootTime::from_secs(seconds)
    }

    #[test]
    fn quantiles_need_two_samples_above_them() {
        assert_eq!(QUANTILES.map(samples_needed), [10, 40, 200, 2000]);
        assert_eq!(samples_needed(1.0), u64::MAX);
        let mut history = ProbeHistory::default();
        history.take(&Arc::new(report(&[(100_000, 198), (900_000, 1)])), at(100));
        let few = history.windows()[0];
        assert_eq!((few.count, few.quantiles[1].1, few.quantiles[2].1), (199, Some(1e-4), None));
        history.take(&Arc::new(report(&[(100_000, 197 + 1), (900_000, 3)])), at(101));
        assert_eq!(history.windows()[0].quantiles[2].1, Some(9e-4));
    }

    #[test]
    fn windows_hold_what_their_length_says_to_one_slice() {
        let mut history = ProbeHistory::default();
        for second in 0..=7200 {
            history.take(&Arc::new(report(&[(50_000, second + 1)])), at(second));
            history.forget(at(second));
        }
        let [(60, minute), (300, five), (3600, hour)] = counts(&history)[..] else { panic!("three windows") };
        assert!((50..=60).contains(&minute), "{minute}");
        assert!((270..=300).contains(&five), "{five}");
        assert!((3300..=3600).contains(&hour), "{hour}");
        history.forget(at(7200 + 61));
        assert_eq!(counts(&history)[0].0, 300, "nothing is left of the last minute");
        history.forget(at(20_000));
        assert!(history.windows().is_empty());
    }

    #[test]
    fn a_restart_of_the_prober_begins_anew_with_its_whole_report() {
        let mut history = ProbeHistory::default();
        history.take(&Arc::new(report(&[(1000, 40), (2000, 5)])), at(10));
        history.take(&Arc::new(report(&[(1000, 16)])), at(12));
        assert_eq!(counts(&history)[0], (60, 61));
        assert_eq!(history.reads(), 61);
        history.take(&Arc::new(report(&[(1000, 20)])), at(14));
        assert_eq!(history.reads(), 65);
    }

    #[test]
    fn the_same_report_again_counts_once() {
        let mut history = ProbeHistory::default();
        let once = Arc::new(report(&[(1000, 16)]));
        history.take(&once, at(10));
        history.take(&once, at(10));
        assert_eq!(history.reads(), 16);
    }

    #[test]
    fn busy_share_skips_and_errors_are_of_their_windows() {
        let mut history = ProbeHistory::default();
        let mut first = report(&[(1000, 30)]);
        first.classes.push(ProbeClass { op: ProbeOp::Read, busy: true, latencies: latencies(&[(5000, 10)]) });
        first.errors = vec![(5, 2)];
        first.skipped = vec![(SkipReason::QueueFull, 3)];
        history.take(&Arc::new(first.clone()), at(1000));
        assert_eq!(history.windows()[0].busy_share.to_bits(), 0.25_f64.to_bits());
        let mut second = first;
        second.errors = vec![(5, 3), (61, 1)];
        second.last_skip = Some(SkipReason::QueueFull);
        history.take(&Arc::new(second.clone()), at(1400));
        history.forget(at(1400));
        assert_eq!(history.recent_errors(), [(5, 3), (61, 1)]);
        assert!(history.recent_skips().is_empty(), "skips are of the last 5 min");
        assert_eq!(history.queue_full_since(), Some(at(1400)));
        history.take(&Arc::new(second.clone()), at(1404));
        assert_eq!(history.queue_full_since(), Some(at(1400)));
        second.last_skip = None;
        history.take(&Arc::new(second), at(1408));
        assert_eq!(history.queue_full_since(), None);
    }

    #[test]
    fn an_hour_of_varied_reads_stays_small() {
        let mut history = ProbeHistory::default();
        let mut all = Vec::new();
        for burst in 0..900_u64 {
            for read in 0..16_u64 {
                let spread = (burst * 7919 + read * 104_729) % 300;
                all.push(Bucket { upper_ns: 60_000 + spread * 600, count: 1 });
            }
            let mut next = report(&[]);
            next.busy_ns = burst;
            next.classes[0].latencies = Distribution::new(all.clone(), burst);
            history.take(&Arc::new(next), at(burst * 4));
            history.forget(at(burst * 4));
        }
        let words: usize =
            history.ops.values().flatten().flat_map(|ring| &ring.ring).map(|slice| slice.latencies.0.len()).sum();
        assert!(words * 8 < 64 * 1024, "{} bytes", words * 8);
    }
}
