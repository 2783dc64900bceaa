//! The commands that exist here: a closed, read-only set.

use std::fmt;
use std::num::NonZeroU16;

/// NSID that means "the whole controller" (broadcast value).
pub const NSID_ALL: u32 = 0xffff_ffff;

/// Longest single transfer that is ever asked for, in dwords: 16 KiB.
///
/// It holds the largest page read here (256 error entries), and its count fits the twelve NUMD bits of a controller
/// older than NVMe 1.2.1, so that the upper count (NUMDU) is never needed.
pub const MAX_TRANSFER_DWORDS: u16 = 4096;

const RETAIN_ASYNCHRONOUS_EVENT: u32 = 1 << 15;
const IDENTIFY_BYTES: usize = 4096;

/// The two admin opcodes that can be sent. Both only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// 02h.
    GetLogPage = 0x02,
    /// 06h.
    Identify = 0x06,
}

/// The log pages that can be asked for: reading them changes nothing in a controller.
///
/// Telemetry (07h, 08h) and the persistent event log (0Dh) are absent on purpose: asking for them establishes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogPage {
    /// 00h, Supported Log Pages (NVMe 2.0).
    SupportedPages = 0x00,
    /// 01h, Error Information.
    ErrorInformation = 0x01,
    /// 02h, SMART / Health Information.
    SmartHealth = 0x02,
    /// 03h, Firmware Slot Information.
    FirmwareSlots = 0x03,
    /// 05h, Commands Supported and Effects.
    CommandEffects = 0x05,
    /// 06h, Device Self-test.
    SelfTest = 0x06,
    /// C0h, SMART / Health Information Extended of the OCP Datacenter NVMe SSD Specification.
    OcpSmart = 0xc0,
}

impl LogPage {
    /// Every page, by identifier.
    pub const ALL: [Self; 7] = [
        Self::SupportedPages,
        Self::ErrorInformation,
        Self::SmartHealth,
        Self::FirmwareSlots,
        Self::CommandEffects,
        Self::SelfTest,
        Self::OcpSmart,
    ];

    /// Log Page Identifier.
    #[must_use]
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The page of a Log Page Identifier, if it is one of those known here.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|page| page.id() == id)
    }

    /// The standard's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SupportedPages => "Supported Log Pages (00h)",
            Self::ErrorInformation => "Error Information (01h)",
            Self::SmartHealth => "SMART / Health (02h)",
            Self::FirmwareSlots => "Firmware Slot (03h)",
            Self::CommandEffects => "Commands Supported and Effects (05h)",
            Self::SelfTest => "Device Self-test (06h)",
            Self::OcpSmart => "OCP SMART Extended (C0h)",
        }
    }

    /// A word for a metric label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::SupportedPages => "log_supported_pages",
            Self::ErrorInformation => "log_error_information",
            Self::SmartHealth => "log_smart_health",
            Self::FirmwareSlots => "log_firmware_slots",
            Self::CommandEffects => "log_command_effects",
            Self::SelfTest => "log_self_test",
            Self::OcpSmart => "log_ocp_smart",
        }
    }
}

/// What Identify can be asked for (CDW10, Controller or Namespace Structure).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Identify {
    /// CNS 01h with NSID 0: some drives refuse any other NSID here.
    Controller,
    /// CNS 00h: one namespace of the controller.
    Namespace {
        /// Namespace identifier, from 1.
        nsid: u32,
    },
    /// CNS 17h: which vendors' meaning the UUID indexes select (NVMe 1.4, CTRATT bit 9).
    UuidList,
}

impl Identify {
    /// Controller or Namespace Structure value.
    #[must_use]
    pub fn cns(self) -> u8 {
        match self {
            Self::Namespace { .. } => 0x00,
            Self::Controller => 0x01,
            Self::UuidList => 0x17,
        }
    }
}

/// Index of an entry of the UUID list, 1 to 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UuidIndex(u8);

impl UuidIndex {
    /// `None` outside 1 to 127.
    #[must_use]
    pub fn new(index: u8) -> Option<Self> {
        (1..=127).contains(&index).then_some(Self(index))
    }

