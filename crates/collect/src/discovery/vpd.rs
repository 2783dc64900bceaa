//! Vital product data pages that the kernel caches as `vpd_pgNN` (SPC-6, section 7.7; SAT-5 for page 89h).

/// Unit serial number, page 80h.
pub(super) fn serial(page: &[u8]) -> Option<&[u8]> {
    body(page, 0x80)
}

/// The NAA or EUI-64 designator of the logical unit in page 83h, as lower-case hexadecimal digits; NAA first.
pub(super) fn wwn(page: &[u8]) -> Option<String> {
    const LOGICAL_UNIT: u8 = 0;
    const BINARY: u8 = 1;
    let mut rest = body(page, 0x83)?;
    let mut best: Option<(u8, &[u8])> = None;
    while let [code_set, kind, _, length, after @ ..] = rest {
        let (value, next) = after.split_at_checked(usize::from(*length))?;
        rest = next;
        let (association, kind) = ((kind >> 4) & 3, kind & 0x0f);
        if association != LOGICAL_UNIT || code_set & 0x0f != BINARY || !is_wwn(kind, value) {
            continue;
        }
        // Longer is more specific: a registered-extended NAA names the unit, a registered one perhaps the array.
        if best.is_none_or(|(other, known)| (kind, value.len()) > (other, known.len())) {
            best = Some((kind, value));
        }
    }
    let (_, value) = best?;
    Some(value.iter().map(|byte| format!("{byte:02x}")).collect())
}

const EUI64: u8 = 2;
const NAA: u8 = 3;

fn is_wwn(kind: u8, value: &[u8]) -> bool {
    let length_fits = match (kind, value.first().map(|byte| byte >> 4)) {
        (NAA, Some(2 | 3 | 5)) => value.len() == 8,
        (NAA, Some(6)) => value.len() == 16,
        (EUI64, _) => matches!(value.len(), 8 | 12 | 16),
        _ => false,
    };
    length_fits && value.iter().skip(1).any(|byte| *byte != 0)
}

/// Model and firmware revision of an ATA disk, in full, from the IDENTIFY DEVICE data in page 89h (ACS-5, words 27–46
/// and 23–26). INQUIRY cuts them to 16 and 4 characters.
pub(super) fn ata_identity(page: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    const IDENTIFY: usize = 60;
    body(page, 0x89)?;
    let words = page.get(IDENTIFY..IDENTIFY + 512)?;
    Some((ata_string(words, 27, 46), ata_string(words, 23, 26)))
}

/// ATA strings have the two characters of each word swapped.
fn ata_string(words: &[u8], first: usize, last: usize) -> Vec<u8> {
    words[first * 2..(last + 1) * 2].chunks_exact(2).flat_map(|word| [word[1], word[0]]).collect()
}

/// What follows the header, if the page says that it is `code` and has the length that it says: a page that went
/// through a text tool has not.
fn body(page: &[u8], code: u8) -> Option<&[u8]> {
    let (header, body) = page.split_at_checked(4)?;
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    (header[1] == code && length == body.len()).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(code: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&[0, code, length[0], length[1]], body].concat()
    }

    #[test]
    fn the_unit_serial_number() {
        assert_eq!(serial(&page(0x80, b"  WD-1 ")), Some(b"  WD-1 ".as_slice()));
        assert_eq!(serial(&page(0x83, b"WD-1")), None);
        assert_eq!(serial(&page(0x80, b"WD-1")[..6]), None);
        assert_eq!(serial(b""), None);
    }

    #[test]
    fn the_logical_unit_is_named_not_its_port() {
        let t10 = [&[2, 1, 0, 4][..], b"ACME"].concat();
        let port = [&[0x61, 0x93, 0, 8][..], &[0x32, 1, 2, 3, 4, 5, 6, 7]].concat();
        let unit = [&[1, 3, 0, 8][..], &[0x50, 0, 0xc5, 0, 1, 2, 3, 4]].concat();
        assert_eq!(wwn(&page(0x83, &[t10.clone(), port.clone(), unit].concat())).as_deref(), Some("5000c50001020304"));
        assert_eq!(wwn(&page(0x83, &[t10, port].concat())), None);
        let zeros = [&[1, 3, 0, 8][..], &[0x50, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(wwn(&page(0x83, &zeros)), None);
        let cut = [1, 3, 0, 8, 0x50, 1];
        assert_eq!(wwn(&page(0x83, &cut)), None);
    }

    #[test]
    fn the_longer_naa_wins() {
        let short = [&[1, 3, 0, 8][..], &[0x50, 0, 0xc5, 0, 1, 2, 3, 4]].concat();
        let long = [&[1, 3, 0, 16][..], &[0x60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]].concat();
        let both = page(0x83, &[short, long].concat());
        assert_eq!(wwn(&both).as_deref(), Some("600102030405060708090a0b0c0d0e0f"));
    }

    #[test]
    fn ata_strings_are_swapped() {
        let mut body = vec![b' '; 568];
        body[56 + 54..56 + 54 + 8].copy_from_slice(b"CAEM1 T ");
        body[56 + 46..56 + 46 + 8].copy_from_slice(b"WF010B  ");
        let (model, firmware) = ata_identity(&page(0x89, &body)).unwrap();
        assert!(model.starts_with(b"ACME 1 T"));
        assert_eq!(firmware, b"FW10B0  ".map(|b| b).to_vec());
        assert_eq!(ata_identity(&page(0x89, &body[..500])), None);
    }

    proptest! {
        #[test]
        fn any_page_is_taken(bytes in proptest::collection::vec(any::<u8>(), 0..700), code in 0x80_u8..0x8a) {
            for input in [bytes.clone(), page(code, &bytes)] {
                serial(&input);
                ata_identity(&input);
                if let Some(wwn) = wwn(&input) {
                    prop_assert!(matches!(wwn.len(), 16 | 24 | 32));
                }
            }
        }
    }
}
