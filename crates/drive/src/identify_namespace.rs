//! Identify Namespace data structure of the NVM command set (CNS 00h).

use zerocopy::little_endian::{U16, U64, U128};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::error::PageError;
use crate::layout::{refuse_uniform, stored_order, view};

pub(crate) const PAGE: &str = "Identify Namespace";
const FORMATS: usize = 64;

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FormatLayout {
    ms: U16,
    lbads: u8,
    rp: u8,
}

#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    nsze: U64,
    ncap: U64,
    nuse: U64,
    nsfeat: u8,
    nlbaf: u8,
    flbas: u8,
    mc: u8,
    dpc: u8,
    dps: u8,
    nmic: u8,
    rescap: u8,
    fpi: u8,
    dlfeat: u8,
    rsvd34: [u8; 14],
    nvmcap: U128,
    rsvd64: [u8; 40],
    nguid: [u8; 16],
    eui64: [u8; 8],
    lbaf: [FormatLayout; FORMATS],
    rsvd384: [u8; 3712],
}

/// The block format that a namespace is formatted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFormat {
    /// Index in the table of formats.
    pub index: u8,
    /// Logical block in bytes, a power of two from 512.
    pub block_bytes: u32,
    /// Metadata bytes per block.
    pub metadata_bytes: u16,
}

/// Size and use of one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifyNamespace {
    /// NSZE in logical blocks.
    pub size_blocks: u64,
    /// NCAP in logical blocks: most that may be allocated at a time.
    pub capacity_blocks: u64,
    /// NUSE in logical blocks: allocated now. Equals the capacity on drives that do not track it.
    pub used_blocks: u64,
    /// The current format; `None` where the drive states one that does not exist.
    pub format: Option<BlockFormat>,
    /// DPS bits 2:0: protection information type, 0 is none.
    pub protection_type: u8,
    /// FPI: percent of a format operation still to do, while one runs.
    pub format_remaining_percent: Option<u8>,
    /// DLFEAT bits 2:0: what deallocated blocks read as (0 not stated, 1 zeros, 2 ones).
    pub deallocated_reads: u8,
    /// NVMCAP in bytes.
    pub capacity_bytes: Option<u128>,
    /// NGUID as the number that its digits print, where set.
    pub nguid: Option<u128>,
    /// EUI-64 as the number that its digits print, where set.
    pub eui64: Option<u64>,
}

impl IdentifyNamespace {
    /// Decodes the 4096-byte structure.
    ///
    /// # Errors
    /// [`PageError`]: short, or of one byte value only. A controller answers with zeros for a namespace that is not
    /// active, which is refused as well.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let id: &Layout = view(PAGE, bytes)?;
        refuse_uniform(PAGE, bytes)?;
        let nguid = stored_order(id.nguid);
        let eui64 = u64::from_be_bytes(id.eui64);
        Ok(Self {
            size_blocks: id.nsze.get(),
            capacity_blocks: id.ncap.get(),
            used_blocks: id.nuse.get(),
            format: format(id),
            protection_type: id.dps & 7,
            format_remaining_percent: (id.fpi & 0x80 != 0).then_some(id.fpi & 0x7f),
            deallocated_reads: id.dlfeat & 7,
            capacity_bytes: (id.nvmcap.get() != 0).then_some(id.nvmcap.get()),
            nguid: (nguid != 0).then_some(nguid),
            eui64: (eui64 != 0).then_some(eui64),
        })
    }
}

fn format(id: &Layout) -> Option<BlockFormat> {
    // Bits 6:5 are the upper part of the index only where more than sixteen formats exist.
    let upper = if id.nlbaf > 15 { id.flbas >> 5 & 3 } else { 0 };
    let index = id.flbas & 0xf | upper << 4;
    let format = &id.lbaf[usize::from(index)];
    let block_bytes = 1_u32.checked_shl(u32::from(format.lbads))?;
    (index <= id.nlbaf && block_bytes >= 512).then_some(BlockFormat {
        index,
        block_bytes,
        metadata_bytes: format.ms.get(),
    })
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_is_that_of_the_standard() {
        assert_eq!(size_of::<Layout>(), 4096);
        let offsets = [
            (offset_of!(Layout, ncap), 8),
            (offset_of!(Layout, nuse), 16),
            (offset_of!(Layout, nlbaf), 25),
            (offset_of!(Layout, flbas), 26),
            (offset_of!(Layout, dps), 29),
            (offset_of!(Layout, fpi), 32),
            (offset_of!(Layout, dlfeat), 33),
            (offset_of!(Layout, nvmcap), 48),
            (offset_of!(Layout, nguid), 104),
            (offset_of!(Layout, eui64), 120),
            (offset_of!(Layout, lbaf), 128),
        ];
        for (ours, standard) in offsets {
            assert_eq!(ours, standard);
        }
    }

    fn page() -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[0..8].copy_from_slice(&1000_u64.to_le_bytes());
        page[8..16].copy_from_slice(&1000_u64.to_le_bytes());
        page[16..24].copy_from_slice(&250_u64.to_le_bytes());
        page[25] = 1;
        page[26] = 1;
        page[32] = 0x80 | 42;
        page[33] = 1;
        page[104] = 0xab;
        page[119] = 0x01;
        page[120] = 0x02;
        page[127] = 0x03;
        page[128 + 2] = 9;
        page[132..134].copy_from_slice(&8_u16.to_le_bytes());
        page[134] = 12;
        page
    }

    #[test]
    fn a_namespace_is_decoded() {
        let namespace = IdentifyNamespace::decode(&page()).unwrap();
        assert_eq!(namespace.format, Some(BlockFormat { index: 1, block_bytes: 4096, metadata_bytes: 8 }));
        assert_eq!(namespace.format_remaining_percent, Some(42));
        assert_eq!(namespace.nguid, Some(0xab00_0000_0000_0000_0000_0000_0000_0001));
        assert_eq!(namespace.eui64, Some(0x0200_0000_0000_0003));
        assert_eq!(namespace.capacity_bytes, None);
    }

    #[test]
    fn a_format_that_does_not_exist_is_none() {
        let format = |nlbaf, flbas, lbads| {
            let mut page = page();
            page[25] = nlbaf;
            page[26] = flbas;
            page[134] = lbads;
            IdentifyNamespace::decode(&page).unwrap().format
        };
        assert_eq!(format(0, 1, 12), None);
        assert_eq!(format(1, 1, 0), None);
        assert_eq!(format(1, 1, 255), None);
        // Bit 5 is not part of the index of a drive with two formats.
        assert_eq!(format(1, 0x21, 12).map(|format| format.index), Some(1));
    }

    #[test]
    fn an_inactive_namespace_is_refused() {
        let error = IdentifyNamespace::decode(&[0; 4096]).unwrap_err();
        assert_eq!(error.to_string(), "Identify Namespace: not plausible: every byte is 00h");
        assert!(IdentifyNamespace::decode(&page()[..383]).is_err());
    }
}
