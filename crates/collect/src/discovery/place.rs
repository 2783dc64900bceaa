//! Where a device sits: a path for identities, and the words that find it in a rack.

use super::attributes::Attributes;
use super::pci::{self, Slots};
use crate::root::Root;
use std::path::Path;
use storscope_model::device::Place;

/// Most entries of a device's folder that are looked through for its enclosure link.
const MAX_CHILDREN: usize = 512;

/// The way to a device without what the kernel numbers in the order of probing: PCI address, ATA port, SAS or USB
/// port, SCSI channel:target:LUN. `folder` has its links resolved.
pub(super) fn path(root: &Root, folder: &Path, name: &str) -> String {
    let relative = folder.strip_prefix(&root.sys).unwrap_or(folder);
    let parts: Vec<&str> = relative.components().filter_map(|part| part.as_os_str().to_str()).collect();
    let function = parts.iter().rposition(|part| pci::is_address(part));
    let mut words = Vec::new();
    if let Some(index) = function {
        words.push(format!("pci-{}", parts[index]));
    }
    let below = &parts[function.map_or(0, |index| index + 1)..];
    let above_disk = below.split_last().map_or(below, |(_, above)| above);
    words.extend(above_disk.iter().filter_map(|part| stable_word(part)));
    if words.is_empty() {
        words.push(name.to_owned());
    }
    words.join("-")
}

