//! Which operations share a lane.

use storscope_model::identity::Subject;
use storscope_model::sample::Source;

/// One read that can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job {
    /// Whose source.
    pub subject: Subject,
    /// Which source.
    pub source: Source,
}

impl Job {
    /// The read of `source` of `subject`.
    pub const fn new(subject: Subject, source: Source) -> Self {
        Self { subject, source }
    }

    /// The read of a host-wide source.
    pub const fn host(source: Source) -> Self {
        Self::new(Subject::Host, source)
    }
}

/// What may hang together. A lane has at most one outstanding operation, however long that takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Host-wide files: diskstats, pressure, CPU.
    Host,
    /// The scan for devices: it reads sysfs of all devices, so it may hang where the host's files do not.
    Discovery,
    /// What devices carry: reads dm and md attributes.
    Stack,
    /// Kernel files of one device or controller.
    Files(Subject),
    /// Commands to one drive: they belong to the controller, or to a device without one.
    Commands(Subject),
}

impl Lane {
    /// The lane of `job`. `drive` is who takes the commands of the subject: an NVMe namespace's controller; `None` for
    /// the subject itself.
    pub fn of(job: &Job, drive: Option<Subject>) -> Self {
        match job.source {
            Source::Discovery => Self::Discovery,
            Source::Stack => Self::Stack,
            Source::Diskstats | Source::Pressure | Source::Cpu | Source::HostInfo | Source::Agent => Self::Host,
            source if is_command(source) => Self::Commands(drive.unwrap_or_else(|| job.subject.clone())),
            _ => Self::Files(job.subject.clone()),
        }
    }

    /// True for the lanes that serve the host as a whole: they never wait for a device's lane to let a worker go.
    pub const fn is_host_wide(&self) -> bool {
        matches!(self, Self::Host | Self::Discovery | Self::Stack)
    }
}

/// True when reading `source` sends a command to the drive.
pub const fn is_command(source: Source) -> bool {
    match source {
        Source::AtaPower
        | Source::Namespace
        | Source::Identify
        | Source::SmartHealth
        | Source::ErrorLog
        | Source::FirmwareSlots
        | Source::SelfTest
        | Source::OcpSmart
        | Source::DriveCommands => true,
        Source::Diskstats
        | Source::Pressure
        | Source::Cpu
        | Source::HostInfo
        | Source::Agent
        | Source::Stack
        | Source::Discovery
        | Source::Queue
        | Source::Power
        | Source::Probe
        | Source::ControllerState
        | Source::PcieLink
        | Source::PcieAer => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storscope_model::identity::{ControllerId, DeviceId};

    #[test]
    fn files_and_commands_of_one_drive_do_not_share_a_lane() {
        let controller = Subject::Controller(ControllerId("c".into()));
        let device = Subject::Device(DeviceId("d".into()));
        let of = |subject: &Subject, source, drive: Option<&Subject>| {
            Lane::of(&Job::new(subject.clone(), source), drive.cloned())
        };
        assert_eq!(of(&controller, Source::PcieLink, None), Lane::Files(controller.clone()));
        assert_eq!(of(&controller, Source::SmartHealth, None), Lane::Commands(controller.clone()));
        assert_eq!(of(&device, Source::Namespace, Some(&controller)), Lane::Commands(controller.clone()));
        assert_eq!(of(&device, Source::Queue, Some(&controller)), Lane::Files(device.clone()));
        assert_eq!(of(&device, Source::AtaPower, None), Lane::Commands(device.clone()));
    }

    #[test]
    fn host_files_discovery_and_stack_are_three_lanes() {
        let of = |source| Lane::of(&Job::host(source), None);
        assert_eq!(of(Source::Diskstats), Lane::Host);
        assert_eq!(of(Source::Agent), Lane::Host);
        assert_eq!(of(Source::Discovery), Lane::Discovery);
        assert_eq!(of(Source::Stack), Lane::Stack);
    }
}
