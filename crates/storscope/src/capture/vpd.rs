//! Identities in vital product data (SPC-6, section 7.7; SAT-5 for page 89h), replaced in place. What is not understood
//! is blanked: it may hold one.

use super::fields::{Visitor, foreign_words, padded};
use super::identity::{Kind, bytes, hexadecimal, swapped};
use std::ops::Range;

const HEADER: usize = 4;

/// True when the page says that it is `code` and has the length that it says.
fn is_page(page: &[u8], code: u8) -> bool {
    let length = page.get(2..HEADER).map(|length| usize::from(u16::from_be_bytes([length[0], length[1]])));
    page.get(1) == Some(&code) && length.is_some_and(|length| length + HEADER == page.len())
}

fn blanked(page: &[u8]) -> Vec<u8> {
    let mut page = page.to_vec();
    page.iter_mut().skip(HEADER).for_each(|byte| *byte = 0);
    page
}

/// Text in `range`, as far as the page has it, changed by `change`, if what it gives is as long.
pub(super) fn text_at(page: &mut [u8], range: Range<usize>, change: impl FnOnce(&str) -> String) {
    let end = range.end.min(page.len());
    let Some(place) = page.get_mut(range.start..end) else {
        return;
    };
    let changed = match std::str::from_utf8(place) {
        Ok(text) => change(text).into_bytes(),
        Err(_) => vec![b'?'; place.len()],
    };
    let blank = vec![b' '; place.len()];
    place.copy_from_slice(if changed.len() == place.len() { &changed } else { &blank });
}

/// A number in `range` passed through the visitor.
pub(super) fn number_at(page: &mut [u8], range: Range<usize>, kind: Kind, visitor: &mut dyn Visitor) {
    let end = range.end.min(page.len());
    let Some(place) = page.get_mut(range.start..end) else {
        return;
    };
    let changed = bytes(&visitor.identity(kind, &hexadecimal(place))).unwrap_or_default();
    let blank = vec![0; place.len()];
    place.copy_from_slice(if changed.len() == place.len() { &changed } else { &blank });
}

/// Unit serial number, page 80h.
pub(super) fn serial(page: &[u8], visitor: &mut dyn Visitor) -> Vec<u8> {
    if !is_page(page, 0x80) {
        return blanked(page);
    }
    let mut page = page.to_vec();
    let whole = HEADER..page.len();
    text_at(&mut page, whole, |text| padded(text, |serial| visitor.identity(Kind::Serial, serial)));
    page
}

/// Device identification, page 83h.
pub(super) fn designators(page: &[u8], visitor: &mut dyn Visitor) -> Vec<u8> {
    const DESIGNATOR_HEADER: usize = 4;
    if !is_page(page, 0x83) {
        return blanked(page);
    }
    let mut page = page.to_vec();
    let mut at = HEADER;
    while at < page.len() {
        let Some([_, kind, _, length]) = page.get(at..at + DESIGNATOR_HEADER).map(|h| [h[0], h[1], h[2], h[3]]) else {
            page[at..].fill(0);
            break;
        };
        let from = at + DESIGNATOR_HEADER;
        let end = from + usize::from(length);
        if end > page.len() {
            page[from..].fill(0);
            break;
        }
        designator(&mut page, from..end, kind & 0x0f, visitor);
        at = end;
    }
    page
}

fn designator(page: &mut [u8], range: Range<usize>, kind: u8, visitor: &mut dyn Visitor) {
    const VENDOR: usize = 8;
    match kind {
        // T10: the vendor, then vendor specific text, mostly model and serial number.
        1 => text_at(page, (range.start + VENDOR).min(range.end)..range.end, |text| foreign_words(text, visitor)),
        3 => number_at(page, range, Kind::Wwn, visitor),
        // Relative port, port group, logical unit group: numbers within the array.
        4..=6 => {}
        8 => text_at(page, range, |text| foreign_words(text, visitor)),
        // EUI-64, MD5, UUID, vendor specific.
        _ => number_at(page, range, Kind::Hex, visitor),
    }
}

