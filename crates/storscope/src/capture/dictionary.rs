//! Finding and replacing many identities at once, each in all its forms.

use super::identity::{Identities, Kind, Reach, forms, is_number, reach};
use super::pseudonym::Pseudonyms;
use super::vocabulary::Protected;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Bytes that begin a pattern and index it; no pattern is shorter.
const HEAD: usize = 3;
/// Shortest form that is looked for among bytes that are no text.
const LEAST_BINARY: usize = 6;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Counters, settings and states, in the kernel's own words: none is a name, and a number is no serial number.
    Settings,
    /// Lines of the kernel's words and numbers, and names: a number there is no serial number.
    Table,
    /// Any other text, a name, or the target of a link.
    Text,
    /// Pages in which text and numbers lie anywhere.
    Binary,
}

#[derive(Debug)]
struct Pattern {
    from: Vec<u8>,
    to: Vec<u8>,
    kind: Kind,
    /// Found in any case; else exactly.
    text: bool,
    /// Only where no letter or digit stands before or after.
    word: bool,
    /// Nothing but digits.
    digits: bool,
}

/// Patterns and what stands for them. Serial numbers of one make begin alike: a head tells the lengths that are worth
/// looking up, and the whole pattern is looked up.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    patterns: Vec<Pattern>,
    /// Longest first.
    lengths: HashMap<[u8; HEAD], Vec<usize>>,
    /// By the pattern in lower case.
    places: HashMap<Vec<u8>, Vec<usize>>,
}

impl Dictionary {
    /// Every form of every identity that is looked for outside its own place.
    pub(super) fn new(identities: &Identities, pseudonyms: &mut Pseudonyms<'_>, protected: &Protected) -> Self {
        let mut dictionary = Self::default();
        for (lower, kind, spellings) in identities.iter() {
            let reach = reach(lower, kind, protected);
            if reach == Reach::Own {
                continue;
            }
            for spelling in spellings {
                let mut disguise = |text: &str| match kind {
                    Kind::Name => pseudonyms.name(text),
                    Kind::Wwn | Kind::Hex | Kind::Serial => pseudonyms.of(text),
                };
                let (to_lower, to_spelling) = (disguise(lower), disguise(spelling));
                let number = is_number(lower);
                let from = forms(lower, spelling, reach, number);
                let to = forms(&to_lower, &to_spelling, reach, number);
                for (from, to) in from.into_iter().zip(to) {
                    dictionary.add(Pattern {
                        digits: from.text && from.bytes.iter().all(u8::is_ascii_digit),
                        word: reach == Reach::Words,
                        text: from.text,
                        from: from.bytes,
                        to: to.bytes,
                        kind,
                    });
                }
            }
        }
        dictionary
    }

    fn add(&mut self, pattern: Pattern) {
        // Nothing but words that tell nothing: it stays, wherever it stands.
        if pattern.from == pattern.to {
            return;
        }
        let least = if pattern.text { HEAD } else { LEAST_BINARY };
        let Some(head) = head(&pattern.from).filter(|_| pattern.from.len() >= least) else {
            return;
        };
        let places = self.places.entry(pattern.from.to_ascii_lowercase()).or_default();
        let known = |place: &usize| {
            self.patterns.get(*place).is_some_and(|known| known.from == pattern.from && known.text == pattern.text)
        };
        if pattern.from.len() != pattern.to.len() || places.iter().any(known) {
            return;
        }
        places.push(self.patterns.len());
        let lengths = self.lengths.entry(head).or_default();
        if let Err(place) = lengths.binary_search_by_key(&Reverse(pattern.from.len()), |length| Reverse(*length)) {
            lengths.insert(place, pattern.from.len());
        }
        self.patterns.push(pattern);
    }

    /// The longest pattern that begins at `at`. `lower` is `bytes` in lower case.
    fn matching(&self, bytes: &[u8], lower: &[u8], at: usize, content: Content) -> Option<&Pattern> {
        let lengths = self.lengths.get(&head(lower.get(at..)?)?)?;
        let fits = |pattern: &&Pattern| {
            let end = at + pattern.from.len();
            let wanted = match content {
                Content::Settings => pattern.text && !pattern.digits && !pattern.word,
                Content::Table => pattern.text && !pattern.digits,
                Content::Text => pattern.text,
                Content::Binary => true,
            };
            let alone = |neighbour: Option<&u8>| neighbour.is_none_or(|byte| !byte.is_ascii_alphanumeric());
            let bounded =
                !pattern.word || (alone(at.checked_sub(1).and_then(|at| bytes.get(at))) && alone(bytes.get(end)));
            wanted && bounded && (pattern.text || bytes.get(at..end) == Some(&pattern.from))
        };
        let of_length = |length: &usize| {
            let places = self.places.get(lower.get(at..at + length)?)?;
            places.iter().filter_map(|place| self.patterns.get(*place)).find(fits)
        };
        lengths.iter().find_map(of_length)
    }

