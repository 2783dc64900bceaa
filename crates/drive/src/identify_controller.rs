//! Identify Controller data structure (CNS 01h; Base Specification 2.0, figure "Identify Controller Data Structure").

use std::fmt;

use zerocopy::little_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::error::PageError;
use crate::layout::{drive_text, refuse_uniform, view};

pub(crate) const PAGE: &str = "Identify Controller";
const POWER_STATES: usize = 32;

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct PowerStateLayout {
    mp: U16,
    rsvd2: u8,
    flags: u8,
    enlat: U32,
    exlat: U32,
    rsvd12: [u8; 20],
}

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    vid: U16,
    ssvid: U16,
    sn: [u8; 20],
    mn: [u8; 40],
    fr: [u8; 8],
    rab: u8,
    ieee: [u8; 3],
    cmic: u8,
    mdts: u8,
    cntlid: U16,
    ver: U32,
    rtd3r: U32,
    rtd3e: U32,
    oaes: U32,
    ctratt: U32,
    rsvd100: [u8; 11],
    cntrltype: u8,
    rsvd112: [u8; 144],
    oacs: U16,
    acl: u8,
    aerl: u8,
    frmw: u8,
    lpa: u8,
    elpe: u8,
    npss: u8,
    avscc: u8,
    apsta: u8,
    wctemp: U16,
    cctemp: U16,
    mtfa: U16,
    hmpre: U32,
    hmmin: U32,
    tnvmcap: U128,
    unvmcap: U128,
    rpmbs: U32,
    edstt: U16,
    dsto: u8,
    fwug: u8,
    kas: U16,
    hctma: U16,
    mntmt: U16,
    mxtmt: U16,
    sanicap: U32,
    rsvd332: [u8; 184],
    nn: U32,
    oncs: U16,
    fuses: U16,
    fna: u8,
    vwc: u8,
    rsvd526: [u8; 242],
    subnqn: [u8; 256],
    rsvd1024: [u8; 1024],
    psd: [PowerStateLayout; POWER_STATES],
    vendor: [u8; 1024],
}

/// Version of the standard that a controller follows. Zero on controllers older than NVMe 1.2, which had no field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    /// The controller follows at least this version. False where it states none.
    #[must_use]
    pub fn at_least(self, major: u16, minor: u8) -> bool {
        self.0 >= u32::from(major) << 16 | u32::from(minor) << 8
    }

    /// The controller states a version.
    #[must_use]
    pub fn is_stated(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tertiary, minor, major_low, major_high] = self.0.to_le_bytes();
        let major = u16::from_le_bytes([major_low, major_high]);
        match (self.0, tertiary) {
            (0, _) => f.write_str("below 1.2"),
            (_, 0) => write!(f, "{major}.{minor}"),
            _ => write!(f, "{major}.{minor}.{tertiary}"),
        }
    }
}

/// CNTRLTYPE (NVMe 1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerType {
    /// 0: not stated, as on every controller older than 1.4.
    Unstated,
    /// 1: serves I/O.
    Io,
    /// 2: fabrics discovery; holds no data.
    Discovery,
    /// 3: administration only.
    Administrative,
    /// A value that the standard does not define.
    Reserved(u8),
}

/// One power state descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerState {
    /// Maximum power in microwatts; `None` where not reported.
    pub max_power_microwatts: Option<u32>,
    /// I/O is processed in this state (NOPS clear).
    pub operational: bool,
    /// Worst time to enter, microseconds; 0 is not reported.
    pub entry_latency_microseconds: u32,
    /// Worst time to leave, microseconds; 0 is not reported.
    pub exit_latency_microseconds: u32,
}

