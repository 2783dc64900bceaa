//! Extended counters: what `/proc/diskstats` counts, past its 32-bit fields, resets and coming and going paths.
//!
//! The kernel prints the millisecond fields as `unsigned int` and the others as `unsigned long` (`block/genhd.c`,
//! Documentation/admin-guide/iostats.rst), so the first are subtracted modulo 2^32.

use crate::sample::diskstats::{Direction, DiskCounters, Flushes};
use crate::snapshot::DeviceCounters;

/// A difference of a 32-bit field from here on is a step back, not a wrap.
const STEP_BACK: u64 = 1 << 31;
const U32_RANGE: u64 = 1 << 32;
/// Most path lines of one device that are followed.
pub const MAX_LINES: usize = 64;

/// What became of the counters with the newest sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// First sight, or the counters restarted: there is no difference.
    Restarted,
    /// A path line came, went or restarted: the difference lacks a part.
    Partial,
    /// The difference over the interval.
    Whole(DiskCounters),
}

/// The counters of one device as they are exported: monotonic for as long as the device's own counters are.
#[derive(Debug, Clone, Default)]
pub struct ExtendedCounters {
    lines: Vec<(String, DiskCounters)>,
    by_path: bool,
    total: Option<DiskCounters>,
}

impl ExtendedCounters {
    /// The extended counters; `None` before the first sample.
    pub const fn total(&self) -> Option<&DiskCounters> {
        self.total.as_ref()
    }

    /// Takes in a new sample of the device that the kernel calls `name`.
    ///
    /// A multipath head is the sum of what its path lines gained, whatever the head's own line says: that one is
    /// wrong or zero on many kernels. A path that comes or goes neither adds to the sum nor takes from it.
    pub fn take(&mut self, name: &str, sample: &DeviceCounters) -> Step {
        let by_path = !sample.paths.is_empty();
        let lines: Vec<(String, DiskCounters)> = if by_path {
            sample.paths.iter().take(MAX_LINES).cloned().collect()
        } else {
            sample.own.iter().map(|own| (name.to_owned(), *own)).collect()
        };
        let Some(raw) = sum(&lines) else {
            return Step::Partial;
        };
        let step = match &mut self.total {
            None => Step::Restarted,
            Some(total) if by_path || self.by_path => gain(total, &self.lines, &lines, &raw),
            Some(total) => match single(&self.lines, &lines) {
                Some(delta) => {
                    add(total, &delta);
                    total.in_flight = raw.in_flight;
                    follow_groups(total, &raw);
                    Step::Whole(delta)
                }
                None => Step::Restarted,
            },
        };
        if step == Step::Restarted {
            self.total = Some(raw);
        }
        self.lines = lines;
        self.by_path = by_path;
        step
    }
}

fn single(before: &[(String, DiskCounters)], after: &[(String, DiskCounters)]) -> Option<DiskCounters> {
    match (before, after) {
        ([(old_name, old)], [(new_name, new)]) if old_name == new_name => difference(old, new),
        _ => None,
    }
}

fn gain(
    total: &mut DiskCounters,
    before: &[(String, DiskCounters)],
    after: &[(String, DiskCounters)],
    raw: &DiskCounters,
) -> Step {
    let mut whole = before.len() == after.len();
    let mut gained: Option<DiskCounters> = None;
    for (name, new) in after {
        let old = before.iter().find(|(known, _)| known == name);
        match old.and_then(|(_, old)| difference(old, new)) {
            Some(delta) => match &mut gained {
                Some(sum) => merge(sum, &delta),
                None => gained = Some(delta),
            },
            None => whole = false,
        }
    }
    if let Some(gained) = &gained {
        add(total, gained);
    }
    total.in_flight = raw.in_flight;
    follow_groups(total, raw);
    match gained {
        Some(gained) if whole => Step::Whole(gained),
        _ => Step::Partial,
    }
}

/// Sums lines; a group is there only when every line has it.
fn sum(lines: &[(String, DiskCounters)]) -> Option<DiskCounters> {
    let mut lines = lines.iter();
    let mut total = lines.next()?.1;
    for (_, line) in lines {
        merge(&mut total, line);
    }
    Some(total)
}

fn merge(total: &mut DiskCounters, line: &DiskCounters) {
    let discards = total.discards.zip(line.discards).is_some();
    let flushes = total.flushes.zip(line.flushes).is_some();
    add(total, line);
    total.in_flight = total.in_flight.saturating_add(line.in_flight);
    if !discards {
        total.discards = None;
    }
    if !flushes {
        total.flushes = None;
    }
}

