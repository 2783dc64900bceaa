//! SMART / Health Information Extended log (C0h) of the OCP Datacenter NVMe SSD Specification, versions 2 to 6 of the page.

use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::command::LogPage;
use crate::error::PageError;
use crate::layout::{refuse_all_ones, stored_order, view};

/// AFD514C9-7C6F-4F9C-A4F2-BFEA2810AFC5 as stored. C0h with any other GUID is the vendor's own page, which decodes
/// into numbers that look true.
pub const OCP_GUID: [u8; 16] =
    [0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf];

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct CountAndNormal {
    raw: [u8; 6],
    normalised: U16,
}

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FailLayout {
    raw: U32,
    normalised: u8,
    rsvd5: [u8; 3],
}

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    media_written: U128,
    media_read: U128,
    bad_user_blocks: CountAndNormal,
    bad_system_blocks: CountAndNormal,
    xor_recoveries: U64,
    uncorrectable_reads: U64,
    soft_ecc: U64,
    end_to_end_detected: U32,
    end_to_end_corrected: U32,
    system_data_used: u8,
    refreshes: [u8; 7],
    erase_max: U32,
    erase_min: U32,
    throttle_events: u8,
    throttle_status: u8,
    dssd_errata: u8,
    dssd_point: U16,
    dssd_minor: U16,
    dssd_major: u8,
    pcie_correctable: U64,
    incomplete_shutdowns: U32,
    rsvd116: [u8; 4],
    free_blocks: u8,
    rsvd121: [u8; 7],
    capacitor_health: U16,
    rsvd130: [u8; 6],
    unaligned_io: U64,
    security_version: U64,
    nuse: U64,
    plp_starts: U128,
    endurance_estimate: U128,
    link_retrains: U64,
    power_state_changes: U64,
    lowest_firmware: [u8; 8],
    dies: U16,
    die_tolerance: U16,
    dies_offline: U16,
    rsvd222: [u8; 2],
    average_erase: U64,
    command_timeouts: U32,
    program_fails: FailLayout,
    read_fails: FailLayout,
    erase_fails: FailLayout,
    rsvd260: [u8; 234],
    version: U16,
    guid: [u8; 16],
}

/// A count with the drive's own judgement of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normalised {
    /// The count.
    pub raw: Option<u64>,
    /// 100 is as new; falls with use.
    pub normalised: Option<u16>,
}

/// Version of the OCP specification that a drive follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DssdVersion {
    /// Major.
    pub major: u8,
    /// Minor.
    pub minor: u16,
    /// Point.
    pub point: u16,
    /// Errata.
    pub errata: u8,
}

/// The extended health of an OCP drive.
///
/// `None` is a field that the drive marks as not implemented (all ones) or that the version of its page does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcpSmart {
    /// Version of this page.
    pub version: u16,
    /// Bytes written to the medium. Below the host's own on some drives: guard any ratio.
    pub media_bytes_written: Option<u128>,
    /// Bytes read from the medium.
    pub media_bytes_read: Option<u128>,
    /// Bad blocks in the user area.
    pub bad_user_blocks: Normalised,
    /// Bad blocks in the system area.
    pub bad_system_blocks: Normalised,
    /// Recoveries by XOR.
    pub xor_recoveries: Option<u64>,
    /// Reads that no recovery could correct.
    pub uncorrectable_reads: Option<u64>,
    /// Reads that needed more than the first error correction.
    pub soft_ecc_errors: Option<u64>,
    /// End-to-end protection errors found.
    pub end_to_end_detected: Option<u32>,
    /// End-to-end protection errors corrected.
    pub end_to_end_corrected: Option<u32>,
    /// Life used of the system area in percent; may pass 100.
    pub system_data_used_percent: Option<u8>,
    /// Blocks rewritten to keep their data.
    pub refreshes: Option<u64>,
    /// Most erases of a user block.
    pub max_erase_count: Option<u32>,
    /// Fewest erases of a user block.
    pub min_erase_count: Option<u32>,
    /// Times that throttling began. One byte that stays at 255 and does not wrap: 255 is 255 or more.
    pub throttle_events: u8,
    /// Throttling now: 0 none, 1 light, 2 heavy, 3 to the limit.
    pub throttle_status: Option<u8>,
    /// OCP specification followed, from page version 2 on where stated.
    pub specification: Option<DssdVersion>,
    /// PCIe correctable errors.
    pub pcie_correctable_errors: Option<u64>,
    /// Shutdowns in which not everything could be saved.
    pub incomplete_shutdowns: Option<u32>,
    /// Free blocks in percent.
    pub free_blocks_percent: Option<u8>,
    /// Power-loss capacitor in percent of what it needs; above 100 is normal. `None` also where there is none.
    pub capacitor_health_percent: Option<u16>,
    /// I/O that was not aligned to the drive's own unit.
    pub unaligned_io: Option<u64>,
    /// Security version of the firmware.
    pub security_version: Option<u64>,
    /// Copy of the namespaces' use (NUSE), in the drive's unit.
    pub namespace_use: Option<u64>,
    /// Starts of power-loss protection.
    pub plp_starts: Option<u128>,
    /// Endurance estimate, units of 10^9 bytes.
    pub endurance_estimate: Option<u128>,
    /// Link retrains (version 2).
    pub link_retrains: Option<u64>,
    /// Power state changes (version 2).
    pub power_state_changes: Option<u64>,
    /// Media dies in all (version 5).
    pub media_dies: Option<u16>,
    /// Dies that may fail without loss (version 5).
    pub die_failure_tolerance: Option<u16>,
    /// Dies that failed (version 5).
    pub dies_offline: Option<u16>,
    /// Average erases of a block (version 5).
    pub average_erase_count: Option<u64>,
    /// Commands that passed their time (version 5).
    pub command_timeouts: Option<u32>,
    /// Failed programs in the system area (version 5).
    pub system_program_fails: Option<Normalised>,
    /// Uncorrectable reads in the system area (version 5).
    pub system_read_fails: Option<Normalised>,
    /// Failed erases in the system area (version 5).
    pub system_erase_fails: Option<Normalised>,
}

