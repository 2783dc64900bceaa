//! SMART / Health Information log (02h).

use zerocopy::little_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::command::LogPage;
use crate::error::{Implausible, PageError};
use crate::layout::{refuse_uniform, view};

/// One data unit: a thousand blocks of 512 bytes, whatever the namespace is formatted with. The drive rounds up.
pub const DATA_UNIT_BYTES: u128 = 512_000;

const SENSORS: usize = 8;
const ZERO_CELSIUS_KELVIN: i32 = 273;
/// Coldest and hottest a drive can say it is: 200 below and above zero Celsius.
const POSSIBLE_KELVIN: std::ops::RangeInclusive<u16> = 73..=473;
/// A counter above this cannot be true: at ten million a second it takes five hundred million years.
const POSSIBLE_COUNT: u128 = 1 << 96;

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    critical_warning: u8,
    composite_temperature: U16,
    available_spare: u8,
    available_spare_threshold: u8,
    percentage_used: u8,
    endurance_group_warning: u8,
    rsvd7: [u8; 25],
    data_units_read: U128,
    data_units_written: U128,
    host_reads: U128,
    host_writes: U128,
    busy_minutes: U128,
    power_cycles: U128,
    power_on_hours: U128,
    unsafe_shutdowns: U128,
    media_errors: U128,
    error_log_entries: U128,
    warning_minutes: U32,
    critical_minutes: U32,
    sensors: [U16; SENSORS],
    tmt1_transitions: U32,
    tmt2_transitions: U32,
    tmt1_seconds: U32,
    tmt2_seconds: U32,
    rsvd232: [u8; 280],
}

/// Kelvin to degrees Celsius as the standard's own conversion does, below zero included.
#[must_use]
pub fn celsius(kelvin: u16) -> i32 {
    i32::from(kelvin) - ZERO_CELSIUS_KELVIN
}

/// Critical Warning, byte 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalWarning(pub u8);

impl CriticalWarning {
    /// Every defined bit: number, word for a label, text for a person.
    pub const BITS: [(u8, &'static str, &'static str); 6] = [
        (0, "spare", "spare capacity below threshold"),
        (1, "temperature", "temperature over or under a threshold"),
        (2, "reliability", "reliability degraded by media or internal errors"),
        (3, "read_only", "media is read-only"),
        (4, "volatile_backup", "volatile memory backup failed"),
        (5, "persistent_memory", "persistent memory region is read-only or unreliable"),
    ];

    /// This bit is set.
    #[must_use]
    pub fn bit(self, number: u8) -> bool {
        u32::from(self.0) & 1_u32.checked_shl(u32::from(number)).unwrap_or(0) != 0
    }

    /// Text of each defined bit that is set.
    pub fn reasons(self) -> impl Iterator<Item = &'static str> {
        Self::BITS.into_iter().filter(move |(number, _, _)| self.bit(*number)).map(|(_, _, text)| text)
    }
}

/// Health of the whole controller. Counters span the drive's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmartHealth {
    /// Critical warning bits.
    pub critical_warning: CriticalWarning,
    /// Composite temperature in kelvin; 0 in the page is not reported.
    pub composite_temperature: Option<u16>,
    /// Available spare in percent, as the drive says it.
    pub available_spare: u8,
    /// Below this percentage of spare bit 0 of the warning is set.
    pub available_spare_threshold: u8,
    /// Estimated life used in percent; may pass 100, and 255 means 255 or more.
    pub percentage_used: u8,
    /// Endurance group critical warning summary bits.
    pub endurance_group_warning: u8,
    /// Data units read by the host, of [`DATA_UNIT_BYTES`].
    pub data_units_read: u128,
    /// Data units written by the host.
    pub data_units_written: u128,
    /// Read commands completed.
    pub host_reads: u128,
    /// Write commands completed.
    pub host_writes: u128,
    /// Minutes with an I/O command outstanding.
    pub busy_minutes: u128,
    /// Power cycles.
    pub power_cycles: u128,
    /// Hours powered on; may leave out low-power states.
    pub power_on_hours: u128,
    /// Power lost without a shutdown notification.
    pub unsafe_shutdowns: u128,
    /// Unrecovered data integrity errors.
    pub media_errors: u128,
    /// Entries ever made in the error log: refused commands count too, so this is no measure of health.
    pub error_log_entries: u128,
    /// Minutes above WCTEMP.
    pub warning_minutes: u32,
    /// Minutes above CCTEMP.
    pub critical_minutes: u32,
    /// Temperature sensors 1 to 8 in kelvin; `None` where not implemented.
    pub sensors: [Option<u16>; SENSORS],
    /// Times that light throttling (TMT1) began.
    pub tmt1_transitions: u32,
    /// Times that heavy throttling (TMT2) began.
    pub tmt2_transitions: u32,
    /// Seconds of light throttling.
    pub tmt1_seconds: u32,
    /// Seconds of heavy throttling.
    pub tmt2_seconds: u32,
}

