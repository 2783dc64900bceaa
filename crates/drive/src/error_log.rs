//! Error Information log (01h): newest entry first.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::command::LogPage;
use crate::error::PageError;
use crate::layout::{refuse_all_ones, view};
use crate::status::Status;

/// Size of one entry.
pub const ERROR_ENTRY_BYTES: usize = 64;

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    error_count: U64,
    sqid: U16,
    cmdid: U16,
    status: U16,
    parameter_location: U16,
    lba: U64,
    nsid: U32,
    vendor: u8,
    trtype: u8,
    csi: u8,
    opcode: u8,
    command_specific: U64,
    transport_specific: U16,
    rsvd42: [u8; 21],
    entry_version: u8,
}

/// One error. Most are refused admin commands of some tool, not faults of the medium: look at the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEntry {
    /// Number of this error since the drive was made; never 0.
    pub error_count: u64,
    /// Submission queue, 0 is the admin queue, FFFFh none in particular.
    pub queue_id: u16,
    /// Command identifier in that queue; FFFFh none in particular.
    pub command_id: u16,
    /// Status that the command ended with.
    pub status: Status,
    /// Byte (7:0) and bit (10:8) of the command that was at fault; FFFFh none.
    pub parameter_location: u16,
    /// First logical block at fault, where the error is about one.
    pub lba: u64,
    /// Namespace.
    pub nsid: u32,
    /// Vendor log page with more about the error; 0 none.
    pub vendor_page: u8,
    /// Transport (0 PCIe or not stated).
    pub transport_type: u8,
    /// Command set of the command, from entry version 1 on.
    pub command_set: Option<u8>,
    /// Opcode of the command, from entry version 1 on.
    pub opcode: Option<u8>,
    /// Meaning depends on the command.
    pub command_specific: u64,
    /// Meaning depends on the transport.
    pub transport_specific: u16,
}

/// The entries that a drive keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLog {
    /// Entries in use, in the drive's order (newest first).
    pub entries: Vec<ErrorEntry>,
    /// Entries that the page had room for.
    pub slots: usize,
}

impl ErrorLog {
    /// Decodes any whole number of entries. A log of zeros is an empty log.
    ///
    /// # Errors
    /// [`PageError`]: no entry, a part of one, or only FFh.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let page = LogPage::ErrorInformation.name();
        if bytes.is_empty() || !bytes.len().is_multiple_of(ERROR_ENTRY_BYTES) {
            return Err(PageError::Short {
                page,
                length: bytes.len(),
                least: bytes.len().div_ceil(ERROR_ENTRY_BYTES).max(1) * ERROR_ENTRY_BYTES,
            });
        }
        refuse_all_ones(page, bytes)?;
        let mut entries = Vec::new();
        for bytes in bytes.chunks_exact(ERROR_ENTRY_BYTES) {
            entries.extend(entry(view(page, bytes)?));
        }
        Ok(Self { entries, slots: bytes.len() / ERROR_ENTRY_BYTES })
    }
}

fn entry(layout: &Layout) -> Option<ErrorEntry> {
    let error_count = layout.error_count.get();
    let versioned = layout.entry_version >= 1;
    (error_count != 0).then(|| ErrorEntry {
        error_count,
        queue_id: layout.sqid.get(),
        command_id: layout.cmdid.get(),
        status: Status::from_completion(layout.status.get()),
        parameter_location: layout.parameter_location.get(),
        lba: layout.lba.get(),
        nsid: layout.nsid.get(),
        vendor_page: layout.vendor,
        transport_type: layout.trtype,
        command_set: versioned.then_some(layout.csi),
        opcode: versioned.then_some(layout.opcode),
        command_specific: layout.command_specific.get(),
        transport_specific: layout.transport_specific.get(),
    })
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_is_that_of_the_standard() {
        assert_eq!(size_of::<Layout>(), ERROR_ENTRY_BYTES);
        let offsets = [
            (offset_of!(Layout, sqid), 8),
            (offset_of!(Layout, cmdid), 10),
            (offset_of!(Layout, status), 12),
            (offset_of!(Layout, parameter_location), 14),
            (offset_of!(Layout, lba), 16),
            (offset_of!(Layout, nsid), 24),
            (offset_of!(Layout, vendor), 28),
            (offset_of!(Layout, trtype), 29),
            (offset_of!(Layout, csi), 30),
            (offset_of!(Layout, opcode), 31),
            (offset_of!(Layout, command_specific), 32),
            (offset_of!(Layout, transport_specific), 40),
            (offset_of!(Layout, entry_version), 63),
        ];
        for (ours, standard) in offsets {
            assert_eq!(ours, standard);
        }
    }

    fn entry_bytes(count: u64, status: u16, version: u8) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[0..8].copy_from_slice(&count.to_le_bytes());
        bytes[8..10].copy_from_slice(&3_u16.to_le_bytes());
        bytes[10..12].copy_from_slice(&0x1234_u16.to_le_bytes());
        bytes[12..14].copy_from_slice(&status.to_le_bytes());
        bytes[14..16].copy_from_slice(&0x28_u16.to_le_bytes());
        bytes[16..24].copy_from_slice(&0xdead_beef_u64.to_le_bytes());
        bytes[24..28].copy_from_slice(&1_u32.to_le_bytes());
        bytes[28..32].copy_from_slice(&[0xc1, 2, 4, 0x02]);
        bytes[32..40].copy_from_slice(&77_u64.to_le_bytes());
        bytes[40..42].copy_from_slice(&88_u16.to_le_bytes());
        bytes[63] = version;
        bytes
    }

    #[test]
    fn used_entries_are_decoded_and_unused_ones_left_out() {
        let bytes = [entry_bytes(9, 0x502, 1), vec![0; 64], entry_bytes(8, 0x503, 0)].concat();
        let log = ErrorLog::decode(&bytes).unwrap();
        assert_eq!((log.entries.len(), log.slots), (2, 3));
        let first = log.entries[0];
        assert_eq!((first.error_count, first.queue_id, first.command_id), (9, 3, 0x1234));
        assert_eq!(first.status.to_string(), "unrecovered read error (281h)");
        assert_eq!((first.parameter_location, first.lba, first.nsid), (0x28, 0xdead_beef, 1));
        assert_eq!((first.vendor_page, first.transport_type), (0xc1, 2));
        assert_eq!((first.command_set, first.opcode), (Some(4), Some(2)));
        assert_eq!((first.command_specific, first.transport_specific), (77, 88));
        let second = log.entries[1];
        assert_eq!((second.status.code(), second.opcode, second.command_set), (0x281, None, None));
    }

    #[test]
    fn an_empty_log_is_an_answer_and_a_damaged_one_is_not() {
        assert!(ErrorLog::decode(&[0; 640]).unwrap().entries.is_empty());
        assert!(ErrorLog::decode(&[0xff; 640]).is_err());
        for length in [0, 63, 65] {
            let error = ErrorLog::decode(&vec![0; length]).unwrap_err();
            assert!(matches!(error, PageError::Short { .. }), "{error}");
        }
    }
}