/// Who a controller is and what it offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifyController {
    /// VID: PCI vendor.
    pub vendor_id: u16,
    /// SSVID: PCI subsystem vendor.
    pub subsystem_vendor_id: u16,
    /// SN, trimmed.
    pub serial: String,
    /// MN, trimmed.
    pub model: String,
    /// FR, trimmed: the running firmware.
    pub firmware: String,
    /// CMIC bits: 0 several ports, 1 several controllers, 3 asymmetric namespace access.
    pub multipath_capabilities: u8,
    /// MDTS: largest transfer as a power of two of the controller's smallest page; 0 is no limit.
    pub max_data_transfer: u8,
    /// CNTLID, unique in the subsystem.
    pub controller_id: u16,
    /// VER.
    pub version: Version,
    /// OAES: optional asynchronous events.
    pub async_events: u32,
    /// CTRATT: controller attributes.
    pub attributes: u32,
    /// CNTRLTYPE.
    pub controller_type: ControllerType,
    /// OACS: optional admin commands.
    pub admin_commands: u16,
    /// FRMW bits: 0 slot 1 read-only, 3:1 slots supported, 4 activation without reset.
    pub firmware_updates: u8,
    /// LPA: log page attributes.
    pub log_page_attributes: u8,
    /// ELPE + 1: entries that the error log keeps, 1 to 256.
    pub error_log_entries: u16,
    /// Power states 0 to NPSS, at most 32.
    pub power_states: Vec<PowerState>,
    /// APSTA bit 0: the controller may change power states by itself.
    pub autonomous_power_transitions: bool,
    /// WCTEMP in kelvin: above it critical warning bit 1 is set.
    pub warning_temperature: Option<u16>,
    /// CCTEMP in kelvin: above it operation may stop.
    pub critical_temperature: Option<u16>,
    /// MTFA: longest pause for firmware activation, units of 100 ms.
    pub activation_time: Option<u16>,
    /// HMPRE: preferred host memory buffer, units of 4 KiB; 0 is none.
    pub host_memory_preferred: u32,
    /// HMMIN: smallest host memory buffer, units of 4 KiB.
    pub host_memory_minimum: u32,
    /// TNVMCAP in bytes.
    pub total_capacity: Option<u128>,
    /// UNVMCAP in bytes; means something only beside a total.
    pub unallocated_capacity: u128,
    /// EDSTT: minutes that an extended self-test takes.
    pub extended_self_test_minutes: Option<u16>,
    /// MNTMT in kelvin: lowest settable thermal management temperature.
    pub min_thermal_management: Option<u16>,
    /// MXTMT in kelvin: highest settable thermal management temperature.
    pub max_thermal_management: Option<u16>,
    /// SANICAP bits.
    pub sanitize_capabilities: u32,
    /// NN: highest namespace identifier, not a count of namespaces.
    pub max_namespace_id: u32,
    /// ONCS: optional NVM commands.
    pub nvm_commands: u16,
    /// VWC bit 0: a volatile write cache is present.
    pub volatile_write_cache: bool,
    /// SUBNQN, trimmed at its ends; empty where not stated.
    pub subsystem_nqn: String,
}

fn stated<T: PartialEq + Default>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

