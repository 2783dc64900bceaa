//! Names that people gave, and the files of procfs that hold them: mountinfo and swaps (proc_pid_mountinfo(5)).

use super::fields::{Visitor, padded};
use super::identity::Kind;
use super::pseudonym::parts;
use super::vocabulary::is_common_folder;
use storscope_collect::root::Root;

/// File systems that lie on block devices though their device number does not say so.
const ON_MANY: [&str; 3] = ["bcachefs", "btrfs", "zfs"];

/// A name as a whole: host, volume, array.
pub(super) fn name(text: &str, visitor: &mut dyn Visitor) -> String {
    padded(text, |name| visitor.identity(Kind::Name, name))
}

/// A path: folders that many hosts have stay.
pub(super) fn path(text: &str, visitor: &mut dyn Visitor) -> String {
    let mut changed = String::with_capacity(text.len());
    for (is_word, part) in parts(text) {
        let stays = !is_word || is_common_folder(part);
        changed.push_str(&if stays { part.to_owned() } else { visitor.identity(Kind::Name, part) });
    }
    changed
}

/// What a node's path leads to: links and names that people gave become kernel names, where the capture knows them.
fn node(text: &str, visitor: &mut dyn Visitor) -> String {
    let Some(name) = Root::node_name(text) else {
        return path(text, visitor);
    };
    let folder = &text[..text.len() - name.len()];
    match visitor.node(name) {
        Some(kernel_name) => format!("{folder}{kernel_name}"),
        None => match name.rsplit_once('/') {
            Some((below, last)) => format!("{folder}{}/{}", path(below, visitor), visitor.identity(Kind::Name, last)),
            // Right below the folder of nodes are the kernel's own names.
            None => text.to_owned(),
        },
    }
}

/// Only mounts that lie on block devices are kept: the others name servers and users and tell nothing about a disk.
pub(super) fn mountinfo(text: &str, visitor: &mut dyn Visitor) -> String {
    let lines = text.lines().filter_map(|line| mount(line, visitor));
    lines.map(|line| line + "\n").collect()
}

/// What stands before and after the dash of a line.
fn halves<'a, 'f>(fields: &'f [&'a str]) -> Option<(&'f [&'a str], &'f [&'a str])> {
    let dash = fields.iter().position(|field| *field == "-")?;
    Some((fields.get(..dash)?, fields.get(dash + 1..)?))
}

/// The words that a mountinfo uses itself: flags, kinds of propagation, types of file systems and names of options.
pub(super) fn own_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let Some(([_, _, _, _, _, flags @ ..], [kind, _, options @ ..])) = halves(&fields) else {
            continue;
        };
        words.push(*kind);
        let flags = flags.iter().chain(options).flat_map(|field| field.split(','));
        words.extend(flags.filter_map(|flag| flag.split(['=', ':']).next()));
    }
    words
}

fn mount(line: &str, visitor: &mut dyn Visitor) -> Option<String> {
    let fields: Vec<&str> = line.split(' ').collect();
    let (before, after) = halves(&fields)?;
    let [id, parent, number, root, point, rest @ ..] = before else {
        return None;
    };
    let [kind, source, options @ ..] = after else {
        return None;
    };
    let on_block = !number.starts_with("0:") || Root::node_name(source).is_some() || ON_MANY.contains(kind);
    if !on_block || !point.starts_with('/') {
        return None;
    }
    let source: Vec<String> = source.split(':').map(|source| node(source, visitor)).collect();
    let options: Vec<String> = options.iter().map(|options| mount_options(options, visitor)).collect();
    let mut words = vec![(*id).to_owned(), (*parent).to_owned(), (*number).to_owned()];
    words.extend([path(root, visitor), path(point, visitor)]);
    words.extend(rest.iter().map(|word| (*word).to_owned()));
    words.extend(["-".to_owned(), (*kind).to_owned(), source.join(":")]);
    words.extend(options);
    Some(words.join(" "))
}

/// Options with a value may hold anything; only a subvolume means something to the agent.
fn mount_options(options: &str, visitor: &mut dyn Visitor) -> String {
    let kept = options.split(',').filter_map(|option| match option.split_once('=') {
        None => Some(option.to_owned()),
        Some(("subvol", subvolume)) => Some(format!("subvol={}", path(subvolume, visitor))),
        Some(("subvolid", _)) => Some(option.to_owned()),
        Some(_) => None,
    });
    kept.collect::<Vec<String>>().join(",")
}

/// The first column is a device node or the path of a file.
pub(super) fn swaps(text: &str, visitor: &mut dyn Visitor) -> String {
    let mut changed = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        match line.find([' ', '\t']) {
            Some(end) if index > 0 => {
                changed.push_str(&node(&line[..end], visitor));
                changed.push_str(&line[end..]);
            }
            _ => changed.push_str(line),
        }
        changed.push('\n');
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Upper;

    impl Visitor for Upper {
        fn identity(&mut self, _: Kind, text: &str) -> String {
            text.to_uppercase()
        }

        fn is_model(&self, _: &str) -> bool {
            false
        }

        fn node(&self, name: &str) -> Option<String> {
            match name {
                "mapper/acme-lv" => Some("dm-0".to_owned()),
                "sda1" => Some("sda1".to_owned()),
                _ => None,
            }
        }
    }

    #[test]
    fn only_block_devices_are_told_of() {
        let text = "22 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
            23 1 0:5 / /proc rw - proc proc rw\n\
            24 1 0:50 / /mnt/alice rw - nfs4 nas.acme:/export rw,clientaddr=10.0.0.1\n\
            25 1 254:0 / /home/alice\\040b rw - xfs /dev/mapper/acme-lv rw,attr2\n\
            26 1 0:31 /@home/bob /srv/data2 rw - btrfs /dev/disk/by-uuid/1-2 rw,subvolid=257,subvol=/@home/bob\n\
            half a line\n";
        assert_eq!(
            mountinfo(text, &mut Upper),
            "22 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw\n\
            25 1 254:0 / /home/ALICE\\040B rw - xfs /dev/dm-0 rw,attr2\n\
            26 1 0:31 /@home/BOB /srv/data2 rw - btrfs /dev/disk/BY-UUID/1-2 rw,subvolid=257,subvol=/@home/BOB\n"
        );
    }

    #[test]
    fn words_of_mountinfo_itself() {
        let line =
            "26 1 0:31 /@home/bob /srv/acme rw,noatime shared:1 - btrfs /dev/sda rw,subvolid=5,subvol=/@home/bob\n";
        let words = ["btrfs", "rw", "noatime", "shared", "rw", "subvolid", "subvol"];
        assert_eq!(own_words(&format!("half\n{line}1 2 -\n")), words);
    }

    #[test]
    fn swap_files_and_nodes() {
        let text = "Filename\tType\n/dev/sda1     partition 1 0 -2\n/home/alice/swapfile  file 1 0 -3\n";
        let expected = "Filename\tType\n/dev/sda1     partition 1 0 -2\n/home/ALICE/swapfile  file 1 0 -3\n";
        assert_eq!(swaps(text, &mut Upper), expected);
    }
}
