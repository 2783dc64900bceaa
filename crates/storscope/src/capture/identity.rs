//! What identifies a drive, a host or its owner, in every form in which it may be written.

use super::pseudonym::is_structure;
use super::vocabulary::Protected;
use std::collections::{BTreeMap, BTreeSet};

/// Shortest text that is looked for anywhere at all.
const LEAST: usize = 3;
/// Longest text that is taken for an identity, in bytes.
const LONGEST: usize = 512;
/// Letters and digits of a serial number that is looked for inside words.
pub(super) const TELLING_SERIAL: usize = 8;
/// As many are enough when digits and letters mix.
const TELLING_MIXED: usize = 6;
/// Hexadecimal digits of a world-wide name that is looked for inside words and as bytes.
const TELLING_DIGITS: usize = 12;
/// Digits of a name of the network address authority that tell the vendor: the kind and its OUI.
const VENDOR_DIGITS: usize = 7;

/// What an identity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A world-wide name whose first digits tell the vendor, in hexadecimal digits.
    Wwn,
    /// A UUID, NGUID, EUI-64 or other number in hexadecimal digits.
    Hex,
    /// Text that a device gives about itself.
    Serial,
    /// A name that people gave: host, volume group, array, folder.
    Name,
}

/// Where an identity is replaced and looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// In its own place only: too short, or the same as a word of the kernel, of device-mapper or of a model.
    Own,
    /// Wherever it stands as a word.
    Words,
    /// Inside words as well, and encoded.
    Everywhere,
}

/// Every identity of a capture. Spellings that differ only in case are one identity.
#[derive(Debug, Default)]
pub(super) struct Identities {
    known: BTreeMap<String, (Kind, BTreeSet<String>)>,
}

impl Identities {
    /// Adds one. Fillers that tell no two devices apart are left out.
    pub(super) fn add(&mut self, kind: Kind, text: &str) {
        let text = match kind {
            Kind::Wwn | Kind::Hex => digits(text),
            Kind::Serial | Kind::Name => text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned(),
        };
        if text.len() > LONGEST || says_nothing(&text) || is_pci_address(&text) {
            return;
        }
        let (known, spellings) = self.known.entry(text.to_ascii_lowercase()).or_insert((kind, BTreeSet::new()));
        *known = (*known).min(kind);
        spellings.insert(text);
    }

    /// Each in lower case, with its kind and the spellings that were met.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Kind, &BTreeSet<String>)> {
        self.known.iter().map(|(text, (kind, spellings))| (text.as_str(), *kind, spellings))
    }

    /// True when `text` is one, in any case.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.known.contains_key(&text.to_ascii_lowercase())
    }

    /// How many leading characters of an identity its pseudonym keeps.
    pub(super) fn kept(&self, text: &str) -> usize {
        match self.known.get(&text.to_ascii_lowercase()) {
            Some((Kind::Wwn, _)) if text.len() >= TELLING_DIGITS => VENDOR_DIGITS,
            _ => 0,
        }
    }
}

/// Where the identity `lower` is looked for.
pub(super) fn reach(lower: &str, kind: Kind, protected: &Protected) -> Reach {
    let telling = lower.bytes().filter(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80).count();
    let numeric = !lower.bytes().any(|byte| byte.is_ascii_alphabetic() || byte >= 0x80);
    let mixed = !numeric && lower.bytes().any(|byte| byte.is_ascii_digit());
    let strong = match kind {
        Kind::Wwn | Kind::Hex => telling >= TELLING_DIGITS,
        Kind::Serial => telling >= TELLING_SERIAL || (telling >= TELLING_MIXED && mixed),
        Kind::Name => false,
    };
    if strong && !protected.lies_within(lower) {
        return Reach::Everywhere;
    }
    let number = kind != Kind::Serial && numeric && telling == lower.len();
    let structure = kind == Kind::Name && is_structure(lower);
    if lower.len() >= LEAST && telling >= LEAST && !number && !structure && !protected.is_word(lower) {
        return Reach::Words;
    }
    Reach::Own
}