impl OcpSmart {
    /// Decodes the 512-byte page.
    ///
    /// # Errors
    /// [`PageError`]: short, only FFh, or [`PageError::Foreign`] where the GUID is not OCP's (a page of zeros too).
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let page = LogPage::OcpSmart.name();
        let log: &Layout = view(page, bytes)?;
        refuse_all_ones(page, bytes)?;
        if log.guid != OCP_GUID {
            return Err(PageError::Foreign { page, guid: stored_order(log.guid) });
        }
        let from = |version: u16| log.version.get() >= version;
        Ok(Self {
            version: log.version.get(),
            media_bytes_written: u128(log.media_written),
            media_bytes_read: u128(log.media_read),
            bad_user_blocks: count_and_normal(&log.bad_user_blocks),
            bad_system_blocks: count_and_normal(&log.bad_system_blocks),
            xor_recoveries: u64(log.xor_recoveries),
            uncorrectable_reads: u64(log.uncorrectable_reads),
            soft_ecc_errors: u64(log.soft_ecc),
            end_to_end_detected: u32(log.end_to_end_detected),
            end_to_end_corrected: u32(log.end_to_end_corrected),
            system_data_used_percent: u8(log.system_data_used),
            refreshes: short_count(&log.refreshes),
            max_erase_count: u32(log.erase_max),
            min_erase_count: u32(log.erase_min),
            throttle_events: log.throttle_events,
            throttle_status: u8(log.throttle_status),
            specification: from(2).then(|| specification(log)).flatten(),
            pcie_correctable_errors: u64(log.pcie_correctable),
            incomplete_shutdowns: u32(log.incomplete_shutdowns),
            free_blocks_percent: u8(log.free_blocks),
            capacitor_health_percent: u16(log.capacitor_health),
            unaligned_io: u64(log.unaligned_io),
            security_version: u64(log.security_version),
            namespace_use: u64(log.nuse),
            plp_starts: u128(log.plp_starts),
            endurance_estimate: u128(log.endurance_estimate),
            link_retrains: u64(log.link_retrains).filter(|_| from(2)),
            power_state_changes: u64(log.power_state_changes).filter(|_| from(2)),
            media_dies: u16(log.dies).filter(|_| from(5)),
            die_failure_tolerance: u16(log.die_tolerance).filter(|_| from(5)),
            dies_offline: u16(log.dies_offline).filter(|_| from(5)),
            average_erase_count: u64(log.average_erase).filter(|_| from(5)),
            command_timeouts: u32(log.command_timeouts).filter(|_| from(5)),
            system_program_fails: from(5).then(|| fails(&log.program_fails)),
            system_read_fails: from(5).then(|| fails(&log.read_fails)),
            system_erase_fails: from(5).then(|| fails(&log.erase_fails)),
        })
    }
}

