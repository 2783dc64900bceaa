//! OCP log page C0h as a sample.

use storscope_drive::{self as drive, Normalised};
use storscope_model::sample::nvme::OcpSmart;

/// The sample of a decoded page.
pub(super) fn sample(page: &drive::OcpSmart) -> OcpSmart {
    let pair = |blocks: Normalised| (blocks.raw, blocks.normalised);
    OcpSmart {
        version: page.version,
        media_written_bytes: page.media_bytes_written,
        media_read_bytes: page.media_bytes_read,
        bad_user_blocks: pair(page.bad_user_blocks),
        bad_system_blocks: pair(page.bad_system_blocks),
        xor_recoveries: page.xor_recoveries,
        uncorrectable_reads: page.uncorrectable_reads,
        soft_ecc_errors: page.soft_ecc_errors,
        end_to_end_detected: page.end_to_end_detected,
        end_to_end_corrected: page.end_to_end_corrected,
        system_data_used_percent: page.system_data_used_percent,
        refreshes: page.refreshes,
        erase_count_max: page.max_erase_count,
        erase_count_min: page.min_erase_count,
        throttle_events: page.throttle_events,
        throttle_status: page.throttle_status,
        pcie_correctable_errors: page.pcie_correctable_errors,
        incomplete_shutdowns: page.incomplete_shutdowns,
        free_blocks_percent: page.free_blocks_percent,
        capacitor_health_percent: page.capacitor_health_percent,
        unaligned_io: page.unaligned_io,
        security_version: page.security_version,
        total_nuse: page.namespace_use,
        plp_starts: page.plp_starts,
        endurance_estimate: page.endurance_estimate,
        link_retrains: page.link_retrains,
        power_state_changes: page.power_state_changes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> [u8; 512] {
        let mut bytes = [0_u8; 512];
        let mut put = |at: usize, value: u128, length: usize| {
            bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        };
        for (value, (at, length)) in (1_u128..).zip([
            (0, 16),
            (16, 16),
            (32, 6),
            (38, 2),
            (40, 6),
            (46, 2),
            (48, 8),
            (56, 8),
            (64, 8),
            (72, 4),
            (76, 4),
            (80, 1),
            (81, 7),
            (88, 4),
            (92, 4),
            (96, 1),
            (97, 1),
            (104, 8),
            (112, 4),
            (120, 1),
            (128, 2),
            (136, 8),
            (144, 8),
            (152, 8),
            (160, 16),
            (176, 16),
            (192, 8),
            (200, 8),
        ]) {
            put(at, value, length);
        }
        put(494, 3, 2);
        bytes[496..].copy_from_slice(&drive::OCP_GUID);
        bytes
    }

    #[test]
    fn every_field_arrives() {
        let expected = OcpSmart {
            version: 3,
            media_written_bytes: Some(1),
            media_read_bytes: Some(2),
            bad_user_blocks: (Some(3), Some(4)),
            bad_system_blocks: (Some(5), Some(6)),
            xor_recoveries: Some(7),
            uncorrectable_reads: Some(8),
            soft_ecc_errors: Some(9),
            end_to_end_detected: Some(10),
            end_to_end_corrected: Some(11),
            system_data_used_percent: Some(12),
            refreshes: Some(13),
            erase_count_max: Some(14),
            erase_count_min: Some(15),
            throttle_events: 16,
            throttle_status: Some(17),
            pcie_correctable_errors: Some(18),
            incomplete_shutdowns: Some(19),
            free_blocks_percent: Some(20),
            capacitor_health_percent: Some(21),
            unaligned_io: Some(22),
            security_version: Some(23),
            total_nuse: Some(24),
            plp_starts: Some(25),
            endurance_estimate: Some(26),
            link_retrains: Some(27),
            power_state_changes: Some(28),
        };
        assert_eq!(sample(&drive::OcpSmart::decode(&page()).unwrap()), expected);
    }

    #[test]
    fn not_implemented_is_none_and_not_a_large_number() {
        let mut bytes = page();
        bytes[40..48].fill(0xff);
        bytes[152..160].fill(0xff);
        let sample = sample(&drive::OcpSmart::decode(&bytes).unwrap());
        assert_eq!(sample.bad_system_blocks, (None, None));
        assert_eq!(sample.total_nuse, None);
        assert_eq!(sample.bad_user_blocks, (Some(3), Some(4)));
    }
}
