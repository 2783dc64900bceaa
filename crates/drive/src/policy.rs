//! What a controller may be asked at all, decided before anything is sent: a refused page is an entry in its error log.

use std::fmt;
use std::num::NonZeroU16;

use crate::command::{GetLog, LogPage, MAX_TRANSFER_DWORDS, UuidIndex};
use crate::error_log::ERROR_ENTRY_BYTES;
use crate::identify_controller::{ControllerType, IdentifyController, Version};
use crate::refusals::Refusal;
use crate::supported_pages::SupportedPages;
use crate::uuid_list::{OCP_UUID, UuidList};

/// PCI vendors that make drives to the OCP specification. Other vendors' drives are asked for C0h only where they list
/// it themselves: every vendor may keep a page of its own there.
const OCP_VENDORS: [u16; 11] = [
    0x025e, // Solidigm
    0x1179, // Toshiba
    0x1344, // Micron
    0x144d, // Samsung
    0x15b7, // SanDisk
    0x1b96, // Western Digital
    0x1bb1, // Seagate
    0x1c58, // HGST
    0x1c5c, // SK hynix
    0x1e0f, // Kioxia
    0x8086, // Intel
];

/// The smallest unit of MDTS (CAP.MPSMIN) that a controller may have.
const SMALLEST_MEMORY_PAGE_DWORDS: u32 = 4096 / 4;

/// Why a page is not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// It neither serves I/O nor leaves its type unstated.
    ControllerType(ControllerType),
    /// This bit of Log Page Attributes is clear.
    LpaBit(u8),
    /// OACS bit 4 is clear.
    SelfTestUnsupported,
    /// The page came with this version of the standard, the controller follows an older one.
    OlderThan {
        /// Major version needed.
        major: u16,
        /// Minor version needed.
        minor: u8,
        /// What the controller states.
        states: Version,
    },
    /// The controller's own list of pages leaves it out.
    NotListed,
    /// The controller lists UUIDs and OCP's is not among them.
    OcpUuidNotListed,
    /// No sign that this vendor's C0h is OCP's.
    VendorNotOcp(u16),
    /// Asked before.
    Refused(Refusal),
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ControllerType(ControllerType::Discovery) => f.write_str("a discovery controller"),
            Self::ControllerType(ControllerType::Administrative) => f.write_str("an administrative controller"),
            Self::ControllerType(kind) => write!(f, "controller type {kind:?}"),
            Self::LpaBit(bit) => write!(f, "not supported: LPA bit {bit} clear"),
            Self::SelfTestUnsupported => f.write_str("self-test not supported: OACS bit 4 clear"),
            Self::OlderThan { major, minor, states } => {
                write!(f, "needs NVMe {major}.{minor}, the controller follows {states}")
            }
            Self::NotListed => f.write_str("not in the controller's list of supported pages"),
            Self::OcpUuidNotListed => f.write_str("OCP's UUID is not in the controller's UUID list"),
            Self::VendorNotOcp(vendor) => {
                write!(f, "vendor {vendor:04x}h is not known to follow OCP and nothing lists the page")
            }
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

/// What is known of a controller before it is asked for pages.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Identify Controller.
    pub identify: &'a IdentifyController,
    /// Page 00h, where the controller has it and it could be read.
    pub supported: Option<&'a SupportedPages>,
    /// The UUID list, where the controller has it and it could be read.
    pub uuids: Option<&'a UuidList>,
}

/// How a controller is asked: which pages, and with what fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    verdicts: [Result<(), WhyNot>; LogPage::ALL.len()],
    retain_event: bool,
    offsets: bool,
    transfer_dwords: u16,
    error_entries: u16,
    ocp_uuid: Option<UuidIndex>,
}

impl Plan {
    /// Decides from what is known.
    #[must_use]
    pub fn new(evidence: &Evidence<'_>) -> Self {
        let identify = evidence.identify;
        Self {
            verdicts: LogPage::ALL.map(|page| verdict(page, evidence)),
            // CDW10 bit 15 is Retain Asynchronous Event since 1.3 and reserved before, where a drive may refuse a
            // command with a reserved bit set; a controller that old clears the event on every read whatever is sent.
            retain_event: identify.version.at_least(1, 3),
            offsets: identify.has_extended_get_log(),
            transfer_dwords: transfer_dwords(identify.max_data_transfer),
            error_entries: identify.error_log_entries,
            ocp_uuid: evidence.uuids.and_then(|uuids| uuids.index_of(&OCP_UUID)),
        }
    }

