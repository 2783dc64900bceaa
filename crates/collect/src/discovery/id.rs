//! Identities: built from what the device says of itself, made unique among what is present, bounded.
//!
//! Strong ones are spelt like udev's links in `disk/by-id` (`nvme-MODEL_SERIAL_NSID`, `wwn-0x…`, `ata-MODEL_SERIAL`), so
//! that a person finds the same name in both places.

use std::collections::BTreeMap;
use storscope_model::identity::{DeviceId, MAX_ID};

/// An identity before it is known to be unique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// What the device says of itself; `None` when that tells nothing.
    pub(super) own: Option<String>,
    /// Where it is attached, in terms that survive a reboot as far as the bus allows.
    pub(super) place: String,
    /// Kernel name: the last resort, only where two devices share even the place.
    pub(super) name: String,
}

/// `prefix-part_part`, with each run of white space one underscore.
pub(super) fn joined(prefix: &str, parts: &[&str]) -> String {
    let words: Vec<&str> = parts.iter().flat_map(|part| part.split_whitespace()).collect();
    format!("{prefix}-{}", words.join("_"))
}

/// The identities of `candidates`, in their order. Which ones are unique depends on the set alone, not on its order:
/// all that share an identity (serial numbers that a vendor repeats, two paths to one LUN) get their place added and
/// are weak, because none of them can be told to be the one that history belongs to.
pub(super) fn settle(candidates: &[Candidate]) -> Vec<String> {
    let mut ids: Vec<String> = candidates
        .iter()
        .map(|candidate| match &candidate.own {
            Some(own) => own.clone(),
            None => weak(&candidate.place),
        })
        .collect();
    add_where_shared(&mut ids, |index, id| match candidates[index].own {
        Some(_) => weak(&format!("{id}@{}", candidates[index].place)),
        None => format!("{id}#{}", candidates[index].name),
    });
    add_where_shared(&mut ids, |index, id| format!("{id}#{}", candidates[index].name));
    ids.iter().map(|id| bounded(id)).collect()
}

fn add_where_shared(ids: &mut [String], distinct: impl Fn(usize, &str) -> String) {
    let mut count = BTreeMap::new();
    for id in ids.iter() {
        *count.entry(id.clone()).or_insert(0_u32) += 1;
    }
    for (index, id) in ids.iter_mut().enumerate() {
        if count.get(id).is_some_and(|count| *count > 1) {
            *id = distinct(index, id);
        }
    }
}

fn weak(text: &str) -> String {
    format!("{}{text}", DeviceId::WEAK_PREFIX)
}

/// At most [`MAX_ID`] bytes: a longer identity keeps its beginning and a hash (FNV-1a, 64 bits) of the whole.
pub(super) fn bounded(id: &str) -> String {
    if id.len() <= MAX_ID {
        return id.to_owned();
    }
    let hash = id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let tail = format!("~{hash:016x}");
    let mut end = MAX_ID - tail.len();
    while !id.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{tail}", &id[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate(own: Option<&str>, place: &str, name: &str) -> Candidate {
        Candidate { own: own.map(str::to_owned), place: place.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn white_space_becomes_one_underscore() {
        assert_eq!(joined("nvme", &["ACME  FAST 1T", "S1", "1"]), "nvme-ACME_FAST_1T_S1_1");
    }

    #[test]
    fn all_that_share_a_serial_number_are_weak() {
        let candidates = [
            candidate(Some("ata-X_123"), "pci-0000:00:1f.2-ata1-0:0:0", "sda"),
            candidate(Some("ata-Y_9"), "pci-0000:00:1f.2-ata2-0:0:0", "sdb"),
            candidate(Some("ata-X_123"), "pci-0000:00:1f.2-ata3-0:0:0", "sdc"),
            candidate(None, "virtual", "a"),
            candidate(None, "virtual", "b"),
        ];
        assert_eq!(
            settle(&candidates),
            [
                "weak:ata-X_123@pci-0000:00:1f.2-ata1-0:0:0",
                "ata-Y_9",
                "weak:ata-X_123@pci-0000:00:1f.2-ata3-0:0:0",
                "weak:virtual#a",
                "weak:virtual#b",
            ]
        );
    }

    #[test]
    fn the_same_place_is_told_apart_by_name() {
        let candidates = [candidate(Some("x"), "p", "nvme0"), candidate(Some("x"), "p", "nvme1")];
        assert_eq!(settle(&candidates), ["weak:x@p#nvme0", "weak:x@p#nvme1"]);
    }

    proptest! {
        #[test]
        fn the_order_of_the_scan_does_not_matter(
            serials in proptest::collection::vec((proptest::option::of(0_u8..3), 0_u8..3), 1..12),
            turn in 0_usize..12,
        ) {
            let candidates: Vec<Candidate> = serials
                .iter()
                .enumerate()
                .map(|(index, (serial, place))| {
                    candidate(serial.map(|s| s.to_string()).as_deref(), &place.to_string(), &format!("d{index}"))
                })
                .collect();
            let ids = settle(&candidates);
            let mut turned = candidates.clone();
            turned.rotate_left(turn % candidates.len());
            let mut turned_ids = settle(&turned);
            turned_ids.rotate_right(turn % candidates.len());
            prop_assert_eq!(&ids, &turned_ids);
            let mut unique = ids.clone();
            unique.sort();
            unique.dedup();
            prop_assert_eq!(unique.len(), ids.len());
        }

        #[test]
        fn identities_are_bounded_and_stay_apart(tail in "[a-zµ]{1,40}", other in "[a-zµ]{1,40}") {
            let long = "é".repeat(200);
            let (a, b) = (bounded(&format!("{long}{tail}")), bounded(&format!("{long}{other}")));
            prop_assert!(a.len() <= MAX_ID);
            prop_assert_eq!(a == b, tail == other);
        }
    }
}
