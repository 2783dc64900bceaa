//! What is shown: the snapshot with everything that was worked out from it. Renderers see nothing else.

use crate::finding::{Finding, Verdict};
use crate::sample::diskstats::DiskCounters;
use crate::sample::pcie::Link;
use crate::sample::probe::{Engine, ProbeOp, SkipReason};
use crate::snapshot::{ControllerState, DeviceState, HostState};
use crate::time::{BootTime, ClockSync};
use crate::unread::Unread;
use crate::wall_clock::ClockStep;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Rates of one device between two reads of diskstats, as iostat(1) defines them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IoRates {
    /// Length of the interval.
    pub interval: Duration,
    /// Reads completed a second.
    pub reads_per_second: f64,
    /// Writes completed a second.
    pub writes_per_second: f64,
    /// Discards completed a second, where the kernel counts them.
    pub discards_per_second: Option<f64>,
    /// Flushes completed a second, where the kernel counts them.
    pub flushes_per_second: Option<f64>,
    /// Bytes read a second.
    pub read_bytes_per_second: f64,
    /// Bytes written a second.
    pub written_bytes_per_second: f64,
    /// Mean time of a read in seconds; `None` when none completed.
    pub read_await_seconds: Option<f64>,
    /// Mean time of a write in seconds; `None` when none completed.
    pub write_await_seconds: Option<f64>,
    /// What the kernel's counting leaves open of the mean time of a read, in seconds ([`crate::request_times`]): a mean of 0
    /// is below it. `None` when none completed.
    pub read_await_resolution_seconds: Option<f64>,
    /// The same of a write.
    pub write_await_resolution_seconds: Option<f64>,
    /// Mean requests in flight: aqu-sz, or where [`DeviceView::io_time_reliable`] is false, worked out from completed requests.
    pub queue: f64,
    /// Share of the interval with at least one request in flight, capped at 1; not saturation on a parallel device.
    pub utilisation: f64,
}

/// Quantiles of one op over one window. A quantile is `None` when there are too few samples to say it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeWindow {
    /// What the reads met.
    pub op: ProbeOp,
    /// Length of the window.
    pub window: Duration,
    /// Samples in it.
    pub count: u64,
    /// Share of them that were taken while other requests were in flight, 0–1.
    pub busy_share: f64,
    /// p50, p95, p99, p99.9 in seconds, beside the quantile.
    pub quantiles: [(f64, Option<f64>); 4],
}

/// What is worked out of probes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProbeView {
    /// Windows of 1 min, 5 min and 1 h for each op that has samples.
    pub windows: Vec<ProbeWindow>,
    /// Why the device is not being probed now, by plan; `None` when it is in the plan.
    pub not_planned: Option<String>,
    /// Time between bursts in the plan.
    pub interval: Option<Duration>,
    /// Bursts skipped in the last 5 min, by reason.
    pub recent_skips: Vec<(SkipReason, u64)>,
    /// Failed reads in the last hour, by errno(3).
    pub recent_errors: Vec<(i32, u64)>,
    /// True when the last few reads all failed: what the windows hold is from before.
    pub only_fails: bool,
}

/// One device with what was worked out.
#[derive(Debug, Clone)]
pub struct DeviceView {
    /// Its readings.
    pub state: DeviceState,
    /// Counters extended past the kernel's 32-bit fields and, for a multipath head, summed over its paths; `None`
    /// while the reading is not fresh, and while the kernel does not count.
    pub counters: Option<DiskCounters>,
    /// Rates over the newest interval; `None` while the reading is not fresh or the kernel does not count, after a reset,
    /// and at first sight.
    pub rates: Option<IoRates>,
    /// Probes.
    pub probe: ProbeView,
    /// Kernel names of its NVMe controllers.
    pub controllers: Vec<String>,
    /// Stacks up to mount points, a line each.
    pub carries: Vec<String>,
    /// True when it sleeps or is suspended.
    pub asleep: bool,
    /// False when the kernel is known to count idle time of the device as busy ([`crate::io_ticks`]): `utilisation`,
    /// `io_time_ms` and `weighted_time_ms` mean nothing.
    pub io_time_reliable: bool,
}

/// What became of a PCIe link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkStatus {
    /// As fast as drive and port can go.
    Ok,
    /// Below what drive and port can do.
    Downgraded,
    /// As fast as the port allows, below what the drive can do.
    SlotLimited,
    /// Speed or width is not known.
    Unknown,
}

impl LinkStatus {
    /// The word in JSON and text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Downgraded => "downgraded",
            Self::SlotLimited => "slot-limited",
            Self::Unknown => "unknown",
        }
    }
}

