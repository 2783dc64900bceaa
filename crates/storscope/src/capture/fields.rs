//! Where identities stand in the files of a capture. One walk serves twice: to collect them, and to replace them.

use super::identity::{Kind, bytes, digits, hexadecimal, uuid};
use super::tree::{file_name, parent};
use super::vocabulary::is_common_folder;
use super::{mounts, pseudonym, vpd};

/// Told of every identity; what it returns, which is as long, takes its place.
pub(super) trait Visitor {
    /// One identity.
    fn identity(&mut self, kind: Kind, text: &str) -> String;

    /// True for a word of a model, a vendor or a firmware revision.
    fn is_model(&self, word: &str) -> bool;

    /// The device node that a link below /dev leads to, by its kernel name.
    fn node(&self, name: &str) -> Option<String>;
}

/// The file at `path` of the capture with its identities passed through `visitor`.
pub(super) fn visit(path: &str, content: &[u8], visitor: &mut dyn Visitor) -> Vec<u8> {
    let folder = file_name(parent(path));
    match file_name(path) {
        "vpd_pg80" => vpd::serial(content, visitor),
        "vpd_pg83" => vpd::designators(content, visitor),
        "vpd_pg89" => vpd::ata(content, visitor),
        name if path.starts_with("drives/") => super::pages::visit(name, content, visitor),
        name => {
            // A device's text need not be UTF-8; what is not is replaced, as the agent does when it reads it.
            let text = String::from_utf8_lossy(content);
            let visited = match (folder, name) {
                ("dm", "name") => mounts::name(&text, visitor),
                ("dm", "uuid") => device_mapper(&text, visitor),
                ("md", "uuid") | (_, "nguid" | "uuid" | "eui" | "cid") => number(&text, Kind::Hex, visitor),
                ("loop", "backing_file") => mounts::path(&text, visitor),
                ("kernel", "hostname") => mounts::name(&text, visitor),
                (_, "mountinfo") => mounts::mountinfo(&text, visitor),
                (_, "swaps") => mounts::swaps(&text, visitor),
                (_, "serial") => padded(&text, |serial| prefixed(serial, Kind::Serial, visitor)),
                (_, "wwid") => padded(&text, |wwid| world_wide(wwid, visitor)),
                (_, "id" | "sas_address" | "enclosure_identifier") => number(&text, Kind::Wwn, visitor),
                (_, "address") => transport_address(&text, visitor),
                ("proc", "version") => version(&text),
                _ => return content.to_vec(),
            };
            visited.into_bytes()
        }
    }
}

/// The first three words: `Linux version RELEASE`. Who built the kernel where follows.
fn version(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    format!("{}\n", words.join(" "))
}

/// `change` of what stands between padding.
pub(super) fn padded(text: &str, change: impl FnOnce(&str) -> String) -> String {
    let is_padding = |c: char| c.is_whitespace() || c == '\0';
    let inner = text.trim_matches(is_padding);
    let start = text.len() - text.trim_start_matches(is_padding).len();
    format!("{}{}{}", &text[..start], change(inner), &text[start + inner.len()..])
}

fn prefixed(text: &str, kind: Kind, visitor: &mut dyn Visitor) -> String {
    match text.strip_prefix("0x") {
        Some(rest) => format!("0x{}", visitor.identity(kind, rest)),
        None => visitor.identity(kind, text),
    }
}

/// A number in hexadecimal digits, however they are separated; text that is none is taken as it is.
pub(super) fn number(text: &str, kind: Kind, visitor: &mut dyn Visitor) -> String {
    padded(text, |inner| {
        let bare = digits(inner);
        if bare.is_empty() || !bare.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return visitor.identity(Kind::Serial, inner);
        }
        let changed = visitor.identity(kind, &bare);
        let skipped = if inner.starts_with("0x") { 2 } else { 0 };
        let mut changed = changed.chars();
        let change = |(at, c): (usize, char)| match c.is_ascii_hexdigit() && at >= skipped {
            true => changed.next().unwrap_or(c),
            false => c,
        };
        inner.char_indices().map(change).collect()
    })
}

