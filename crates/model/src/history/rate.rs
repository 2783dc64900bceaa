//! Rates between two samples, as iostat(1) defines them (sysstat, `rd_stats.c`).

use super::counters::{ExtendedCounters, Step};
use crate::reading::Stamped;
use crate::request_times::MILLISECOND;
use crate::sample::diskstats::{Direction, DiskCounters, SECTOR_BYTES};
use crate::snapshot::DeviceCounters;
use crate::time::BootTime;
use crate::view::IoRates;
use std::time::Duration;

/// Counters and rates of one device.
#[derive(Debug, Clone, Default)]
pub struct CounterHistory {
    counters: ExtendedCounters,
    at: Option<(BootTime, BootTime)>,
    rates: Option<IoRates>,
    completed_queue: f64,
    completion: Option<BootTime>,
    resets: u64,
}

impl CounterHistory {
    /// Takes in the newest sample; the same sample seen again changes nothing. True when it was new.
    pub fn take(&mut self, name: &str, sample: &Stamped<DeviceCounters>) -> bool {
        let at = (sample.began, sample.ended);
        let before = self.at;
        if before == Some(at) {
            return false;
        }
        let step = self.counters.take(name, &sample.value);
        let first = before.is_none();
        self.at = Some(at);
        self.rates = match (&step, before) {
            (Step::Whole(delta), Some(before)) => {
                let interval = middle(at).since(middle(before));
                self.completed_queue = completed_queue(delta, interval);
                rates(delta, interval)
            }
            _ => None,
        };
        match step {
            Step::Restarted if !first => self.resets = self.resets.saturating_add(1),
            Step::Whole(delta) if completions(&delta) > 0 => self.completion = Some(sample.ended),
            Step::Restarted | Step::Whole(_) | Step::Partial => {}
        }
        if self.completion.is_none() {
            self.completion = Some(sample.ended);
        }
        true
    }

    /// The extended counters; `None` before the first sample.
    pub const fn counters(&self) -> Option<&DiskCounters> {
        self.counters.total()
    }

    /// Rates over the newest interval.
    pub const fn rates(&self) -> Option<IoRates> {
        self.rates
    }

    /// The same with a queue that is worked out from the times of completed requests (Little's law), for kernels whose
    /// `time_in_queue` cannot be used.
    pub fn rates_by_completion(&self) -> Option<IoRates> {
        self.rates.map(|rates| IoRates { queue: self.completed_queue, ..rates })
    }

    /// End of the newest sample that showed a completion, or of the first sample.
    pub const fn last_completion(&self) -> Option<BootTime> {
        self.completion
    }

    /// How often the counters restarted since the device was first seen.
    pub const fn resets(&self) -> u64 {
        self.resets
    }
}

/// Requests of any kind that completed.
pub fn completions(counters: &DiskCounters) -> u64 {
    let discards = counters.discards.map_or(0, |discards| discards.completed);
    let flushes = counters.flushes.map_or(0, |flushes| flushes.completed);
    [counters.writes.completed, discards, flushes].into_iter().fold(counters.reads.completed, u64::saturating_add)
}

/// A line was printed at some instant of the read: its middle is wrong by half of the read's duration at most, and not
/// always to the same side, as either end would be when one read is slow.
fn middle((began, ended): (BootTime, BootTime)) -> BootTime {
    BootTime(began.0 + ended.0.saturating_sub(began.0) / 2)
}

/// Rates of what was counted within `interval`; `None` when no time passed.
fn rates(delta: &DiskCounters, interval: Duration) -> Option<IoRates> {
    let seconds = interval.as_secs_f64();
    if interval.is_zero() {
        return None;
    }
    let per_second = |count: u64| number(count) / seconds;
    Some(IoRates {
        interval,
        reads_per_second: per_second(delta.reads.completed),
        writes_per_second: per_second(delta.writes.completed),
        discards_per_second: delta.discards.map(|discards| per_second(discards.completed)),
        flushes_per_second: delta.flushes.map(|flushes| per_second(flushes.completed)),
        read_bytes_per_second: bytes(delta.reads.sectors) / seconds,
        written_bytes_per_second: bytes(delta.writes.sectors) / seconds,
        read_await_seconds: await_seconds(&delta.reads),
        write_await_seconds: await_seconds(&delta.writes),
        read_await_resolution_seconds: resolution_seconds(&delta.reads),
        write_await_resolution_seconds: resolution_seconds(&delta.writes),
        queue: number(delta.weighted_time_ms) / 1000.0 / seconds,
        utilisation: (number(delta.io_time_ms) / 1000.0 / seconds).min(1.0),
    })
}

