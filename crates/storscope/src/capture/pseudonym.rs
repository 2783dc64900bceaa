//! Pseudonyms: of the same length and the same class of character at each place, the same for the same identity within
//! one capture, and not to be turned back without the key, which is never written.

use super::identity::{Identities, says_nothing};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Other pseudonyms that are tried when one is taken; short names may have no other left.
const MAX_TRIES: u32 = 64;

/// Parts of device-mapper names that say what a volume is for.
pub(super) const STRUCTURE: [&str; 19] = [
    "cdata",
    "cmeta",
    "corig",
    "cow",
    "crypt",
    "integrity",
    "luks1",
    "luks2",
    "lvm",
    "mpath",
    "plain",
    "pool",
    "real",
    "rimage",
    "rmeta",
    "tdata",
    "tmeta",
    "verity",
    "vpool",
];

/// A random key for a keyed hash: the standard library's SipHash, with keys from the operating system.
#[derive(Debug, Clone, Default)]
pub(super) struct Key(RandomState);

impl Key {
    /// Numbers that only the key tells, for `text` in lower case.
    fn numbers(&self, text: &str, attempt: u32) -> impl Iterator<Item = u8> {
        let lower = text.to_ascii_lowercase();
        (0_u32..).flat_map(move |block| self.0.hash_one((&lower, attempt, block)).to_le_bytes())
    }

    /// `text` with each digit another digit and each letter another letter; the letters of hexadecimal digits stay
    /// hexadecimal. The first `kept` characters and everything else stay.
    pub(super) fn disguise(&self, text: &str, kept: usize, attempt: u32) -> String {
        let hexadecimal = text.bytes().all(|byte| !byte.is_ascii_alphanumeric() || byte.is_ascii_hexdigit());
        let letters = if hexadecimal && text.is_ascii() { 6 } else { 26 };
        let mut numbers = self.numbers(text, attempt);
        let mut disguised = String::with_capacity(text.len());
        for (index, character) in text.chars().enumerate() {
            // One number a byte keeps a letter of several bytes as long as it was.
            for _ in 0..character.len_utf8() {
                let number = numbers.next().unwrap_or_default();
                disguised.push(match character {
                    kept_as_is if index < kept => kept_as_is,
                    '0'..='9' => char::from(b'0' + number % 10),
                    'a'..='z' => char::from(b'a' + number % letters),
                    'A'..='Z' => char::from(b'A' + number % letters),
                    other if other.is_ascii() => other,
                    _ => char::from(b'a' + number % letters),
                });
            }
        }
        disguised
    }
}

/// The pseudonyms of one capture. No two identities share one, and none is another identity, as far as their length
/// allows.
#[derive(Debug)]
pub(super) struct Pseudonyms<'a> {
    key: Key,
    identities: &'a Identities,
    given: HashMap<String, String>,
    taken: HashSet<String>,
}

impl<'a> Pseudonyms<'a> {
    /// With a new key.
    pub(super) fn new(identities: &'a Identities) -> Self {
        Self { key: Key::default(), identities, given: HashMap::new(), taken: HashSet::new() }
    }

    /// The pseudonym of `text`, spelt as `text` is. What identifies nothing stays.
    pub(super) fn of(&mut self, text: &str) -> String {
        let lower = text.to_ascii_lowercase();
        if says_nothing(&lower) {
            return text.to_owned();
        }
        if !self.given.contains_key(&lower) {
            let pseudonym = self.find(&lower);
            self.taken.insert(pseudonym.clone());
            self.given.insert(lower.clone(), pseudonym);
        }
        self.given.get(&lower).map_or_else(|| text.to_owned(), |pseudonym| spelt_like(text, pseudonym))
    }

    fn find(&self, lower: &str) -> String {
        let kept = self.identities.kept(lower);
        let tries = (0..MAX_TRIES).map(|attempt| self.key.disguise(lower, kept, attempt));
        // A filler would tell the agent that the device has no serial number.
        let telling = |name: &String| name != lower && !says_nothing(name);
        let own = |name: &String| telling(name) && !self.taken.contains(name);
        let free = |name: &String| own(name) && !self.identities.contains(name);
        let other = tries.clone().find(free).or_else(|| tries.clone().find(own));
        let other = other.or_else(|| tries.clone().find(|name| name != lower));
        other.unwrap_or_else(|| "x".repeat(lower.len()))
    }

    /// The pseudonym of a name made of parts, such as `vg0-data` or `db-17.example`: part by part, so that a volume
    /// group is the same in the names of all its volumes. Parts that tell the structure of a longer name stay.
    pub(super) fn name(&mut self, text: &str) -> String {
        let mut name = String::with_capacity(text.len());
        let all = is_structure(text);
        for (is_word, part) in parts(text) {
            let kept = !is_word || (!all && is_structure(part));
            name.push_str(&if kept { part.to_owned() } else { self.of(part) });
        }
        name
    }
}

/// True for a name of nothing but words that tell what a volume is for.
pub(super) fn is_structure(name: &str) -> bool {
    let structure = |word: &str| STRUCTURE.contains(&word.to_ascii_lowercase().as_str());
    parts(name).into_iter().all(|(is_word, part)| !is_word || structure(part))
}