    /// `Err` says why the page is not asked for.
    ///
    /// # Errors
    /// [`WhyNot`].
    pub fn verdict(&self, page: LogPage) -> Result<(), WhyNot> {
        let index = LogPage::ALL.iter().position(|known| *known == page);
        index.map_or(Err(WhyNot::NotListed), |index| self.verdicts[index])
    }

    /// Every page with its verdict.
    pub fn verdicts(&self) -> impl Iterator<Item = (LogPage, Result<(), WhyNot>)> {
        LogPage::ALL.into_iter().zip(self.verdicts)
    }

    /// The commands that read a page, in order. Without LPA bit 2 a page longer than one transfer is read as far as
    /// one transfer goes.
    ///
    /// # Errors
    /// [`WhyNot`] if the page is not asked for.
    pub fn commands(&self, page: LogPage) -> Result<Vec<GetLog>, WhyNot> {
        self.verdict(page)?;
        let total = self.page_dwords(page);
        let mut commands = Vec::new();
        let mut first = 0;
        while let Some(dwords) = NonZeroU16::new((total - first).min(self.transfer_dwords)) {
            let uuid = self.ocp_uuid.filter(|_| page == LogPage::OcpSmart);
            commands.push(
                GetLog::new(page, dwords)
                    .starting_at(u32::from(first))
                    .retaining_event(self.retain_event)
                    .of_uuid(uuid),
            );
            first += dwords.get();
            if !self.offsets {
                break;
            }
        }
        Ok(commands)
    }

    /// Retain Asynchronous Event is set in every read.
    #[must_use]
    pub fn retains_event(&self) -> bool {
        self.retain_event
    }

    fn page_dwords(&self, page: LogPage) -> u16 {
        match page {
            LogPage::SupportedPages => 1024 / 4,
            LogPage::ErrorInformation => {
                const ENTRY_DWORDS: u16 = 16;
                const { assert!(ERROR_ENTRY_BYTES == 16 * 4) }
                self.error_entries.min(256) * ENTRY_DWORDS
            }
            LogPage::SmartHealth | LogPage::FirmwareSlots | LogPage::OcpSmart => 512 / 4,
            LogPage::CommandEffects => 4096 / 4,
            LogPage::SelfTest => 564 / 4,
        }
    }
}

/// MDTS in units of the smallest memory page a controller can have: too small rather than too large.
fn transfer_dwords(max_data_transfer: u8) -> u16 {
    if max_data_transfer == 0 {
        return MAX_TRANSFER_DWORDS;
    }
    1_u32
        .checked_shl(u32::from(max_data_transfer))
        .and_then(|pages| pages.checked_mul(SMALLEST_MEMORY_PAGE_DWORDS))
        .and_then(|dwords| u16::try_from(dwords).ok())
        .map_or(MAX_TRANSFER_DWORDS, |dwords| dwords.min(MAX_TRANSFER_DWORDS))
}

fn verdict(page: LogPage, evidence: &Evidence<'_>) -> Result<(), WhyNot> {
    let identify = evidence.identify;
    if !matches!(identify.controller_type, ControllerType::Unstated | ControllerType::Io) {
        return Err(WhyNot::ControllerType(identify.controller_type));
    }
    let listed = evidence.supported.map(|pages| pages.contains(page.id()));
    if listed == Some(false) {
        return Err(WhyNot::NotListed);
    }
    match page {
        LogPage::SupportedPages if !identify.has_supported_pages_log() => Err(WhyNot::LpaBit(5)),
        // The bit was reserved before 2.0, and nothing is lost without the list.
        LogPage::SupportedPages => needs(2, 0, identify.version),
        LogPage::CommandEffects if !identify.has_effects_log() => Err(WhyNot::LpaBit(1)),
        LogPage::SelfTest if !identify.has_self_test() => Err(WhyNot::SelfTestUnsupported),
        LogPage::OcpSmart => ocp_verdict(evidence, listed == Some(true)),
        // Mandatory since 1.0, or claimed by a bit of their own.
        LogPage::ErrorInformation
        | LogPage::SmartHealth
        | LogPage::FirmwareSlots
        | LogPage::CommandEffects
        | LogPage::SelfTest => Ok(()),
    }
}

