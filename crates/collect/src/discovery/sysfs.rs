//! The list of block devices, from whichever of the kernel's folders the tree has.

use super::attributes::Attributes;
use crate::attribute::is_there;
use crate::root::Root;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most block devices of a host that are looked at.
pub const MAX_ENTRIES: usize = 65_536;

/// One block device in sysfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Kernel name, `/` where sysfs has `!`.
    pub(crate) name: String,
    /// Its folder, every link resolved.
    pub(crate) folder: PathBuf,
    /// A path below a multipath head: `hidden`, without a node in /dev.
    pub(crate) hidden: bool,
    /// Kernel name of the disk, for a partition.
    pub(crate) parent: Option<String>,
}

/// The kernel name for a name in sysfs (`cciss!c0d0` is `cciss/c0d0`).
pub(crate) fn kernel_name(sysfs: &str) -> String {
    sysfs.replace('!', "/")
}

/// Kernel names in the order that people expect: `nvme2` before `nvme10`.
pub(crate) fn by_kernel_name(a: &str, b: &str) -> Ordering {
    fn pieces(name: &str) -> impl Iterator<Item = (bool, usize, &str)> {
        name.as_bytes().chunk_by(|x, y| x.is_ascii_digit() == y.is_ascii_digit()).map(|piece| {
            let text = std::str::from_utf8(piece).unwrap_or_default();
            let digits = text.starts_with(|c: char| c.is_ascii_digit());
            let weight = if digits { text.trim_start_matches('0').len() } else { 0 };
            (digits, weight, text)
        })
    }
    pieces(a).cmp(pieces(b)).then_with(|| a.cmp(b))
}

/// Every block device: of `block`, of `class/block`, which has the partitions too, and the namespaces below NVMe
/// controllers and subsystems. A captured tree may lack any of them: partitions of disks that `class/block` does not
/// list are looked for in the disks' folders. Links that dangle are left out. A folder that is there but cannot be listed
/// makes the list [incomplete](Attributes::incomplete).
pub(crate) fn block_devices(root: &Root, attributes: &mut Attributes) -> Vec<Entry> {
    let mut folders = BTreeMap::new();
    let listed = attributes.list(&root.sys("class/block"), MAX_ENTRIES);
    let mut uncovered = Vec::new();
    for name in attributes.list(&root.sys("block"), MAX_ENTRIES) {
        if add(root, &mut folders, &name, &root.sys("block").join(&name), attributes)
            && listed.binary_search(&name).is_err()
        {
            uncovered.push(name);
        }
    }
    for name in &listed {
        add(root, &mut folders, name, &root.sys("class/block").join(name), attributes);
    }
    for class in ["class/nvme", "class/nvme-subsystem"] {
        for parent in attributes.list(&root.sys(class), MAX_ENTRIES) {
            let Some(folder) = root.resolve(&root.sys(class).join(&parent)) else {
                continue;
            };
            for name in attributes.list(&folder, MAX_ENTRIES) {
                let child = folder.join(&name);
                if is_disk_folder(&child) && add(root, &mut folders, &name, &child, attributes) {
                    uncovered.push(name);
                }
            }
        }
    }
    for disk in uncovered {
        let Some(folder) = folders.get(&disk).cloned() else {
            continue;
        };
        for name in attributes.list(&folder, MAX_ENTRIES) {
            let child = folder.join(&name);
            if is_folder(&child) && is_there(&child.join("partition")) {
                add(root, &mut folders, &name, &child, attributes);
            }
        }
    }
    entries(folders, attributes)
}

fn entries(folders: BTreeMap<String, PathBuf>, attributes: &mut Attributes) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(folders.len());
    for (name, folder) in &folders {
        let parent = is_there(&folder.join("partition")).then(|| {
            let above = folder.parent().and_then(Path::file_name);
            let above = above.and_then(|above| above.to_str()).unwrap_or_default();
            match folders.contains_key(above) {
                true => above.to_owned(),
                false => longest_prefix(name, &folders),
            }
        });
        attributes.about(&kernel_name(name));
        let hidden = match attributes.flag(&folder.join("hidden")) {
            Some(hidden) => hidden,
            None => is_path_name(name),
        };
        entries.push(Entry {
            name: kernel_name(name),
            folder: folder.clone(),
            hidden,
            parent: parent.map(|parent| kernel_name(&parent)),
        });
    }
    entries
}

/// True when the folder was not there yet.
fn add(
    root: &Root,
    folders: &mut BTreeMap<String, PathBuf>,
    name: &str,
    place: &Path,
    attributes: &mut Attributes,
) -> bool {
    if folders.contains_key(name) || folders.len() >= MAX_ENTRIES {
        return false;
    }
    match root.resolve(place) {
        Some(folder) if attributes.is_folder(&folder) => {
            folders.insert(name.to_owned(), folder);
            true
        }
        _ => false,
    }
}

fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// A child of a controller or subsystem that is a block device, not its generic character device (`ng0n1`).
fn is_disk_folder(folder: &Path) -> bool {
    if !is_folder(folder) {
        return false;
    }
    match std::fs::read_link(folder.join("subsystem")) {
        Ok(target) => target.ends_with("block"),
        Err(_) => is_there(&folder.join("size")) && folder.join("queue").is_dir(),
    }
}

/// A copied tree may have lost the nesting: then only the name tells whose partition it is.
fn longest_prefix(name: &str, folders: &BTreeMap<String, PathBuf>) -> String {
    (1..name.len())
        .rev()
        .filter_map(|end| name.get(..end))
        .find(|prefix| folders.contains_key(*prefix))
        .unwrap_or_default()
        .to_owned()
}

/// `nvmeXcYnZ`: how the kernel names paths (drivers/nvme/host/multipath.c), for trees without `hidden`.
fn is_path_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("nvme") else {
        return false;
    };
    let after = |text: &str, letter: char| {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let found = rest.len() < text.len() && rest.starts_with(letter);
        found.then(|| rest[1..].to_owned())
    };
    after(rest, 'c')
        .and_then(|rest| after(&rest, 'n'))
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_their_numbers() {
        let mut names = vec!["nvme10n1", "nvme2n1", "sda", "nvme2n1p10", "nvme2n1p9", "sdaa", "sdb"];
        names.sort_by(|a, b| by_kernel_name(a, b));
        assert_eq!(names, ["nvme2n1", "nvme2n1p9", "nvme2n1p10", "nvme10n1", "sda", "sdaa", "sdb"]);
        assert_eq!(by_kernel_name("md01", "md1"), "md01".cmp("md1"));
    }

    #[test]
    fn path_names() {
        for path in ["nvme0c0n1", "nvme12c345n6"] {
            assert!(is_path_name(path), "{path}");
        }
        for disk in ["nvme0n1", "nvme0", "nvme0n1p1", "nvmec0n1", "nvme0c0n", "nvme0c0n1p1", "sdc1n1"] {
            assert!(!is_path_name(disk), "{disk}");
        }
    }
}
