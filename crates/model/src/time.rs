//! Instants on the kernel's boot-time clock, and their relation to the wall clock.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An instant in nanoseconds of `CLOCK_BOOTTIME` (clock_gettime(2)): it advances through suspend and never steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct BootTime(pub u64);

impl BootTime {
    /// The instant `seconds` after boot.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Time elapsed since `earlier`; zero when `earlier` lies in the future.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved later by `by`, saturating.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// This instant moved earlier by `by`, saturating at boot.
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// How boot time maps to the wall clock at one tick, so that a *since* survives suspend and a clock step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockSync {
    /// The kernel's `random/boot_id` (Documentation/admin-guide/sysctl/kernel.rst), empty when unreadable.
    pub boot_id: String,
    /// Wall clock minus boot time, in nanoseconds.
    pub wall_offset_ns: i128,
}

impl ClockSync {
    /// Nanoseconds since the Unix epoch at `at`.
    pub fn wall_ns(&self, at: BootTime) -> i128 {
        self.wall_offset_ns.saturating_add(i128::from(at.0))
    }
}
