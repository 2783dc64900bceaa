//! How often each source is read, and how long a read may take.

use crate::lanes::is_command;
use std::time::Duration;
use storscope_model::sample::Source;

/// Shortest period; shorter settings are raised to it.
pub const MIN_PERIOD: Duration = Duration::from_millis(250);
/// Longest pause of a failing source of kernel files.
pub const FILES_BACKOFF: Duration = Duration::from_secs(600);
/// Longest pause of a failing drive command: asking is not free for the drive.
pub const COMMAND_BACKOFF: Duration = Duration::from_secs(3600);

const SECOND: Duration = Duration::from_secs(1);

/// The time between two reads of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Periods {
    /// `/proc/diskstats`, pressure, CPU and the agent's own cost.
    pub tick: Duration,
    /// `state` of NVMe controllers.
    pub controller_state: Duration,
    /// Runtime power management status.
    pub power: Duration,
    /// PCIe link.
    pub link: Duration,
    /// PCIe error counters.
    pub aer: Duration,
    /// Queue settings; also read on a uevent of the device.
    pub queue: Duration,
    /// NVMe log page 02h.
    pub smart: Duration,
    /// OCP log page C0h.
    pub ocp: Duration,
    /// NVMe log page 01h; also read when the count of its entries moved.
    pub error_log: Duration,
    /// Firmware slots, self-test log, Identify Controller and Identify Namespace, and every page of a drive for which
    /// a log read stops I/O.
    pub rare: Duration,
    /// ATA CHECK POWER MODE.
    pub ata_power: Duration,
    /// What devices carry; also read on a uevent.
    pub stack: Duration,
    /// Host name, kernel, memory.
    pub host_info: Duration,
    /// Scan for devices; also done on a uevent.
    pub rescan: Duration,
}

impl Default for Periods {
    fn default() -> Self {
        Self {
            tick: 5 * SECOND,
            controller_state: 5 * SECOND,
            power: 15 * SECOND,
            link: 15 * SECOND,
            aer: 15 * SECOND,
            queue: 60 * SECOND,
            smart: 60 * SECOND,
            ocp: 300 * SECOND,
            error_log: 3600 * SECOND,
            rare: 3600 * SECOND,
            ata_power: 60 * SECOND,
            stack: 60 * SECOND,
            host_info: 60 * SECOND,
            rescan: 60 * SECOND,
        }
    }
}

impl Periods {
    /// The period of `source`; `None` for what is not read by a schedule of its own.
    pub fn of(&self, source: Source) -> Option<Duration> {
        let period = match source {
            Source::Diskstats | Source::Pressure | Source::Cpu | Source::Agent => self.tick,
            Source::HostInfo => self.host_info,
            Source::Stack => self.stack,
            Source::Discovery => self.rescan,
            Source::Queue => self.queue,
            Source::Power => self.power,
            Source::AtaPower => self.ata_power,
            Source::ControllerState => self.controller_state,
            Source::PcieLink => self.link,
            Source::PcieAer => self.aer,
            Source::SmartHealth => self.smart,
            Source::OcpSmart => self.ocp,
            Source::ErrorLog => self.error_log,
            Source::Namespace | Source::Identify | Source::FirmwareSlots | Source::SelfTest => self.rare,
            Source::Probe | Source::DriveCommands => return None,
        };
        Some(period.max(MIN_PERIOD))
    }
}

/// How long a read of `source` may take before it counts as stalled. Nothing is cancelled then: a command whose time-out
/// passes makes the kernel reset the controller, so the wait is given up in user space only.
pub const fn deadline(source: Source) -> Duration {
    match source {
        Source::Discovery | Source::Stack => Duration::from_secs(15),
        _ if is_command(source) => Duration::from_secs(10),
        _ => Duration::from_secs(5),
    }
}

/// The longest pause after failures of `source`.
pub const fn longest_pause(source: Source) -> Duration {
    match source {
        // Devices that could not be listed, mostly for want of descriptors, are looked for again at the next period.
        Source::Discovery => Duration::ZERO,
        _ if is_command(source) => COMMAND_BACKOFF,
        _ => FILES_BACKOFF,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_a_period_but_those_that_others_bring() {
        let periods = Periods::default();
        let without: Vec<Source> = Source::ALL.into_iter().filter(|source| periods.of(*source).is_none()).collect();
        assert_eq!(without, [Source::Probe, Source::DriveCommands]);
    }

    #[test]
    fn a_period_of_nothing_is_raised() {
        let periods = Periods { tick: Duration::ZERO, ..Periods::default() };
        assert_eq!(periods.of(Source::Diskstats), Some(MIN_PERIOD));
    }

    #[test]
    fn commands_may_take_longer_and_pause_longer_than_files() {
        assert!(deadline(Source::SmartHealth) > deadline(Source::Queue));
        assert_eq!(longest_pause(Source::SmartHealth), COMMAND_BACKOFF);
        assert_eq!(longest_pause(Source::PcieLink), FILES_BACKOFF);
    }
}