/// True for text that tells no two devices apart: nothing, one character repeated, zeros after the first character, or
/// a word that vendors leave in.
pub(super) fn says_nothing(text: &str) -> bool {
    const FILLERS: [&str; 9] =
        ["none", "n/a", "unknown", "serial number", "default string", "0123456789", "scrubbed", "localhost", "(none)"];
    let lower = text.trim().to_ascii_lowercase();
    let mut rest = lower.chars();
    let first = rest.next();
    let uniform = first.is_none_or(|first| {
        let rest = rest.as_str();
        let repeated = rest.chars().all(|other| other == first) || rest.chars().all(|other| other == '0');
        // The agent takes these for fillers however short.
        repeated && (!rest.is_empty() || matches!(first, '0' | 'f' | 'x'))
    });
    let blank = !lower.chars().any(char::is_alphanumeric);
    uniform || blank || FILLERS.contains(&lower.as_str())
}

/// USB root hubs give their PCI address as a serial number.
fn is_pci_address(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '.']).collect();
    let hexadecimal = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.len() == 4
        && parts.iter().all(hexadecimal)
        && parts.iter().map(|part| part.len()).skip(1).eq([2, 2, 1])
        && text.matches(':').count() == 2
}

/// The hexadecimal digits of `text`, without what separates them.
pub(super) fn digits(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix("0x").unwrap_or(text);
    text.chars().filter(|c| !matches!(c, ' ' | ':' | '-' | '\n' | '\0')).collect()
}

/// One way to write an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The bytes; in lower case if they are text.
    pub(super) bytes: Vec<u8>,
    /// Text is found in any case.
    pub(super) text: bool,
}

