//! Text that a device gives about itself: model, serial number, firmware revision, names.

use super::attributes::MAX_TEXT;

/// `bytes` without padding at the ends, cut to [`MAX_TEXT`] bytes and safe to print: bytes that are not UTF-8 and
/// control characters are escaped as `\xNN`, as in the text fields of Identify. What lies inside is kept (an NQN may
/// hold a run of spaces). `None` when nothing is left.
pub(super) fn text(bytes: &[u8]) -> Option<String> {
    let trimmed = trim(bytes);
    let text = storscope_drive::drive_text(&trimmed[..trimmed.len().min(MAX_TEXT)]);
    (!text.is_empty()).then_some(text)
}

fn trim(bytes: &[u8]) -> &[u8] {
    let padding = |byte: &u8| matches!(byte, b' ' | b'\0' | b'\n' | b'\r' | b'\t');
    let first = bytes.iter().position(|byte| !padding(byte)).unwrap_or(bytes.len());
    let last = bytes.iter().rposition(|byte| !padding(byte)).map_or(first, |last| last + 1);
    &bytes[first..last]
}

/// True for a serial number that tells no two devices apart: one character repeated, or a word that vendors leave in.
pub(super) fn says_nothing(serial: &str) -> bool {
    const FILLERS: [&str; 6] = ["none", "n/a", "unknown", "serial number", "default string", "0123456789"];
    let mut characters = serial.chars();
    let first = characters.next();
    let uniform = first.is_some_and(|first| {
        matches!(first, '0' | 'F' | 'f' | 'x' | 'X' | '-' | '.') && characters.all(|other| other == first)
    });
    uniform || serial.is_empty() || FILLERS.contains(&serial.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn padding_goes_and_inner_spaces_stay() {
        assert_eq!(text(b"ACME  NVME 1000G          \n").as_deref(), Some("ACME  NVME 1000G"));
        assert_eq!(text(b"   WD-X1\0\0").as_deref(), Some("WD-X1"));
        assert_eq!(text(b" \0 \n"), None);
        assert_eq!(text(b""), None);
    }

    #[test]
    fn foreign_bytes_are_escaped() {
        assert_eq!(text(b"\xc0\x1c[\x87").as_deref(), Some("\\xc0\\x1c[\\x87"));
        assert_eq!(text("Festplatte \u{b5}".as_bytes()).as_deref(), Some("Festplatte \u{b5}"));
    }

    #[test]
    fn fillers_are_no_serial_numbers() {
        for filler in ["", "0000000000", "FFFF", "None", "N/A", "xxxxxxxx"] {
            assert!(says_nothing(filler), "{filler}");
        }
        for serial in ["S4EVNX0R700001", "00000001", "1111"] {
            assert!(!says_nothing(serial), "{serial}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_bounded_printable_text(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            if let Some(text) = text(&bytes) {
                prop_assert!(!text.chars().any(char::is_control));
                prop_assert!(text.len() <= MAX_TEXT * 4);
                prop_assert!(!text.is_empty());
            }
        }
    }
}