impl SmartHealth {
    /// Decodes the 512-byte page.
    ///
    /// Odd values of single fields are passed on as the drive said them. The page as a whole is refused when two
    /// independent things in it are impossible, which no drive's habit explains.
    ///
    /// # Errors
    /// [`PageError`]: short, of one byte value only, or impossible.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let page = LogPage::SmartHealth.name();
        let log: &Layout = view(page, bytes)?;
        refuse_uniform(page, bytes)?;
        if impossible(log) {
            return Err(PageError::Implausible {
                page,
                reason: Implausible::Fields("several fields hold values that no drive can have"),
            });
        }
        let kelvin = |value: U16| (value.get() != 0).then_some(value.get());
        Ok(Self {
            critical_warning: CriticalWarning(log.critical_warning),
            composite_temperature: kelvin(log.composite_temperature),
            available_spare: log.available_spare,
            available_spare_threshold: log.available_spare_threshold,
            percentage_used: log.percentage_used,
            endurance_group_warning: log.endurance_group_warning,
            data_units_read: log.data_units_read.get(),
            data_units_written: log.data_units_written.get(),
            host_reads: log.host_reads.get(),
            host_writes: log.host_writes.get(),
            busy_minutes: log.busy_minutes.get(),
            power_cycles: log.power_cycles.get(),
            power_on_hours: log.power_on_hours.get(),
            unsafe_shutdowns: log.unsafe_shutdowns.get(),
            media_errors: log.media_errors.get(),
            error_log_entries: log.error_log_entries.get(),
            warning_minutes: log.warning_minutes.get(),
            critical_minutes: log.critical_minutes.get(),
            sensors: log.sensors.map(kelvin),
            tmt1_transitions: log.tmt1_transitions.get(),
            tmt2_transitions: log.tmt2_transitions.get(),
            tmt1_seconds: log.tmt1_seconds.get(),
            tmt2_seconds: log.tmt2_seconds.get(),
        })
    }

    /// Bytes read by the host, an upper bound; `None` where the drive does not report units.
    #[must_use]
    pub fn bytes_read(&self) -> Option<u128> {
        unit_bytes(self.data_units_read)
    }

    /// Bytes written by the host, an upper bound; `None` where the drive does not report units.
    #[must_use]
    pub fn bytes_written(&self) -> Option<u128> {
        unit_bytes(self.data_units_written)
    }
}

/// "A value of 0h indicates that the number of units is not reported."
fn unit_bytes(units: u128) -> Option<u128> {
    (units != 0).then(|| units.saturating_mul(DATA_UNIT_BYTES))
}

