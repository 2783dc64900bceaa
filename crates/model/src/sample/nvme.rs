//! NVMe pages as samples (NVMe base specification; OCP Datacenter NVMe SSD specification for C0h).
//!
//! Temperatures are in degrees Celsius; `None` is "not reported". Counters of 128 bits stay 128 bits.

use serde::{Deserialize, Serialize};

/// Bytes of a data unit of log page 02h.
pub const DATA_UNIT_BYTES: u128 = 512_000;

/// `state` of a controller in sysfs: `live`, `resetting`, `connecting`, `deleting`, `dead`, …
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ControllerState {
    /// The whole line.
    pub state: String,
}

impl ControllerState {
    /// Only a live controller gets commands.
    pub fn is_live(&self) -> bool {
        self.state == "live"
    }
}

/// Identify Controller, the part that is used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Identify {
    /// PCI vendor id.
    pub vendor_id: u16,
    /// Serial number, ends trimmed.
    pub serial: String,
    /// Model number, ends trimmed.
    pub model: String,
    /// Firmware revision, ends trimmed.
    pub firmware: String,
    /// Version as major, minor, tertiary; `None` before 1.2.
    pub version: Option<(u16, u8, u8)>,
    /// Controller id.
    pub cntlid: u16,
    /// Controller type: 1 I/O, 2 discovery, 3 administrative; 0 not reported.
    pub controller_type: u8,
    /// Warning composite temperature threshold.
    pub warning_temperature_c: Option<i32>,
    /// Critical composite temperature threshold.
    pub critical_temperature_c: Option<i32>,
    /// Total NVM capacity in bytes; 0 = not reported.
    pub total_capacity_bytes: u128,
    /// Unallocated NVM capacity in bytes.
    pub unallocated_capacity_bytes: u128,
    /// Namespaces that the subsystem may have (NN).
    pub namespaces: u32,
    /// Power states that the controller has (NPSS + 1).
    pub power_states: u8,
    /// Entries that the error log keeps (ELPE + 1).
    pub error_log_entries: u16,
    /// Volatile write cache present.
    pub volatile_write_cache: bool,
    /// Autonomous power state transitions supported.
    pub autonomous_power: bool,
    /// Longest exit latency of any power state, in microseconds.
    pub longest_exit_latency_us: Option<u64>,
    /// Self-test supported (OACS bit 4).
    pub self_test_supported: bool,
    /// Pages that are not asked, with the reason.
    pub not_asked: Vec<(String, String)>,
}

/// Identify Namespace, the part that is used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Namespace {
    /// Size in logical blocks.
    pub size_blocks: u64,
    /// Capacity in logical blocks.
    pub capacity_blocks: u64,
    /// Utilisation in logical blocks.
    pub used_blocks: u64,
    /// Logical block data size in bytes.
    pub block_bytes: u64,
    /// Metadata bytes a block.
    pub metadata_bytes: u16,
    /// End-to-end protection type in use, 0 = none.
    pub protection: u8,
    /// NVM capacity of the namespace in bytes; 0 = not reported.
    pub nvm_capacity_bytes: u128,
}

/// Log page 02h, SMART / health information.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SmartHealth {
    /// Critical warning bits: 0 spare, 1 temperature, 2 degraded reliability, 3 read-only, 4 volatile backup, 5 persistent memory.
    pub critical_warning: u8,
    /// Composite temperature.
    pub temperature_c: Option<i32>,
    /// Sensors 1–8.
    pub sensors_c: [Option<i32>; 8],
    /// Available spare in percent, as the drive says it.
    pub available_spare_percent: u8,
    /// Threshold of available spare in percent.
    pub available_spare_threshold_percent: u8,
    /// Percentage used; may pass 100, saturates at 255.
    pub percentage_used: u8,
    /// Endurance group critical warning summary.
    pub endurance_group_warning: u8,
    /// Data units read, of 512,000 bytes.
    pub data_units_read: u128,
    /// Data units written, of 512,000 bytes.
    pub data_units_written: u128,
    /// Read commands of the host.
    pub host_reads: u128,
    /// Write commands of the host.
    pub host_writes: u128,
    /// Controller busy time in minutes.
    pub busy_minutes: u128,
    /// Power cycles.
    pub power_cycles: u128,
    /// Power-on hours.
    pub power_on_hours: u128,
    /// Unsafe shutdowns.
    pub unsafe_shutdowns: u128,
    /// Media and data integrity errors.
    pub media_errors: u128,
    /// Error log entries over the drive's life.
    pub error_log_entries: u128,
    /// Minutes above the warning temperature.
    pub warning_temperature_minutes: u32,
    /// Minutes above the critical temperature.
    pub critical_temperature_minutes: u32,
    /// Transitions to thermal management state 1 and 2.
    pub thermal_transitions: [u32; 2],
    /// Seconds in thermal management state 1 and 2.
    pub thermal_seconds: [u32; 2],
}

/// Names of the critical-warning bits, bit 0 first: the label `flag`.
pub const CRITICAL_WARNING_FLAGS: [&str; 6] = [
    "available_spare",
    "temperature",
    "reliability_degraded",
    "read_only",
    "volatile_memory_backup_failed",
    "persistent_memory_unreliable",
];

