//! The closed set of things that the state tells collector and prober: numbers and identities, no path, no opcode.

use crate::device::DevNum;
use crate::identity::DeviceId;
use crate::refused::Refused;
use serde::{Deserialize, Serialize};

/// One device to probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTarget {
    /// Whose latencies these are.
    pub id: DeviceId,
    /// Device number, checked after open.
    pub devnum: DevNum,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Logical block size in bytes.
    pub logical_block_bytes: u32,
    /// Rotating medium.
    pub rotational: bool,
    /// Requests that the queue may hold, where known.
    pub queue_depth: Option<u64>,
    /// Reads a burst.
    pub burst: u16,
    /// Time between the beginnings of bursts, in milliseconds.
    pub interval_ms: u64,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The devices to probe from now on; all others are left alone.
    ProbeTargets(Vec<ProbeTarget>),
    /// What drives refused before.
    Refusals(Vec<Refused>),
}
