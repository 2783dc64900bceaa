//! Log page 01h as a sample.

use storscope_drive as drive;
use storscope_model::sample::nvme::{ErrorEntry, ErrorLog};

/// The sample of a decoded page: the used entries in the drive's order, newest first.
pub(super) fn sample(page: &drive::ErrorLog) -> ErrorLog {
    let entries = page
        .entries
        .iter()
        .map(|entry| ErrorEntry {
            count: entry.error_count,
            queue: entry.queue_id,
            command_id: entry.command_id,
            status: entry.status.code(),
            lba: entry.lba,
            nsid: entry.nsid,
            opcode: entry.opcode,
        })
        .collect();
    ErrorLog { entries }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_entries_arrive_without_phase_and_more_bits() {
        let mut bytes = [0_u8; 3 * 64];
        bytes[0..8].copy_from_slice(&31_u64.to_le_bytes());
        bytes[8..10].copy_from_slice(&3_u16.to_le_bytes());
        bytes[10..12].copy_from_slice(&7_u16.to_le_bytes());
        // Status 281h with the More bit and the phase bit.
        bytes[12..14].copy_from_slice(&((0x2281_u16 << 1) | 1).to_le_bytes());
        bytes[16..24].copy_from_slice(&0x1234_5678_9abc_u64.to_le_bytes());
        bytes[24..28].copy_from_slice(&1_u32.to_le_bytes());
        bytes[31] = 2;
        bytes[63] = 1;
        bytes[64..72].copy_from_slice(&30_u64.to_le_bytes());
        bytes[64 + 31] = 9;
        let sample = sample(&drive::ErrorLog::decode(&bytes).unwrap());
        let first = ErrorEntry {
            count: 31,
            queue: 3,
            command_id: 7,
            status: 0x281,
            lba: 0x1234_5678_9abc,
            nsid: 1,
            opcode: Some(2),
        };
        let second = ErrorEntry { count: 30, ..ErrorEntry::default() };
        assert_eq!(sample.entries, [first, second]);
    }
}
