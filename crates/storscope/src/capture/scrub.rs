//! A whole capture without identities.

use super::attributes::{SETTINGS, SWAPS};
use super::dictionary::{Content, Dictionary};
use super::fields::{self, Visitor};
use super::identity::{Identities, Kind};
use super::mounts;
use super::pages;
use super::pseudonym::{Pseudonyms, parts};
use super::tree::{Node, Tree, file_name, parent};
use super::vocabulary::Protected;
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet};

/// Captures that are made anew when a pseudonym happens to hold another identity.
const ATTEMPTS: usize = 16;

/// Folders whose members are named by the kernel.
const KERNEL_NAMED: [&str; 4] = ["sys/class/block", "sys/block", "sys/class/nvme", "sys/class/nvme-subsystem"];
/// Files that hold a model, a vendor or a firmware revision.
const MODELS: [&str; 7] = ["model", "vendor", "rev", "firmware_rev", "fwrev", "name", "oemid"];

/// A scrubbed capture.
pub(super) struct Scrubbed {
    /// Its files, links and folders.
    pub(super) tree: Tree,
    /// Its notes.
    pub(super) notes: Vec<String>,
    /// What must not be found in it.
    pub(super) dictionary: Dictionary,
}

/// Replaces every identity in `tree` and `notes`.
///
/// # Errors
/// When an identity is still found afterwards, however often other pseudonyms are chosen.
pub(super) fn scrub(tree: &Tree, notes: &[String]) -> anyhow::Result<Scrubbed> {
    let known = Known::collect(tree, notes);
    let mut left = String::new();
    for _ in 0..ATTEMPTS {
        let scrubbed = known.replaced(tree, notes);
        match leak(&scrubbed) {
            None => return Ok(scrubbed),
            Some(place) => left = place,
        }
    }
    bail!("{left}; nothing was written. Please report this; --keep-serials captures with identities");
}

/// The first place in which an identity is left, in words that do not tell it.
fn leak(scrubbed: &Scrubbed) -> Option<String> {
    let mut entries = scrubbed.tree.iter();
    let in_tree = entries.find_map(|(path, node)| left_in(&scrubbed.dictionary, path, node));
    let mut notes = scrubbed.notes.iter();
    in_tree.or_else(|| notes.find_map(|note| found(&scrubbed.dictionary, note.as_bytes(), Content::Text, "a note")))
}

/// What is left in one entry, its name included.
pub(super) fn left_in(dictionary: &Dictionary, path: &str, node: &Node) -> Option<String> {
    let named = found(dictionary, path.as_bytes(), Content::Text, "a file name");
    named.or_else(|| match node {
        Node::Folder | Node::Denied(_) => None,
        Node::Link(target) => found(dictionary, target.as_bytes(), Content::Text, path),
        Node::File(bytes) => found(dictionary, bytes, content(path), path),
    })
}

fn found(dictionary: &Dictionary, bytes: &[u8], content: Content, place: &str) -> Option<String> {
    let what = match dictionary.find(bytes, content)? {
        Kind::Wwn => "a world-wide name",
        Kind::Hex => "a UUID, EUI-64 or NGUID",
        Kind::Serial => "a serial number",
        Kind::Name => "the name of a host, volume or folder",
    };
    Some(format!("{what} is left in {place}"))
}

/// How the file at `path` is searched.
pub(super) fn content(path: &str) -> Content {
    let name = file_name(path);
    let folder = file_name(parent(path));
    let settings = match path.starts_with("sys/") {
        true => SETTINGS.contains(&name) || name.starts_with("aer_dev_") || folder == "queue",
        false => ["stat", "loadavg", "meminfo", "status"].contains(&name) || folder == "pressure",
    };
    if name.ends_with(".bin") || name.starts_with("vpd_pg") {
        Content::Binary
    } else if settings {
        Content::Settings
    } else if ["diskstats", "mountinfo", SWAPS].contains(&name) {
        Content::Table
    } else {
        Content::Text
    }
}

/// What is known of a capture before anything in it is replaced.
struct Known {
    identities: Identities,
    protected: Protected,
    models: BTreeSet<String>,
    /// Kernel names by the names of nodes that links below /dev lead to, and by those of device-mapper.
    nodes: BTreeMap<String, String>,
}