    /// `bytes` with every identity replaced; letters keep their case.
    pub(super) fn replace(&self, bytes: &[u8], content: Content) -> Vec<u8> {
        let lower = bytes.to_ascii_lowercase();
        let mut replaced = bytes.to_vec();
        let mut at = 0;
        while at < bytes.len() {
            let Some(pattern) = self.matching(bytes, &lower, at, content) else {
                at += 1;
                continue;
            };
            for (place, new) in replaced.iter_mut().skip(at).zip(&pattern.to) {
                *place = if pattern.text && place.is_ascii_uppercase() { new.to_ascii_uppercase() } else { *new };
            }
            at += pattern.from.len();
        }
        replaced
    }

    /// [`Dictionary::replace`] of text.
    pub(super) fn replace_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.replace(text.as_bytes(), Content::Text)).into_owned()
    }

    /// What kind of identity is in `bytes`, if one is.
    pub(super) fn find(&self, bytes: &[u8], content: Content) -> Option<Kind> {
        let lower = bytes.to_ascii_lowercase();
        (0..bytes.len()).find_map(|at| self.matching(bytes, &lower, at, content)).map(|pattern| pattern.kind)
    }
}

fn head(bytes: &[u8]) -> Option<[u8; HEAD]> {
    let mut head = [0; HEAD];
    head.copy_from_slice(bytes.get(..HEAD)?);
    head.make_ascii_lowercase();
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::super::identity::hexadecimal;
    use super::*;
    use proptest::prelude::*;

    fn with<T>(known: &[(Kind, &str)], test: impl FnOnce(&Dictionary, &mut Pseudonyms<'_>) -> T) -> T {
        let mut identities = Identities::default();
        known.iter().for_each(|(kind, text)| identities.add(*kind, text));
        let mut pseudonyms = Pseudonyms::new(&identities);
        let dictionary = Dictionary::new(&identities, &mut pseudonyms, &Protected::new([], []));
        test(&dictionary, &mut pseudonyms)
    }

    #[test]
    fn every_form_gets_the_form_of_the_same_pseudonym() {
        with(&[(Kind::Serial, "S4YNNX0R123456")], |dictionary, pseudonyms| {
            let new = pseudonyms.of("S4YNNX0R123456");
            let text = |text: &str| dictionary.replace_text(text);
            assert_eq!(
                text("nqn.1994:S4YNNX0R123456:x s4ynnx0r123456"),
                format!("nqn.1994:{new}:x {}", new.to_lowercase())
            );
            let hex = |text: &str| hexadecimal(text.as_bytes());
            assert_eq!(text(&format!("144d-{}-1", hex("S4YNNX0R123456"))), format!("144d-{}-1", hex(&new)));
            let swap = |text: &str| super::super::identity::swapped(text.as_bytes());
            assert_eq!(dictionary.replace(&swap("  S4YNNX0R123456"), Content::Binary), swap(&format!("  {new}")));
            assert_eq!(dictionary.replace(&swap(" S4YNNX0R123456 "), Content::Binary), swap(&format!(" {new} ")));
        });
    }

    #[test]
    fn names_are_words_and_numbers_of_the_kernel_are_no_serial_numbers() {
        with(&[(Kind::Name, "acmevg"), (Kind::Serial, "123456789012")], |dictionary, pseudonyms| {
            let (name, serial) = (pseudonyms.name("acmevg"), pseudonyms.of("123456789012"));
            assert_eq!(dictionary.replace_text("acmevg-a acmevgs"), format!("{name}-a acmevgs"));
            for content in [Content::Settings, Content::Table] {
                assert_eq!(dictionary.replace(b"8 0 sda 123456789012 1", content), b"8 0 sda 123456789012 1");
            }
            assert_eq!(dictionary.replace(b"acmevg", Content::Settings), b"acmevg");
            assert_eq!(dictionary.replace(b"9 0 md_acmevg", Content::Table), format!("9 0 md_{name}").into_bytes());
            assert_eq!(dictionary.replace_text("x123456789012y"), format!("x{serial}y"));
            assert_eq!(dictionary.find(b"ACMEVG", Content::Text), Some(Kind::Name));
            assert_eq!(dictionary.find(b"123456789012", Content::Settings), None);
        });
    }

    #[test]
    fn what_keeps_its_words_is_not_looked_for() {
        with(&[(Kind::Name, "crypt"), (Kind::Name, "none-localhost"), (Kind::Name, "lvm-pool")], |dictionary, _| {
            for text in ["sda3_crypt", "none-localhost", "lvm-pool"] {
                assert_eq!(dictionary.find(text.as_bytes(), Content::Text), None, "{text}");
                assert_eq!(dictionary.replace_text(text), text);
            }
        });
    }

    proptest! {
        #[test]
        fn nothing_is_found_after_it_was_replaced(
            serial in "[A-Z]{3}[0-9]{8}", before in "[ -~]{0,20}", after in "[ -~]{0,20}"
        ) {
            with(&[(Kind::Serial, &serial)], |dictionary, _| {
                let text = format!("{before}{serial}{after}");
                let replaced = dictionary.replace_text(&text);
                prop_assert_eq!(replaced.len(), text.len());
                prop_assert_eq!(dictionary.find(replaced.as_bytes(), Content::Text), None);
                Ok(())
            })?;
        }
    }
}
