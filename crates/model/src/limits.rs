//! Thresholds of the analysis, with the defaults that configuration may change.

use crate::sample::Source;
use std::collections::BTreeMap;
use std::time::Duration;

/// Periods after which a value that did not come again is no longer fresh.
const FRESH_PERIODS: u32 = 3;
/// Longest time that the probes of an idle device pause.
pub const LONGEST_PROBE_PAUSE: Duration = Duration::from_secs(3600);

/// Thresholds of the analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time between two reads, by source; [`Limits::period`] has the defaults for what is not here.
    pub periods: BTreeMap<Source, Duration>,
    /// What a value may be late beyond three periods.
    pub slack: Duration,
    /// Consecutive failures that make a source failing.
    pub failures: u64,
    /// Shortest and longest time without an answer that makes a source failing; three periods in between.
    pub no_answer: (Duration, Duration),
    /// How long a controller may be in another state than live.
    pub not_live: Duration,
    /// Link samples in a row that make a downgrade.
    pub link_samples: u32,
    /// Link changes within [`Limits::flapping_window`] that are flapping.
    pub flapping_changes: usize,
    /// See [`Limits::flapping_changes`].
    pub flapping_window: Duration,
    /// How long growth of media errors stays a finding after the newest growth.
    pub media_errors_keep: Duration,
    /// Kelvin under a temperature threshold at which its finding ends.
    pub temperature_hysteresis: i32,
    /// Percentage used from which the rated endurance counts as used up.
    pub wear_percent: u8,
    /// Age of an outstanding read from which it is critical.
    pub stall_critical: Duration,
    /// How long a full queue without completions is no hang yet.
    pub hang: Duration,
    /// How long the history of what vanished is kept, and how long its absence is a finding.
    pub keep_vanished: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            periods: BTreeMap::new(),
            slack: seconds(10),
            failures: 3,
            no_answer: (seconds(30), seconds(300)),
            not_live: seconds(10),
            link_samples: 2,
            flapping_changes: 3,
            flapping_window: seconds(600),
            media_errors_keep: seconds(24 * 3600),
            temperature_hysteresis: 2,
            wear_percent: 100,
            stall_critical: seconds(30),
            hang: seconds(30),
            keep_vanished: seconds(24 * 3600),
        }
    }
}

impl Limits {
    /// Time between two reads of `source`.
    pub fn period(&self, source: Source) -> Duration {
        self.periods.get(&source).copied().unwrap_or(match source {
            Source::Diskstats | Source::Pressure | Source::Cpu | Source::Agent | Source::ControllerState => {
                Duration::from_secs(5)
            }
            Source::Power | Source::PcieLink | Source::PcieAer => Duration::from_secs(15),
            Source::HostInfo
            | Source::Stack
            | Source::Discovery
            | Source::Queue
            | Source::AtaPower
            | Source::SmartHealth
            | Source::DriveCommands => Duration::from_secs(60),
            Source::OcpSmart => Duration::from_secs(300),
            Source::Namespace | Source::Identify | Source::ErrorLog | Source::FirmwareSlots | Source::SelfTest => {
                Duration::from_secs(3600)
            }
            Source::Probe => LONGEST_PROBE_PAUSE,
        })
    }

    /// Age past which a value of `source` is no longer fresh: what [`crate::snapshot::Snapshot::expire`] wants.
    pub fn freshness(&self, source: Source) -> Duration {
        self.period(source).saturating_mul(FRESH_PERIODS).saturating_add(self.slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freshness_follows_the_period_in_use() {
        let mut limits = Limits::default();
        assert_eq!(limits.freshness(Source::Diskstats), Duration::from_secs(25));
        assert_eq!(limits.freshness(Source::SmartHealth), Duration::from_secs(190));
        limits.periods.insert(Source::Diskstats, Duration::from_secs(60));
        assert_eq!(limits.freshness(Source::Diskstats), Duration::from_secs(190));
    }
}
