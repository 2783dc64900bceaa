//! Boot time as wall-clock time in UTC, by the present clock ([`storscope_model::wall_clock`] says why).

use jiff::Timestamp;
use storscope_model::finding::Since;
use storscope_model::time::{BootTime, ClockSync};

/// The instant in UTC; `None` outside the years −9999 to 9999.
pub(crate) fn timestamp(clock: &ClockSync, at: BootTime) -> Option<Timestamp> {
    Timestamp::from_nanosecond(clock.wall_ns(at)).ok()
}

/// The instant in UTC of the beginning of a finding.
pub fn since(clock: &ClockSync, since: Since) -> Option<Timestamp> {
    match since {
        Since::Boot(at) => timestamp(clock, at),
        Since::Wall(ns) => Timestamp::from_nanosecond(ns).ok(),
    }
}

/// Seconds since the Unix epoch.
#[expect(clippy::cast_precision_loss, reason = "a clock in floating point keeps microseconds")]
pub(crate) fn unix_seconds(clock: &ClockSync, at: BootTime) -> f64 {
    clock.wall_ns(at) as f64 / 1e9
}

/// Nanoseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "a step of the clock needs no nanoseconds")]
pub(crate) fn seconds(nanoseconds: i128) -> f64 {
    nanoseconds as f64 / 1e9
}