/// `wwid` of a namespace (drivers/nvme/host/sysfs.c) or a SCSI device (drivers/scsi/scsi_lib.c, `scsi_vpd_lun_id`).
pub(super) fn world_wide(wwid: &str, visitor: &mut dyn Visitor) -> String {
    let Some((scheme, rest)) = wwid.split_once('.') else {
        return visitor.identity(Kind::Serial, wwid);
    };
    let rest = match scheme {
        "naa" => number(rest, Kind::Wwn, visitor),
        "eui" | "uuid" => number(rest, Kind::Hex, visitor),
        "t10" => foreign_words(rest, visitor),
        "nvme" => nvme_wwid(rest, visitor),
        _ => visitor.identity(Kind::Serial, rest),
    };
    format!("{scheme}.{rest}")
}

/// `VID-SERIAL-MODEL-NSID`, serial number and model in hexadecimal digits of their bytes.
fn nvme_wwid(text: &str, visitor: &mut dyn Visitor) -> String {
    let parts: Vec<&str> = text.split('-').collect();
    let [vendor, serial, model, nsid] = parts.as_slice() else {
        return visitor.identity(Kind::Serial, text);
    };
    let plain = bytes(serial).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let serial = match plain {
        Some(plain) => {
            let changed = padded(&plain, |plain| visitor.identity(Kind::Serial, plain));
            let encoded = hexadecimal(changed.as_bytes());
            // Bytes that are no text do not come back as they were.
            if encoded.len() == serial.len() { encoded } else { visitor.identity(Kind::Hex, serial) }
        }
        None => visitor.identity(Kind::Serial, serial),
    };
    format!("{vendor}-{serial}-{model}-{nsid}")
}

/// Text in which vendor, model and serial number stand side by side: what belongs to no model is a serial number.
pub(super) fn foreign_words(text: &str, visitor: &mut dyn Visitor) -> String {
    /// Shorter words are parts of a model that is known under a shorter name.
    const SERIAL: usize = 6;
    let mut changed = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| c.is_whitespace() || c == '\0') {
        changed.push_str(&padded(word, |word| {
            let telling = word.len() >= SERIAL && word.bytes().any(|byte| byte.is_ascii_digit());
            let scheme = ["naa.", "eui.", "0x"].iter().find_map(|scheme| Some((*scheme, word.strip_prefix(scheme)?)));
            match scheme {
                Some((scheme, rest)) => format!("{scheme}{}", number(rest, Kind::Wwn, visitor)),
                None if telling && !visitor.is_model(word) => visitor.identity(Kind::Serial, word),
                None => word.to_owned(),
            }
        }));
    }
    changed
}

/// `traddr=192.168.1.10,trsvcid=4420,host_traddr=…`; the address of a PCI function stays.
fn transport_address(text: &str, visitor: &mut dyn Visitor) -> String {
    let change = |pair: &str| match pair.split_once('=') {
        Some((key, value)) if key.trim() != "trsvcid" => {
            let value = padded(value, |value| {
                let parts = pseudonym::parts(value);
                // `nn-0x…:pn-0x…` of Fibre Channel, or an address of the Internet.
                let names = value.contains("0x").then(|| {
                    parts.into_iter().map(|(is_word, part)| match is_word {
                        true if part.len() > 2 => prefixed(part, Kind::Wwn, visitor),
                        _ => part.to_owned(),
                    })
                });
                match names {
                    Some(names) => names.collect(),
                    None => visitor.identity(Kind::Serial, value),
                }
            });
            format!("{key}={value}")
        }
        _ => pair.to_owned(),
    };
    let pairs: Vec<String> = text.split(',').map(change).collect();
    pairs.join(",")
}

/// `LVM-` and two identifiers of 32 characters, or words with a number or a name (libdevmapper(3)).
fn device_mapper(text: &str, visitor: &mut dyn Visitor) -> String {
    const LVM_ID: usize = 32;
    padded(text, |inner| {
        if let Some(rest) = inner.strip_prefix("LVM-")
            && let (Some(group), Some(volume)) = (rest.get(..LVM_ID), rest.get(LVM_ID..2 * LVM_ID))
        {
            let (group, volume) = (visitor.identity(Kind::Serial, group), visitor.identity(Kind::Serial, volume));
            return format!("LVM-{group}{volume}{}", &rest[2 * LVM_ID..]);
        }
        // The wwid of a multipath device is its kind in one digit and a name in the others.
        if let Some((before, wwid)) = inner.split_once("mpath-") {
            let wwid = match wwid.strip_prefix('3') {
                Some(name) => format!("3{}", number(name, Kind::Wwn, visitor)),
                None => foreign_words(wwid, visitor),
            };
            return format!("{before}mpath-{wwid}");
        }
        let parts: Vec<&str> = inner.splitn(4, '-').collect();
        match parts.as_slice() {
            ["CRYPT", kind, id, name] => {
                let id = number(id, Kind::Hex, visitor);
                format!("CRYPT-{kind}-{id}-{}", mounts::name(name, visitor))
            }
            ["CRYPT", kind, name] => format!("CRYPT-{kind}-{}", mounts::name(name, visitor)),
            _ => mounts::name(inner, visitor),
        }
    })
}