// All ones in a field is "not implemented", at each width.

fn u8(value: u8) -> Option<u8> {
    (value != u8::MAX).then_some(value)
}

fn u16(value: U16) -> Option<u16> {
    (value.get() != u16::MAX).then_some(value.get())
}

fn u32(value: U32) -> Option<u32> {
    (value.get() != u32::MAX).then_some(value.get())
}

fn u64(value: U64) -> Option<u64> {
    (value.get() != u64::MAX).then_some(value.get())
}

fn u128(value: U128) -> Option<u128> {
    (value.get() != u128::MAX).then_some(value.get())
}

/// A count of six or seven bytes.
fn short_count(bytes: &[u8]) -> Option<u64> {
    if bytes.iter().all(|byte| *byte == 0xff) {
        return None;
    }
    Some(bytes.iter().rev().fold(0, |count, byte| count << 8 | u64::from(*byte)))
}

fn count_and_normal(layout: &CountAndNormal) -> Normalised {
    Normalised { raw: short_count(&layout.raw), normalised: u16(layout.normalised) }
}

fn fails(layout: &FailLayout) -> Normalised {
    Normalised { raw: u32(layout.raw).map(u64::from), normalised: u8(layout.normalised).map(u16::from) }
}

fn specification(log: &Layout) -> Option<DssdVersion> {
    u8(log.dssd_major).filter(|major| *major != 0).map(|major| DssdVersion {
        major,
        minor: log.dssd_minor.get(),
        point: log.dssd_point.get(),
        errata: log.dssd_errata,
    })
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_is_that_of_the_specification() {
        assert_eq!(size_of::<Layout>(), 512);
        let offsets = [
            (offset_of!(Layout, media_read), 16),
            (offset_of!(Layout, bad_user_blocks), 32),
            (offset_of!(CountAndNormal, normalised), 6),
            (offset_of!(Layout, bad_system_blocks), 40),
            (offset_of!(Layout, xor_recoveries), 48),
            (offset_of!(Layout, uncorrectable_reads), 56),
            (offset_of!(Layout, soft_ecc), 64),
            (offset_of!(Layout, end_to_end_detected), 72),
            (offset_of!(Layout, end_to_end_corrected), 76),
            (offset_of!(Layout, system_data_used), 80),
            (offset_of!(Layout, refreshes), 81),
            (offset_of!(Layout, erase_max), 88),
            (offset_of!(Layout, erase_min), 92),
            (offset_of!(Layout, throttle_events), 96),
            (offset_of!(Layout, throttle_status), 97),
            (offset_of!(Layout, dssd_errata), 98),
            (offset_of!(Layout, dssd_point), 99),
            (offset_of!(Layout, dssd_minor), 101),
            (offset_of!(Layout, dssd_major), 103),
            (offset_of!(Layout, pcie_correctable), 104),
            (offset_of!(Layout, incomplete_shutdowns), 112),
            (offset_of!(Layout, free_blocks), 120),
            (offset_of!(Layout, capacitor_health), 128),
            (offset_of!(Layout, unaligned_io), 136),
            (offset_of!(Layout, security_version), 144),
            (offset_of!(Layout, nuse), 152),
            (offset_of!(Layout, plp_starts), 160),
            (offset_of!(Layout, endurance_estimate), 176),
            (offset_of!(Layout, link_retrains), 192),
            (offset_of!(Layout, power_state_changes), 200),
            (offset_of!(Layout, dies), 216),
            (offset_of!(Layout, die_tolerance), 218),
            (offset_of!(Layout, dies_offline), 220),
            (offset_of!(Layout, average_erase), 224),
            (offset_of!(Layout, command_timeouts), 232),
            (offset_of!(Layout, program_fails), 236),
            (offset_of!(Layout, read_fails), 244),
            (offset_of!(Layout, erase_fails), 252),
            (offset_of!(Layout, version), 494),
            (offset_of!(Layout, guid), 496),
        ];
        for (ours, specified) in offsets {
            assert_eq!(ours, specified);
        }
    }

    fn page(fill: u8, version: u16) -> Vec<u8> {
        let mut page = vec![fill; 512];
        page[494..496].copy_from_slice(&version.to_le_bytes());
        page[496..].copy_from_slice(&OCP_GUID);
        page
    }

    #[test]
    fn every_field_is_decoded_at_its_width() {
        let mut bytes = page(0, 5);
        bytes[0..16].copy_from_slice(&(1_u128 << 80).to_le_bytes());
        bytes[32..38].copy_from_slice(&[1, 0, 0, 0, 0, 2]);
        bytes[38] = 99;
        bytes[81..88].copy_from_slice(&[3, 0, 0, 0, 0, 0, 1]);
        bytes[96] = 255;
        bytes[103] = 2;
        bytes[99] = 5;
        bytes[128] = 160;
        bytes[192] = 7;
        bytes[220] = 1;
        bytes[236] = 9;
        bytes[240] = 98;
        let ocp = OcpSmart::decode(&bytes).unwrap();
        assert_eq!(ocp.media_bytes_written, Some(1 << 80));
        assert_eq!(ocp.bad_user_blocks, Normalised { raw: Some(2 << 40 | 1), normalised: Some(99) });
        assert_eq!(ocp.refreshes, Some(1 << 48 | 3));
        assert_eq!(ocp.throttle_events, 255);
        assert_eq!(ocp.specification.map(|version| (version.major, version.point)), Some((2, 5)));
        assert_eq!(ocp.capacitor_health_percent, Some(160));
        assert_eq!((ocp.link_retrains, ocp.dies_offline), (Some(7), Some(1)));
        let fails = ocp.system_program_fails.unwrap();
        assert_eq!((fails.raw, fails.normalised), (Some(9), Some(98)));
    }

    #[test]
    fn all_ones_is_not_implemented_except_for_the_saturating_byte() {
        let ocp = OcpSmart::decode(&page(0xff, 5)).unwrap();
        let nothing = Normalised { raw: None, normalised: None };
        let expected = OcpSmart {
            version: 5,
            media_bytes_written: None,
            media_bytes_read: None,
            bad_user_blocks: nothing,
            bad_system_blocks: nothing,
            xor_recoveries: None,
            uncorrectable_reads: None,
            soft_ecc_errors: None,
            end_to_end_detected: None,
            end_to_end_corrected: None,
            system_data_used_percent: None,
            refreshes: None,
            max_erase_count: None,
            min_erase_count: None,
            throttle_events: 255,
            throttle_status: None,
            specification: None,
            pcie_correctable_errors: None,
            incomplete_shutdowns: None,
            free_blocks_percent: None,
            capacitor_health_percent: None,
            unaligned_io: None,
            security_version: None,
            namespace_use: None,
            plp_starts: None,
            endurance_estimate: None,
            link_retrains: None,
            power_state_changes: None,
            media_dies: None,
            die_failure_tolerance: None,
            dies_offline: None,
            average_erase_count: None,
            command_timeouts: None,
            system_program_fails: Some(nothing),
            system_read_fails: Some(nothing),
            system_erase_fails: Some(nothing),
        };
        assert_eq!(ocp, expected);
    }

    #[test]
    fn fields_newer_than_the_page_are_absent_and_not_zero() {
        let first = OcpSmart::decode(&page(0, 1)).unwrap();
        assert_eq!((first.link_retrains, first.power_state_changes), (None, None));
        let third = OcpSmart::decode(&page(0, 3)).unwrap();
        assert_eq!((third.link_retrains, third.command_timeouts), (Some(0), None));
        assert_eq!(third.system_read_fails, None);
        let later = OcpSmart::decode(&page(0, 9)).unwrap();
        assert_eq!(later.command_timeouts, Some(0));
    }

    #[test]
    fn a_vendors_own_page_is_foreign() {
        let mut bytes = page(1, 2);
        bytes[511] = 0;
        let error = OcpSmart::decode(&bytes).unwrap_err();
        assert!(matches!(error, PageError::Foreign { .. }));
        assert_eq!(
            error.to_string(),
            "OCP SMART Extended (C0h): the vendor's own page, not OCP's (GUID c5af1028eabff2a49c4f6f7cc914d500)"
        );
        assert!(matches!(OcpSmart::decode(&[0; 512]), Err(PageError::Foreign { guid: 0, .. })));
        assert!(matches!(OcpSmart::decode(&[0xff; 512]), Err(PageError::Implausible { .. })));
        assert!(matches!(OcpSmart::decode(&bytes[..511]), Err(PageError::Short { .. })));
    }
}
