//! UUID List (Identify CNS 17h, NVMe 1.4): whose meaning a UUID index selects in vendor pages.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::command::UuidIndex;
use crate::error::PageError;
use crate::layout::{refuse_all_ones, view};

pub(crate) const PAGE: &str = "Identify UUID List";
const ENTRIES: usize = 127;

/// The UUID of the OCP Datacenter NVMe SSD Specification, c194d55b-e094-4794-a21d-29998f56be6f, as stored.
pub const OCP_UUID: [u8; 16] =
    [0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d, 0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f];

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EntryLayout {
    header: u8,
    rsvd1: [u8; 15],
    uuid: [u8; 16],
}

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    rsvd0: [u8; 32],
    entries: [EntryLayout; ENTRIES],
}

/// The UUIDs of a controller, index 1 first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UuidList(Vec<[u8; 16]>);

impl UuidList {
    /// Decodes the 4096-byte list. An empty list is an answer: the first entry of zeros ends it.
    ///
    /// # Errors
    /// [`PageError`]: short, or only FFh.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let list: &Layout = view(PAGE, bytes)?;
        refuse_all_ones(PAGE, bytes)?;
        Ok(Self(list.entries.iter().map(|entry| entry.uuid).take_while(|uuid| *uuid != [0; 16]).collect()))
    }

    /// The index that selects this UUID's meaning.
    #[must_use]
    pub fn index_of(&self, uuid: &[u8; 16]) -> Option<UuidIndex> {
        let position = self.0.iter().position(|known| known == uuid)?;
        UuidIndex::new(u8::try_from(position + 1).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_start_at_one() {
        assert_eq!(size_of::<Layout>(), 4096);
        let mut list = vec![0; 4096];
        list[48..64].copy_from_slice(&[9; 16]);
        list[80..96].copy_from_slice(&OCP_UUID);
        // Behind the end of the list.
        list[144..160].copy_from_slice(&[7; 16]);
        let list = UuidList::decode(&list).unwrap();
        assert_eq!(list.index_of(&[9; 16]).map(UuidIndex::get), Some(1));
        assert_eq!(list.index_of(&OCP_UUID).map(UuidIndex::get), Some(2));
        assert_eq!(list.index_of(&[7; 16]), None);
    }

    #[test]
    fn the_last_index_is_reachable_and_damage_is_refused() {
        let mut list = vec![1; 4096];
        list[4080..4096].copy_from_slice(&OCP_UUID);
        assert_eq!(UuidList::decode(&list).unwrap().index_of(&OCP_UUID).map(UuidIndex::get), Some(127));
        assert!(UuidList::decode(&[0xff; 4096]).is_err());
        assert!(UuidList::decode(&[0; 4095]).is_err());
        assert_eq!(UuidList::decode(&[0; 4096]).unwrap().index_of(&OCP_UUID), None);
    }
}
