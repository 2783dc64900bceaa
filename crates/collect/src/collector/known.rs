//! What a scan that could not read everything leaves of what was known.
//!
//! A read that fails for want of descriptors or memory, or with an I/O error, says nothing of the device. Whoever was
//! known under a name that is still there stays who he is; where not everything was listed, nothing is gone.

use super::Inventory;
use crate::discovery::Scan;
use std::collections::{BTreeMap, BTreeSet};
use storscope_model::device::{Controller, Device};
use storscope_model::identity::ControllerId;

/// `scan` with what is in `known` where it could not be read.
pub(super) fn completed(mut scan: Scan, known: &Inventory) -> Scan {
    if scan.incomplete.is_none() && scan.unread.is_empty() {
        return scan;
    }
    let doubted = controllers(&mut scan, known);
    devices(&mut scan, known, &doubted);
    scan
}

/// The identities in `scan` of controllers that are not what they were read as.
fn controllers(scan: &mut Scan, known: &Inventory) -> BTreeSet<ControllerId> {
    let by_name: BTreeMap<&str, &Controller> =
        known.controllers.values().map(|controller| (controller.name.as_str(), controller)).collect();
    let mut doubted = BTreeSet::new();
    for controller in &mut scan.controllers {
        let unread = scan.incomplete.is_some() || scan.unread.contains(&controller.name);
        if unread {
            doubted.insert(controller.id.clone());
        }
        let Some(former) = by_name.get(controller.name.as_str()) else { continue };
        let renamed = Controller { id: former.id.clone(), ..controller.clone() };
        if unread && !differ(&controller.serial, &former.serial) && !differ(&controller.cntlid, &former.cntlid) {
            let firmware = controller.firmware.take().or_else(|| former.firmware.clone());
            *controller = Controller { firmware, ..(*former).clone() };
        } else if renamed == **former {
            doubted.insert(controller.id.clone());
            *controller = renamed;
        }
    }
    if scan.incomplete.is_some() {
        let names: BTreeSet<String> = scan.controllers.iter().map(|controller| controller.name.clone()).collect();
        let missing = known.controllers.values().filter(|former| !names.contains(&former.name));
        scan.controllers.extend(missing.cloned());
    }
    doubted
}

fn devices(scan: &mut Scan, known: &Inventory, doubted: &BTreeSet<ControllerId>) {
    let by_name: BTreeMap<&str, &Device> =
        known.devices.values().map(|device| (device.name.as_str(), device)).collect();
    for device in &mut scan.devices {
        let Some(former) = by_name.get(device.name.as_str()) else { continue };
        let through_doubted =
            device.nvme.as_ref().is_some_and(|nvme| nvme.controllers.iter().any(|id| doubted.contains(id)));
        let unread = scan.incomplete.is_some()
            || through_doubted
            || scan.unread.contains(&device.name)
            || device.partition_of.as_ref().is_some_and(|disk| scan.unread.contains(disk));
        if unread && !is_another(device, former) {
            *device = kept(device, former);
        } else {
            // Two disks with one serial number are told apart by their places; one of them unread is no reason to
            // call the other by the serial number alone.
            let renamed = Device { id: former.id.clone(), ..device.clone() };
            if renamed == **former {
                *device = renamed;
            }
        }
    }
    if scan.incomplete.is_some() {
        let names: BTreeSet<String> = scan.devices.iter().map(|device| device.name.clone()).collect();
        let missing = known.devices.values().filter(|former| !names.contains(&former.name));
        scan.devices.extend(missing.cloned());
    }
}

/// True when what was read of both tells them apart.
fn is_another(device: &Device, former: &Device) -> bool {
    match (&device.wwid, &former.wwid) {
        (Some(wwid), Some(known)) => wwid != known,
        _ => differ(&device.serial, &former.serial),
    }
}

fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_some() && other.is_some() && one != other
}

