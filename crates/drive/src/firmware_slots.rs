//! Firmware Slot Information log (03h).

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::command::LogPage;
use crate::error::PageError;
use crate::layout::{drive_text, refuse_all_ones, view};

/// Slots that the page has room for.
pub const FIRMWARE_SLOTS: usize = 7;

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    afi: u8,
    rsvd1: [u8; 7],
    frs: [[u8; 8]; FIRMWARE_SLOTS],
    rsvd64: [u8; 448],
}

/// Which firmware runs, and which will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmwareSlots {
    /// Slot that the running firmware was loaded from, 1 to 7; 0 is not a slot.
    pub active: u8,
    /// Slot to be activated at the next controller reset, if one is set.
    pub next: Option<u8>,
    /// Revision in slots 1 to 7; `None` where a slot is empty.
    pub revisions: [Option<String>; FIRMWARE_SLOTS],
}

impl FirmwareSlots {
    /// Decodes the 512-byte page.
    ///
    /// # Errors
    /// [`PageError`]: short, all ones, or blank: a controller that keeps no firmware of its own.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let page = LogPage::FirmwareSlots.name();
        let log: &Layout = view(page, bytes)?;
        refuse_all_ones(page, bytes)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(PageError::Blank { page });
        }
        let next = log.afi >> 4 & 7;
        Ok(Self {
            active: log.afi & 7,
            next: (next != 0).then_some(next),
            revisions: log.frs.map(|field| Some(drive_text(&field)).filter(|text| !text.is_empty())),
        })
    }

    /// Revision in a slot from 1 on.
    #[must_use]
    pub fn revision(&self, slot: u8) -> Option<&str> {
        let index = usize::from(slot).checked_sub(1)?;
        self.revisions.get(index)?.as_deref()
    }

    /// The slot that another firmware waits in for a reset.
    #[must_use]
    pub fn pending(&self) -> Option<u8> {
        self.next.filter(|next| *next != self.active)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    fn page(afi: u8) -> Vec<u8> {
        let mut page = vec![0; 512];
        page[0] = afi;
        page[8..16].copy_from_slice(b"FW01    ");
        page[16..24].copy_from_slice(b"FW02\0\0\0\0");
        page[24..32].copy_from_slice(b"        ");
        page
    }

    #[test]
    fn the_layout_is_that_of_the_standard() {
        assert_eq!(size_of::<Layout>(), 512);
        assert_eq!(offset_of!(Layout, frs), 8);
    }

    #[test]
    fn active_and_next_slots_are_told_apart() {
        let slots = FirmwareSlots::decode(&page(0x21)).unwrap();
        assert_eq!((slots.active, slots.next, slots.pending()), (1, Some(2), Some(2)));
        assert_eq!(slots.revision(1), Some("FW01"));
        assert_eq!(slots.revision(2), Some("FW02"));
        assert_eq!((slots.revision(0), slots.revision(3), slots.revision(8)), (None, None, None));
    }

    #[test]
    fn the_same_slot_as_next_is_not_pending() {
        assert_eq!(FirmwareSlots::decode(&page(0x11)).unwrap().pending(), None);
        assert_eq!(FirmwareSlots::decode(&page(0x01)).unwrap().next, None);
        // Bits 3 and 7 are reserved.
        assert_eq!(FirmwareSlots::decode(&page(0x89)).unwrap().active, 1);
    }

    #[test]
    fn short_and_uniform_pages_are_refused() {
        assert!(FirmwareSlots::decode(&page(1)[..500]).is_err());
        assert!(matches!(FirmwareSlots::decode(&[0; 512]), Err(PageError::Blank { .. })));
        assert!(FirmwareSlots::decode(&[0xff; 512]).is_err());
    }
}
