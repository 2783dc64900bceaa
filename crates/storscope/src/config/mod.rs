//! Configuration: what may be set, its defaults, reading it, and its documentation.
//!
//! [`keys::KEYS`] is the one table; reading, `docs/CONFIG.md` and the shipped `storscope.toml` all come from it.

pub(crate) mod docs;
pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod value;

use regex::Regex;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use storscope_model::privacy::Serials;

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Config {
    /// Addresses that HTTP listens on.
    pub(crate) listen: Vec<SocketAddr>,
    /// Where findings and refused pages are remembered; `None` keeps them in memory only.
    pub(crate) state_dir: Option<PathBuf>,
    /// Which devices.
    pub(crate) devices: Devices,
    /// How often each source is read.
    pub(crate) periods: Periods,
    /// Timed reads.
    pub(crate) probe: Probe,
    /// Limits of the HTTP side.
    pub(crate) http: Http,
    /// Longest pause before a process that ended is started again.
    pub(crate) longest_pause: Duration,
    /// What is told of serial numbers.
    pub(crate) serials: Serials,
    /// Least severe log level that is written.
    pub(crate) log_level: LogLevel,
}

/// Selection of devices by kernel name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Devices {
    /// Added to the defaults.
    pub(crate) include: Option<Pattern>,
    /// Left out; wins over `include`.
    pub(crate) exclude: Option<Pattern>,
    /// Only these.
    pub(crate) only: Option<Pattern>,
}

/// A regular expression; equal when its text is.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(pub(crate) Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Regex::new(&String::deserialize(deserializer)?).map(Self).map_err(de::Error::custom)
    }
}

/// How often each source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Periods {
    /// Counters, pressure, CPU, and the analysis.
    pub(crate) tick: Duration,
    /// PCIe link, AER, power status, controller state.
    pub(crate) link: Duration,
    /// Queue settings.
    pub(crate) queue: Duration,
    /// SMART / health log page; ATA power mode.
    pub(crate) smart: Duration,
    /// OCP extended SMART page.
    pub(crate) ocp: Duration,
    /// Identify, firmware, self-test, utilisation, and the error log when its count stands still.
    pub(crate) slow: Duration,
    /// Scan for devices without a uevent; mounts and stacks.
    pub(crate) rescan: Duration,
}

/// Timed reads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Probe {
    /// Whether devices are probed at all.
    pub(crate) enabled: bool,
    /// What reads.
    pub(crate) engine: EngineChoice,
    /// Reads a burst.
    pub(crate) burst: u16,
    /// Reads a second a device, on average.
    pub(crate) reads_per_second: u16,
    /// Most of a device's time that probes may take, 0–1.
    pub(crate) max_share: f64,
    /// When an outstanding read is called stalled.
    pub(crate) deadline: Duration,
}

/// What reads the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EngineChoice {
    /// io_uring, and pread where the kernel forbids it.
    Auto,
    /// io_uring or nothing.
    IoUring,
    /// pread.
    Pread,
}

/// Limits of the HTTP side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Http {
    /// Connections at once; more are answered 503 and closed.
    pub(crate) max_connections: usize,
    /// Longest request head in bytes.
    pub(crate) max_header_bytes: usize,
    /// Longest time to send a request head, and to take an answer.
    pub(crate) timeout: Duration,
    /// Longest time between two requests on one connection.
    pub(crate) keep_alive: Duration,
}

/// Least severe level that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LogLevel {
    /// Errors only.
    Error,
    /// And warnings.
    Warn,
    /// And transitions.
    Info,
    /// And details.
    Debug,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 10210))],
            state_dir: None,
            devices: Devices::default(),
            periods: Periods {
                tick: Duration::from_secs(5),
                link: Duration::from_secs(15),
                queue: Duration::from_secs(60),
                smart: Duration::from_secs(60),
                ocp: Duration::from_secs(300),
                slow: Duration::from_secs(3600),
                rescan: Duration::from_secs(60),
            },
            probe: Probe {
                enabled: true,
                engine: EngineChoice::Auto,
                burst: 16,
                reads_per_second: 4,
                max_share: 0.005,
                deadline: Duration::from_secs(10),
            },
            http: Http {
                max_connections: 256,
                max_header_bytes: 16 << 10,
                timeout: Duration::from_secs(10),
                keep_alive: Duration::from_secs(180),
            },
            longest_pause: Duration::from_secs(30),
            serials: Serials::Full,
            log_level: LogLevel::Info,
        }
    }
}
