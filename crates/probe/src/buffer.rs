//! Aligned memory for `O_DIRECT` reads. The one file of this crate with `unsafe` code.
#![allow(unsafe_code, reason = "the one file that hands memory to the kernel")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use tokio_uring::buf::{IoBuf, IoBufMut};

/// Zeroed memory whose address and length are multiples of its length, a power of two.
pub(crate) struct AlignedBuffer {
    memory: NonNull<u8>,
    layout: Layout,
}

impl AlignedBuffer {
    /// Memory for one block; `None` when `block` is zero or no power of two.
    pub(crate) fn new(block: u32) -> Option<Self> {
        let length = usize::try_from(block).ok().filter(|length| *length > 0)?;
        let layout = Layout::from_size_align(length, length).ok()?;
        // SAFETY: the layout has a non-zero size.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        Some(Self { memory, layout })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is owned, initialised (zeroed when allocated), `size` long, and no kernel read is in
        // flight while a reference can be taken: for the length of a read the engine owns the buffer by value or has
        // borrowed it mutably.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.layout.size()) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated by `alloc_zeroed` with this layout and freed once.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

// SAFETY: the memory is owned by this value alone and has no thread affinity.
unsafe impl Send for AlignedBuffer {}

// SAFETY: the pointer is to the heap and stays the same until drop, wherever the value itself is moved; all `size`
// bytes are initialised.
unsafe impl IoBuf for AlignedBuffer {
    fn stable_ptr(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    fn bytes_init(&self) -> usize {
        self.layout.size()
    }

    fn bytes_total(&self) -> usize {
        self.layout.size()
    }
}

// SAFETY: as for `IoBuf`; all bytes are always initialised, so there is no mark to move.
unsafe impl IoBufMut for AlignedBuffer {
    fn stable_mut_ptr(&mut self) -> *mut u8 {
        self.memory.as_ptr()
    }

    unsafe fn set_init(&mut self, _length: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_to_its_length_and_zeroed() {
        for block in [512, 4096, 65_536] {
            let mut buffer = AlignedBuffer::new(block).unwrap();
            assert_eq!(buffer.bytes().len(), block as usize);
            assert_eq!(buffer.stable_ptr().align_offset(block as usize), 0);
            assert!(buffer.bytes().iter().all(|byte| *byte == 0));
            buffer.bytes_mut()[block as usize - 1] = 7;
            assert_eq!(buffer.bytes()[block as usize - 1], 7);
        }
    }

    #[test]
    fn odd_lengths_are_refused() {
        assert!(AlignedBuffer::new(0).is_none());
        assert!(AlignedBuffer::new(5000).is_none());
    }
}
