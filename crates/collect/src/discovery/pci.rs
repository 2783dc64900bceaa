//! PCI addresses and slots.

use super::attributes::Attributes;
use crate::root::Root;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most slots that are looked at.
const MAX_SLOTS: usize = 4096;

/// True for `domain:bus:device.function`; the domain is hexadecimal and has four digits or more.
pub(super) fn is_address(text: &str) -> bool {
    let mut parts = text.split(':');
    let (Some(domain), Some(bus), Some(rest), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let Some((device, function)) = rest.split_once('.') else {
        return false;
    };
    let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (4..=8).contains(&domain.len())
        && [bus.len(), device.len(), function.len()] == [2, 2, 1]
        && [domain, bus, device, function].into_iter().all(hexadecimal)
}

/// The folder of the PCI function that is nearest above `folder` (or `folder` itself), and its address.
pub(super) fn nearest(folder: &Path) -> Option<(PathBuf, String)> {
    folder.ancestors().find_map(|above| {
        let name = above.file_name()?.to_str()?;
        is_address(name).then(|| (above.to_path_buf(), name.to_owned()))
    })
}

/// Physical slots by the address of the device in them (Documentation/ABI/testing/sysfs-bus-pci, `slots/…/address`).
#[derive(Debug, Default)]
pub(super) struct Slots {
    by_device: BTreeMap<String, String>,
}

impl Slots {
    pub(super) fn read(root: &Root, attributes: &mut Attributes) -> Self {
        let folder = root.sys("bus/pci/slots");
        let mut by_device = BTreeMap::new();
        for name in attributes.names(&folder, MAX_SLOTS) {
            let Some(slot) = root.resolve(&folder.join(&name)) else {
                continue;
            };
            if let Some(address) = attributes.text(&slot.join("address")) {
                by_device.entry(address).or_insert(name);
            }
        }
        Self { by_device }
    }

    /// The slot that the function `folder` sits in, its own or the nearest one above it (a drive behind a switch card).
    pub(super) fn of(&self, folder: &Path) -> Option<&str> {
        folder
            .ancestors()
            .filter_map(|above| above.file_name()?.to_str())
            .filter(|name| is_address(name))
            .find_map(|name| {
                let device = name.split_once('.').map_or(name, |(device, _)| device);
                self.by_device.get(device)
            })
            .map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for address in ["0000:01:00.0", "052e:78:00.0", "10000:e1:1f.7"] {
            assert!(is_address(address), "{address}");
        }
        for other in ["pci0000:00", "0:0:0:0", "01:00.0", "0000:01:00", "0000:01:00.0:x", "zzzz:01:00.0"] {
            assert!(!is_address(other), "{other}");
        }
    }

    #[test]
    fn the_nearest_function_counts() {
        let folder = Path::new("devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1");
        let (found, address) = nearest(folder).unwrap();
        assert_eq!(address, "0000:01:00.0");
        assert!(found.ends_with("0000:00:01.0/0000:01:00.0"));
        assert_eq!(nearest(Path::new("devices/virtual/block/loop0")), None);
    }
}
