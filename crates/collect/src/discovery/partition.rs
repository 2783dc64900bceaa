//! Partitions: described by their disk, apart from place and size on it.

use super::attributes::Attributes;
use super::block;
use super::id;
use super::sysfs::Entry;
use std::collections::BTreeMap;
use storscope_model::device::{Device, Transport};
use storscope_model::identity::DeviceId;

/// Appends the partitions to `devices`, which hold the whole disks.
pub(super) fn describe(partitions: &[(&Entry, String)], devices: &mut Vec<Device>, attributes: &mut Attributes) {
    let disks: BTreeMap<String, Device> = devices.iter().map(|disk| (disk.name.clone(), disk.clone())).collect();
    for (entry, parent) in partitions {
        attributes.about(&entry.name);
        let number = attributes.text(&entry.folder.join("partition"));
        let number = number.unwrap_or_default();
        let disk = disks.get(parent);
        let transport = disk.map_or(Transport::Other, |disk| disk.transport);
        let mut device = block::geometry(entry, transport, attributes);
        device.id = DeviceId(match disk {
            Some(disk) => id::bounded(&format!("{}-part{number}", disk.id)),
            None => id::bounded(&format!("{}{}", DeviceId::WEAK_PREFIX, entry.name)),
        });
        device.partition_of = Some(parent.clone());
        if let Some(disk) = disk {
            inherit(&mut device, disk);
        }
        devices.push(device);
    }
}

/// A partition has no queue of its own and sits where its disk sits. Model and serial number stay the disk's.
fn inherit(partition: &mut Device, disk: &Device) {
    partition.logical_block_bytes = disk.logical_block_bytes;
    partition.rotational = disk.rotational;
    partition.removable = disk.removable;
    partition.zoned = disk.zoned;
    partition.pci_address.clone_from(&disk.pci_address);
    partition.numa_node = disk.numa_node;
    partition.place = disk.place.clone();
}