/// One entry of log page 01h.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// Error count: a number that rises with each error over the drive's life.
    pub count: u64,
    /// Submission queue; 0 is the admin queue.
    pub queue: u16,
    /// Command id.
    pub command_id: u16,
    /// Status without the phase bit, SC 7:0, SCT 10:8.
    pub status: u16,
    /// First logical block, meaningful for media errors.
    pub lba: u64,
    /// Namespace.
    pub nsid: u32,
    /// Opcode, where the drive says it is valid.
    pub opcode: Option<u8>,
}

/// Log page 01h: the used entries, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ErrorLog {
    /// Used entries.
    pub entries: Vec<ErrorEntry>,
}

/// Log page 03h.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FirmwareSlots {
    /// Slot that is active, 1–7.
    pub active: u8,
    /// Slot that becomes active at the next controller reset.
    pub next: Option<u8>,
    /// Revisions of slots 1–7; `None` is an empty slot.
    pub revisions: [Option<String>; 7],
}

/// One result of log page 06h, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SelfTestResult {
    /// 1 short, 2 extended, 14 vendor specific.
    pub code: u8,
    /// 0 passed, 1–9 aborted or failed.
    pub result: u8,
    /// Power-on hours when it ended.
    pub power_on_hours: u64,
    /// Segment that failed, where given.
    pub segment: Option<u8>,
    /// Failing logical block, where given.
    pub lba: Option<u64>,
    /// Namespace, where given.
    pub nsid: Option<u32>,
}

/// Log page 06h.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SelfTestLog {
    /// Operation in progress: 0 none, 1 short, 2 extended.
    pub current: u8,
    /// Percent done of it.
    pub percent: u8,
    /// Results, newest first.
    pub results: Vec<SelfTestResult>,
}

/// OCP log page C0h. `None` is "not implemented" (all ones) or a newer page version than the drive's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OcpSmart {
    /// Log page version.
    pub version: u16,
    /// Physical media bytes written.
    pub media_written_bytes: Option<u128>,
    /// Physical media bytes read.
    pub media_read_bytes: Option<u128>,
    /// Bad user NAND blocks, raw count and normalised percent.
    pub bad_user_blocks: (Option<u64>, Option<u16>),
    /// Bad system NAND blocks, raw count and normalised percent.
    pub bad_system_blocks: (Option<u64>, Option<u16>),
    /// XOR recoveries.
    pub xor_recoveries: Option<u64>,
    /// Uncorrectable read errors.
    pub uncorrectable_reads: Option<u64>,
    /// Soft ECC errors.
    pub soft_ecc_errors: Option<u64>,
    /// End-to-end errors detected.
    pub end_to_end_detected: Option<u32>,
    /// End-to-end errors corrected.
    pub end_to_end_corrected: Option<u32>,
    /// System data used in percent.
    pub system_data_used_percent: Option<u8>,
    /// Refresh count.
    pub refreshes: Option<u64>,
    /// User data erase count, most worn block.
    pub erase_count_max: Option<u32>,
    /// User data erase count, least worn block.
    pub erase_count_min: Option<u32>,
    /// Thermal throttling events; one byte, saturates at 255.
    pub throttle_events: u8,
    /// Thermal throttling status: 0 none, 1 first level, …
    pub throttle_status: Option<u8>,
    /// PCIe correctable errors.
    pub pcie_correctable_errors: Option<u64>,
    /// Incomplete shutdowns.
    pub incomplete_shutdowns: Option<u32>,
    /// Free blocks in percent.
    pub free_blocks_percent: Option<u8>,
    /// Capacitor health in percent of the need.
    pub capacitor_health_percent: Option<u16>,
    /// Unaligned I/O.
    pub unaligned_io: Option<u64>,
    /// Security version number.
    pub security_version: Option<u64>,
    /// Utilisation of all namespaces in logical blocks.
    pub total_nuse: Option<u64>,
    /// Power-loss protection starts.
    pub plp_starts: Option<u128>,
    /// Endurance estimate, in the page's own unit (bytes written over the life, divided by 10^9).
    pub endurance_estimate: Option<u128>,
    /// PCIe link retrainings (version 2 and later).
    pub link_retrains: Option<u64>,
    /// Power state changes (version 2 and later).
    pub power_state_changes: Option<u64>,
}

/// What became of a drive command. The word is the label `outcome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CommandOutcome {
    /// Completed with status 0.
    Ok,
    /// Completed with an error status.
    Status,
    /// The system call failed.
    Errno,
}

impl CommandOutcome {
    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Status => "status",
            Self::Errno => "errno",
        }
    }
}

/// Commands of one kind and outcome since the collector started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandCount {
    /// Command name: `identify_controller`, `get_log_smart_health`, …
    pub command: String,
    /// Outcome.
    pub outcome: CommandOutcome,
    /// How many.
    pub count: u64,
    /// Time that they took in nanoseconds.
    pub time_ns: u64,
}

/// The agent's own commands to one controller, cumulative.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DriveCommands {
    /// Counts by kind and outcome.
    pub counts: Vec<CommandCount>,
}