/// What of one folder name survives a reboot.
fn stable_word(part: &str) -> Option<String> {
    const OBJECTS: [&str; 6] = ["devices", "virtual", "block", "nvme", "class", "mmc_host"];
    const COUNTED: [&str; 8] = ["host", "target", "nvme", "virtio", "session", "usb", "mmc", "nvme-subsys"];
    if OBJECTS.contains(&part) || part == "nvme-subsystem" {
        return None;
    }
    let counted =
        |prefix: &&str| part.strip_prefix(*prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if COUNTED.iter().any(counted) {
        return None;
    }
    for kind in ["port-", "expander-", "end_device-", "rport-"] {
        if let Some(rest) = part.strip_prefix(kind) {
            // The number up to the first colon is the SCSI host's, which counts up as adapters are probed.
            let (_, port) = rest.split_once(':')?;
            return (kind == "end_device-" || kind == "rport-").then(|| format!("{kind}{port}"));
        }
    }
    let numbers: Vec<&str> = part.split(':').collect();
    let numeric = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match numbers.as_slice() {
        [host, rest @ ..] if rest.len() == 3 && numeric(host) && rest.iter().all(numeric) => Some(rest.join(":")),
        _ => Some(part.to_owned()),
    }
}

/// Slot, enclosure, bay and port. `folder` is the device's or controller's, `device` what its `device` link leads to.
pub(super) fn of(
    root: &Root,
    folder: &Path,
    device: Option<&Path>,
    slots: &Slots,
    attributes: &mut Attributes,
) -> Place {
    let function = pci::nearest(folder);
    let mut place = Place {
        slot: function.as_ref().and_then(|(folder, _)| slots.of(folder)).map(str::to_owned),
        port: port(folder),
        ..Place::default()
    };
    let candidates = [device, function.as_ref().map(|(folder, _)| folder.as_path())];
    for candidate in candidates.into_iter().flatten() {
        if let Some((enclosure, bay)) = enclosure(root, candidate, attributes) {
            (place.enclosure, place.bay) = (enclosure, Some(bay));
            return place;
        }
    }
    (place.enclosure, place.bay) = sas_bay(folder, attributes);
    place
}

/// `enclosure_device:BAY` leads to the component in the enclosure (drivers/misc/enclosure.c); the enclosure's `id` is
/// its logical identifier.
fn enclosure(root: &Root, folder: &Path, attributes: &mut Attributes) -> Option<(Option<String>, String)> {
    let names = attributes.names(folder, MAX_CHILDREN);
    let (link, bay) = names.iter().find_map(|name| Some((name, name.strip_prefix("enclosure_device:")?)))?;
    let component = root.resolve(&folder.join(link));
    let enclosure = component.as_deref().and_then(Path::parent);
    let id = enclosure.and_then(|enclosure| attributes.text(&enclosure.join("id")));
    Some((id, bay.to_owned()))
}

/// A SAS end device tells its enclosure's address and its bay without an enclosure driver as well
/// (drivers/scsi/scsi_transport_sas.c).
fn sas_bay(folder: &Path, attributes: &mut Attributes) -> (Option<String>, Option<String>) {
    let end_device = folder.ancestors().find_map(|above| {
        let name = above.file_name()?.to_str()?;
        name.starts_with("end_device-").then(|| above.join("sas_device").join(name))
    });
    let Some(end_device) = end_device else {
        return (None, None);
    };
    let enclosure = attributes.text(&end_device.join("enclosure_identifier")).filter(|id| id != "0x0");
    let bay = attributes.text(&end_device.join("bay_identifier"));
    // An end device outside any enclosure reports bay 0 of enclosure 0.
    match enclosure {
        Some(_) => (enclosure, bay),
        None => (None, None),
    }
}

/// The connector as the bus names it: `ata3`, `end_device-0:1`, `usb 2-1.4`.
fn port(folder: &Path) -> Option<String> {
    let mut parts = folder.ancestors().filter_map(|above| above.file_name()?.to_str());
    parts.find_map(|part| {
        let number = |prefix: &str| {
            part.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        };
        if number("ata") || part.starts_with("end_device-") {
            return Some(part.to_owned());
        }
        let usb = is_usb_port(part);
        usb.then(|| format!("usb {part}"))
    })
}

/// `BUS-PORT[.PORT…]`, the name of a USB device (Documentation/driver-api/usb/usb.rst); interfaces have a `:` more.
fn is_usb_port(part: &str) -> bool {
    let Some((bus, ports)) = part.split_once('-') else {
        return false;
    };
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numeric(bus) && ports.split('.').all(numeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stable(folder: &str, name: &str) -> String {
        let root = Root::captured(Path::new("host"));
        path(&root, &root.sys(folder), name)
    }

    #[test]
    fn what_the_kernel_counts_is_left_out() {
        let pci = "devices/pci0000:00/0000:00:1f.2";
        assert_eq!(
            stable(&format!("{pci}/ata2/host1/target1:0:0/1:0:0:0/block/sdb"), "sdb"),
            "pci-0000:00:1f.2-ata2-0:0:0"
        );
        assert_eq!(
            stable(
                &format!(
                    "{pci}/host11/port-11:0/expander-11:0/port-11:0:1/end_device-11:0:1/target11:0:8/11:0:8:0/block/sdw"
                ),
                "sdw"
            ),
            "pci-0000:00:1f.2-end_device-0:1-0:8:0"
        );
        assert_eq!(
            stable("devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1", "nvme0n1"),
            "pci-0000:01:00.0"
        );
        assert_eq!(
            stable(&format!("{pci}/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:1/block/sdd"), "sdd"),
            "pci-0000:00:1f.2-2-1-2-1:1.0-0:0:1"
        );
        assert_eq!(stable("devices/virtual/block/loop0", "loop0"), "loop0");
        assert_eq!(stable("block/sda", "sda"), "sda");
    }

    #[test]
    fn ports() {
        let port = |folder: &str| port(Path::new(folder));
        assert_eq!(port("devices/x/ata3/host2/target2:0:0/2:0:0:0/block/sda").as_deref(), Some("ata3"));
        assert_eq!(port("devices/x/usb2/2-1/2-1.4/2-1.4:1.0/host3/block/sda").as_deref(), Some("usb 2-1.4"));
        assert_eq!(port("devices/virtual/block/dm-0"), None);
    }
}
