//! The two clocks of a probe: boot time for reports, monotonic time for durations and deadlines.

use nix::time::{ClockId, clock_gettime};
use std::time::Instant;
use storscope_model::time::BootTime;

/// One instant on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) boot: BootTime,
    pub(crate) instant: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let boot = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0, |time| {
            let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
            let nanoseconds = u64::try_from(time.tv_nsec()).unwrap_or(0);
            seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
        });
        Self { boot: BootTime(boot), instant: Instant::now() }
    }
}