impl IdentifyController {
    /// Decodes the 4096-byte structure.
    ///
    /// # Errors
    /// [`PageError`]: short, or of one byte value only.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let id: &Layout = view(PAGE, bytes)?;
        refuse_uniform(PAGE, bytes)?;
        Ok(Self {
            vendor_id: id.vid.get(),
            subsystem_vendor_id: id.ssvid.get(),
            serial: drive_text(&id.sn),
            model: drive_text(&id.mn),
            firmware: drive_text(&id.fr),
            multipath_capabilities: id.cmic,
            max_data_transfer: id.mdts,
            controller_id: id.cntlid.get(),
            version: Version(id.ver.get()),
            async_events: id.oaes.get(),
            attributes: id.ctratt.get(),
            controller_type: controller_type(id.cntrltype),
            admin_commands: id.oacs.get(),
            firmware_updates: id.frmw,
            log_page_attributes: id.lpa,
            error_log_entries: u16::from(id.elpe) + 1,
            power_states: id.psd.iter().take(usize::from(id.npss) + 1).map(power_state).collect(),
            autonomous_power_transitions: id.apsta & 1 != 0,
            warning_temperature: stated(id.wctemp.get()),
            critical_temperature: stated(id.cctemp.get()),
            activation_time: stated(id.mtfa.get()),
            host_memory_preferred: id.hmpre.get(),
            host_memory_minimum: id.hmmin.get(),
            total_capacity: stated(id.tnvmcap.get()),
            unallocated_capacity: id.unvmcap.get(),
            extended_self_test_minutes: stated(id.edstt.get()),
            min_thermal_management: stated(id.mntmt.get()),
            max_thermal_management: stated(id.mxtmt.get()),
            sanitize_capabilities: id.sanicap.get(),
            max_namespace_id: id.nn.get(),
            nvm_commands: id.oncs.get(),
            volatile_write_cache: id.vwc & 1 != 0,
            subsystem_nqn: drive_text(&id.subnqn),
        })
    }

    /// LPA bit 1: the effects log exists.
    #[must_use]
    pub fn has_effects_log(&self) -> bool {
        self.log_page_attributes & 1 << 1 != 0
    }

    /// LPA bit 2: long counts and offsets in Get Log Page.
    #[must_use]
    pub fn has_extended_get_log(&self) -> bool {
        self.log_page_attributes & 1 << 2 != 0
    }

    /// LPA bit 5: the list of supported log pages exists.
    #[must_use]
    pub fn has_supported_pages_log(&self) -> bool {
        self.log_page_attributes & 1 << 5 != 0
    }

    /// OACS bit 4: self-tests, and so their log, exist.
    #[must_use]
    pub fn has_self_test(&self) -> bool {
        self.admin_commands & 1 << 4 != 0
    }

    /// CTRATT bit 9 of a controller that follows 1.4: the UUID list exists.
    #[must_use]
    pub fn has_uuid_list(&self) -> bool {
        self.version.at_least(1, 4) && self.attributes & 1 << 9 != 0
    }
}

fn controller_type(value: u8) -> ControllerType {
    match value {
        0 => ControllerType::Unstated,
        1 => ControllerType::Io,
        2 => ControllerType::Discovery,
        3 => ControllerType::Administrative,
        other => ControllerType::Reserved(other),
    }
}

