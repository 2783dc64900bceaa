//! What one read of one source gives. A sample is plain data: no text for people, no judgement.

pub mod diskstats;
pub mod host;
pub mod nvme;
pub mod pcie;
pub mod power;
pub mod probe;
pub mod queue;
pub mod stack;

use serde::{Deserialize, Serialize};

/// A source of samples, host-wide, of a controller or of a device. The word is the label `source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants are the words of `Source::as_str`")]
pub enum Source {
    Diskstats,
    Pressure,
    Cpu,
    HostInfo,
    Agent,
    Stack,
    Discovery,
    Queue,
    Power,
    AtaPower,
    Namespace,
    Probe,
    ControllerState,
    PcieLink,
    PcieAer,
    Identify,
    SmartHealth,
    ErrorLog,
    FirmwareSlots,
    SelfTest,
    OcpSmart,
    DriveCommands,
}

impl Source {
    /// Every source, in the order of the enum.
    pub const ALL: [Self; 22] = [
        Self::Diskstats,
        Self::Pressure,
        Self::Cpu,
        Self::HostInfo,
        Self::Agent,
        Self::Stack,
        Self::Discovery,
        Self::Queue,
        Self::Power,
        Self::AtaPower,
        Self::Namespace,
        Self::Probe,
        Self::ControllerState,
        Self::PcieLink,
        Self::PcieAer,
        Self::Identify,
        Self::SmartHealth,
        Self::ErrorLog,
        Self::FirmwareSlots,
        Self::SelfTest,
        Self::OcpSmart,
        Self::DriveCommands,
    ];

    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Diskstats => "diskstats",
            Self::Pressure => "pressure",
            Self::Cpu => "cpu",
            Self::HostInfo => "host_info",
            Self::Agent => "agent",
            Self::Stack => "stack",
            Self::Discovery => "discovery",
            Self::Queue => "queue",
            Self::Power => "power",
            Self::AtaPower => "ata_power",
            Self::Namespace => "namespace",
            Self::Probe => "probe",
            Self::ControllerState => "controller_state",
            Self::PcieLink => "pcie_link",
            Self::PcieAer => "pcie_aer",
            Self::Identify => "identify",
            Self::SmartHealth => "smart_health",
            Self::ErrorLog => "error_log",
            Self::FirmwareSlots => "firmware_slots",
            Self::SelfTest => "self_test",
            Self::OcpSmart => "ocp_smart",
            Self::DriveCommands => "drive_commands",
        }
    }
}

/// One sample of one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants are the sources")]
pub enum Sample {
    Diskstats(diskstats::Table),
    Pressure(host::Pressure),
    Cpu(host::Cpu),
    HostInfo(host::HostInfo),
    Agent(host::Agent),
    Stack(stack::Stack),
    Discovery(host::Discovery),
    Queue(Box<queue::QueueSettings>),
    Power(power::RuntimePower),
    AtaPower(power::AtaPower),
    Namespace(nvme::Namespace),
    Probe(Box<probe::ProbeReport>),
    ControllerState(nvme::ControllerState),
    PcieLink(pcie::PcieLink),
    PcieAer(pcie::Aer),
    Identify(Box<nvme::Identify>),
    SmartHealth(Box<nvme::SmartHealth>),
    ErrorLog(nvme::ErrorLog),
    FirmwareSlots(nvme::FirmwareSlots),
    SelfTest(nvme::SelfTestLog),
    OcpSmart(Box<nvme::OcpSmart>),
    DriveCommands(nvme::DriveCommands),
}

impl Sample {
    /// The source that such a sample comes from.
    pub const fn source(&self) -> Source {
        match self {
            Self::Diskstats(_) => Source::Diskstats,
            Self::Pressure(_) => Source::Pressure,
            Self::Cpu(_) => Source::Cpu,
            Self::HostInfo(_) => Source::HostInfo,
            Self::Agent(_) => Source::Agent,
            Self::Stack(_) => Source::Stack,
            Self::Discovery(_) => Source::Discovery,
            Self::Queue(_) => Source::Queue,
            Self::Power(_) => Source::Power,
            Self::AtaPower(_) => Source::AtaPower,
            Self::Namespace(_) => Source::Namespace,
            Self::Probe(_) => Source::Probe,
            Self::ControllerState(_) => Source::ControllerState,
            Self::PcieLink(_) => Source::PcieLink,
            Self::PcieAer(_) => Source::PcieAer,
            Self::Identify(_) => Source::Identify,
            Self::SmartHealth(_) => Source::SmartHealth,
            Self::ErrorLog(_) => Source::ErrorLog,
            Self::FirmwareSlots(_) => Source::FirmwareSlots,
            Self::SelfTest(_) => Source::SelfTest,
            Self::OcpSmart(_) => Source::OcpSmart,
            Self::DriveCommands(_) => Source::DriveCommands,
        }
    }
}