    /// The index.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

/// One Get Log Page command: a part of a page, in whole dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GetLog {
    page: LogPage,
    dwords: NonZeroU16,
    first_dword: u32,
    retain_event: bool,
    uuid: Option<UuidIndex>,
}

impl GetLog {
    /// The first `dwords` of a page, without the Retain Asynchronous Event bit.
    #[must_use]
    pub fn new(page: LogPage, dwords: NonZeroU16) -> Self {
        Self { page, dwords, first_dword: 0, retain_event: false, uuid: None }
    }

    /// Starts at this dword of the page. Anything but 0 needs LPA bit 2.
    #[must_use]
    pub fn starting_at(mut self, first_dword: u32) -> Self {
        self.first_dword = first_dword;
        self
    }

    /// Sets Retain Asynchronous Event: a read without it clears the event that another agent waits for.
    #[must_use]
    pub fn retaining_event(mut self, retain: bool) -> Self {
        self.retain_event = retain;
        self
    }

    /// Selects whose meaning of a vendor page is wanted.
    #[must_use]
    pub fn of_uuid(mut self, uuid: Option<UuidIndex>) -> Self {
        self.uuid = uuid;
        self
    }

    /// The page.
    #[must_use]
    pub fn page(&self) -> LogPage {
        self.page
    }

    /// Bytes asked for.
    #[must_use]
    pub fn length(&self) -> usize {
        usize::from(self.dwords.get()) * 4
    }

    /// First byte asked for.
    #[must_use]
    pub fn offset(&self) -> u64 {
        u64::from(self.first_dword) * 4
    }

    /// Retain Asynchronous Event is set.
    #[must_use]
    pub fn retains_event(&self) -> bool {
        self.retain_event
    }

    /// The UUID index, if one is selected.
    #[must_use]
    pub fn uuid(&self) -> Option<UuidIndex> {
        self.uuid
    }

    fn dwords_10_to_15(&self) -> [u32; 6] {
        let last_dword = u32::from(self.dwords.get() - 1);
        let retain = if self.retain_event { RETAIN_ASYNCHRONOUS_EVENT } else { 0 };
        let [low, high] = split(self.offset());
        let uuid = self.uuid.map_or(0, |index| u32::from(index.get()));
        [u32::from(self.page.id()) | retain | last_dword << 16, 0, low, high, uuid, 0]
    }
}

fn split(value: u64) -> [u32; 2] {
    let bytes = value.to_le_bytes();
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [word(0), word(4)]
}

/// A command that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdminCommand {
    /// Identify (06h).
    Identify(Identify),
    /// Get Log Page (02h).
    GetLog(GetLog),
}

impl AdminCommand {
    /// Opcode.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Identify(_) => Opcode::Identify,
            Self::GetLog(_) => Opcode::GetLogPage,
        }
    }

    /// Namespace identifier: that of a namespace, 0 for the controller's own structures, all ones for log pages.
    ///
    /// Drives exist that refuse log pages with NSID 1, and others that refuse Identify Controller with all ones.
    #[must_use]
    pub fn nsid(&self) -> u32 {
        match self {
            Self::Identify(Identify::Namespace { nsid }) => *nsid,
            Self::Identify(_) => 0,
            Self::GetLog(_) => NSID_ALL,
        }
    }

    /// Command dwords 10 to 15.
    #[must_use]
    pub fn dwords_10_to_15(&self) -> [u32; 6] {
        match self {
            Self::Identify(identify) => [u32::from(identify.cns()), 0, 0, 0, 0, 0],
            Self::GetLog(get_log) => get_log.dwords_10_to_15(),
        }
    }

    /// Bytes that the command returns.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::Identify(_) => IDENTIFY_BYTES,
            Self::GetLog(get_log) => get_log.length(),
        }
    }

    /// What is asked, without how.
    #[must_use]
    pub fn id(&self) -> CommandId {
        match self {
            Self::Identify(identify) => CommandId::Identify(*identify),
            Self::GetLog(get_log) => CommandId::GetLog(get_log.page),
        }
    }
}

