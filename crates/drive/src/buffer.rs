//! The memory that a drive writes into.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Size and alignment of one unit of a [`PageBuffer`]: the smallest memory page that NVMe knows (CAP.MPSMIN = 0).
const UNIT: usize = 4096;

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Unit([u8; UNIT]);

/// A zeroed, page-aligned buffer whose capacity is a whole number of 4 KiB pages.
///
/// Some controllers write a whole page whatever length was asked for, and a buffer that shares a page with other data
/// is bounced or, on faulty drivers, torn. Hence the alignment and the minimum.
#[derive(Clone)]
pub struct PageBuffer {
    units: Vec<Unit>,
    length: usize,
}

impl PageBuffer {
    /// A buffer of zeros that presents `length` bytes; at least one page is allocated.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        let units = length.div_ceil(UNIT).max(1);
        Self { units: vec![Unit([0; UNIT]); units], length }
    }

    /// A buffer holding a copy of `bytes`.
    #[must_use]
    pub fn copied(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.as_mut_bytes().copy_from_slice(bytes);
        buffer
    }

    /// The bytes asked for.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.units.as_slice().as_bytes()[..self.length]
    }

    /// The bytes asked for, writable.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut self.units.as_mut_slice().as_mut_bytes()[..self.length]
    }
}

impl std::fmt::Debug for PageBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PageBuffer({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_page_aligned_zeroed_and_never_below_a_page() {
        for length in [0, 4, 512, 4096, 4100, 16384] {
            let mut buffer = PageBuffer::zeroed(length);
            assert_eq!(buffer.as_bytes().len(), length);
            assert!(buffer.as_bytes().iter().all(|byte| *byte == 0));
            assert_eq!(buffer.as_mut_bytes().as_ptr() as usize % UNIT, 0);
            assert!(buffer.units.len() * UNIT >= length.max(UNIT));
        }
    }

    #[test]
    fn a_copy_holds_what_it_was_given() {
        assert_eq!(PageBuffer::copied(&[1, 2, 3]).as_bytes(), [1, 2, 3]);
    }
}