/// Groups that the kernel began or ceased to print begin at, or end with, what it prints.
const fn follow_groups(total: &mut DiskCounters, raw: &DiskCounters) {
    if raw.discards.is_none() || total.discards.is_none() {
        total.discards = raw.discards;
    }
    if raw.flushes.is_none() || total.flushes.is_none() {
        total.flushes = raw.flushes;
    }
}

/// Adds all but `in_flight`.
fn add(total: &mut DiskCounters, delta: &DiskCounters) {
    add_direction(&mut total.reads, &delta.reads);
    add_direction(&mut total.writes, &delta.writes);
    total.io_time_ms = total.io_time_ms.saturating_add(delta.io_time_ms);
    total.weighted_time_ms = total.weighted_time_ms.saturating_add(delta.weighted_time_ms);
    if let (Some(total), Some(delta)) = (&mut total.discards, &delta.discards) {
        add_direction(total, delta);
    }
    if let (Some(total), Some(delta)) = (&mut total.flushes, &delta.flushes) {
        total.completed = total.completed.saturating_add(delta.completed);
        total.time_ms = total.time_ms.saturating_add(delta.time_ms);
    }
}

const fn add_direction(total: &mut Direction, delta: &Direction) {
    total.completed = total.completed.saturating_add(delta.completed);
    total.merged = total.merged.saturating_add(delta.merged);
    total.sectors = total.sectors.saturating_add(delta.sectors);
    total.time_ms = total.time_ms.saturating_add(delta.time_ms);
}

/// What was counted between two samples of one line; `None` when any field stepped back.
fn difference(old: &DiskCounters, new: &DiskCounters) -> Option<DiskCounters> {
    Some(DiskCounters {
        reads: difference_direction(&old.reads, &new.reads)?,
        writes: difference_direction(&old.writes, &new.writes)?,
        in_flight: new.in_flight,
        io_time_ms: milliseconds(old.io_time_ms, new.io_time_ms)?,
        weighted_time_ms: milliseconds(old.weighted_time_ms, new.weighted_time_ms)?,
        discards: match (&old.discards, &new.discards) {
            (Some(old), Some(new)) => Some(difference_direction(old, new)?),
            _ => None,
        },
        flushes: match (&old.flushes, &new.flushes) {
            (Some(old), Some(new)) => Some(Flushes {
                completed: new.completed.checked_sub(old.completed)?,
                time_ms: milliseconds(old.time_ms, new.time_ms)?,
            }),
            _ => None,
        },
    })
}

fn difference_direction(old: &Direction, new: &Direction) -> Option<Direction> {
    Some(Direction {
        completed: new.completed.checked_sub(old.completed)?,
        merged: new.merged.checked_sub(old.merged)?,
        sectors: new.sectors.checked_sub(old.sectors)?,
        time_ms: milliseconds(old.time_ms, new.time_ms)?,
    })
}

