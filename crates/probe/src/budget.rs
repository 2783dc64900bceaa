//! How much of a device's time probes may take.
//!
//! Two limits hold at once: reads a second on average, which spaces the bursts, and a share of the device's time,
//! measured over a sliding window, which cuts bursts short where reads are slow. A rotating disk thus gets fewer reads
//! without being known as one, and so does a sick flash drive.

use std::time::{Duration, Instant};

/// Default reads a second on average.
pub const READS_PER_SECOND: u16 = 4;
/// Most reads a second that a configuration should ask for.
pub const MAX_READS_PER_SECOND: u16 = 64;
/// Default share of a device's time.
pub const DEVICE_SHARE: f64 = 0.005;
/// Window over which the share is measured.
pub const WINDOW: Duration = Duration::from_secs(60);

const SLICE: Duration = Duration::from_secs(1);
const SLICES: u8 = 60;
/// Weight of the newest read in the expected length of the next one: 1 in 4.
const SMOOTHING: u32 = 4;

/// Limits of one device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Reads a second on average, at least 1.
    pub reads_per_second: u32,
    /// Share of the device's time, 0–1.
    pub device_share: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { reads_per_second: u32::from(READS_PER_SECOND), device_share: DEVICE_SHARE }
    }
}

impl Limits {
    /// Least time between the beginnings of two bursts of `reads`.
    pub(crate) fn spacing(self, reads: u16) -> Duration {
        Duration::from_secs(1) * u32::from(reads) / self.reads_per_second.max(1)
    }

    fn allowance(self) -> Duration {
        let share = if self.device_share.is_finite() { self.device_share.clamp(0.0, 1.0) } else { 0.0 };
        WINDOW.mul_f64(share)
    }
}

/// Time spent on one device in the last [`WINDOW`].
pub(crate) struct Budget {
    limits: Limits,
    slices: [Duration; SLICES as usize],
    began: Instant,
    /// Number of the newest slice since `began`.
    newest: u64,
    expected: Duration,
}

impl Budget {
    pub(crate) fn new(limits: Limits, now: Instant) -> Self {
        Self { limits, slices: [Duration::ZERO; SLICES as usize], began: now, newest: 0, expected: Duration::ZERO }
    }

    /// True when one more read, as long as the last ones were, fits. A window without any reading admits one read of
    /// any length: the length of a read is known only afterwards.
    pub(crate) fn affords(&mut self, now: Instant) -> bool {
        self.advance(now);
        let used = self.used();
        used.is_zero() || used + self.expected <= self.limits.allowance()
    }

    /// Counts a read that took `took` and ended `now`.
    pub(crate) fn charge(&mut self, took: Duration, now: Instant) {
        self.advance(now);
        let index = self.index(self.newest);
        if let Some(slice) = self.slices.get_mut(index) {
            *slice = slice.saturating_add(took);
        }
        self.expected = if self.expected.is_zero() {
            took
        } else {
            (self.expected * (SMOOTHING - 1)).saturating_add(took) / SMOOTHING
        };
    }

    fn used(&self) -> Duration {
        self.slices.iter().fold(Duration::ZERO, |sum, slice| sum.saturating_add(*slice))
    }

    fn advance(&mut self, now: Instant) {
        let current = now.saturating_duration_since(self.began).as_secs() / SLICE.as_secs();
        let steps = current.saturating_sub(self.newest).min(u64::from(SLICES));
        for step in 0..steps {
            let index = self.index(current - step);
            if let Some(slice) = self.slices.get_mut(index) {
                *slice = Duration::ZERO;
            }
        }
        self.newest = self.newest.max(current);
    }

    fn index(&self, slice: u64) -> usize {
        usize::try_from(slice % u64::from(SLICES)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads as often as the budget lets, each of `read` length, for `total`; returns the times at which they ended.
    fn greedy(limits: Limits, read: Duration, total: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let mut budget = Budget::new(limits, start);
        let mut at = Duration::ZERO;
        let mut ends = Vec::new();
        while at < total {
            if budget.affords(start + at) {
                at += read;
                budget.charge(read, start + at);
                ends.push(at);
            } else {
                at += Duration::from_millis(100);
            }
        }
        ends
    }

    #[test]
    fn sixteen_reads_are_four_seconds_apart_by_default() {
        assert_eq!(Limits::default().spacing(16), Duration::from_secs(4));
        let none = Limits { reads_per_second: 0, ..Limits::default() };
        assert_eq!(none.spacing(16), Duration::from_secs(16));
    }

    proptest! {
        #[test]
        fn the_share_holds_in_every_window(read_us in 20_u64..299_000) {
            let read = Duration::from_micros(read_us);
            let ends = greedy(Limits::default(), read, Duration::from_secs(300));
            let allowance = WINDOW.mul_f64(DEVICE_SHARE);
            let span = WINDOW - SLICE;
            for (index, first) in ends.iter().enumerate() {
                let inside = ends[index..].iter().take_while(|end| **end < *first + span).count();
                prop_assert!(read * u32::try_from(inside).unwrap() <= allowance);
            }
            prop_assert!(ends.len() >= 4, "{} reads", ends.len());
        }

        #[test]
        fn a_read_longer_than_the_allowance_is_one_a_window(read_ms in 301_u64..20_000) {
            let read = Duration::from_millis(read_ms);
            let ends = greedy(Limits::default(), read, Duration::from_secs(600));
            for pair in ends.windows(2) {
                prop_assert!(pair[1] - pair[0] >= WINDOW - SLICE);
            }
            prop_assert!(ends.len() >= 7, "{} reads", ends.len());
        }
    }

    #[test]
    fn a_rotating_disk_gets_fewer_reads_than_a_flash_drive() {
        let minute = Duration::from_secs(60);
        let rotating = greedy(Limits::default(), Duration::from_millis(8), minute).len();
        assert_eq!(rotating, 37);
    }

    #[test]
    fn a_share_of_nonsense_leaves_one_read_a_window() {
        for share in [f64::NAN, -1.0, f64::INFINITY] {
            let limits = Limits { device_share: share, ..Limits::default() };
            assert_eq!(greedy(limits, Duration::from_millis(1), Duration::from_secs(59)).len(), 1);
        }
    }
}