/// The sources in order of weight: the UUID list, the list of pages, then vendor and version (the first OCP drives
/// followed NVMe 1.3).
fn ocp_verdict(evidence: &Evidence<'_>, listed: bool) -> Result<(), WhyNot> {
    let identify = evidence.identify;
    if let Some(uuids) = evidence.uuids {
        return match uuids.index_of(&OCP_UUID) {
            Some(_) => Ok(()),
            None => Err(WhyNot::OcpUuidNotListed),
        };
    }
    if listed {
        return Ok(());
    }
    if !OCP_VENDORS.contains(&identify.vendor_id) {
        return Err(WhyNot::VendorNotOcp(identify.vendor_id));
    }
    needs(1, 3, identify.version)
}

fn needs(major: u16, minor: u8, states: Version) -> Result<(), WhyNot> {
    if states.at_least(major, minor) { Ok(()) } else { Err(WhyNot::OlderThan { major, minor, states }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Drive {
        bytes: Vec<u8>,
    }

    impl Drive {
        fn new(version: u32, lpa: u8) -> Self {
            let mut bytes = vec![0; 4096];
            bytes[0..2].copy_from_slice(&0x144d_u16.to_le_bytes());
            bytes[80..84].copy_from_slice(&version.to_le_bytes());
            bytes[261] = lpa;
            bytes[262] = 63;
            Self { bytes }
        }

        fn with(mut self, offset: usize, value: u8) -> Self {
            self.bytes[offset] = value;
            self
        }

        fn plan(&self, supported: Option<&SupportedPages>, uuids: Option<&UuidList>) -> Plan {
            let identify = &IdentifyController::decode(&self.bytes).unwrap();
            Plan::new(&Evidence { identify, supported, uuids })
        }
    }

    fn supported(ids: &[usize]) -> SupportedPages {
        let mut page = vec![0; 1024];
        for id in ids {
            page[id * 4] = 1;
        }
        SupportedPages::decode(&page).unwrap()
    }

    fn allowed(plan: &Plan) -> Vec<u8> {
        plan.verdicts().filter(|(_, verdict)| verdict.is_ok()).map(|(page, _)| page.id()).collect()
    }

    const V1_2: u32 = 0x0001_0200;
    const V1_3: u32 = 0x0001_0300;
    const V1_4: u32 = 0x0001_0400;
    const V2_0: u32 = 0x0002_0000;

    #[test]
    fn an_old_drive_is_asked_only_what_every_drive_has() {
        let plan = Drive::new(V1_2, 0x00).plan(None, None);
        assert_eq!(allowed(&plan), [0x01, 0x02, 0x03]);
        let reason = |page| plan.verdict(page).unwrap_err().to_string();
        assert_eq!(reason(LogPage::SelfTest), "self-test not supported: OACS bit 4 clear");
        assert_eq!(reason(LogPage::CommandEffects), "not supported: LPA bit 1 clear");
        assert_eq!(reason(LogPage::SupportedPages), "not supported: LPA bit 5 clear");
        assert_eq!(reason(LogPage::OcpSmart), "needs NVMe 1.3, the controller follows 1.2");
        assert_eq!(allowed(&Drive::new(0, 0).plan(None, None)), [0x01, 0x02, 0x03]);
    }

    #[test]
    fn bits_of_its_own_open_a_page() {
        let plan = Drive::new(V1_4, 0x22).with(256, 0x10).plan(None, None);
        assert_eq!(allowed(&plan), [0x01, 0x02, 0x03, 0x05, 0x06, 0xc0]);
        assert_eq!(
            plan.verdict(LogPage::SupportedPages).unwrap_err().to_string(),
            "needs NVMe 2.0, the controller follows 1.4"
        );
        assert!(Drive::new(V2_0, 0x20).plan(None, None).verdict(LogPage::SupportedPages).is_ok());
        // Version 2.0 alone does not imply the page.
        assert!(Drive::new(V2_0, 0x00).plan(None, None).verdict(LogPage::SupportedPages).is_err());
    }

    #[test]
    fn controllers_that_serve_no_io_are_asked_for_no_page() {
        for kind in [2, 3, 9] {
            assert!(allowed(&Drive::new(V1_4, 0xff).with(111, kind).plan(None, None)).is_empty());
        }
        assert!(!allowed(&Drive::new(V1_4, 0).with(111, 1).plan(None, None)).is_empty());
    }

    #[test]
    fn the_drives_own_list_closes_and_opens_pages() {
        let drive = Drive::new(V2_0, 0x22).with(256, 0x10).with(0, 0x0f).with(1, 0x1d);
        let plan = drive.plan(Some(&supported(&[0, 1, 2, 3])), None);
        assert_eq!(allowed(&plan), [0x00, 0x01, 0x02, 0x03]);
        assert_eq!(plan.verdict(LogPage::SelfTest), Err(WhyNot::NotListed));
        let listed = drive.plan(Some(&supported(&[1, 2, 3, 0xc0])), None);
        assert!(listed.verdict(LogPage::OcpSmart).is_ok());
        assert_eq!(
            drive.plan(None, None).verdict(LogPage::OcpSmart).unwrap_err().to_string(),
            "vendor 1d0fh is not known to follow OCP and nothing lists the page"
        );
    }

    #[test]
    fn a_uuid_list_decides_about_the_ocp_page() {
        let drive = Drive::new(V1_4, 0);
        let mut list = vec![0; 4096];
        list[48..64].copy_from_slice(&[1; 16]);
        let without = UuidList::decode(&list).unwrap();
        assert_eq!(drive.plan(None, Some(&without)).verdict(LogPage::OcpSmart), Err(WhyNot::OcpUuidNotListed));
        list[80..96].copy_from_slice(&OCP_UUID);
        let with = UuidList::decode(&list).unwrap();
        let plan = drive.plan(None, Some(&with));
        let commands = plan.commands(LogPage::OcpSmart).unwrap();
        assert_eq!(commands[0].uuid().map(UuidIndex::get), Some(2));
        // The index is for the vendor page alone.
        assert_eq!(plan.commands(LogPage::SmartHealth).unwrap()[0].uuid(), None);
    }

    #[test]
    fn the_retain_bit_is_set_wherever_it_exists() {
        let retains = |version| {
            let plan = Drive::new(version, 0).plan(None, None);
            plan.commands(LogPage::SmartHealth).unwrap()[0].retains_event()
        };
        assert!(!retains(0) && !retains(V1_2));
        assert!(retains(V1_3) && retains(V1_4) && retains(V2_0));
    }

    fn windows(drive: &Drive) -> Vec<(u64, usize)> {
        drive
            .plan(None, None)
            .commands(LogPage::ErrorInformation)
            .unwrap()
            .iter()
            .map(|command| (command.offset(), command.length()))
            .collect()
    }

    #[test]
    fn the_error_log_is_read_whole_within_mdts() {
        assert_eq!(windows(&Drive::new(V1_4, 0x04)), [(0, 4096)]);
        assert_eq!(windows(&Drive::new(V1_4, 0x04).with(262, 255)), [(0, 16384)]);
        assert_eq!(windows(&Drive::new(V1_4, 0x04).with(262, 0)), [(0, 64)]);
        let small = Drive::new(V1_4, 0x04).with(262, 254).with(77, 1);
        assert_eq!(windows(&small), [(0, 8192), (8192, 8128)]);
    }

    #[test]
    fn without_extended_fields_one_transfer_has_to_do() {
        assert_eq!(windows(&Drive::new(V1_2, 0).with(262, 255).with(77, 1)), [(0, 8192)]);
        assert_eq!(windows(&Drive::new(V1_2, 0).with(262, 255)), [(0, 16384)]);
    }

    #[test]
    fn any_mdts_gives_a_transfer_between_two_pages_and_the_limit() {
        for mdts in 0..=255 {
            let dwords = transfer_dwords(mdts);
            assert!((2048..=MAX_TRANSFER_DWORDS).contains(&dwords), "{mdts}");
        }
    }

    #[test]
    fn every_page_has_its_length() {
        let plan = Drive::new(V2_0, 0x26).with(256, 0x10).plan(None, None);
        let lengths: Vec<_> = LogPage::ALL
            .into_iter()
            .map(|page| plan.commands(page).unwrap().iter().map(GetLog::length).sum::<usize>())
            .collect();
        assert_eq!(lengths, [1024, 4096, 512, 512, 4096, 564, 512]);
    }
}
