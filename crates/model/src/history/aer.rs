//! Correctable PCIe errors of a drive and the port above it, a minute.

use crate::reading::Stamped;
use crate::sample::pcie::{Aer, AerFunction, Severity};
use crate::time::BootTime;
use std::collections::VecDeque;
use std::time::Duration;

/// Time over which the rate is taken.
pub const WINDOW: Duration = Duration::from_secs(600);
/// Shortest time that a rate is said of.
const LEAST: Duration = Duration::from_secs(60);
/// Time between two sums that are kept.
const SPACING: Duration = Duration::from_secs(60);

/// What is remembered of one drive's error counters.
#[derive(Debug, Clone, Default)]
pub struct AerHistory {
    sums: VecDeque<(BootTime, u64)>,
    newest: Option<(BootTime, u64)>,
}

impl AerHistory {
    /// Takes in the newest sample. A sum that fell is a function that was added anew: the past is forgotten.
    pub fn take(&mut self, sample: &Stamped<Aer>) {
        let sum = correctable(&sample.value.functions);
        if self.newest.is_some_and(|(_, before)| sum < before) {
            self.sums.clear();
        }
        self.newest = Some((sample.ended, sum));
        if self.sums.back().is_none_or(|(at, _)| sample.ended.since(*at) >= SPACING) {
            self.sums.push_back((sample.ended, sum));
        }
        while self.sums.len() > 1 && self.sums.front().is_some_and(|(at, _)| sample.ended.since(*at) > WINDOW) {
            self.sums.pop_front();
        }
    }

    /// Correctable errors a minute over the last 10 min, or since they were first seen; `None` before one minute.
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no digits past 2^53")]
    pub fn per_minute(&self) -> Option<f64> {
        let (began, before) = *self.sums.front()?;
        let (ended, after) = self.newest?;
        let time = ended.since(began);
        (time >= LEAST).then(|| after.saturating_sub(before) as f64 / time.as_secs_f64() * 60.0)
    }
}

/// Sum of the correctable errors of `functions`.
pub fn correctable(functions: &[AerFunction]) -> u64 {
    functions
        .iter()
        .flat_map(|function| &function.counters)
        .filter(|counter| counter.severity == Severity::Correctable)
        .fold(0, |sum, counter| sum.saturating_add(counter.count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::pcie::AerCounter;
    use std::sync::Arc;

    fn sample(count: u64, at: u64) -> Stamped<Aer> {
        let counter = |severity, count| AerCounter { severity, error: "RxErr".to_owned(), count };
        let functions = vec![AerFunction {
            address: "0000:00:01.1".to_owned(),
            counters: vec![counter(Severity::Correctable, count), counter(Severity::Fatal, 1_000)],
        }];
        Stamped {
            value: Arc::new(Aer { functions, faults: Vec::new() }),
            began: BootTime::from_secs(at),
            ended: BootTime::from_secs(at),
        }
    }

    #[test]
    fn the_rate_is_of_the_last_ten_minutes() {
        let mut aer = AerHistory::default();
        aer.take(&sample(4000, 0));
        aer.take(&sample(4010, 45));
        assert_eq!(aer.per_minute(), None, "less than a minute");
        for n in 4..=200_u64 {
            aer.take(&sample(4010 + n * 5, n * 15));
            assert!(aer.sums.len() <= 12);
        }
        assert!((aer.per_minute().unwrap() - 20.0).abs() < 0.5);
        for n in 201..=260_u64 {
            aer.take(&sample(5010, n * 15));
        }
        assert_eq!(aer.per_minute(), Some(0.0));
    }

    #[test]
    fn counters_that_restart_are_no_rate() {
        let mut aer = AerHistory::default();
        aer.take(&sample(4000, 0));
        aer.take(&sample(4100, 60));
        assert_eq!(aer.per_minute(), Some(100.0));
        aer.take(&sample(3, 120));
        assert_eq!(aer.per_minute(), None);
    }
}
