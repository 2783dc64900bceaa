//! How a device is attached, from the kernel objects above it.

use std::path::Path;
use storscope_model::device::Transport;

/// The transport that the folder names on the way to the device tell. `folder` has its links resolved; `vendor` is the
/// SCSI vendor, which is `ATA` for any disk behind a SCSI/ATA translation (SAT).
pub(super) fn of(folder: &Path, name: &str, vendor: Option<&str>) -> Transport {
    if let Some(transport) = of_driver(name) {
        return transport;
    }
    let above = |is: fn(&str) -> bool| folder.components().filter_map(|part| part.as_os_str().to_str()).any(is);
    let ata = vendor == Some("ATA");
    if above(|part| numbered(part, "usb")) {
        Transport::Usb
    } else if above(|part| numbered(part, "session")) {
        Transport::Iscsi
    } else if above(|part| part.starts_with("rport-")) {
        Transport::FibreChannel
    } else if above(|part| numbered(part, "ata")) {
        Transport::Sata
    } else if above(|part| part.starts_with("end_device-")) {
        if ata { Transport::Sata } else { Transport::Sas }
    } else if above(|part| numbered(part, "virtio")) {
        Transport::Virtio
    } else if above(|part| part == "mmc_host") {
        Transport::Mmc
    } else if above(|part| part.starts_with("vbd-")) {
        Transport::Xen
    } else if above(|part| numbered(part, "host")) {
        if ata { Transport::Sata } else { Transport::Scsi }
    } else {
        of_disk_driver(name)
    }
}

/// Devices whose driver alone says what they are, wherever they hang.
fn of_driver(name: &str) -> Option<Transport> {
    const DRIVERS: [(&str, Transport); 10] = [
        ("loop", Transport::Loop),
        ("dm-", Transport::DeviceMapper),
        ("md", Transport::Md),
        ("zram", Transport::Zram),
        ("ram", Transport::Ram),
        ("nbd", Transport::Nbd),
        ("rbd", Transport::Rbd),
        ("sr", Transport::Optical),
        ("scd", Transport::Optical),
        ("fd", Transport::Floppy),
    ];
    // `md_d0` and `md_home` are arrays as well.
    if name.starts_with("md_") {
        return Some(Transport::Md);
    }
    DRIVERS.iter().find(|(driver, _)| numbered(name, driver)).map(|(_, transport)| *transport)
}

/// A captured tree may have lost the folders above a device: then its driver, which the kernel name begins with, is
/// the best guess.
fn of_disk_driver(name: &str) -> Transport {
    const DRIVERS: [(&str, Transport); 5] = [
        ("sd", Transport::Scsi),
        ("vd", Transport::Virtio),
        ("xvd", Transport::Xen),
        ("mmcblk", Transport::Mmc),
        ("nvme", Transport::NvmeOther),
    ];
    DRIVERS
        .iter()
        .find(|(driver, _)| {
            name.strip_prefix(driver).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        })
        .map_or(Transport::Other, |(_, transport)| *transport)
}

/// `text` is `prefix` followed by a number.
fn numbered(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The transport of an NVMe controller: its attribute `transport` (drivers/nvme/host/sysfs.c), or its place in a tree
/// that lacks it.
pub(super) fn of_controller(word: Option<&str>, on_pci: bool) -> Transport {
    match word {
        Some("pcie") => Transport::NvmePcie,
        Some("tcp" | "rdma" | "fc" | "loop") => Transport::NvmeFabrics,
        Some(_) => Transport::NvmeOther,
        None if on_pci => Transport::NvmePcie,
        None => Transport::NvmeOther,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &str, name: &str, vendor: Option<&str>, expected: Transport) {
        assert_eq!(of(Path::new(folder), name, vendor), expected, "{folder}");
    }

    #[test]
    fn kernel_objects_tell_the_transport() {
        let pci = "devices/pci0000:00/0000:00:1f.2";
        let scsi = "host0/target0:0:0/0:0:0:0/block/sda";
        check(&format!("{pci}/ata1/{scsi}"), "sda", Some("ATA"), Transport::Sata);
        check(&format!("{pci}/usb2/2-1/2-1:1.0/{scsi}"), "sda", Some("ATA"), Transport::Usb);
        check(&format!("{pci}/host0/port-0:1/end_device-0:1/{scsi}"), "sda", Some("HGST"), Transport::Sas);
        check(&format!("{pci}/host0/port-0:1/end_device-0:1/{scsi}"), "sda", Some("ATA"), Transport::Sata);
        check(&format!("{pci}/host6/rport-6:0-1/{scsi}"), "sda", None, Transport::FibreChannel);
        check(&format!("devices/platform/host7/session3/{scsi}"), "sda", None, Transport::Iscsi);
        check(&format!("{pci}/virtio3/{scsi}"), "sda", Some("QEMU"), Transport::Virtio);
        check(&format!("devices/pseudo_0/adapter0/{scsi}"), "sda", Some("Linux"), Transport::Scsi);
        check(&format!("{pci}/virtio1/block/vda"), "vda", None, Transport::Virtio);
        check("devices/vbd-51712/block/xvda", "xvda", None, Transport::Xen);
        check("devices/platform/x/mmc_host/mmc0/mmc0:0001/block/mmcblk0", "mmcblk0", None, Transport::Mmc);
        check(&format!("{pci}/ata4/{scsi}"), "sr0", None, Transport::Optical);
    }

    #[test]
    fn drivers_tell_virtual_devices() {
        for (name, expected) in [
            ("loop12", Transport::Loop),
            ("dm-0", Transport::DeviceMapper),
            ("md127", Transport::Md),
            ("md_d0", Transport::Md),
            ("zram0", Transport::Zram),
            ("ram15", Transport::Ram),
            ("nbd3", Transport::Nbd),
            ("fd0", Transport::Floppy),
            ("sda", Transport::Scsi),
            ("vdb", Transport::Virtio),
            ("ramdisk", Transport::Other),
            ("zd16", Transport::Other),
            ("cciss/c0d0", Transport::Other),
        ] {
            check(&format!("devices/virtual/block/{name}"), name, None, expected);
        }
    }

    #[test]
    fn controllers() {
        assert_eq!(of_controller(Some("pcie"), true), Transport::NvmePcie);
        assert_eq!(of_controller(Some("tcp"), false), Transport::NvmeFabrics);
        assert_eq!(of_controller(Some("apple-nvme"), false), Transport::NvmeOther);
        assert_eq!(of_controller(None, true), Transport::NvmePcie);
        assert_eq!(of_controller(None, false), Transport::NvmeOther);
    }
}
