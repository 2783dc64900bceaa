//! Identities in what a controller answered (NVMe base specification: Identify Controller and Namespace; OCP page C0h),
//! replaced in place. Fields that are the vendor's own are blanked: drives keep board and part serial numbers there.

use super::fields::{Visitor, padded};
use super::identity::Kind;
use super::vpd::{number_at, text_at};
use std::ops::Range;
use storscope_drive::OCP_GUID;

const SERIAL: Range<usize> = 4..24;
const FRU_GUID: Range<usize> = 112..128;
/// Where SUBNQN lies.
pub(super) const SUBSYSTEM_NQN: Range<usize> = 768..1024;
const CONTROLLER_VENDOR_SPECIFIC: usize = 3072;
const NGUID: Range<usize> = 104..120;
const EUI64: Range<usize> = 120..128;
const NAMESPACE_VENDOR_SPECIFIC: usize = 384;
const GUID: Range<usize> = 496..512;

/// The page in the file `name`.
pub(super) fn visit(name: &str, page: &[u8], visitor: &mut dyn Visitor) -> Vec<u8> {
    let mut page = page.to_vec();
    match name {
        "identify.bin" => {
            text_at(&mut page, SERIAL, |text| padded(text, |serial| visitor.identity(Kind::Serial, serial)));
            number_at(&mut page, FRU_GUID, Kind::Hex, visitor);
            blank_from(&mut page, CONTROLLER_VENDOR_SPECIFIC);
        }
        "logpage-0xc0.bin" if page.get(GUID) != Some(OCP_GUID.as_slice()) => {
            // Whose page it is shows in its GUID; the rest may hold anything.
            let end = GUID.start.min(page.len());
            page[..end].fill(0);
            blank_from(&mut page, GUID.end);
        }
        name if name.starts_with("identify-ns-") => {
            number_at(&mut page, NGUID, Kind::Hex, visitor);
            number_at(&mut page, EUI64, Kind::Hex, visitor);
            blank_from(&mut page, NAMESPACE_VENDOR_SPECIFIC);
        }
        _ => {}
    }
    page
}

fn blank_from(page: &mut [u8], at: usize) {
    page.iter_mut().skip(at).for_each(|byte| *byte = 0);
}

/// The subsystem's NQN in Identify Controller.
pub(super) fn subsystem_nqn(page: &[u8]) -> String {
    let field = page.get(SUBSYSTEM_NQN).unwrap_or_default();
    String::from_utf8_lossy(field).trim_end_matches('\0').to_owned()
}