impl Known {
    fn collect(tree: &Tree, notes: &[String]) -> Self {
        let names: Vec<String> = kernel_names(tree);
        let texts: Vec<String> = models(tree);
        let words = |text: &String| -> Vec<String> { text.split_whitespace().map(str::to_lowercase).collect() };
        let mut known = Self {
            models: texts.iter().flat_map(words).collect(),
            nodes: nodes(tree, &names),
            protected: Protected::new(names.into_iter().filter(|name| array_name(name).is_none()), texts),
            identities: Identities::default(),
        };
        for (path, node) in tree.iter() {
            known.protected.keep(own_words(path));
            known.add_uuids(path);
            match node {
                Node::Folder | Node::Denied(_) => {}
                Node::Link(target) => known.add_uuids(target),
                Node::File(bytes) => known.add_file(path, bytes),
            }
            if let Some(name) = array_name(file_name(path)).filter(|_| KERNEL_NAMED.contains(&parent(path))) {
                known.add_name(name);
            }
        }
        notes.iter().for_each(|note| known.add_uuids(note));
        // Last, because serial numbers lie within them.
        for nqn in nqns(tree) {
            known.add_nqn(&nqn);
        }
        known
    }

    fn add_uuids(&mut self, text: &str) {
        fields::uuids(text).iter().for_each(|uuid| self.identities.add(Kind::Hex, uuid));
    }

    fn add_file(&mut self, path: &str, bytes: &[u8]) {
        let mut collector = Collector { models: &self.models, nodes: &self.nodes, found: Vec::new() };
        let kept = fields::visit(path, bytes, &mut collector);
        for (kind, text) in collector.found {
            match kind {
                Kind::Name => self.add_name(&text),
                Kind::Wwn | Kind::Hex | Kind::Serial => self.identities.add(kind, &text),
            }
        }
        // What the visit left out is not looked at: mounts of the network are not written.
        let kept = String::from_utf8_lossy(&kept);
        if matches!(content(path), Content::Text | Content::Table) {
            self.add_uuids(&kept);
        }
        if file_name(path) == "mountinfo" {
            self.protected.keep(mounts::own_words(&kept));
        }
    }

    /// A name as a whole, up to its first dot, and its words.
    fn add_name(&mut self, name: &str) {
        let label = name.split('.').next().unwrap_or(name);
        let words = parts(name).into_iter().filter(|(is_word, _)| *is_word).map(|(_, word)| word);
        for text in [name, label].into_iter().chain(words) {
            self.identities.add(Kind::Name, text);
        }
    }

    fn add_nqn(&mut self, nqn: &str) {
        let collector = Collector { models: &self.models, nodes: &self.nodes, found: Vec::new() };
        let names = fields::nqn_names(nqn, &collector);
        // A vendor's prefix may stand before the serial number.
        let holds_serial = |word: &String| {
            let ends = word.char_indices().map(|(at, _)| word.split_at(at));
            ends.flat_map(|(head, tail)| [head, tail]).any(|part| part.len() > 3 && self.identities.contains(part))
        };
        let unknown: Vec<String> = names.into_iter().filter(|name| !holds_serial(name)).collect();
        unknown.iter().for_each(|name| self.identities.add(Kind::Name, name));
    }

    fn replaced(&self, tree: &Tree, notes: &[String]) -> Scrubbed {
        let mut pseudonyms = Pseudonyms::new(&self.identities);
        let dictionary = Dictionary::new(&self.identities, &mut pseudonyms, &self.protected);
        let mut scrubbed = Tree::default();
        for (path, node) in
            tree.iter().filter(|(path, node)| !path.starts_with("dev/") || matches!(node, Node::Denied(_)))
        {
            let node = match node {
                Node::Folder => Node::Folder,
                Node::Denied(errno) => Node::Denied(*errno),
                Node::Link(target) => Node::Link(dictionary.replace_text(target)),
                Node::File(bytes) => {
                    let mut replacer =
                        Replacer { models: &self.models, nodes: &self.nodes, pseudonyms: &mut pseudonyms };
                    let visited = fields::visit(path, bytes, &mut replacer);
                    Node::File(dictionary.replace(&visited, content(path)))
                }
            };
            // It was not full before, and nothing has become longer.
            scrubbed.insert(dictionary.replace_text(path), node);
        }
        let notes = notes.iter().map(|note| dictionary.replace_text(note)).collect();
        Scrubbed { tree: scrubbed, notes, dictionary }
    }
}

/// The parts of a path that the kernel names. People name what lies below /dev, arrays, and the bays of enclosures.
fn own_words(path: &str) -> impl Iterator<Item = &str> {
    let below_dev = path.starts_with("dev/");
    let parts = path.split('/').take_while(move |part| !below_dev && *part != "enclosure");
    parts.filter(|part| array_name(part).is_none() && !part.starts_with("enclosure_device:"))
}

/// The part of an array's kernel name that people chose: `md_NAME`.
fn array_name(kernel_name: &str) -> Option<&str> {
    let name = kernel_name.strip_prefix("md_")?;
    let numbered =
        name.strip_prefix('d').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'p'));
    (!numbered).then_some(name)
}

