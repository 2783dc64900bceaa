//! What each disk carries: partitions, dm, md and other holders, mount points, swap.
//!
//! Only files of sysfs and procfs are read; no file system is touched, so a hung one does no harm.

mod filesystems;
mod label;
pub(crate) mod mountinfo;
pub(crate) mod swaps;

pub use mountinfo::MAX_MOUNTS;

use crate::discovery::attributes::Attributes;
use crate::discovery::sysfs::{self, Entry};
use crate::root::Root;
use filesystems::Names;
use std::collections::{BTreeMap, BTreeSet};
use storscope_model::fault::Fault;
use storscope_model::sample::stack::{Node, Stack};

/// Most holders of one device that are looked at.
const MAX_HOLDERS: usize = 1024;

/// Reads the whole stack of `root`. Hidden multipath paths are not part of it: what lies on them lies on their head.
///
/// What cannot be read in part is told in [`Stack::faults`].
///
/// # Errors
/// The first fault, when there is no block device because sysfs could not be read.
pub fn read(root: &Root) -> Result<Stack, Fault> {
    let mut attributes = Attributes::new();
    let mut entries = sysfs::block_devices(root, &mut attributes);
    if let Some(fault) = attributes.incomplete() {
        return Err(fault.clone());
    }
    entries.retain(|entry| !entry.hidden);
    if entries.is_empty() {
        let faults = attributes.into_faults();
        return faults.into_iter().next().map_or_else(|| Ok(Stack::default()), Err);
    }
    entries.sort_by(|a, b| sysfs::by_kernel_name(&a.name, &b.name));
    let mut above = above(&entries, &mut attributes);
    let mut names = Names::new(root);
    let mut nodes = Vec::with_capacity(entries.len());
    for entry in &entries {
        names.add(entry, &mut attributes);
        let mut above: Vec<String> = above.remove(&entry.name).unwrap_or_default().into_iter().collect();
        above.sort_by(|a, b| sysfs::by_kernel_name(a, b));
        nodes.push(Node {
            name: entry.name.clone(),
            label: label::of(entry, &mut attributes),
            above,
            mounts: Vec::new(),
            swap: false,
        });
    }
    filesystems::place(root, &names, &mut nodes, &mut attributes);
    Ok(Stack { nodes, faults: attributes.into_faults() })
}

/// Kernel names directly above each device: its partitions, its `holders`, and those that name it among their `slaves`
/// (a captured tree may hold one side only).
fn above(entries: &[Entry], attributes: &mut Attributes) -> BTreeMap<String, BTreeSet<String>> {
    let mut above: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |below: String, upper: String| {
        if below != upper {
            above.entry(below).or_default().insert(upper);
        }
    };
    for entry in entries {
        if let Some(disk) = &entry.parent {
            add(disk.clone(), entry.name.clone());
        }
        for holder in attributes.names(&entry.folder.join("holders"), MAX_HOLDERS) {
            add(entry.name.clone(), sysfs::kernel_name(&holder));
        }
        for slave in attributes.names(&entry.folder.join("slaves"), MAX_HOLDERS) {
            add(sysfs::kernel_name(&slave), entry.name.clone());
        }
    }
    above
}

#[cfg(test)]
mod tests;