fn power_state(layout: &PowerStateLayout) -> PowerState {
    // MXPS (bit 0) selects units of 0.1 mW instead of 10 mW.
    let unit = if layout.flags & 1 == 0 { 10_000 } else { 100 };
    PowerState {
        max_power_microwatts: stated(u32::from(layout.mp.get()) * unit),
        operational: layout.flags & 1 << 1 == 0,
        entry_latency_microseconds: layout.enlat.get(),
        exit_latency_microseconds: layout.exlat.get(),
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_is_that_of_the_standard() {
        assert_eq!(size_of::<Layout>(), 4096);
        assert_eq!(size_of::<PowerStateLayout>(), 32);
        let offsets = [
            (offset_of!(Layout, sn), 4),
            (offset_of!(Layout, mn), 24),
            (offset_of!(Layout, fr), 64),
            (offset_of!(Layout, cmic), 76),
            (offset_of!(Layout, mdts), 77),
            (offset_of!(Layout, cntlid), 78),
            (offset_of!(Layout, ver), 80),
            (offset_of!(Layout, oaes), 92),
            (offset_of!(Layout, ctratt), 96),
            (offset_of!(Layout, cntrltype), 111),
            (offset_of!(Layout, oacs), 256),
            (offset_of!(Layout, frmw), 260),
            (offset_of!(Layout, lpa), 261),
            (offset_of!(Layout, elpe), 262),
            (offset_of!(Layout, npss), 263),
            (offset_of!(Layout, apsta), 265),
            (offset_of!(Layout, wctemp), 266),
            (offset_of!(Layout, cctemp), 268),
            (offset_of!(Layout, mtfa), 270),
            (offset_of!(Layout, hmpre), 272),
            (offset_of!(Layout, hmmin), 276),
            (offset_of!(Layout, tnvmcap), 280),
            (offset_of!(Layout, unvmcap), 296),
            (offset_of!(Layout, edstt), 316),
            (offset_of!(Layout, mntmt), 324),
            (offset_of!(Layout, mxtmt), 326),
            (offset_of!(Layout, sanicap), 328),
            (offset_of!(Layout, nn), 516),
            (offset_of!(Layout, oncs), 520),
            (offset_of!(Layout, vwc), 525),
            (offset_of!(Layout, subnqn), 768),
            (offset_of!(Layout, psd), 2048),
        ];
        for (ours, standard) in offsets {
            assert_eq!(ours, standard);
        }
        assert_eq!(offset_of!(PowerStateLayout, flags), 3);
        assert_eq!(offset_of!(PowerStateLayout, enlat), 4);
        assert_eq!(offset_of!(PowerStateLayout, exlat), 8);
    }

    fn page() -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[0..2].copy_from_slice(&0x1e0f_u16.to_le_bytes());
        page[4..24].copy_from_slice(b"  ZZ00000000000001  ");
        page[24..64].copy_from_slice(b"MADE UP 1000                            ");
        page[64..72].copy_from_slice(b"FW01    ");
        page[77] = 5;
        page[80..84].copy_from_slice(&0x0001_0401_u32.to_le_bytes());
        page[96..100].copy_from_slice(&0x200_u32.to_le_bytes());
        page[111] = 1;
        page[256..258].copy_from_slice(&0x10_u16.to_le_bytes());
        page[261] = 0x26;
        page[262] = 255;
        page[263] = 1;
        page[265] = 1;
        page[266..268].copy_from_slice(&350_u16.to_le_bytes());
        page[280..296].copy_from_slice(&(1_u128 << 70).to_le_bytes());
        page[516..520].copy_from_slice(&32_u32.to_le_bytes());
        page[525] = 7;
        page[2048..2050].copy_from_slice(&2500_u16.to_le_bytes());
        page[2080..2082].copy_from_slice(&50_u16.to_le_bytes());
        page[2083] = 3;
        page[2084..2088].copy_from_slice(&1000_u32.to_le_bytes());
        page[2088..2092].copy_from_slice(&9000_u32.to_le_bytes());
        page
    }

    #[test]
    fn a_controller_is_decoded_with_its_units() {
        let id = IdentifyController::decode(&page()).unwrap();
        assert_eq!(
            (id.serial.as_str(), id.model.as_str(), id.firmware.as_str()),
            ("ZZ00000000000001", "MADE UP 1000", "FW01")
        );
        assert_eq!(id.version.to_string(), "1.4.1");
        assert!(id.version.at_least(1, 4) && !id.version.at_least(2, 0));
        assert_eq!(id.controller_type, ControllerType::Io);
        assert_eq!(id.error_log_entries, 256);
        assert_eq!((id.warning_temperature, id.critical_temperature), (Some(350), None));
        assert_eq!(id.total_capacity, Some(1 << 70));
        assert!(id.volatile_write_cache && id.autonomous_power_transitions);
        assert!(id.has_effects_log() && id.has_extended_get_log() && id.has_supported_pages_log());
        assert!(id.has_self_test() && id.has_uuid_list());
        assert_eq!(id.power_states.len(), 2);
        assert_eq!(id.power_states[0].max_power_microwatts, Some(25_000_000));
        assert!(id.power_states[0].operational);
        let idle = id.power_states[1];
        assert_eq!(idle.max_power_microwatts, Some(5_000));
        assert!(!idle.operational);
        assert_eq!((idle.entry_latency_microseconds, idle.exit_latency_microseconds), (1000, 9000));
    }

    #[test]
    fn a_garbage_count_of_power_states_stays_within_the_table() {
        let mut page = page();
        page[263] = 255;
        assert_eq!(IdentifyController::decode(&page).unwrap().power_states.len(), 32);
    }

    #[test]
    fn a_version_that_is_not_stated_is_below_every_version() {
        assert_eq!(Version(0).to_string(), "below 1.2");
        assert!(!Version(0).at_least(1, 0) && !Version(0).is_stated());
        assert_eq!(Version(0x0002_0000).to_string(), "2.0");
    }

    #[test]
    fn short_and_uniform_structures_are_refused() {
        let short = IdentifyController::decode(&page()[..4095]).unwrap_err();
        assert_eq!(short.to_string(), "Identify Controller: 4095 bytes, at least 4096 needed");
        assert!(IdentifyController::decode(&[0; 4096]).is_err());
        assert!(IdentifyController::decode(&[0xff; 4096]).is_err());
    }
}