/// Every UUID in `text`, as 32 digits.
pub(super) fn uuids(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.len() >= 36);
    let mut found = Vec::new();
    for word in words {
        let groups: Vec<&str> = word.split('-').collect();
        for five in groups.windows(5) {
            let joined = five.concat();
            if uuid(&joined).is_some_and(|uuid| uuid == five.join("-")) {
                found.push(joined);
            }
        }
    }
    found
}

/// The parts of a subsystem's NQN that are no domain, no model and no word of the standard's own.
pub(super) fn nqn_names(nqn: &str, visitor: &dyn Visitor) -> Vec<String> {
    const LEAST: usize = 4;
    const WORDS: [&str; 7] = ["uuid", "nvme", "inch", "discovery", "subsystem", "nvmexpress", "nqn"];
    let Some((_, rest)) = nqn.split_once(':') else {
        return Vec::new();
    };
    let mut rest = rest.to_owned();
    for uuid in uuids(&rest).iter().filter_map(|digits| uuid(digits)) {
        rest = rest.replace(&uuid, " ");
    }
    let words = rest.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| word.len() >= LEAST && !WORDS.contains(&word.to_ascii_lowercase().as_str()))
        .filter(|word| !visitor.is_model(word) && !is_common_folder(word))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Marks what it is told of with `x`.
    #[derive(Default)]
    pub(super) struct Marker(Vec<(Kind, String)>);

    impl Visitor for Marker {
        fn identity(&mut self, kind: Kind, text: &str) -> String {
            self.0.push((kind, text.to_owned()));
            text.chars().map(|c| if c.is_ascii_alphanumeric() { 'a' } else { c }).collect()
        }

        fn is_model(&self, word: &str) -> bool {
            ["Samsung", "SSD", "860", "MZ7LH480HAHQ-00005"].contains(&word)
        }

        fn node(&self, _: &str) -> Option<String> {
            None
        }
    }

    fn visited(path: &str, content: &str) -> (String, Vec<(Kind, String)>) {
        let mut marker = Marker::default();
        let bytes = visit(path, content.as_bytes(), &mut marker);
        (String::from_utf8(bytes).unwrap(), marker.0)
    }

    fn found(kind: Kind, text: &str) -> (Kind, String) {
        (kind, text.to_owned())
    }

    #[test]
    fn padding_and_separators_stay() {
        let (text, seen) = visited("sys/x/serial", "  S4YNNX0R123456      \n");
        assert_eq!((text.as_str(), seen), ("  aaaaaaaaaaaaaa      \n", vec![found(Kind::Serial, "S4YNNX0R123456")]));
        let (text, seen) = visited("sys/x/eui", "00 25 38 b1\n");
        assert_eq!((text.as_str(), seen), ("aa aa aa aa\n", vec![found(Kind::Hex, "002538b1")]));
        let (text, _) = visited("sys/x/sas_device/e/sas_address", "0x5000c500a1b2c3d4\n");
        assert_eq!(text, "0xaaaaaaaaaaaaaaaa\n");
    }

    #[test]
    fn world_wide_ids_of_every_kind() {
        let serial = hexadecimal(b"S4YN1234    ");
        let model = hexadecimal(b"Samsung SSD");
        let (text, seen) = visited("sys/x/wwid", &format!("nvme.144d-{serial}-{model}-00000001\n"));
        assert_eq!(text, format!("nvme.144d-{}-{model}-00000001\n", hexadecimal(b"aaaaaaaa    ")));
        assert_eq!(seen, [found(Kind::Serial, "S4YN1234")]);
        assert_eq!(visited("sys/x/wwid", "naa.5000c500\n").1, [found(Kind::Wwn, "5000c500")]);
        assert_eq!(visited("sys/x/wwid", "eui.0025385b\n").1, [found(Kind::Hex, "0025385b")]);
        let t10 = "t10.ATA     Samsung SSD 860 EVO                 MZ7LH480HAHQ-00005 S3Z1NB0K123456A     \n";
        let (text, seen) = visited("sys/x/wwid", t10);
        assert_eq!(seen, [found(Kind::Serial, "S3Z1NB0K123456A")]);
        assert_eq!(text.len(), t10.len());
    }

    #[test]
    fn device_mapper_identifiers() {
        let group = "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345";
        let volume = "ZYXWVUTSRQPONMLKJIHGFEDCBA543210";
        let (text, seen) = visited("sys/block/dm-0/dm/uuid", &format!("LVM-{group}{volume}-real\n"));
        assert_eq!(text, format!("LVM-{}-real\n", "a".repeat(64)));
        assert_eq!(seen, [found(Kind::Serial, group), found(Kind::Serial, volume)]);
        let (_, seen) = visited("sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0123456789abcdef0123456789abcdef-luks-home\n");
        assert!(seen.contains(&found(Kind::Hex, "0123456789abcdef0123456789abcdef")), "{seen:?}");
        let (text, seen) = visited("sys/block/dm-0/dm/uuid", "CRYPT-PLAIN-crypt\n");
        assert_eq!((text.as_str(), seen), ("CRYPT-PLAIN-aaaaa\n", vec![found(Kind::Name, "crypt")]));
        let (text, seen) = visited("sys/block/dm-0/dm/uuid", "part1-mpath-3600508b1001c0001\n");
        assert_eq!(
            (text.as_str(), seen),
            ("part1-mpath-3aaaaaaaaaaaaaaaa\n", vec![found(Kind::Wwn, "600508b1001c0001")])
        );
    }

    #[test]
    fn addresses_on_networks_but_not_on_pci() {
        let (text, seen) = visited("sys/x/nvme0/address", "traddr=192.168.1.10,trsvcid=4420,src_addr=10.0.0.1\n");
        assert_eq!(text, "traddr=aaa.aaa.a.aa,trsvcid=4420,src_addr=aa.a.a.a\n");
        assert_eq!(seen, [found(Kind::Serial, "192.168.1.10"), found(Kind::Serial, "10.0.0.1")]);
        let (text, seen) = visited("sys/x/nvme0/address", "0000:01:00.0\n");
        assert_eq!((text.as_str(), seen.len()), ("0000:01:00.0\n", 0));
        let fc = "traddr=nn-0x200000110d123456:pn-0x100000110d123456\n";
        let (text, _) = visited("sys/x/nvme0/address", fc);
        assert_eq!(text, "traddr=nn-0xaaaaaaaaaaaaaaaa:pn-0xaaaaaaaaaaaaaaaa\n");
    }

    #[test]
    fn the_builder_of_the_kernel_is_cut() {
        assert_eq!(visited("proc/version", "Linux version 6.1.0 (root@acme) #1\n").0, "Linux version 6.1.0\n");
    }

    #[test]
    fn uuids_are_found_in_any_text() {
        let uuid = "01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(uuids(&format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}\n")), [uuid.replace('-', "")]);
        assert!(uuids("0123-4567 0123456789abcdef0123456789abcdef").is_empty());
    }

    #[test]
    fn names_in_an_nqn() {
        let marker = Marker::default();
        let nqn = "nqn.1994-11.com.samsung:nvme:PM9A3:2.5-inch:S64HNE0T123456      ";
        assert_eq!(nqn_names(nqn, &marker), ["PM9A3", "S64HNE0T123456"]);
        assert!(nqn_names("nqn.x", &marker).is_empty());
        assert!(nqn_names("nqn.x:uuid:01234567-89ab-cdef-0123-456789abcdef", &marker).is_empty());
    }

    proptest! {
        #[test]
        fn any_content_is_taken(content in proptest::collection::vec(any::<u8>(), 0..300), index in 0_usize..16) {
            let names = [
                "sys/dm/name", "sys/dm/uuid", "sys/md/uuid", "sys/x/eui", "sys/loop/backing_file", "proc/sys/kernel/hostname",
                "proc/1/mountinfo", "proc/swaps", "sys/x/serial", "sys/x/wwid", "sys/x/id", "sys/x/address", "sys/x/vpd_pg80",
                "sys/x/vpd_pg83", "sys/x/vpd_pg89", "drives/nvme0/identify.bin",
            ];
            visit(names[index], &content, &mut Marker::default());
        }
    }
}