/// The members of the kernel's classes, and block devices of trees that lack them.
fn kernel_names(tree: &Tree) -> Vec<String> {
    let name = |(path, _): (&str, &Node)| {
        let member = KERNEL_NAMED.contains(&parent(path)).then(|| file_name(path));
        let device = (path.starts_with("sys/") && file_name(path) == "size").then(|| file_name(parent(path)));
        member.or(device).map(str::to_owned)
    };
    let names: BTreeSet<String> = tree.iter().filter_map(name).collect();
    names.into_iter().collect()
}

fn models(tree: &Tree) -> Vec<String> {
    let texts = tree.iter().filter(|(path, _)| {
        // The name of a device-mapper device is what people called it.
        path.starts_with("sys/") && MODELS.contains(&file_name(path)) && file_name(parent(path)) != "dm"
    });
    let texts = texts.filter_map(|(path, _)| tree.file(path));
    let mut models: Vec<String> = texts.map(|text| String::from_utf8_lossy(text).trim().to_owned()).collect();
    for (path, node) in tree.iter() {
        if let Node::File(page) = node {
            models.extend(models_in(file_name(path), page));
        }
    }
    models.sort_unstable();
    models.dedup();
    models.retain(|model| !model.is_empty());
    models
}

/// Model and firmware revision of Identify Controller, and of an ATA disk, whose words are swapped.
fn models_in(name: &str, page: &[u8]) -> Vec<String> {
    let ranges: &[std::ops::Range<usize>] = match name {
        "identify.bin" => &[24..64, 64..72],
        "vpd_pg89" => &[60 + 54..60 + 94, 60 + 46..60 + 54],
        _ => return Vec::new(),
    };
    let fields = ranges.iter().filter_map(|range| page.get(range.clone()));
    let text = |field: &[u8]| match name {
        "vpd_pg89" => String::from_utf8_lossy(&super::identity::swapped(field)).trim().to_owned(),
        _ => String::from_utf8_lossy(field).trim_matches([' ', '\0']).to_owned(),
    };
    fields.map(text).collect()
}

fn nqns(tree: &Tree) -> Vec<String> {
    let mut nqns: Vec<String> = tree
        .iter()
        .filter_map(|(path, node)| match (file_name(path), node) {
            ("subsysnqn", Node::File(text)) => Some(String::from_utf8_lossy(text).trim().to_owned()),
            ("identify.bin", Node::File(page)) => Some(pages::subsystem_nqn(page)),
            _ => None,
        })
        .collect();
    nqns.sort_unstable();
    nqns.dedup();
    nqns
}

/// The nodes of the kernel's own names, of the links below /dev that are captured, and of device-mapper's names.
fn nodes(tree: &Tree, names: &[String]) -> BTreeMap<String, String> {
    let mut nodes: BTreeMap<String, String> =
        names.iter().map(|name| name.replace('!', "/")).map(|name| (name.clone(), name)).collect();
    for (path, node) in tree.iter() {
        match node {
            Node::Link(target) => {
                if let Some(name) = path.strip_prefix("dev/") {
                    nodes.insert(name.to_owned(), file_name(target).to_owned());
                }
            }
            Node::File(text) if path.ends_with("/dm/name") => {
                let name = String::from_utf8_lossy(text).trim().to_owned();
                nodes.insert(format!("mapper/{name}"), file_name(parent(parent(path))).to_owned());
            }
            Node::File(_) | Node::Folder | Node::Denied(_) => {}
        }
    }
    nodes
}

struct Collector<'a> {
    models: &'a BTreeSet<String>,
    nodes: &'a BTreeMap<String, String>,
    found: Vec<(Kind, String)>,
}

impl Visitor for Collector<'_> {
    fn identity(&mut self, kind: Kind, text: &str) -> String {
        self.found.push((kind, text.to_owned()));
        text.to_owned()
    }

    fn is_model(&self, word: &str) -> bool {
        self.models.contains(&word.to_lowercase())
    }

    fn node(&self, name: &str) -> Option<String> {
        self.nodes.get(name).cloned()
    }
}

struct Replacer<'a, 'b> {
    models: &'a BTreeSet<String>,
    nodes: &'a BTreeMap<String, String>,
    pseudonyms: &'a mut Pseudonyms<'b>,
}

impl Visitor for Replacer<'_, '_> {
    fn identity(&mut self, kind: Kind, text: &str) -> String {
        match kind {
            Kind::Name => self.pseudonyms.name(text),
            Kind::Wwn | Kind::Hex | Kind::Serial => self.pseudonyms.of(text),
        }
    }

    fn is_model(&self, word: &str) -> bool {
        self.models.contains(&word.to_lowercase())
    }

    fn node(&self, name: &str) -> Option<String> {
        self.nodes.get(name).cloned()
    }
}
