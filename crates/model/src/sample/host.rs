//! The host as a whole, and the agent itself.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// One line of a pressure file (Documentation/accounting/psi.rst).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PressureLine {
    /// Share of the last 10 s that was stalled, 0–1.
    pub avg10: f64,
    /// Share of the last 60 s.
    pub avg60: f64,
    /// Share of the last 300 s.
    pub avg300: f64,
    /// Total stall time in microseconds.
    pub total_us: u64,
}

/// `some` and `full` of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PressureResource {
    /// Some tasks stalled.
    pub some: Option<PressureLine>,
    /// All tasks stalled.
    pub full: Option<PressureLine>,
}

/// Pressure of the three resources.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Pressure {
    /// I/O.
    pub io: PressureResource,
    /// CPU.
    pub cpu: PressureResource,
    /// Memory.
    pub memory: PressureResource,
    /// What could not be read, with the reason; bounded by the reader.
    pub faults: Vec<Fault>,
}

/// CPU time and task counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Cpu {
    /// All CPU time since boot in clock ticks, guest time not counted twice.
    pub total_ticks: u64,
    /// Idle time in clock ticks.
    pub idle_ticks: u64,
    /// Time waiting for I/O in clock ticks.
    pub iowait_ticks: u64,
    /// Runnable tasks (`procs_running`).
    pub running: Option<u64>,
    /// Tasks blocked on I/O (`procs_blocked`).
    pub blocked: Option<u64>,
    /// Load average over 1 min.
    pub load1: Option<f64>,
    /// What could not be read, with the reason; bounded by the reader.
    pub faults: Vec<Fault>,
}

/// What does not change, or slowly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostInfo {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Boot time in seconds since the Unix epoch.
    pub boot_time_unix: Option<u64>,
    /// Logical CPUs.
    pub cpus: Option<u64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Available memory in bytes.
    pub memory_available_bytes: Option<u64>,
    /// What could not be read, with the reason; bounded by the reader.
    pub faults: Vec<Fault>,
}

/// The agent's own cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Agent {
    /// CPU time in nanoseconds, user and system.
    pub cpu_ns: u64,
    /// Resident set in bytes.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open file descriptors.
    pub open_fds: u64,
    /// Limit of open file descriptors.
    pub max_fds: Option<u64>,
    /// Log lines that were dropped because writing them would have blocked.
    pub log_lines_dropped: u64,
    /// Events that a newer one of the same source replaced before they were sent.
    pub events_superseded: u64,
}

/// The newest scan for devices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Discovery {
    /// Block devices seen, before selection.
    pub seen: u64,
    /// Devices and controllers that could not be read in full, with the reason; bounded by the reader.
    pub faults: Vec<Fault>,
}
