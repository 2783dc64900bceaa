//! Queue settings (Documentation/ABI/stable/sysfs-block). Every attribute is optional: kernels differ.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// Queue settings of one device. `None`: the kernel has no such attribute for it, or it could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueSettings {
    /// Scheduler in use: the word in brackets, or the only word.
    pub scheduler: Option<String>,
    /// Schedulers on offer.
    pub schedulers: Vec<String>,
    /// Requests that the queue may hold.
    pub nr_requests: Option<u64>,
    /// Read-ahead in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// Largest request in bytes, as set.
    pub max_sectors_bytes: Option<u64>,
    /// Largest request in bytes that the hardware takes.
    pub max_hw_sectors_bytes: Option<u64>,
    /// Logical block size in bytes.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size in bytes.
    pub physical_block_bytes: Option<u64>,
    /// Minimum efficient I/O size in bytes.
    pub minimum_io_bytes: Option<u64>,
    /// Optimal I/O size in bytes; 0 = not reported.
    pub optimal_io_bytes: Option<u64>,
    /// Discard granularity in bytes; 0 = no discard.
    pub discard_granularity_bytes: Option<u64>,
    /// Largest discard in bytes; 0 = no discard.
    pub discard_max_bytes: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Forced unit access supported.
    pub fua: Option<bool>,
    /// Write-back throttling target in microseconds; 0 = off.
    pub wbt_lat_usec: Option<u64>,
    /// Merging: 0 all, 1 simple only, 2 none.
    pub nomerges: Option<u64>,
    /// Completion steering: 0 none, 1 group, 2 exact CPU.
    pub rq_affinity: Option<u64>,
    /// Polling enabled.
    pub io_poll: Option<bool>,
    /// Accounting in diskstats enabled.
    pub iostats: Option<bool>,
    /// Rotating medium.
    pub rotational: Option<bool>,
    /// `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
    /// Memory alignment mask for direct I/O.
    pub dma_alignment: Option<u64>,
    /// Request time-out in milliseconds.
    pub io_timeout_ms: Option<u64>,
    /// Pages must not change during a write.
    pub stable_writes: Option<bool>,
    /// Reads and writes in flight, from `inflight`.
    pub inflight: Option<(u64, u64)>,
    /// `device/state` of a SCSI device: `running`, `offline`, …
    pub device_state: Option<String>,
    /// What could not be read, with the reason; bounded by the reader.
    pub faults: Vec<Fault>,
}
