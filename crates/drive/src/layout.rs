//! What every decoder starts with: length, plausibility, text fields.

use std::fmt::Write as _;

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::error::{Implausible, PageError};

/// Views the front of `bytes` as a page's layout, or says how short they are.
pub(crate) fn view<'a, T>(page: &'static str, bytes: &'a [u8]) -> Result<&'a T, PageError>
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    T::ref_from_prefix(bytes).map(|(layout, _)| layout).map_err(|_| PageError::Short {
        page,
        length: bytes.len(),
        least: size_of::<T>(),
    })
}

/// Refuses a page of only FFh: what a read from a device that is not there any more returns.
pub(crate) fn refuse_all_ones(page: &'static str, bytes: &[u8]) -> Result<(), PageError> {
    if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0xff) {
        return Err(PageError::Implausible { page, reason: Implausible::AllOnes });
    }
    Ok(())
}

/// Refuses a page of only 00h or only FFh.
pub(crate) fn refuse_uniform(page: &'static str, bytes: &[u8]) -> Result<(), PageError> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(PageError::Implausible { page, reason: Implausible::AllZero });
    }
    refuse_all_ones(page, bytes)
}

/// A text field of a drive as one printable string: spaces and NULs cut off both ends, everything inside kept;
/// bytes that are not UTF-8 and control characters appear as `\xNN`.
#[must_use]
pub fn drive_text(field: &[u8]) -> String {
    let padding = |byte: &u8| matches!(byte, 0 | b' ');
    let start = field.iter().position(|byte| !padding(byte)).unwrap_or(field.len());
    let end = field.iter().rposition(|byte| !padding(byte)).map_or(start, |last| last + 1);
    let mut text = String::with_capacity(end - start);
    for chunk in field[start..end].utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                escape(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(character);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    text
}

fn escape(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

/// 16 stored bytes as one number whose hexadecimal digits read in stored order.
pub(crate) fn stored_order(bytes: [u8; 16]) -> u128 {
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_loses_padding_and_nothing_else() {
        assert_eq!(drive_text(b"KINGSTON SKC1000240G                    "), "KINGSTON SKC1000240G");
        assert_eq!(drive_text(b"  nqn:1987    KINGSTON\0\0 "), "nqn:1987    KINGSTON");
        assert_eq!(drive_text(b"\0\0  \0"), "");
        assert_eq!(drive_text(b""), "");
    }

    #[test]
    fn text_that_is_not_utf8_or_not_printable_is_escaped() {
        assert_eq!(drive_text(b"\xc0\x1c[\x87"), "\\xc0\\x1c[\\x87");
        assert_eq!(drive_text(b"a\0b\nc"), "a\\x00b\\x0ac");
        assert_eq!(drive_text("2.5\u{201d} disk".as_bytes()), "2.5\u{201d} disk");
    }

    #[test]
    fn uniform_pages_are_refused() {
        let reason = |bytes: &[u8]| refuse_uniform("page", bytes).unwrap_err().to_string();
        assert_eq!(reason(&[0; 9]), "page: not plausible: every byte is 00h");
        assert_eq!(reason(&[0xff; 9]), "page: not plausible: every byte is FFh");
        assert!(refuse_uniform("page", &[0, 0xff]).is_ok());
        assert!(refuse_all_ones("page", &[0; 9]).is_ok());
    }
}
