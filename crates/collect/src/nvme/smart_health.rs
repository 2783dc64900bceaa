//! Log page 02h as a sample.

use storscope_drive::{self as drive, celsius};
use storscope_model::sample::nvme::SmartHealth;

/// The sample of a decoded page. Nothing is corrected: what the drive says is passed on.
pub(super) fn sample(page: &drive::SmartHealth) -> SmartHealth {
    SmartHealth {
        critical_warning: page.critical_warning.0,
        temperature_c: page.composite_temperature.map(celsius),
        sensors_c: page.sensors.map(|sensor| sensor.map(celsius)),
        available_spare_percent: page.available_spare,
        available_spare_threshold_percent: page.available_spare_threshold,
        percentage_used: page.percentage_used,
        endurance_group_warning: page.endurance_group_warning,
        data_units_read: page.data_units_read,
        data_units_written: page.data_units_written,
        host_reads: page.host_reads,
        host_writes: page.host_writes,
        busy_minutes: page.busy_minutes,
        power_cycles: page.power_cycles,
        power_on_hours: page.power_on_hours,
        unsafe_shutdowns: page.unsafe_shutdowns,
        media_errors: page.media_errors,
        error_log_entries: page.error_log_entries,
        warning_temperature_minutes: page.warning_minutes,
        critical_temperature_minutes: page.critical_minutes,
        thermal_transitions: [page.tmt1_transitions, page.tmt2_transitions],
        thermal_seconds: [page.tmt1_seconds, page.tmt2_seconds],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_made_up_page_arrives() {
        let mut bytes = [0_u8; 512];
        bytes[0] = 0b1_0010;
        bytes[1..3].copy_from_slice(&314_u16.to_le_bytes());
        bytes[3..7].copy_from_slice(&[90, 10, 133, 1]);
        for (n, at) in (32..192).step_by(16).enumerate() {
            let value = u128::try_from(n).unwrap() + (1 << 70);
            bytes[at..at + 16].copy_from_slice(&value.to_le_bytes());
        }
        bytes[192..196].copy_from_slice(&11_u32.to_le_bytes());
        bytes[196..200].copy_from_slice(&12_u32.to_le_bytes());
        bytes[200..202].copy_from_slice(&263_u16.to_le_bytes());
        bytes[214..216].copy_from_slice(&330_u16.to_le_bytes());
        for (n, at) in (216_u32..232).step_by(4).enumerate() {
            let at = usize::try_from(at).unwrap();
            bytes[at..at + 4].copy_from_slice(&(21 + u32::try_from(n).unwrap()).to_le_bytes());
        }
        let sample = sample(&drive::SmartHealth::decode(&bytes).unwrap());
        let big = |n: u128| n + (1 << 70);
        let expected = SmartHealth {
            critical_warning: 0b1_0010,
            temperature_c: Some(41),
            sensors_c: [Some(-10), None, None, None, None, None, None, Some(57)],
            available_spare_percent: 90,
            available_spare_threshold_percent: 10,
            percentage_used: 133,
            endurance_group_warning: 1,
            data_units_read: big(0),
            data_units_written: big(1),
            host_reads: big(2),
            host_writes: big(3),
            busy_minutes: big(4),
            power_cycles: big(5),
            power_on_hours: big(6),
            unsafe_shutdowns: big(7),
            media_errors: big(8),
            error_log_entries: big(9),
            warning_temperature_minutes: 11,
            critical_temperature_minutes: 12,
            thermal_transitions: [21, 22],
            thermal_seconds: [23, 24],
        };
        assert_eq!(sample, expected);
    }
}
