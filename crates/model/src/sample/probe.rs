//! Timed direct reads: cumulative, so that a report lost on the way loses no count.

use crate::distribution::Distribution;
use crate::time::BootTime;
use serde::{Deserialize, Serialize};

/// What a timed read met. The word is the label `op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProbeOp {
    /// A read that returned data.
    Read,
    /// A read that returned only zeros: unwritten blocks answer without touching the medium.
    ReadZeros,
    /// The first read after an idle time: it measures the exit from a power state.
    ReadAfterIdle,
}

impl ProbeOp {
    /// Every op, in the order of the enum.
    pub const ALL: [Self; 3] = [Self::Read, Self::ReadZeros, Self::ReadAfterIdle];

    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadZeros => "read_zeros",
            Self::ReadAfterIdle => "read_after_idle",
        }
    }
}

/// Why a burst was not run. The word is the label `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SkipReason {
    /// Every tag of the queue is taken: a read would wait for one in the kernel. This is evidence of a hang or saturation.
    QueueFull,
    /// Runtime power management has suspended the device or a bridge above it.
    Suspended,
    /// The disk is in a low-power mode.
    Asleep,
    /// The device node could not be opened for want of permission.
    Denied,
    /// The share of the device's time that probes may take is used up.
    Budget,
    /// The device is gone or no longer the one expected.
    Gone,
    /// A former read is still outstanding.
    Outstanding,
    /// The node is no block device, or has no size, no medium or a block size that no device has.
    Unsuitable,
    /// The agent itself is out of descriptors, memory or threads.
    Exhausted,
}

impl SkipReason {
    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Suspended => "suspended",
            Self::Asleep => "asleep",
            Self::Denied => "denied",
            Self::Budget => "budget",
            Self::Gone => "gone",
            Self::Outstanding => "outstanding",
            Self::Unsuitable => "unsuitable",
            Self::Exhausted => "exhausted",
        }
    }
}

/// What reads the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Engine {
    /// One io_uring for all devices.
    IoUring,
    /// pread(2), a thread a device.
    Pread,
}

impl Engine {
    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Pread => "pread",
        }
    }
}

/// Latencies of one op under one load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeClass {
    /// What the reads met.
    pub op: ProbeOp,
    /// True when other requests were in flight on the device as the read was submitted.
    pub busy: bool,
    /// Latencies since the prober started.
    pub latencies: Distribution,
}

/// All that the prober knows of one device, cumulative since it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Engine in use.
    pub engine: Engine,
    /// Latencies by op and load.
    pub classes: Vec<ProbeClass>,
    /// Failed reads by errno(3).
    pub errors: Vec<(i32, u64)>,
    /// Skipped bursts by reason.
    pub skipped: Vec<(SkipReason, u64)>,
    /// Why the newest burst was skipped; `None` when it ran.
    pub last_skip: Option<SkipReason>,
    /// errno(3) of the newest failed read and when it failed.
    pub last_error: Option<(i32, BootTime)>,
    /// When the outstanding read was submitted, if one is past its deadline.
    pub outstanding_since: Option<BootTime>,
    /// Requests in flight before the newest burst, own ones not counted.
    pub in_flight_before: Option<u64>,
    /// Nanoseconds spent in reads since the prober started.
    pub busy_ns: u64,
}
