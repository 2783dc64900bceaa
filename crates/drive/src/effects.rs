//! Commands Supported and Effects log (05h).

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::command::{LogPage, Opcode};
use crate::error::PageError;
use crate::layout::{refuse_uniform, view};

const COMMANDS: usize = 256;
/// CSE, bits 18:16: the command may not run beside others. The kernel's own mask since 6.2.
const SUBMISSION_AND_EXECUTION: u32 = 7 << 16;

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    admin: [U32; COMMANDS],
    io: [U32; COMMANDS],
    rsvd2048: [u8; 2048],
}

/// What one command does to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects(pub u32);

impl Effects {
    /// Bit 0: the command is supported.
    #[must_use]
    pub fn supported(self) -> bool {
        self.0 & 1 != 0
    }

    /// CSE: each such command sent from user space makes the kernel freeze I/O on all namespaces until it is over.
    #[must_use]
    pub fn freezes_io(self) -> bool {
        self.0 & SUBMISSION_AND_EXECUTION != 0
    }
}

/// Effects of the two commands that are sent here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandEffects {
    get_log_page: Effects,
    identify: Effects,
}

impl CommandEffects {
    /// Decodes the 4096-byte page.
    ///
    /// # Errors
    /// [`PageError`]: short, or of one byte value only.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let page = LogPage::CommandEffects.name();
        let log: &Layout = view(page, bytes)?;
        refuse_uniform(page, bytes)?;
        let of = |opcode: Opcode| Effects(log.admin[usize::from(opcode as u8)].get());
        Ok(Self { get_log_page: of(Opcode::GetLogPage), identify: of(Opcode::Identify) })
    }

    /// Effects of a command.
    #[must_use]
    pub fn of(&self, opcode: Opcode) -> Effects {
        match opcode {
            Opcode::GetLogPage => self.get_log_page,
            Opcode::Identify => self.identify,
        }
    }

    /// Asking this drive anything stops its I/O for a moment: ask rarely or not at all.
    #[must_use]
    pub fn asking_freezes_io(&self) -> bool {
        self.get_log_page.freezes_io() || self.identify.freezes_io()
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    fn page(get_log: u32, identify: u32) -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[8..12].copy_from_slice(&get_log.to_le_bytes());
        page[24..28].copy_from_slice(&identify.to_le_bytes());
        // I/O opcode 02h (Read) must not be taken for admin opcode 02h.
        page[1032..1036].copy_from_slice(&0x7_0001_u32.to_le_bytes());
        page
    }

    #[test]
    fn the_layout_is_that_of_the_standard() {
        assert_eq!(size_of::<Layout>(), 4096);
        assert_eq!(offset_of!(Layout, io), 1024);
    }

    #[test]
    fn cse_bits_mean_frozen_io() {
        let calm = CommandEffects::decode(&page(1, 1)).unwrap();
        assert!(!calm.asking_freezes_io());
        assert!(calm.of(Opcode::GetLogPage).supported());
        let freezing = CommandEffects::decode(&page(0x2_0001, 1)).unwrap();
        assert!(freezing.asking_freezes_io());
        assert!(freezing.of(Opcode::GetLogPage).freezes_io());
        assert!(!freezing.of(Opcode::Identify).freezes_io());
    }

    #[test]
    fn short_and_uniform_pages_are_refused() {
        assert!(CommandEffects::decode(&page(1, 1)[..4000]).is_err());
        assert!(CommandEffects::decode(&[0; 4096]).is_err());
        assert!(CommandEffects::decode(&[0xff; 4096]).is_err());
    }
}
