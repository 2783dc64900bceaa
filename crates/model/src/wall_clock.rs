//! The wall clock, which may be set at any time.
//!
//! One rule for every wall-clock time that is told, in text, JSON, metrics and the log: it is worked out from boot time by the
//! present wall clock. A clock that is set was wrong before, often by hours after a boot, and Prometheus, the page's own time
//! and every other host go by the right one; a time kept as it was read would stay wrong for as long as the agent runs. Lines
//! that were logged before cannot be changed: the step itself is told.

use crate::time::{BootTime, ClockSync};

/// Two measurements that differ by less are of the same relation: what is told of an instant stays the same from tick to
/// tick. NTP slews both clocks alike (clock_gettime(2)), so that without a step nothing but noise is left.
const NOISE_NS: u128 = 250_000_000;
/// Least change from one tick to the next that is told as a step.
const STEP_NS: u128 = 1_000_000_000;

/// The wall clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// How far, in nanoseconds; negative when it was set back.
    pub by_ns: i128,
    /// When that was seen.
    pub seen: BootTime,
}

/// The wall clock as it is followed from tick to tick.
#[derive(Debug, Clone, Default)]
pub struct WallClock {
    told: Option<ClockSync>,
    measured_ns: i128,
    step: Option<ClockStep>,
}

impl WallClock {
    /// Takes in what was measured at `now`, and gives the relation by which times are told; true with it when the clock was
    /// just set.
    pub fn follow(&mut self, measured: ClockSync, now: BootTime) -> (ClockSync, bool) {
        let offset = measured.wall_offset_ns;
        let by_ns = offset.saturating_sub(self.measured_ns);
        self.measured_ns = offset;
        let Some(told) = self.told.as_mut().filter(|told| told.boot_id == measured.boot_id) else {
            self.told = Some(measured.clone());
            return (measured, false);
        };
        let stepped = by_ns.unsigned_abs() >= STEP_NS;
        if stepped {
            self.step = Some(ClockStep { by_ns, seen: now });
        }
        if offset.abs_diff(told.wall_offset_ns) >= NOISE_NS {
            *told = measured;
        }
        (told.clone(), stepped)
    }

    /// The newest step that was seen.
    pub const fn step(&self) -> Option<ClockStep> {
        self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i128 = 1_000_000;

    fn at(offset_ms: i128) -> ClockSync {
        ClockSync { boot_id: "one".to_owned(), wall_offset_ns: 1_790_000_000_000 * MS + offset_ms * MS }
    }

    fn follow(clock: &mut WallClock, offset_ms: i128, seconds: u64) -> (i128, bool) {
        let (told, stepped) = clock.follow(at(offset_ms), BootTime::from_secs(seconds));
        ((told.wall_offset_ns - at(0).wall_offset_ns) / MS, stepped)
    }

    #[test]
    fn noise_moves_no_time_that_is_told() {
        let mut clock = WallClock::default();
        let told = [0, 3, -200, 249, 0].map(|offset| follow(&mut clock, offset, 1));
        assert_eq!(told, [(0, false); 5]);
        assert_eq!(clock.step(), None);
    }

    #[test]
    fn a_step_is_followed_and_told_once() {
        let mut clock = WallClock::default();
        follow(&mut clock, 0, 100);
        assert_eq!(follow(&mut clock, 7_200_000, 105), (7_200_000, true));
        let step = ClockStep { by_ns: 7_200_000 * MS, seen: BootTime::from_secs(105) };
        assert_eq!(clock.step(), Some(step));
        assert_eq!(follow(&mut clock, 7_200_001, 110), (7_200_000, false));
        assert_eq!(follow(&mut clock, 7_199_001, 115), (7_199_001, true));
        assert_eq!(clock.step(), Some(ClockStep { by_ns: -1_000 * MS, seen: BootTime::from_secs(115) }));
    }

    #[test]
    fn a_clock_that_creeps_is_followed_without_a_word() {
        let mut clock = WallClock::default();
        let told: Vec<(i128, bool)> = (0..20).map(|n| follow(&mut clock, n * 100, 100)).collect();
        assert!(told.iter().zip(0..).all(|((told, stepped), n)| !stepped && (n * 100 - told).abs() < 250), "{told:?}");
        assert_eq!(clock.step(), None);
    }

    #[test]
    fn another_boot_is_no_step() {
        let mut clock = WallClock::default();
        follow(&mut clock, 0, 1);
        let other = ClockSync { boot_id: "two".to_owned(), ..at(9_000_000) };
        assert_eq!(clock.follow(other.clone(), BootTime::from_secs(1)), (other, false));
        assert_eq!(clock.step(), None);
    }
}