/// The words of a name and what stands between them. An octal escape of mountinfo (`\040`) is not part of a word.
pub(super) fn parts(text: &str) -> Vec<(bool, &str)> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let octal = rest.get(1..4).is_some_and(|code| code.bytes().all(|byte| matches!(byte, b'0'..=b'7')));
        let word = first.is_alphanumeric();
        let end = if first == '\\' && octal {
            4
        } else {
            rest.find(|c: char| c.is_alphanumeric() != word || (c == '\\' && !word))
                .filter(|end| *end > 0)
                .unwrap_or(if first == '\\' { 1 } else { rest.len() })
        };
        let (part, after) = rest.split_at(end);
        parts.push((word, part));
        rest = after;
    }
    parts
}

/// `pseudonym`, with capitals where `text` has them.
fn spelt_like(text: &str, pseudonym: &str) -> String {
    let spell = |(at, letter): (usize, char)| match text.as_bytes().get(at) {
        Some(byte) if byte.is_ascii_uppercase() => letter.to_ascii_uppercase(),
        _ => letter,
    };
    pseudonym.char_indices().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::super::identity::Kind;
    use super::*;
    use proptest::prelude::*;

    fn class(character: char) -> u8 {
        match character {
            '0'..='9' => 0,
            'a'..='z' => 1,
            'A'..='Z' => 2,
            _ => 3,
        }
    }

    proptest! {
        #[test]
        fn length_and_classes_are_kept(text in "[ -~]{0,40}", kept in 0_usize..10) {
            let disguised = Key::default().disguise(&text, kept, 0);
            prop_assert_eq!(disguised.len(), text.len());
            for (index, (a, b)) in text.chars().zip(disguised.chars()).enumerate() {
                prop_assert_eq!(class(a), class(b));
                prop_assert!((class(a) != 3 && index >= kept) || a == b);
            }
        }

        #[test]
        fn hexadecimal_stays_hexadecimal(text in "[0-9a-f]{8,32}") {
            let disguised = Key::default().disguise(&text, 0, 0);
            prop_assert!(disguised.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }

        #[test]
        fn any_text_keeps_its_length_in_bytes(text in "\\PC{0,20}") {
            prop_assert_eq!(Key::default().disguise(&text, 0, 0).len(), text.len());
            let identities = Identities::default();
            prop_assert_eq!(Pseudonyms::new(&identities).name(&text).len(), text.len());
        }

        #[test]
        fn equal_stays_equal_and_other_stays_other(a in "[a-zA-Z0-9]{6,20}", b in "[a-zA-Z0-9]{6,20}") {
            prop_assume!(!says_nothing(&a) && !says_nothing(&b));
            let identities = Identities::default();
            let mut pseudonyms = Pseudonyms::new(&identities);
            let (of_a, of_b) = (pseudonyms.of(&a), pseudonyms.of(&b));
            prop_assert_eq!(&pseudonyms.of(&a), &of_a);
            prop_assert_ne!(&of_a, &a);
            prop_assert_eq!(pseudonyms.of(&a.to_ascii_uppercase()), of_a.to_ascii_uppercase());
            prop_assert_eq!(a.eq_ignore_ascii_case(&b), of_a.eq_ignore_ascii_case(&of_b));
        }

        #[test]
        fn parts_are_the_whole(text in "\\PC{0,30}") {
            prop_assert_eq!(parts(&text).into_iter().map(|(_, part)| part).collect::<String>(), text);
        }
    }

    #[test]
    fn another_capture_has_another_key() {
        let serial = "S4YNNX0R123456";
        assert_ne!(Key::default().disguise(serial, 0, 0), Key::default().disguise(serial, 0, 0));
    }

    #[test]
    fn no_pseudonym_is_another_identity() {
        let mut identities = Identities::default();
        for letter in 'a'..='y' {
            identities.add(Kind::Name, &format!("{letter}{letter}{letter}"));
            identities.add(Kind::Serial, &format!("q{letter}"));
        }
        let mut pseudonyms = Pseudonyms::new(&identities);
        let given: HashSet<String> = ('a'..='y').map(|letter| pseudonyms.of(&format!("q{letter}"))).collect();
        assert_eq!(given.len(), 25);
        assert!(given.iter().all(|name| !identities.contains(name)));
    }

    #[test]
    fn world_wide_names_keep_their_vendor() {
        let mut identities = Identities::default();
        identities.add(Kind::Wwn, "0x5000c500a1b2c3d4");
        let pseudonym = Pseudonyms::new(&identities).of("5000c500a1b2c3d4");
        assert!(pseudonym.starts_with("5000c50") && pseudonym != "5000c500a1b2c3d4");
    }

    #[test]
    fn names_keep_their_structure() {
        let identities = Identities::default();
        let mut pseudonyms = Pseudonyms::new(&identities);
        let name = pseudonyms.name("acme--prod-data_rimage_0");
        let group = pseudonyms.name("acme--prod");
        assert!(name.starts_with(&group) && name.contains("_rimage_"), "{name}");
        for chosen in ["crypt", "pool-lvm"] {
            assert_ne!(pseudonyms.name(chosen), chosen);
        }
        let escaped = pseudonyms.name(r"My\040Disk");
        assert_eq!(escaped.get(2..6), Some(r"\040"));
        assert_ne!(escaped, r"My\040Disk");
    }
}
