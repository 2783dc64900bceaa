//! Findings: what is wrong, since when, what proves it, what it carries, what to do.

use crate::identity::Subject;
use crate::time::BootTime;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How bad. The order is the order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; never an alarm.
    Info,
    /// Look at it in working hours.
    Warning,
    /// Look at it now.
    Critical,
}

impl Severity {
    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// When something began: on this boot's clock, or before this boot by the wall clock of then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Since {
    /// This boot.
    Boot(BootTime),
    /// A former boot: nanoseconds since the Unix epoch.
    Wall(i128),
}

/// One open (or, with `ended`, closed) finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Rule id, as in the label `rule`.
    pub rule: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What it is about.
    pub subject: Subject,
    /// Kernel name of the block device it shows under, if any.
    pub device: Option<String>,
    /// Kernel name of the controller, if any.
    pub controller: Option<String>,
    /// When it began.
    pub since: Since,
    /// When it ended; `None` while open.
    pub ended: Option<BootTime>,
    /// One line: what is wrong.
    pub title: String,
    /// Numbers with units that prove it, a line each.
    pub evidence: Vec<String>,
    /// What it carries, a line each stack: `md0 (raid1, 2 of 2) > vg0/data > /srv`.
    pub carries: Vec<String>,
    /// The next step.
    pub next: String,
}

/// The state of the host in one word. `Unknown` is never shown as ok.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every selected drive was looked at and nothing is wrong.
    Ok,
    /// At least one warning.
    Degraded,
    /// At least one critical finding.
    Critical,
    /// Not enough was seen to say.
    Unknown,
}

impl Verdict {
    /// The word, in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Critical => "critical",
            Self::Unknown => "unknown",
        }
    }

    /// Exit status of monitoring plug-ins: 0 ok, 1 warning, 2 critical, 3 unknown.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Degraded => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }
}

impl Since {
    /// How long ago that was at `now`, given the wall clock's offset in nanoseconds.
    pub fn elapsed(self, now: BootTime, wall_offset_ns: i128) -> Duration {
        match self {
            Self::Boot(at) => now.since(at),
            Self::Wall(ns) => {
                let gone = wall_offset_ns.saturating_add(i128::from(now.0)).saturating_sub(ns);
                Duration::from_nanos(u64::try_from(gone.max(0)).unwrap_or(u64::MAX))
            }
        }
    }
}
