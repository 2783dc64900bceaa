//! Cumulative latencies with 1 % precision from 1 µs to 60 s.

use hdrhistogram::Histogram;
use std::time::Duration;
use storscope_model::distribution::{Bucket, Distribution};

/// Longest latency told apart; a longer one is counted here (its true length still counts in the sum).
pub(crate) const LONGEST: Duration = Duration::from_secs(60);
/// Unit of the lowest bucket in nanoseconds: two significant digits at 1 µs need a unit of at most 10 ns.
const UNIT_NS: u64 = 8;
/// First upper bound in nanoseconds; the histogram grows with what is recorded, so that 1,000 devices stay small.
const FIRST_BOUND_NS: u64 = 1_000_000;
const DIGITS: u8 = 2;

/// Latencies since the prober started.
pub(crate) struct Latencies {
    histogram: Histogram<u32>,
    sum_ns: u64,
}

impl Latencies {
    #[expect(clippy::expect_used, reason = "the bounds are constants, and a test builds one")]
    pub(crate) fn new() -> Self {
        let mut histogram =
            Histogram::new_with_bounds(UNIT_NS, FIRST_BOUND_NS, DIGITS).expect("constant bounds are valid");
        histogram.auto(true);
        Self { histogram, sum_ns: 0 }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        let ns = nanoseconds(latency);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        let bounded = ns.min(nanoseconds(LONGEST));
        if self.histogram.record(bounded).is_err() {
            self.histogram.saturating_record(bounded);
        }
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let buckets = self
            .histogram
            .iter_recorded()
            .map(|step| Bucket { upper_ns: step.value_iterated_to(), count: step.count_since_last_iteration() })
            .collect();
        Distribution::new(buckets, self.sum_ns)
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_percent_from_a_microsecond_to_a_minute(ns in 1_000_u64..=60_000_000_000) {
            let mut latencies = Latencies::new();
            latencies.record(Duration::from_nanos(ns));
            let shown = latencies.distribution().quantile_ns(0.5).unwrap();
            prop_assert!(shown >= ns && shown - ns <= ns / 100, "{ns} shown as {shown}");
        }

        #[test]
        fn no_count_is_lost_and_growth_moves_no_bound(all in prop::collection::vec(0_u64..200_000_000_000, 0..200)) {
            let mut latencies = Latencies::new();
            let mut sum = 0;
            let mut before = latencies.distribution();
            for ns in &all {
                latencies.record(Duration::from_nanos(*ns));
                sum += ns;
                let now = latencies.distribution();
                prop_assert_eq!(now.minus(&before).map(|added| added.count()), Some(1));
                before = now;
            }
            prop_assert_eq!(before.count(), all.len() as u64);
            prop_assert_eq!(before.sum_ns(), sum);
        }
    }

    #[test]
    fn what_lasts_longer_than_a_minute_is_counted_at_a_minute() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_secs(300));
        let shown = latencies.distribution();
        assert_eq!(shown.count(), 1);
        assert_eq!(shown.sum_ns(), 300_000_000_000);
        let bound = shown.buckets()[0].upper_ns;
        assert!((60_000_000_000..=60_600_000_000).contains(&bound), "{bound}");
    }
}