/// A link judged: per hop, and over the whole way to the root.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkView {
    /// Verdict of the hop from the drive to the port directly above.
    pub status: LinkStatus,
    /// Now.
    pub current: Link,
    /// The smaller of what drive and port can do.
    pub expected: Link,
    /// What the drive can do.
    pub drive_maximum: Link,
    /// PCI address of the port directly above.
    pub port: Option<String>,
    /// Bytes a second of the narrowest hop, line encoding counted.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// The same as it should be: every hop at its expected speed and width.
    pub expected_bandwidth_bytes_per_second: Option<f64>,
    /// PCI address of the hop that limits the bandwidth, when it is not the drive's own.
    pub narrow_hop: Option<String>,
}

/// One controller with what was worked out.
#[derive(Debug, Clone)]
pub struct ControllerView {
    /// Its readings.
    pub state: ControllerState,
    /// Its link; `None` while the reading is not fresh.
    pub link: Option<LinkView>,
    /// Changes of speed or width seen by this process.
    pub link_changes: u64,
    /// Correctable AER errors a minute over the last 10 min, on the drive and the port above; `None` before that is known.
    pub aer_correctable_per_minute: Option<f64>,
    /// Kernel names of its block devices.
    pub devices: Vec<String>,
}

/// Shares of CPU time over the newest interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuShares {
    /// Not idle and not waiting, 0–1.
    pub busy: f64,
    /// Waiting for I/O, 0–1.
    pub iowait: f64,
}

/// What the binary knows of itself: input to the analysis, passed through to the renderers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentStatus {
    /// Version.
    pub version: String,
    /// Git revision, where known at build time.
    pub revision: Option<String>,
    /// When the process started.
    pub started: BootTime,
    /// True for a captured host: nothing is asked, nothing is probed.
    pub captured: bool,
    /// Engine of the probes, and why it is not io_uring.
    pub engine: Option<(Engine, Option<String>)>,
    /// Why no probes run at all.
    pub probes_off: Option<String>,
    /// Configuration file in use; `None` when built-in defaults are.
    pub config_file: Option<String>,
    /// Why the newest configuration was not taken, a line a mistake; empty when it was.
    pub config_errors: Vec<String>,
    /// Configurations taken and refused since start.
    pub config_reloads: (u64, u64),
    /// When the configuration in use was taken.
    pub config_loaded: BootTime,
    /// Why the state directory is not used; `None` when it is, or none was given.
    pub state_error: Option<String>,
    /// Frames between processes that could not be decoded.
    pub frames_refused: u64,
    /// The processes of the agent, the supervisor first; empty where there is only one.
    pub parts: Vec<PartState>,
    /// Processes of a former agent that are stuck in the kernel: name and process id.
    pub former: Vec<(String, u32)>,
    /// Requests answered, by path and status.
    pub http_requests: Vec<(String, u16, u64)>,
}

/// How one process of the agent fares.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartState {
    /// `supervisor`, `collector`, `prober` or `server`.
    pub name: String,
    /// Process id; `None` when it does not run.
    pub pid: Option<u32>,
    /// Since when it runs, or does not.
    pub since: BootTime,
    /// How often it was started again.
    pub restarts: u64,
    /// How it last ended, for people.
    pub fault: Option<String>,
}

/// The whole view.
#[derive(Debug, Clone)]
pub struct View {
    /// When it was worked out.
    pub now: BootTime,
    /// Boot time against wall clock.
    pub clock: ClockSync,
    /// When the wall clock was last set, as far as this process saw it.
    pub clock_step: Option<ClockStep>,
    /// The host's readings.
    pub host: HostState,
    /// CPU shares of the newest interval.
    pub cpu: Option<CpuShares>,
    /// The agent's own CPU share over the newest interval, of one core.
    pub agent_cpu: Option<f64>,
    /// The agent.
    pub agent: Arc<AgentStatus>,
    /// One word on the host.
    pub verdict: Verdict,
    /// The sentence that matters most.
    pub headline: String,
    /// What is not known of the drives yet.
    pub unread: Unread,
    /// True once the host was looked at and nothing was waited for any more: what `/readyz` says. What appears later does
    /// not undo it.
    pub ready: bool,
    /// Open findings, worst first.
    pub findings: Vec<Finding>,
    /// Findings closed by this process, newest first, bounded.
    pub closed: Vec<Finding>,
    /// Devices by kernel name.
    pub devices: Vec<DeviceView>,
    /// Controllers by kernel name.
    pub controllers: Vec<ControllerView>,
    /// Events refused by the snapshot.
    pub events_refused: u64,
}
