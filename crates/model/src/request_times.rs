//! How finely the kernel counts the time of requests (diskstats fields 4, 8 and 15).
//!
//! diskstats shows whole milliseconds of a sum. Requests of a driver are summed in nanoseconds since 4.19 (`block/blk-mq.c`,
//! `blk_account_io_done`), so that one millisecond a line is left open, however many requests there were. Before, and to this
//! day on devices that pass bios on (`block/blk-core.c`, `bdev_end_io_acct`), each request is counted in whole jiffies.

use crate::device::Transport;
use crate::io_ticks;
use crate::snapshot::{DeviceState, HostState};
use std::time::Duration;

/// What one line of diskstats leaves open.
pub const MILLISECOND: Duration = Duration::from_millis(1);
/// The longest jiffy: that of `CONFIG_HZ=100`. Which one a kernel has is not told.
const JIFFY: Duration = Duration::from_millis(10);
/// First `(major, minor)` of the kernel that counts nanoseconds.
const NANOSECONDS: (u32, u32) = (4, 19);

/// What is left open of the mean time of requests, in seconds, where `of_one_line` is what whole milliseconds leave open.
pub fn resolution(of_one_line: f64, state: &DeviceState, host: &HostState) -> f64 {
    if in_jiffies(state, host) {
        return JIFFY.as_secs_f64();
    }
    let paths = state.device.nvme.as_ref().map_or(0, |nvme| nvme.paths.len());
    of_one_line * f64::from(u32::try_from(paths.max(1)).unwrap_or(u32::MAX))
}

fn in_jiffies(state: &DeviceState, host: &HostState) -> bool {
    let kernel = host.info.fresh().and_then(|info| info.kernel.as_deref());
    let passes_bios_on = matches!(
        state.device.transport,
        Transport::DeviceMapper | Transport::Md | Transport::Zram | Transport::Ram | Transport::Other
    );
    passes_bios_on || kernel.and_then(io_ticks::version).is_some_and(|version| version < NANOSECONDS)
}
