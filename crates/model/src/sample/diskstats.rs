//! Counters of `/proc/diskstats` (Documentation/admin-guide/iostats.rst).

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// Bytes of a diskstats sector, whatever the device's block size.
pub const SECTOR_BYTES: u64 = 512;

/// Requests of one direction: completed, merged, sectors, time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Direction {
    /// Requests completed.
    pub completed: u64,
    /// Requests merged.
    pub merged: u64,
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// Milliseconds spent; the kernel prints it modulo 2^32.
    pub time_ms: u64,
}

/// Flush requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Flushes {
    /// Flush requests completed.
    pub completed: u64,
    /// Milliseconds spent; the kernel prints it modulo 2^32.
    pub time_ms: u64,
}

/// The counters of one line. A group that the kernel does not print is `None`, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskCounters {
    /// Reads.
    pub reads: Direction,
    /// Writes.
    pub writes: Direction,
    /// Requests in flight now; may be momentarily odd.
    pub in_flight: u64,
    /// Milliseconds during which the device was busy, modulo 2^32.
    pub io_time_ms: u64,
    /// Busy milliseconds weighted by requests in flight, modulo 2^32.
    pub weighted_time_ms: u64,
    /// Discards (kernel 4.18 and later).
    pub discards: Option<Direction>,
    /// Flushes (kernel 5.5 and later).
    pub flushes: Option<Flushes>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Kernel name as printed (`cciss/c0d0`).
    pub name: String,
    /// Device number; several lines may share one.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// The counters.
    pub counters: DiskCounters,
}

/// The whole file: the rows that could be read, and a fault a row that could not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Table {
    /// Rows, in file order.
    pub rows: Vec<Row>,
    /// Lines that were skipped, with the reason; bounded by the reader.
    pub faults: Vec<Fault>,
}
