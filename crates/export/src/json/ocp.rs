//! The OCP page of a controller.

use super::Big;
use serde::Serialize;
use storscope_model::sample::nvme::OcpSmart;

#[derive(Serialize)]
pub(super) struct Ocp {
    version: u16,
    media_written_bytes: Option<Big>,
    media_read_bytes: Option<Big>,
    bad_user_blocks: Option<u64>,
    bad_user_blocks_percent: Option<u16>,
    bad_system_blocks: Option<u64>,
    bad_system_blocks_percent: Option<u16>,
    xor_recoveries: Option<u64>,
    uncorrectable_reads: Option<u64>,
    soft_ecc_errors: Option<u64>,
    end_to_end_detected: Option<u32>,
    end_to_end_corrected: Option<u32>,
    system_data_used_percent: Option<u8>,
    refreshes: Option<u64>,
    erase_count_max: Option<u32>,
    erase_count_min: Option<u32>,
    throttle_events: u8,
    throttle_status: Option<u8>,
    pcie_correctable_errors: Option<u64>,
    incomplete_shutdowns: Option<u32>,
    free_blocks_percent: Option<u8>,
    capacitor_health_percent: Option<u16>,
    unaligned_io: Option<u64>,
    security_version: Option<u64>,
    total_nuse_blocks: Option<u64>,
    plp_starts: Option<Big>,
    endurance_estimate: Option<Big>,
    link_retrains: Option<u64>,
    power_state_changes: Option<u64>,
}

impl Ocp {
    pub(super) fn of(page: &OcpSmart) -> Self {
        Self {
            version: page.version,
            media_written_bytes: page.media_written_bytes.map(Big),
            media_read_bytes: page.media_read_bytes.map(Big),
            bad_user_blocks: page.bad_user_blocks.0,
            bad_user_blocks_percent: page.bad_user_blocks.1,
            bad_system_blocks: page.bad_system_blocks.0,
            bad_system_blocks_percent: page.bad_system_blocks.1,
            xor_recoveries: page.xor_recoveries,
            uncorrectable_reads: page.uncorrectable_reads,
            soft_ecc_errors: page.soft_ecc_errors,
            end_to_end_detected: page.end_to_end_detected,
            end_to_end_corrected: page.end_to_end_corrected,
            system_data_used_percent: page.system_data_used_percent,
            refreshes: page.refreshes,
            erase_count_max: page.erase_count_max,
            erase_count_min: page.erase_count_min,
            throttle_events: page.throttle_events,
            throttle_status: page.throttle_status,
            pcie_correctable_errors: page.pcie_correctable_errors,
            incomplete_shutdowns: page.incomplete_shutdowns,
            free_blocks_percent: page.free_blocks_percent,
            capacitor_health_percent: page.capacitor_health_percent,
            unaligned_io: page.unaligned_io,
            security_version: page.security_version,
            total_nuse_blocks: page.total_nuse,
            plp_starts: page.plp_starts.map(Big),
            endurance_estimate: page.endurance_estimate.map(Big),
            link_retrains: page.link_retrains,
            power_state_changes: page.power_state_changes,
        }
    }
}
