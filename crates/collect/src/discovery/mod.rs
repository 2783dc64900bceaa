//! Which block devices and NVMe controllers the host has, and who they are.
//!
//! Everything is found by walking sysfs links (Documentation/admin-guide/sysfs-rules.rst): no name is composed, no
//! number in a name is given a meaning. Only files of sysfs are read, and none that makes the kernel send a command.

pub(crate) mod attributes;
pub(crate) mod block;
mod controller;
mod dump;
#[cfg(test)]
pub(crate) mod fixture;
mod id;
mod inquiry;
mod mmc;
mod namespace;
mod partition;
mod pci;
mod place;
mod scsi;
pub(crate) mod sysfs;
mod transport;
mod vpd;

pub use attributes::{MAX_FAULTS, MAX_TEXT};
pub use sysfs::MAX_ENTRIES;

use crate::root::Root;
use attributes::{Attributes, Unread};
use std::collections::BTreeSet;
use storscope_model::device::{Controller, Device};
use storscope_model::fault::Fault;

/// What one look at sysfs found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// Block devices, partitions and virtual ones included, by kernel name. Hidden multipath paths are not among them.
    pub devices: Vec<Device>,
    /// NVMe controllers, by kernel name.
    pub controllers: Vec<Controller>,
    /// Block devices in sysfs, hidden paths included.
    pub seen: u64,
    /// Files and folders that could not be read; at most [`MAX_FAULTS`]. What they belong to is listed all the same.
    pub faults: Vec<Fault>,
    /// Why devices or controllers may be there that are not listed: a folder of them exists and could not be read.
    pub incomplete: Option<Fault>,
    /// Kernel names of devices and controllers of which something could not be read for an I/O error: what they are
    /// described as, their identity included, may be less than what they are.
    pub unread: BTreeSet<String>,
}

/// Looks at every block device and NVMe controller of `root`.
///
/// Nothing fails as a whole: what cannot be read is absent from its device and told in [`Scan::faults`]. A host without
/// block devices or without NVMe is an empty list, no fault; one that cannot be listed is [`Scan::incomplete`].
pub fn scan(root: &Root) -> Scan {
    let mut attributes = Attributes::new();
    let slots = pci::Slots::read(root, &mut attributes);
    let entries = sysfs::block_devices(root, &mut attributes);
    let seen = u64::try_from(entries.len()).unwrap_or(u64::MAX);

    let found = controller::find(root, &entries, &mut attributes);
    let fabric = controller::Fabric::describe(root, found, &entries, &slots, &mut attributes);

    let mut drafts = Vec::new();
    let mut partitions = Vec::new();
    for entry in &entries {
        if entry.hidden {
            continue;
        }
        match &entry.parent {
            Some(parent) => partitions.push((entry, parent.clone())),
            None => drafts.push(block::describe(root, entry, &fabric, &slots, &mut attributes)),
        }
    }
    let mut devices = block::settle(drafts);
    partition::describe(&partitions, &mut devices, &mut attributes);
    devices.sort_by(|a, b| sysfs::by_kernel_name(&a.name, &b.name));

    let mut controllers = fabric.into_controllers();
    controllers.sort_by(|a, b| sysfs::by_kernel_name(&a.name, &b.name));
    let Unread { faults, names, incomplete } = attributes.into_unread();
    Scan { devices, controllers, seen, faults, incomplete, unread: names }
}

#[cfg(test)]
mod tests;
