//! One device to probe, as the caller describes it. No path is composed here.

use std::path::PathBuf;
use std::time::Duration;
use storscope_model::device::DevNum;

/// Default reads a burst.
pub const BURST: u16 = 16;
/// Default time between the beginnings of bursts.
pub const INTERVAL: Duration = Duration::from_secs(4);
/// Alignment and length of a read unless the logical block is larger.
pub(crate) const MIN_BLOCK: u32 = 4096;
/// Largest logical block that is believed (the kernel's own limit is the page cache's largest folio).
const MAX_BLOCK: u32 = 2 << 20;

/// A device to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The caller's handle: reports carry it, and a target with the same key keeps its counts.
    pub key: u64,
    /// Device node.
    pub node: PathBuf,
    /// Device number that the opened node must have; a node with another one is never read.
    pub devnum: DevNum,
    /// The device's `stat` attribute (Documentation/block/stat.rst): requests in flight and requests completed.
    ///
    /// Not `inflight`: with an I/O scheduler that one leaves out the requests that the scheduler holds, so that a
    /// queue with every tag taken shows half of them.
    pub stat: PathBuf,
    /// Size of the request queue, where the device has one.
    pub queue: Option<QueueSize>,
    /// `power/runtime_status` attributes of the device and what it hangs on: `suspended` or `suspending` in any of
    /// them and the device is left alone. Absent files say nothing.
    pub runtime_status: Vec<PathBuf>,
    /// Logical block size in bytes.
    pub logical_block_bytes: u32,
    /// How often and how much to read.
    pub pace: Pace,
}

impl Target {
    /// Length and alignment of one read in bytes; `None` for a block size that no device has.
    pub(crate) fn block(&self) -> Option<u32> {
        let logical = self.logical_block_bytes;
        (logical.is_power_of_two() && logical <= MAX_BLOCK).then(|| logical.max(MIN_BLOCK))
    }
}

/// Request queue of a device (Documentation/ABI/stable/sysfs-block).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSize {
    /// `queue/nr_requests`: tags of one hardware queue.
    pub requests: u32,
    /// Hardware queues: directories under `mq`.
    pub hardware_queues: u32,
}

/// How often a device is probed. The caller widens the interval of an idle device, so that it may sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Reads a burst, at least 1.
    pub burst: u16,
    /// Time between the beginnings of bursts; the budget may stretch it.
    pub interval: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { burst: BURST, interval: INTERVAL }
    }
}