/// The former description with what changes in the life of a device, as far as it was read.
fn kept(device: &Device, former: &Device) -> Device {
    Device {
        devnum: device.devnum.or(former.devnum),
        firmware: device.firmware.clone().or_else(|| former.firmware.clone()),
        size_bytes: device.size_bytes.or(former.size_bytes),
        read_only: device.read_only.or(former.read_only),
        ..former.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;
    use crate::select::Selection;
    use nix::errno::Errno;
    use storscope_model::device::{NvmeNamespace, Transport};
    use storscope_model::fault::Fault;
    use storscope_model::identity::DeviceId;

    fn exhausted() -> Option<Fault> {
        Some(Fault::Io { path: "class/block".to_owned(), errno: Errno::EMFILE as i32 })
    }

    fn disk(name: &str, id: &str, serial: Option<&str>) -> Device {
        Device {
            id: DeviceId(id.to_owned()),
            serial: serial.map(str::to_owned),
            ..made_up::device(name, Transport::Sata)
        }
    }

    fn drive() -> (Device, Controller) {
        let controller = Controller { serial: Some("N1".to_owned()), ..made_up::controller("nvme0") };
        let nvme =
            NvmeNamespace { nsid: Some(1), controllers: vec![controller.id.clone()], ..NvmeNamespace::default() };
        (Device { nvme: Some(nvme), ..made_up::device("nvme0n1", Transport::NvmePcie) }, controller)
    }

    fn known() -> (Scan, Inventory) {
        let (namespace, controller) = drive();
        let devices = vec![disk("sda", "wwn-a", Some("A")), disk("sdb", "ata-b", Some("B")), namespace];
        let scan = Scan { devices, controllers: vec![controller], ..Scan::default() };
        (scan.clone(), Inventory::select(scan, &Selection::default()))
    }

    fn after(scan: Scan) -> Inventory {
        known().1.next(scan, &Selection::default())
    }

    fn unread(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn nothing_vanishes_where_the_list_is_not_whole() {
        let before = known().1;
        assert_eq!(before.next(Scan { incomplete: exhausted(), ..Scan::default() }, &Selection::default()), before);
        let new = disk("sdc", "wwn-c", Some("C"));
        let more = after(Scan { devices: vec![new.clone()], incomplete: exhausted(), ..Scan::default() });
        assert_eq!(more.devices.len(), 4);
        assert_eq!(more.devices.get(&new.id), Some(&new));
        assert_eq!(after(Scan::default()), Inventory::default());
    }

    #[test]
    fn a_device_that_cannot_be_read_stays_who_it_is() {
        let (mut scan, before) = known();
        scan.devices[0] = Device { size_bytes: Some(7), ..disk("sda", "weak-sda", None) };
        scan.unread = unread(&["sda"]);
        let next = after(scan);
        let sda = &next.devices[&DeviceId("wwn-a".to_owned())];
        assert_eq!((sda.serial.as_deref(), sda.size_bytes), (Some("A"), Some(7)));
        assert_eq!(next.devices.len(), before.devices.len());
    }

    #[test]
    fn another_device_under_the_name_is_another() {
        let (mut scan, _) = known();
        scan.devices[0] = disk("sda", "wwn-z", Some("Z"));
        scan.unread = unread(&["sda"]);
        let next = after(scan);
        assert!(next.devices.contains_key(&DeviceId("wwn-z".to_owned())));
        assert!(!next.devices.contains_key(&DeviceId("wwn-a".to_owned())));
    }

    #[test]
    fn an_unread_device_does_not_rename_its_neighbour_nor_keep_one_that_left() {
        let (mut scan, _) = known();
        scan.devices[1].id = DeviceId("ata-b-of-two".to_owned());
        scan.devices[0] = disk("sda", "weak-sda", None);
        scan.devices.truncate(2);
        scan.controllers.clear();
        scan.unread = unread(&["sda"]);
        let next = after(scan);
        let ids: Vec<&str> = next.devices.keys().map(|id| id.0.as_str()).collect();
        assert_eq!(ids, ["ata-b", "wwn-a"]);
        assert!(next.controllers.is_empty());
    }

    #[test]
    fn namespaces_of_an_unread_controller_stay_with_it() {
        let (mut scan, before) = known();
        let weak = ControllerId("weak-nvme0".to_owned());
        scan.controllers[0] = Controller { id: weak.clone(), serial: None, ..scan.controllers[0].clone() };
        scan.devices[2].id = DeviceId("weak-nvme0n1".to_owned());
        scan.devices[2].nvme.as_mut().unwrap().controllers = vec![weak];
        scan.unread = unread(&["nvme0"]);
        assert_eq!(after(scan), before);
    }

    #[test]
    fn a_controller_whose_namespaces_are_not_listed_is_not_taken_for_one_without() {
        let controllers = vec![made_up::controller("nvme9")];
        let scan = Scan { controllers, incomplete: exhausted(), ..Scan::default() };
        assert!(Inventory::select(scan, &Selection::default()).controllers.is_empty());
    }
}