fn impossible(log: &Layout) -> bool {
    let temperature = log.composite_temperature.get();
    let counters = [
        log.data_units_read,
        log.data_units_written,
        log.host_reads,
        log.host_writes,
        log.busy_minutes,
        log.power_cycles,
        log.power_on_hours,
        log.unsafe_shutdowns,
        log.media_errors,
        log.error_log_entries,
    ];
    let contradictions = [
        log.critical_warning & 0xc0 != 0,
        temperature != 0 && !POSSIBLE_KELVIN.contains(&temperature),
        log.available_spare > 100,
        counters.iter().any(|counter| counter.get() > POSSIBLE_COUNT),
    ];
    contradictions.into_iter().filter(|found| *found).count() >= 2
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_is_that_of_the_standard() {
        assert_eq!(size_of::<Layout>(), 512);
        let offsets = [
            (offset_of!(Layout, composite_temperature), 1),
            (offset_of!(Layout, available_spare), 3),
            (offset_of!(Layout, available_spare_threshold), 4),
            (offset_of!(Layout, percentage_used), 5),
            (offset_of!(Layout, endurance_group_warning), 6),
            (offset_of!(Layout, data_units_read), 32),
            (offset_of!(Layout, data_units_written), 48),
            (offset_of!(Layout, host_reads), 64),
            (offset_of!(Layout, host_writes), 80),
            (offset_of!(Layout, busy_minutes), 96),
            (offset_of!(Layout, power_cycles), 112),
            (offset_of!(Layout, power_on_hours), 128),
            (offset_of!(Layout, unsafe_shutdowns), 144),
            (offset_of!(Layout, media_errors), 160),
            (offset_of!(Layout, error_log_entries), 176),
            (offset_of!(Layout, warning_minutes), 192),
            (offset_of!(Layout, critical_minutes), 196),
            (offset_of!(Layout, sensors), 200),
            (offset_of!(Layout, tmt1_transitions), 216),
            (offset_of!(Layout, tmt2_transitions), 220),
            (offset_of!(Layout, tmt1_seconds), 224),
            (offset_of!(Layout, tmt2_seconds), 228),
        ];
        for (ours, standard) in offsets {
            assert_eq!(ours, standard);
        }
    }

    fn page() -> Vec<u8> {
        let mut page = vec![0; 512];
        page[1..3].copy_from_slice(&310_u16.to_le_bytes());
        page[3] = 100;
        page[4] = 10;
        page[5] = 255;
        for (index, offset) in (32..192).step_by(16).enumerate() {
            page[offset..offset + 8].copy_from_slice(&(index as u64 + 1).to_le_bytes());
        }
        for (index, offset) in [192, 196, 216, 220, 224, 228].into_iter().enumerate() {
            page[offset] = u8::try_from(index).unwrap() + 50;
        }
        page[200..202].copy_from_slice(&260_u16.to_le_bytes());
        page[214..216].copy_from_slice(&330_u16.to_le_bytes());
        page
    }

    #[test]
    fn every_field_is_decoded() {
        let health = SmartHealth::decode(&page()).unwrap();
        assert_eq!(health.composite_temperature.map(celsius), Some(37));
        assert_eq!((health.available_spare, health.available_spare_threshold), (100, 10));
        assert_eq!(health.percentage_used, 255);
        let counters = [
            health.data_units_read,
            health.data_units_written,
            health.host_reads,
            health.host_writes,
            health.busy_minutes,
            health.power_cycles,
            health.power_on_hours,
            health.unsafe_shutdowns,
            health.media_errors,
            health.error_log_entries,
        ];
        assert_eq!(counters, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let words = [
            health.warning_minutes,
            health.critical_minutes,
            health.tmt1_transitions,
            health.tmt2_transitions,
            health.tmt1_seconds,
            health.tmt2_seconds,
        ];
        assert_eq!(words, [50, 51, 52, 53, 54, 55]);
        assert_eq!(health.sensors[0].map(celsius), Some(-13));
        assert_eq!(health.sensors[7], Some(330));
        assert!(health.sensors[1..7].iter().all(Option::is_none));
        assert_eq!(health.bytes_read(), Some(512_000));
    }

    #[test]
    fn counters_keep_128_bits_and_bytes_saturate() {
        let mut page = page();
        page[32..48].copy_from_slice(&u128::MAX.to_le_bytes());
        let health = SmartHealth::decode(&page).unwrap();
        assert_eq!(health.data_units_read, u128::MAX);
        assert_eq!(health.bytes_read(), Some(u128::MAX));
        // A counter past 2^53 (FIELD-CASES D4).
        page[48..64].copy_from_slice(&32_381_395_004_u128.to_le_bytes());
        page[32..48].copy_from_slice(&[0; 16]);
        let health = SmartHealth::decode(&page).unwrap();
        assert_eq!(health.bytes_written(), Some(16_579_274_242_048_000));
        assert_eq!(health.bytes_read(), None);
    }

    #[test]
    fn a_failed_backup_is_named_although_all_else_is_perfect() {
        let mut page = page();
        page[0] = 16;
        let warning = SmartHealth::decode(&page).unwrap().critical_warning;
        assert_eq!(warning.reasons().collect::<Vec<_>>(), ["volatile memory backup failed"]);
        assert!(warning.bit(4) && !warning.bit(0) && !warning.bit(99));
    }

    #[test]
    fn one_odd_value_passes_and_two_impossible_ones_do_not() {
        let mut page = page();
        page[3] = 200;
        assert_eq!(SmartHealth::decode(&page).unwrap().available_spare, 200);
        page[1..3].copy_from_slice(&60_000_u16.to_le_bytes());
        let error = SmartHealth::decode(&page).unwrap_err();
        assert!(error.to_string().starts_with("SMART / Health (02h): not plausible"), "{error}");
    }

    #[test]
    fn short_and_uniform_pages_are_refused() {
        assert!(matches!(SmartHealth::decode(&page()[..511]), Err(PageError::Short { length: 511, least: 512, .. })));
        assert!(SmartHealth::decode(&[0; 512]).is_err());
        assert!(SmartHealth::decode(&[0xff; 512]).is_err());
    }
}