/// Mean requests in flight by the times of those that completed within `interval`; 0 when no time passed.
fn completed_queue(delta: &DiskCounters, interval: Duration) -> f64 {
    if interval.is_zero() {
        return 0.0;
    }
    let discards = delta.discards.map_or(0, |discards| discards.time_ms);
    let flushes = delta.flushes.map_or(0, |flushes| flushes.time_ms);
    let all = [delta.reads.time_ms, delta.writes.time_ms, discards, flushes];
    number(all.into_iter().fold(0, u64::saturating_add)) / 1000.0 / interval.as_secs_f64()
}

fn await_seconds(delta: &Direction) -> Option<f64> {
    (delta.completed > 0).then(|| number(delta.time_ms) / 1000.0 / number(delta.completed))
}

fn resolution_seconds(delta: &Direction) -> Option<f64> {
    (delta.completed > 0).then(|| MILLISECOND.as_secs_f64() / number(delta.completed))
}

fn bytes(sectors: u64) -> f64 {
    number(sectors) * number(SECTOR_BYTES)
}

#[expect(clippy::cast_precision_loss, reason = "a rate needs no digits past 2^53")]
const fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::diskstats::Flushes;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn sample(counters: DiskCounters, began_ms: u64, ended_ms: u64) -> Stamped<DeviceCounters> {
        Stamped {
            value: Arc::new(DeviceCounters { own: Some(counters), paths: Vec::new() }),
            began: BootTime(began_ms * 1_000_000),
            ended: BootTime(ended_ms * 1_000_000),
        }
    }

    fn busy(reads: u64) -> DiskCounters {
        DiskCounters {
            reads: Direction { completed: reads, merged: 1, sectors: reads * 8, time_ms: reads * 2 },
            writes: Direction { completed: 3, merged: 0, sectors: 24, time_ms: 9 },
            in_flight: 1,
            io_time_ms: reads * 3,
            weighted_time_ms: reads * 4,
            discards: None,
            flushes: Some(Flushes { completed: reads / 2, time_ms: 0 }),
        }
    }

    #[test]
    fn rates_are_those_of_iostat() {
        let mut history = CounterHistory::default();
        assert!(history.take("sda", &sample(busy(100), 1000, 1000)));
        assert_eq!(history.rates(), None, "nothing can be said at first sight");
        history.take("sda", &sample(busy(600), 6000, 6000));
        let rates = history.rates().unwrap();
        assert_eq!(rates.interval, Duration::from_secs(5));
        assert_eq!(rates.reads_per_second.to_bits(), 100.0_f64.to_bits());
        assert_eq!(rates.read_bytes_per_second.to_bits(), (100.0_f64 * 4096.0).to_bits());
        assert_eq!(rates.read_await_seconds, Some(0.002));
        assert_eq!(rates.read_await_resolution_seconds, Some(0.001 / 500.0));
        assert_eq!(rates.write_await_resolution_seconds, None, "none completed");
        assert_eq!(rates.write_await_seconds, None, "no write completed");
        assert!((rates.queue - 0.4).abs() < 1e-12);
        assert!((rates.utilisation - 0.3).abs() < 1e-12);
        assert_eq!(rates.flushes_per_second, Some(50.0));
        assert_eq!(rates.discards_per_second, None);
        let by_completion = history.rates_by_completion().unwrap();
        assert!((by_completion.queue - 0.2).abs() < 1e-12, "500 reads of 2 ms within 5 s");
        assert_eq!(IoRates { queue: rates.queue, ..by_completion }, rates);
    }

    #[test]
    fn the_interval_is_from_middle_to_middle_of_the_reads() {
        let mut history = CounterHistory::default();
        history.take("sda", &sample(busy(0), 1000, 3000));
        history.take("sda", &sample(busy(10), 6000, 6200));
        assert_eq!(history.rates().unwrap().interval, Duration::from_millis(4100));
    }

    #[test]
    fn the_same_sample_again_keeps_the_rates() {
        let mut history = CounterHistory::default();
        history.take("sda", &sample(busy(0), 0, 0));
        history.take("sda", &sample(busy(50), 5000, 5000));
        let rates = history.rates();
        assert!(rates.is_some());
        assert!(!history.take("sda", &sample(busy(50), 5000, 5000)));
        assert_eq!(history.rates(), rates);
    }

    #[test]
    fn utilisation_is_capped_and_no_time_is_no_rate() {
        let mut history = CounterHistory::default();
        history.take("sda", &sample(busy(0), 0, 0));
        history.take("sda", &sample(busy(5000), 1000, 1000));
        assert_eq!(history.rates().unwrap().utilisation.to_bits(), 1.0_f64.to_bits());
        let mut still = CounterHistory::default();
        still.take("sda", &sample(busy(0), 1000, 3000));
        still.take("sda", &sample(busy(10), 2000, 2000));
        assert_eq!(still.rates(), None);
    }

    #[test]
    fn one_step_back_gives_no_sample_and_then_rates_again() {
        let mut history = CounterHistory::default();
        history.take("sdf", &sample(busy(100), 0, 0));
        history.take("sdf", &sample(busy(99), 5000, 5000));
        assert_eq!((history.rates(), history.resets()), (None, 1));
        history.take("sdf", &sample(busy(149), 10_000, 10_000));
        assert_eq!(history.rates().unwrap().reads_per_second.to_bits(), 10.0_f64.to_bits());
    }

    fn direction() -> impl Strategy<Value = Direction> {
        (any::<u64>(), any::<u64>(), any::<u64>(), prop_oneof![any::<u64>(), any::<u32>().prop_map(u64::from)])
            .prop_map(|(completed, merged, sectors, time_ms)| Direction { completed, merged, sectors, time_ms })
    }

    fn counters() -> impl Strategy<Value = DiskCounters> {
        let group = proptest::option::of(direction());
        let flushes = proptest::option::of((any::<u64>(), any::<u64>()));
        (direction(), direction(), any::<u64>(), any::<u64>(), any::<u64>(), group, flushes).prop_map(
            |(reads, writes, in_flight, io_time_ms, weighted_time_ms, discards, flushes)| DiskCounters {
                reads,
                writes,
                in_flight,
                io_time_ms,
                weighted_time_ms,
                discards,
                flushes: flushes.map(|(completed, time_ms)| Flushes { completed, time_ms }),
            },
        )
    }

    proptest! {
        #[test]
        fn rates_are_never_negative_nor_endless(
            samples in proptest::collection::vec((counters(), any::<u64>(), any::<u64>()), 2..6)
        ) {
            let mut history = CounterHistory::default();
            for (counters, began, ended) in samples {
                let value = Arc::new(DeviceCounters { own: Some(counters), paths: Vec::new() });
                history.take("sda", &Stamped { value, began: BootTime(began), ended: BootTime(ended) });
                if let Some(rates) = history.rates() {
                    let all = [
                        Some(rates.reads_per_second), Some(rates.writes_per_second), rates.discards_per_second,
                        rates.flushes_per_second, Some(rates.read_bytes_per_second),
                        Some(rates.written_bytes_per_second), rates.read_await_seconds, rates.write_await_seconds,
                        Some(rates.queue), Some(rates.utilisation),
                        history.rates_by_completion().map(|rates| rates.queue),
                    ];
                    for rate in all.into_iter().flatten() {
                        prop_assert!(rate.is_finite() && rate >= 0.0);
                    }
                    prop_assert!(rates.utilisation <= 1.0);
                }
            }
        }

        #[test]
        fn counters_that_rise_are_never_lost(steps in proptest::collection::vec(0_u64..1_000_000_000, 1..20)) {
            let mut history = CounterHistory::default();
            let mut true_ms = 4_000_000_000_u64;
            let raw = |ms: u64, n: u64| DiskCounters {
                reads: Direction { completed: n, time_ms: ms % (1 << 32), ..Direction::default() },
                ..DiskCounters::default()
            };
            history.take("sda", &sample(raw(true_ms, 0), 0, 0));
            for (n, step) in (1_u64..).zip(&steps) {
                true_ms += step;
                history.take("sda", &sample(raw(true_ms, n), n * 5000, n * 5000));
            }
            prop_assert_eq!(history.counters().unwrap().reads.time_ms, true_ms);
        }
    }
}