/// ATA information, page 89h: IDENTIFY DEVICE data (ACS-5, 7.13) with serial number, world-wide name, media serial
/// number, and words that are the vendor's own.
pub(super) fn ata(page: &[u8], visitor: &mut dyn Visitor) -> Vec<u8> {
    const IDENTIFY: usize = 60;
    const WORDS: usize = 256;
    const CHECKSUM_FOLLOWS: u8 = 0xa5;
    if !is_page(page, 0x89) || page.len() < IDENTIFY + WORDS * 2 {
        return blanked(page);
    }
    let mut page = page.to_vec();
    let words = |first: usize, last: usize| IDENTIFY + first * 2..IDENTIFY + (last + 1) * 2;
    for (first, last) in [(10, 19), (176, 205)] {
        let range = words(first, last);
        let plain = swapped(&page[range.clone()]);
        let mut plain = plain.clone();
        let length = plain.len();
        text_at(&mut plain, 0..length, |text| padded(text, |serial| visitor.identity(Kind::Serial, serial)));
        page[range].copy_from_slice(&swapped(&plain));
    }
    let range = words(108, 111);
    let mut name = swapped(&page[range.clone()]);
    let length = name.len();
    number_at(&mut name, 0..length, Kind::Wwn, visitor);
    page[range].copy_from_slice(&swapped(&name));
    for (first, last) in [(112, 115), (129, 159)] {
        page[words(first, last)].fill(0);
    }
    let data = words(0, 255);
    if page[data.end - 2] == CHECKSUM_FOLLOWS {
        let sum = page[data.start..data.end - 1].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        page[data.end - 1] = sum.wrapping_neg();
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Told(Vec<(Kind, String)>);

    impl Visitor for Told {
        fn identity(&mut self, kind: Kind, text: &str) -> String {
            self.0.push((kind, text.to_owned()));
            text.chars().map(|c| if c.is_ascii_alphanumeric() { '7' } else { c }).collect()
        }

        fn is_model(&self, word: &str) -> bool {
            word == "ACME1234567"
        }

        fn node(&self, _: &str) -> Option<String> {
            None
        }
    }

    fn page(code: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&[0, code, length[0], length[1]], body].concat()
    }

    #[test]
    fn the_serial_number_keeps_its_padding() {
        let mut told = Told::default();
        assert_eq!(serial(&page(0x80, b"  WD-AB12 "), &mut told), page(0x80, b"  77-7777 "));
        assert_eq!(told.0, [(Kind::Serial, "WD-AB12".to_owned())]);
    }

    #[test]
    fn what_is_not_understood_is_blanked() {
        let mut told = Told::default();
        assert_eq!(serial(b"\0\x83\0\x04WD-1", &mut told), b"\0\x83\0\x04\0\0\0\0");
        let cut = page(0x83, &[1, 3, 0, 8, 0x50, 1]);
        assert_eq!(designators(&cut, &mut told), page(0x83, &[1, 3, 0, 8, 0, 0]));
        assert_eq!(ata(&page(0x89, &[1; 100]), &mut told), page(0x89, &[0; 100]));
        assert!(told.0.is_empty());
    }

    #[test]
    fn designators_of_every_kind() {
        let t10 = [&[2, 1, 0, 31][..], b"ATA     ACME1234567 S3Z1NB0K123"].concat();
        let naa = [&[1, 3, 0, 8][..], &[0x50, 0, 0xc5, 0, 1, 2, 3, 4]].concat();
        let port = [&[1, 0x94, 0, 4][..], &[0, 0, 0, 1]].concat();
        let mut told = Told::default();
        let scrubbed = designators(&page(0x83, &[t10, naa, port.clone()].concat()), &mut told);
        let t10 = [&[2, 1, 0, 31][..], b"ATA     ACME1234567 77777777777"].concat();
        let naa = [&[1, 3, 0, 8][..], &[0x77; 8]].concat();
        assert_eq!(scrubbed, page(0x83, &[t10, naa, port].concat()));
        assert_eq!(told.0[1], (Kind::Wwn, "5000c50001020304".to_owned()));
    }

    #[test]
    fn identify_data_keeps_a_true_checksum() {
        let mut body = vec![0; 568];
        body[56 + 20..56 + 40].copy_from_slice(&swapped(b"        S4YNNX0R1234"));
        body[56 + 54..56 + 94].copy_from_slice(&swapped(format!("{:40}", "ACME 1T").as_bytes()));
        body[56 + 216..56 + 224].copy_from_slice(&[0, 0x50, 0, 0xc5, 0xb2, 0xa1, 0xd4, 0xc3]);
        body[56 + 300] = 9;
        body[56 + 510] = 0xa5;
        let mut told = Told::default();
        let scrubbed = ata(&page(0x89, &body), &mut told);
        assert_eq!(told.0[0], (Kind::Serial, "S4YNNX0R1234".to_owned()));
        assert!(told.0.contains(&(Kind::Wwn, "5000c500a1b2c3d4".to_owned())));
        assert_eq!(scrubbed[60 + 54..60 + 94], swapped(format!("{:40}", "ACME 1T").as_bytes()));
        assert_eq!(scrubbed[60 + 20..60 + 40], swapped(b"        777777777777"));
        assert_eq!(scrubbed[60 + 300], 0);
        assert_eq!(scrubbed[60..].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)), 0);
    }
}
