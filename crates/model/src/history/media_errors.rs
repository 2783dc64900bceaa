//! Growth of a drive's media errors (NVMe base specification, log page 02h, Media and Data Integrity Errors).
//!
//! The counter spans the drive's life: only what it gained between two samples that were both seen is growth.

use crate::finding::Since;
use crate::memory::{MediaErrorMemory, Moment};
use crate::time::{BootTime, ClockSync};
use std::collections::VecDeque;
use std::time::Duration;

/// Window over which growth is told.
pub const WINDOW: Duration = Duration::from_secs(3600);
/// Time between two values that are kept.
const SPACING: Duration = Duration::from_secs(300);

/// Growth since it was first seen, for as long as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    /// Value before the first growth.
    pub from: u128,
    /// Newest value.
    pub to: u128,
    /// When the value before the first growth was seen.
    pub since: Since,
    /// When the newest growth was seen.
    pub last: Since,
}

/// What is remembered of one controller's media errors.
#[derive(Debug, Clone, Default)]
pub struct MediaErrorHistory {
    values: VecDeque<(BootTime, u128)>,
    newest: Option<(Since, u128)>,
    growth: Option<Growth>,
}

impl MediaErrorHistory {
    /// What a former run of the agent remembered.
    pub fn restore(memory: &MediaErrorMemory, clock: &ClockSync) -> Self {
        let since = |moment: &Moment| moment.since(clock);
        let growth = memory.growth.as_ref().map(|growth| Growth {
            from: growth.from,
            to: memory.value,
            since: since(&growth.since),
            last: since(&growth.last),
        });
        Self { values: VecDeque::new(), newest: Some((since(&memory.seen), memory.value)), growth }
    }

    /// Takes in a value read at `at`. One that fell is another counter: the past is forgotten.
    pub fn take(&mut self, value: u128, at: BootTime) {
        match self.newest {
            Some((_, before)) if value < before => *self = Self::default(),
            Some((seen, before)) if value > before => {
                let growth = self.growth.get_or_insert(Growth { from: before, to: value, since: seen, last: seen });
                growth.to = value;
                growth.last = Since::Boot(at);
            }
            _ => {}
        }
        self.newest = Some((Since::Boot(at), value));
        let changed = self.values.back().is_none_or(|(_, last)| *last != value);
        if changed || self.values.back().is_some_and(|(last, _)| at.since(*last) >= SPACING) {
            self.keep(value, at);
        }
        while self.values.len() > 1 && self.values.get(1).is_some_and(|(next, _)| at.since(*next) >= WINDOW) {
            self.values.pop_front();
        }
    }

    fn keep(&mut self, value: u128, at: BootTime) {
        // Within one spacing only the first value stays: it is the baseline of what comes after it.
        let crowded = self.values.len() >= 2
            && self.values.get(self.values.len() - 2).is_some_and(|(at_before, _)| at.since(*at_before) < SPACING);
        if crowded {
            self.values.pop_back();
        }
        self.values.push_back((at, value));
    }

    /// Forgets growth whose newest part is older than `keep`.
    pub fn forget(&mut self, now: BootTime, clock: &ClockSync, keep: Duration) {
        if self.growth.is_some_and(|growth| growth.last.elapsed(now, clock.wall_offset_ns) > keep) {
            self.growth = None;
        }
    }

    /// The growth that is remembered.
    pub const fn growth(&self) -> Option<Growth> {
        self.growth
    }

    /// Value at the beginning of the last hour and how long ago that was; `None` when nothing was seen before `now`.
    pub fn recent(&self, now: BootTime) -> Option<(u128, Duration)> {
        self.values.front().map(|(at, value)| (*value, now.since(*at)))
    }

    /// What the next run should remember.
    pub fn memory(&self, clock: &ClockSync) -> Option<MediaErrorMemory> {
        let (seen, value) = self.newest?;
        let growth = self.growth.map(|growth| crate::memory::GrowthMemory {
            from: growth.from,
            since: Moment::of(growth.since, clock),
            last: Moment::of(growth.last, clock),
        });
        Some(MediaErrorMemory { controller: String::new(), value, seen: Moment::of(seen, clock), growth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootTime {
        BootTime::from_secs(seconds)
    }

    fn clock() -> ClockSync {
        ClockSync { boot_id: "one".to_owned(), wall_offset_ns: 1_700_000_000_000_000_000 }
    }

    #[test]
    fn a_total_at_first_sight_is_no_growth() {
        let mut media = MediaErrorHistory::default();
        media.take(1_000, at(10));
        media.take(1_000, at(70));
        assert_eq!(media.growth(), None);
    }

    #[test]
    fn growth_has_both_ends() {
        let mut media = MediaErrorHistory::default();
        for minute in 0..120_u64 {
            let value = if minute < 70 { 12 } else { 12 + (minute - 69).min(19) };
            media.take(u128::from(value), at(minute * 60));
        }
        let growth = media.growth().unwrap();
        assert_eq!((growth.from, growth.to), (12, 31));
        assert_eq!((growth.since, growth.last), (Since::Boot(at(69 * 60)), Since::Boot(at(88 * 60))));
        let (before, ago) = media.recent(at(119 * 60)).unwrap();
        assert_eq!(before, 12);
        assert!(ago >= WINDOW && ago < WINDOW + 2 * SPACING, "{ago:?}");
        assert!(media.values.len() < 32);
        media.forget(at(88 * 60 + 86_401), &clock(), Duration::from_secs(86_400));
        assert_eq!(media.growth(), None);
    }

    #[test]
    fn a_value_that_fell_is_another_counter() {
        let mut media = MediaErrorHistory::default();
        media.take(5, at(0));
        media.take(9, at(60));
        media.take(0, at(120));
        assert_eq!(media.growth(), None);
        media.take(1, at(180));
        assert_eq!(media.growth().map(|growth| (growth.from, growth.to)), Some((0, 1)));
    }

    #[test]
    fn a_fast_grower_is_bounded_and_keeps_its_baseline() {
        let mut media = MediaErrorHistory::default();
        for second in 0..7200 {
            media.take(u128::from(second), at(second));
        }
        assert!(media.values.len() < 64, "{}", media.values.len());
        let (before, ago) = media.recent(at(7199)).unwrap();
        assert!(ago >= WINDOW && ago <= WINDOW + 2 * SPACING, "{ago:?}");
        assert_eq!(before, u128::from(7199 - ago.as_secs()));
    }

    #[test]
    fn growth_while_the_agent_was_away_is_seen_from_both_ends() {
        let mut before = MediaErrorHistory::default();
        before.take(4, at(100));
        let memory = before.memory(&clock()).unwrap();
        let later = ClockSync { boot_id: "two".to_owned(), ..clock() };
        let mut after = MediaErrorHistory::restore(&memory, &later);
        after.take(6, at(50));
        let growth = after.growth().unwrap();
        assert_eq!((growth.from, growth.to), (4, 6));
        assert_eq!(growth.since, Since::Wall(clock().wall_ns(at(100))));
    }
}