fn milliseconds(old: u64, new: u64) -> Option<u64> {
    if old >= U32_RANGE || new >= U32_RANGE {
        return new.checked_sub(old);
    }
    let gone = new.wrapping_sub(old) % U32_RANGE;
    (gone < STEP_BACK).then_some(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(completed: u64, time_ms: u64) -> DiskCounters {
        DiskCounters {
            reads: Direction { completed, merged: 0, sectors: completed * 8, time_ms },
            ..DiskCounters::default()
        }
    }

    fn own(counters: DiskCounters) -> DeviceCounters {
        DeviceCounters { own: Some(counters), paths: Vec::new() }
    }

    fn paths(lines: &[(&str, DiskCounters)]) -> DeviceCounters {
        DeviceCounters {
            own: Some(line(1_000_000, 0)),
            paths: lines.iter().map(|(name, counters)| ((*name).to_owned(), *counters)).collect(),
        }
    }

    fn completed(counters: &ExtendedCounters) -> u64 {
        counters.total().map(|total| total.reads.completed).unwrap()
    }

    #[test]
    fn a_millisecond_field_that_wraps_gains_what_the_field_case_says() {
        assert_eq!(milliseconds(4_294_617_635, 1_024_485), Some(1_374_146));
        let mut counters = ExtendedCounters::default();
        let before = DiskCounters {
            writes: Direction { completed: 10, time_ms: 4_294_617_635, ..Direction::default() },
            ..DiskCounters::default()
        };
        let after = DiskCounters {
            writes: Direction { completed: 20, time_ms: 1_024_485, ..Direction::default() },
            ..DiskCounters::default()
        };
        assert_eq!(counters.take("sda", &own(before)), Step::Restarted);
        let Step::Whole(delta) = counters.take("sda", &own(after)) else { panic!("a wrap is no reset") };
        assert_eq!(delta.writes.time_ms, 1_374_146);
        assert_eq!(counters.total().unwrap().writes.time_ms, 4_294_617_635 + 1_374_146);
    }

    #[test]
    fn values_near_the_wrap_go_on_past_it() {
        let mut counters = ExtendedCounters::default();
        let near = DiskCounters { weighted_time_ms: 3_695_556_828, io_time_ms: 262_085_340, ..DiskCounters::default() };
        let past = DiskCounters { weighted_time_ms: 100, io_time_ms: 262_085_440, ..DiskCounters::default() };
        counters.take("dm-1", &own(near));
        assert!(matches!(counters.take("dm-1", &own(past)), Step::Whole(_)));
        assert_eq!(counters.total().unwrap().weighted_time_ms, U32_RANGE + 100);
    }

    #[test]
    fn a_step_back_of_any_field_restarts() {
        assert_eq!(milliseconds(1000, 999), None);
        let mut counters = ExtendedCounters::default();
        counters.take("sdf", &own(line(100, 50)));
        assert_eq!(counters.take("sdf", &own(line(99, 51))), Step::Restarted);
        assert_eq!(completed(&counters), 99);
        assert!(matches!(counters.take("sdf", &own(line(104, 52))), Step::Whole(delta) if delta.reads.completed == 5));
        assert_eq!(completed(&counters), 104);
    }

    #[test]
    fn another_kernel_name_restarts() {
        let mut counters = ExtendedCounters::default();
        counters.take("nvme0n1", &own(line(100, 50)));
        assert_eq!(counters.take("nvme1n1", &own(line(500, 60))), Step::Restarted);
        assert_eq!(completed(&counters), 500);
    }

    #[test]
    fn absent_groups_stay_absent_and_late_ones_begin_where_they_are() {
        let mut counters = ExtendedCounters::default();
        counters.take("sda", &own(line(1, 1)));
        assert_eq!(counters.total().unwrap().discards, None);
        let late = DiskCounters { discards: Some(Direction { completed: 7, ..Direction::default() }), ..line(2, 2) };
        assert!(matches!(counters.take("sda", &own(late)), Step::Whole(delta) if delta.discards.is_none()));
        assert_eq!(counters.total().unwrap().discards.unwrap().completed, 7);
        counters.take("sda", &own(line(3, 3)));
        assert_eq!(counters.total().unwrap().discards, None);
    }

    #[test]
    fn a_head_is_the_sum_of_what_its_paths_gain() {
        let mut counters = ExtendedCounters::default();
        counters.take("nvme0n1", &paths(&[("nvme0c0n1", line(100, 0)), ("nvme0c1n1", line(50, 0))]));
        assert_eq!(completed(&counters), 150);
        let step = counters.take("nvme0n1", &paths(&[("nvme0c0n1", line(110, 0)), ("nvme0c1n1", line(55, 0))]));
        assert!(matches!(step, Step::Whole(delta) if delta.reads.completed == 15));
        let step = counters.take("nvme0n1", &paths(&[("nvme0c1n1", line(60, 0))]));
        assert_eq!(step, Step::Partial, "a path went: the sum does not fall");
        assert_eq!(completed(&counters), 170);
        let step = counters.take("nvme0n1", &paths(&[("nvme0c1n1", line(61, 0)), ("nvme0c2n1", line(9_000, 0))]));
        assert_eq!(step, Step::Partial, "a path came: the sum does not jump");
        assert_eq!(completed(&counters), 171);
        let step = counters.take("nvme0n1", &paths(&[("nvme0c1n1", line(2, 0)), ("nvme0c2n1", line(9_003, 0))]));
        assert_eq!(step, Step::Partial, "a path restarted: the sum does not fall");
        assert_eq!(completed(&counters), 174);
        assert_eq!(counters.take("nvme0n1", &own(line(5, 0))), Step::Partial);
        assert_eq!(completed(&counters), 174, "the head's own line takes over where the paths left off");
    }

    #[test]
    fn requests_in_flight_are_summed_over_paths() {
        let mut counters = ExtendedCounters::default();
        let busy = |n| DiskCounters { in_flight: n, ..DiskCounters::default() };
        counters.take("nvme0n1", &paths(&[("nvme0c0n1", busy(3)), ("nvme0c1n1", busy(4))]));
        assert_eq!(counters.total().unwrap().in_flight, 7);
        counters.take("nvme0n1", &paths(&[("nvme0c0n1", busy(1)), ("nvme0c1n1", busy(1))]));
        assert_eq!(counters.total().unwrap().in_flight, 2);
    }
}