/// What was asked: for errors, logs and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandId {
    /// Identify.
    Identify(Identify),
    /// Get Log Page.
    GetLog(LogPage),
    /// ATA CHECK POWER MODE (E5h).
    CheckPowerMode,
}

impl CommandId {
    /// A word for a metric label, from a closed set.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Identify(Identify::Controller) => "identify_controller",
            Self::Identify(Identify::Namespace { .. }) => "identify_namespace",
            Self::Identify(Identify::UuidList) => "identify_uuid_list",
            Self::GetLog(page) => page.label(),
            Self::CheckPowerMode => "ata_check_power_mode",
        }
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identify(Identify::Controller) => f.write_str("Identify Controller"),
            Self::Identify(Identify::Namespace { nsid }) => write!(f, "Identify Namespace {nsid}"),
            Self::Identify(Identify::UuidList) => f.write_str("Identify UUID List"),
            Self::GetLog(page) => write!(f, "Get Log Page {}", page.name()),
            Self::CheckPowerMode => f.write_str("ATA CHECK POWER MODE"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dwords(count: u16) -> NonZeroU16 {
        NonZeroU16::new(count).unwrap()
    }

    #[test]
    fn get_log_fills_the_dwords_as_the_standard_says() {
        let smart = AdminCommand::GetLog(GetLog::new(LogPage::SmartHealth, dwords(128)).retaining_event(true));
        assert_eq!(smart.opcode() as u8, 0x02);
        assert_eq!(smart.nsid(), NSID_ALL);
        assert_eq!(smart.length(), 512);
        assert_eq!(smart.dwords_10_to_15(), [0x007f_8002, 0, 0, 0, 0, 0]);

        let part = GetLog::new(LogPage::ErrorInformation, dwords(2048)).starting_at(2048);
        assert_eq!(part.offset(), 8192);
        assert_eq!(AdminCommand::GetLog(part).dwords_10_to_15(), [0x07ff_0001, 0, 8192, 0, 0, 0]);

        let ocp = GetLog::new(LogPage::OcpSmart, dwords(128)).of_uuid(UuidIndex::new(2));
        assert_eq!(AdminCommand::GetLog(ocp).dwords_10_to_15()[4], 2);
    }

    #[test]
    fn an_offset_past_four_gigabytes_spills_into_the_upper_dword() {
        let far = GetLog::new(LogPage::ErrorInformation, dwords(16)).starting_at(0x4000_0001);
        let words = AdminCommand::GetLog(far).dwords_10_to_15();
        assert_eq!([words[2], words[3]], [4, 1]);
    }

    #[test]
    fn the_largest_transfer_fits_twelve_bits_of_numd() {
        let largest = AdminCommand::GetLog(GetLog::new(LogPage::ErrorInformation, dwords(MAX_TRANSFER_DWORDS)));
        assert_eq!(largest.dwords_10_to_15()[0] >> 16, 0xfff);
    }

    #[test]
    fn identify_uses_the_nsid_that_every_drive_accepts() {
        let controller = AdminCommand::Identify(Identify::Controller);
        assert_eq!((controller.opcode() as u8, controller.nsid()), (0x06, 0));
        assert_eq!(controller.dwords_10_to_15(), [1, 0, 0, 0, 0, 0]);
        let namespace = AdminCommand::Identify(Identify::Namespace { nsid: 3 });
        assert_eq!((namespace.nsid(), namespace.dwords_10_to_15()[0]), (3, 0));
        let uuids = AdminCommand::Identify(Identify::UuidList);
        assert_eq!((uuids.nsid(), uuids.dwords_10_to_15()[0], uuids.length()), (0, 0x17, 4096));
    }

    #[test]
    fn page_identifiers_round_trip_and_nothing_else_exists() {
        for page in LogPage::ALL {
            assert_eq!(LogPage::from_id(page.id()), Some(page));
        }
        for forbidden in [0x07, 0x08, 0x0d, 0xc3] {
            assert_eq!(LogPage::from_id(forbidden), None);
        }
        assert_eq!(UuidIndex::new(0), None);
        assert_eq!(UuidIndex::new(128), None);
    }
}
