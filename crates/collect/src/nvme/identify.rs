//! Identify Controller as a sample.

use storscope_drive::{ControllerType, IdentifyController, Version, celsius};
use storscope_model::sample::nvme::Identify;

/// The sample of a decoded structure. `not_asked` are the pages that are not asked for, each with the reason.
pub(super) fn sample(id: &IdentifyController, not_asked: Vec<(String, String)>) -> Identify {
    Identify {
        vendor_id: id.vendor_id,
        serial: id.serial.clone(),
        model: id.model.clone(),
        firmware: id.firmware.clone(),
        version: version(id.version),
        cntlid: id.controller_id,
        controller_type: controller_type(id.controller_type),
        warning_temperature_c: id.warning_temperature.map(celsius),
        critical_temperature_c: id.critical_temperature.map(celsius),
        total_capacity_bytes: id.total_capacity.unwrap_or(0),
        unallocated_capacity_bytes: id.unallocated_capacity,
        namespaces: id.max_namespace_id,
        power_states: u8::try_from(id.power_states.len()).unwrap_or(u8::MAX),
        error_log_entries: id.error_log_entries,
        volatile_write_cache: id.volatile_write_cache,
        autonomous_power: id.autonomous_power_transitions,
        longest_exit_latency_us: id
            .power_states
            .iter()
            .map(|state| u64::from(state.exit_latency_microseconds))
            .max()
            .filter(|latency| *latency > 0),
        self_test_supported: id.has_self_test(),
        not_asked,
    }
}

fn version(version: Version) -> Option<(u16, u8, u8)> {
    let [tertiary, minor, low, high] = version.0.to_le_bytes();
    version.is_stated().then_some((u16::from_le_bytes([low, high]), minor, tertiary))
}

const fn controller_type(kind: ControllerType) -> u8 {
    match kind {
        ControllerType::Unstated => 0,
        ControllerType::Io => 1,
        ControllerType::Discovery => 2,
        ControllerType::Administrative => 3,
        ControllerType::Reserved(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure() -> Vec<u8> {
        let mut bytes = vec![0_u8; 4096];
        bytes[0..2].copy_from_slice(&0x1b36_u16.to_le_bytes());
        bytes[4..24].copy_from_slice(b"SERIAL-1            ");
        bytes[24..33].copy_from_slice(b"Made up 1");
        bytes[33..64].fill(b' ');
        bytes[64..72].copy_from_slice(b"FW1     ");
        bytes[78..80].copy_from_slice(&7_u16.to_le_bytes());
        bytes[80..84].copy_from_slice(&0x0001_0403_u32.to_le_bytes());
        bytes[111] = 1;
        bytes[256] = 0x10;
        bytes[262] = 63;
        bytes[263] = 1;
        bytes[265] = 1;
        bytes[266..268].copy_from_slice(&343_u16.to_le_bytes());
        bytes[268..270].copy_from_slice(&353_u16.to_le_bytes());
        bytes[280..296].copy_from_slice(&1_000_204_886_016_u128.to_le_bytes());
        bytes[296..312].copy_from_slice(&5_u128.to_le_bytes());
        bytes[516..520].copy_from_slice(&32_u32.to_le_bytes());
        bytes[525] = 1;
        bytes[2048 + 8..2048 + 12].copy_from_slice(&20_u32.to_le_bytes());
        bytes[2080 + 8..2080 + 12].copy_from_slice(&8000_u32.to_le_bytes());
        bytes
    }

    #[test]
    fn every_field_arrives() {
        let refused = vec![("self_test".to_owned(), "refused".to_owned())];
        let id = IdentifyController::decode(&structure()).unwrap();
        let expected = Identify {
            vendor_id: 0x1b36,
            serial: "SERIAL-1".to_owned(),
            model: "Made up 1".to_owned(),
            firmware: "FW1".to_owned(),
            version: Some((1, 4, 3)),
            cntlid: 7,
            controller_type: 1,
            warning_temperature_c: Some(70),
            critical_temperature_c: Some(80),
            total_capacity_bytes: 1_000_204_886_016,
            unallocated_capacity_bytes: 5,
            namespaces: 32,
            power_states: 2,
            error_log_entries: 64,
            volatile_write_cache: true,
            autonomous_power: true,
            longest_exit_latency_us: Some(8000),
            self_test_supported: true,
            not_asked: refused.clone(),
        };
        assert_eq!(sample(&id, refused), expected);
    }

    #[test]
    fn what_an_old_drive_does_not_state_is_none() {
        let mut bytes = structure();
        bytes[80..84].fill(0);
        bytes[266..270].fill(0);
        bytes[2048..2112].fill(0);
        let sample = sample(&IdentifyController::decode(&bytes).unwrap(), Vec::new());
        assert_eq!((sample.version, sample.longest_exit_latency_us), (None, None));
        assert_eq!((sample.warning_temperature_c, sample.critical_temperature_c), (None, None));
    }
}