/// True for what may be written as a number as well.
pub(super) fn is_number(lower: &str) -> bool {
    lower.len() >= TELLING_DIGITS && lower.len().is_multiple_of(2) && lower.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The ways to write `lower`, which was met as `spelling`, and as a number if it is one. Two identities of the same
/// length and classes of characters give forms of the same number and lengths, in the same order.
pub(super) fn forms(lower: &str, spelling: &str, reach: Reach, number: bool) -> Vec<Form> {
    let text = |bytes: Vec<u8>| Form { bytes: bytes.to_ascii_lowercase(), text: true };
    let mut forms = vec![text(lower.as_bytes().to_vec())];
    if reach < Reach::Everywhere {
        return forms;
    }
    let bare: Vec<u8> = lower.bytes().filter(|byte| byte.is_ascii_alphanumeric()).collect();
    if bare.len() < lower.len() && bare.len() >= TELLING_SERIAL {
        forms.push(text(bare.clone()));
        forms.push(text(lower.replace(' ', "_").into_bytes()));
    }
    for spelling in [spelling.to_owned(), lower.to_owned(), lower.to_ascii_uppercase()] {
        forms.push(text(hexadecimal(spelling.as_bytes()).into_bytes()));
    }
    // ATA strings have the two characters of each word swapped; padding may come first.
    for padded in [lower.to_owned(), format!(" {lower}")] {
        forms.push(text(swapped(padded.as_bytes())));
    }
    if number {
        forms.extend(numbers(lower));
    }
    forms
}

/// A number in hexadecimal digits with separators, and as bytes in the orders in which it is stored.
fn numbers(lower: &str) -> Vec<Form> {
    let pairs: Vec<&str> = (0..lower.len()).step_by(2).filter_map(|at| lower.get(at..at + 2)).collect();
    let mut forms: Vec<Form> = [" ", ":", "-", "_"]
        .iter()
        .map(|separator| Form { bytes: pairs.join(separator).into_bytes(), text: true })
        .collect();
    if let Some(uuid) = uuid(lower) {
        forms.push(Form { bytes: uuid.into_bytes(), text: true });
    }
    // md prints its UUID in four groups.
    if lower.len() == 32 {
        let groups: Vec<&str> = (0..32).step_by(8).filter_map(|at| lower.get(at..at + 8)).collect();
        forms.push(Form { bytes: groups.join(":").into_bytes(), text: true });
    }
    let Some(bytes) = bytes(lower) else {
        return forms;
    };
    let mut reversed = bytes.clone();
    reversed.reverse();
    let mut orders = vec![swapped(&bytes), reversed];
    if let [a, b, c, d, e, f, g, h, rest @ ..] = bytes.as_slice()
        && rest.len() == 8
    {
        orders.push([&[*d, *c, *b, *a, *f, *e, *h, *g][..], rest].concat());
    }
    orders.push(bytes);
    forms.extend(orders.into_iter().map(|bytes| Form { bytes, text: false }));
    forms
}

/// 32 hexadecimal digits in the groups of a UUID.
pub(super) fn uuid(digits: &str) -> Option<String> {
    let group = |from: usize, to: usize| digits.get(from..to);
    (digits.len() == 32).then_some(())?;
    let groups = [group(0, 8)?, group(8, 12)?, group(12, 16)?, group(16, 20)?, group(20, 32)?];
    Some(groups.join("-"))
}

/// The two bytes of each word swapped; an odd length is padded with a space.
pub(super) fn swapped(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(2).flat_map(|pair| [pair.get(1).copied().unwrap_or(b' '), pair[0]]).collect()
}

/// Two hexadecimal digits a byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that hexadecimal digits stand for.
pub(super) fn bytes(digits: &str) -> Option<Vec<u8>> {
    let even = digits.len().is_multiple_of(2) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    even.then_some(())?;
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillers_identify_nothing() {
        for text in ["", "   ", "0", "x", "0000", "ffffffff", "None", "5000000000000000", "SCRUBBED", "--"] {
            assert!(says_nothing(text), "{text}");
        }
        for text in ["a", "S4YNNX0R1", "5000000000000001", "00a0"] {
            assert!(!says_nothing(text), "{text}");
        }
        let mut identities = Identities::default();
        identities.add(Kind::Serial, "0000:00:14.0");
        assert_eq!(identities.iter().count(), 0);
    }

    #[test]
    fn short_or_common_words_are_not_looked_for() {
        let protected = Protected::new(["nvme0n1".to_owned()], ["ACME SSD 970".to_owned()]);
        let of = |text: &str, kind| reach(text, kind, &protected);
        assert_eq!(of("s4ynnx0r123456", Kind::Serial), Reach::Everywhere);
        assert_eq!(of("ab1234", Kind::Serial), Reach::Everywhere);
        assert_eq!(of("123456", Kind::Serial), Reach::Words);
        assert_eq!(of("nvme0n", Kind::Serial), Reach::Words);
        assert_eq!(of("nvme0n1", Kind::Serial), Reach::Own);
        assert_eq!(of("acme", Kind::Name), Reach::Own);
        assert_eq!(of("block", Kind::Name), Reach::Own);
        assert_eq!(of("2024", Kind::Name), Reach::Own);
        assert_eq!(of("db-17", Kind::Name), Reach::Words);
        assert_eq!(of("crypt", Kind::Name), Reach::Own);
        assert_eq!(of("crypt-luks2", Kind::Name), Reach::Own);
        assert_eq!(of("acme-luks2", Kind::Name), Reach::Words);
        assert_eq!(of("0025385b01234567", Kind::Hex), Reach::Everywhere);
    }

    #[test]
    fn a_serial_number_in_all_its_forms() {
        let all = forms("wd-x1234567", "WD-x1234567", Reach::Everywhere, false);
        let has = |bytes: &[u8]| all.iter().any(|form| form.bytes == bytes);
        assert!(has(b"wd-x1234567") && has(b"wdx1234567"));
        assert!(has(b"57442d7831323334353637") && has(b"57442d5831323334353637"));
        assert!(has(b"dwx-214365 7") && has(b"w -d1x325476"));
    }

    #[test]
    fn a_number_in_all_its_forms() {
        let all = forms("5000c500a1b2c3d4", "5000c500a1b2c3d4", Reach::Everywhere, true);
        let has = |bytes: &[u8]| all.iter().any(|form| form.bytes == bytes);
        assert!(has(b"50 00 c5 00 a1 b2 c3 d4") && has(b"50:00:c5:00:a1:b2:c3:d4"));
        assert!(has(&[0x50, 0, 0xc5, 0, 0xa1, 0xb2, 0xc3, 0xd4]) && has(&[0, 0x50, 0, 0xc5, 0xb2, 0xa1, 0xd4, 0xc3]));
        let uuid = "00112233445566778899aabbccddeeff";
        let all = forms(uuid, uuid, Reach::Everywhere, true);
        let has = |bytes: &[u8]| all.iter().any(|form| form.bytes == bytes);
        assert!(has(b"00112233-4455-6677-8899-aabbccddeeff") && has(b"00112233:44556677:8899aabb:ccddeeff"));
        assert!(has(&[0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff]));
    }
}
