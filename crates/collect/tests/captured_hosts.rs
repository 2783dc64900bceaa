//! Discovery and stack of real hosts against what is known of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "helpers of tests fail by panicking, like the tests"
)]

mod realdata;
mod ttar;

use std::collections::BTreeMap;
use std::path::Path;
use storscope_collect::discovery::{self, Scan};
use storscope_collect::root::Root;
use storscope_collect::select::Selection;
use storscope_collect::stack;
use storscope_model::device::{Controller, DevNum, Device, Transport};
use storscope_model::sample::stack::{Node, Stack};

fn device<'a>(scan: &'a Scan, name: &str) -> &'a Device {
    scan.devices.iter().find(|device| device.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn controller<'a>(scan: &'a Scan, name: &str) -> &'a Controller {
    scan.controllers.iter().find(|controller| controller.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn node<'a>(stack: &'a Stack, name: &str) -> &'a Node {
    stack.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn points<'a>(stack: &'a Stack, name: &str) -> Vec<&'a str> {
    node(stack, name).mounts.iter().map(|mount| mount.point.as_str()).collect()
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

fn names(scan: &Scan) -> Vec<&str> {
    scan.devices.iter().map(|device| device.name.as_str()).collect()
}

fn selected(scan: &Scan) -> Vec<&str> {
    let defaults = Selection::default();
    scan.devices.iter().filter(|device| defaults.selected(device)).map(|device| device.name.as_str()).collect()
}

/// One of the tables that lsblk printed on the host: by kernel name, the text under each heading.
fn lsblk(host: &Path, table: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let name = host.file_name().unwrap().to_str().unwrap();
    let printed = std::fs::read_to_string(host.join(format!("lsblk-{name}-{table}"))).unwrap();
    let mut lines = printed.lines();
    let headings = words(lines.next().unwrap());
    lines
        .map(|line| {
            let mut cells: BTreeMap<String, String> =
                headings.iter().map(|(_, heading)| ((*heading).to_owned(), String::new())).collect();
            for (at, word) in words(line) {
                // A word stands over or under its heading, or goes on to the right of it.
                let under = |(start, heading): &&(usize, &str)| at < start + heading.len() && *start < at + word.len();
                let left = || headings.iter().rev().find(|(start, _)| *start <= at);
                let (_, heading) = headings.iter().find(under).or_else(left).unwrap();
                let cell = cells.get_mut(*heading).unwrap();
                if !cell.is_empty() {
                    cell.push(' ');
                }
                cell.push_str(word);
            }
            let name = cells["NAME"].trim_start_matches(['|', '`', '-']).to_owned();
            (name, cells)
        })
        .collect()
}

fn words(line: &str) -> Vec<(usize, &str)> {
    line.split_whitespace().map(|word| (word.as_ptr().addr() - line.as_ptr().addr(), word)).collect()
}

/// A size as lsblk prints it: one decimal in the largest unit that fits.
fn as_lsblk(bytes: u64) -> String {
    let mut unit = 0;
    while bytes >> (10 * (unit + 1)) > 0 {
        unit += 1;
    }
    let scale = 1_u64 << (10 * unit);
    let tenths = (bytes * 10 + scale / 2) / scale;
    let letter = ["B", "K", "M", "G", "T"][unit];
    match tenths % 10 {
        0 => format!("{}{letter}", tenths / 10),
        tenth => format!("{}.{tenth}{letter}", tenths / 10),
    }
}

#[test]
fn a_desktop_with_nvme_and_sata() {
    let Some(folder) = realdata::sysfs("simple-nvme") else { return };
    let host = folder.path().join("simple-nvme");
    let root = Root::captured(&host);
    let scan = discovery::scan(&root);
    assert_eq!(scan.faults, []);
    assert_eq!(selected(&scan), ["nvme0n1", "sda", "sdb"]);
    assert_eq!(scan.devices.len(), 13);
    let disk = device(&scan, "nvme0n1");
    assert_eq!(text(&disk.model), "KINGSTON SKC1000240G");
    assert_eq!((text(&disk.serial), text(&disk.firmware)), ("50026B7200000B02", "E7FT04.6"));
    assert_eq!(disk.id.0, "nvme-KINGSTON_SKC1000240G_50026B7200000B02_1");
    assert_eq!((text(&disk.pci_address), disk.transport), ("0000:01:00.0", Transport::NvmePcie));
    assert_eq!(disk.devnum, Some(DevNum { major: 259, minor: 0 }));
    let nqn = &disk.nvme.as_ref().unwrap().subsystem_nqn;
    assert_eq!(text(nqn), "nqn.2014.08.org.nvmexpress:1987198750026B7200000B02    KINGSTON SKC1000240G");
    assert_eq!(scan.controllers.len(), 1);
    assert_eq!(scan.controllers[0].id.0, "nvme-KINGSTON_SKC1000240G_50026B7200000B02_cntlid0");
    let sda = device(&scan, "sda");
    assert_eq!(
        (sda.transport, text(&sda.place.port), text(&sda.serial)),
        (Transport::Sata, "ata1", "50026B7200000A01")
    );
    assert!(sda.id.0.starts_with("wwn-0x5"), "{}", sda.id);
    let sdb = device(&scan, "sdb");
    assert_eq!((sdb.rotational, sdb.id.0.as_str()), (Some(true), "ata-WDC_WD800JD-00MS_WD-WMAM90000003"));
    agrees_with_lsblk(&scan, &host);

    let stack = stack::read(&root).unwrap();
    assert_eq!(stack.faults, []);
    assert_eq!(node(&stack, "nvme0n1").above, ["nvme0n1p1", "nvme0n1p2", "nvme0n1p3"]);
    for (name, row) in lsblk(&host, "basic") {
        let mounted: Vec<&str> =
            Some(row["MOUNTPOINT"].as_str()).filter(|point| !point.is_empty()).into_iter().collect();
        assert_eq!(points(&stack, &name), mounted, "{name}");
    }
}

#[test]
fn a_desktop_with_bcachefs_over_two_partitions() {
    let Some(folder) = realdata::sysfs("multi-devs-bcachefs") else { return };
    let host = folder.path().join("multi-devs-bcachefs");
    let root = Root::captured(&host);
    let scan = discovery::scan(&root);
    assert_eq!(scan.faults, []);
    assert_eq!(selected(&scan), ["nvme0n1", "sda", "sdb", "sdc"]);
    let nvme = device(&scan, "nvme0n1");
    assert_eq!((text(&nvme.model), text(&nvme.pci_address)), ("KINGSTON SFYR2S1T0", "0000:05:00.0"));
    assert_eq!(nvme.numa_node, None);
    let sda = device(&scan, "sda");
    assert_eq!(sda.id.0, "wwn-0x50026b7200000a01");
    let sdc = device(&scan, "sdc");
    assert_eq!((sdc.transport, &sdc.pci_address, text(&sdc.model)), (Transport::Scsi, &None, "scsi_debug"));
    assert_eq!(device(&scan, "sr0").transport, Transport::Optical);
    agrees_with_lsblk(&scan, &host);
    let models = lsblk(&host, "vendor");
    for name in ["sda", "sdb", "sdc", "nvme0n1"] {
        let device = device(&scan, name);
        assert_eq!(text(&device.model), models[name]["MODEL"], "{name}");
        assert_eq!(text(&device.firmware), models[name]["REV"], "{name}");
        assert_eq!(text(&device.vendor), models[name]["VENDOR"], "{name}");
    }

    let stack = stack::read(&root).unwrap();
    assert_eq!(stack.faults, []);
    for (name, row) in lsblk(&host, "mnt") {
        let mounts: Vec<(&str, &str)> =
            node(&stack, &name).mounts.iter().map(|mount| (mount.point.as_str(), mount.fs_type.as_str())).collect();
        let printed = (row["MOUNTPOINT"].as_str(), row["FSTYPE"].as_str());
        let printed: Vec<(&str, &str)> = Some(printed).filter(|(point, _)| !point.is_empty()).into_iter().collect();
        assert_eq!(mounts, printed, "{name}");
    }
}

fn agrees_with_lsblk(scan: &Scan, host: &Path) {
    let basic = lsblk(host, "basic");
    let mut printed: Vec<&str> = basic.keys().map(String::as_str).collect();
    let mut found = names(scan);
    printed.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, printed);
    let state = lsblk(host, "state");
    let flag = |value: Option<bool>| if value == Some(true) { "1" } else { "0" };
    for device in &scan.devices {
        let (basic, state) = (&basic[&device.name], &state[&device.name]);
        let number = device.devnum.map(|number| format!("{}:{}", number.major, number.minor));
        assert_eq!(number.as_ref(), Some(&basic["MAJ:MIN"]), "{}", device.name);
        assert_eq!(as_lsblk(device.size_bytes.unwrap()), basic["SIZE"], "{}", device.name);
        assert_eq!(flag(device.rotational), state["ROTA"], "{}", device.name);
        assert_eq!(flag(device.read_only), state["RO"], "{}", device.name);
        assert_eq!(flag(device.removable), state["RM"], "{}", device.name);
        assert_eq!(text(&device.partition_of), state["PKNAME"], "{}", device.name);
    }
}

#[test]
fn a_power_server_with_two_paths_to_one_drive() {
    let Some(folder) = realdata::sysfs("tree-pcie") else { return };
    let root = Root::captured(folder.path());
    let scan = discovery::scan(&root);
    assert_eq!(scan.faults, []);
    assert_eq!(names(&scan), ["nvme0n1", "nvme1n1"]);
    assert_eq!(scan.seen, 4);
    let addresses: Vec<&str> = scan.controllers.iter().map(|controller| text(&controller.pci_address)).collect();
    assert_eq!(addresses, ["0214:90:00.0", "052e:78:00.0", "058e:78:00.0"]);
    let slots: Vec<&str> = scan.controllers.iter().map(|controller| text(&controller.place.slot)).collect();
    assert_eq!(slots, ["U78DA.ND0.WZS004R-P1-C4", "U50EE.001.WZS000E-P3-C14-R1", "U50EE.001.WZS000E-P3-C14-R2"]);
    let nodes: Vec<Option<u32>> = scan.controllers.iter().map(|controller| controller.numa_node).collect();
    assert_eq!(nodes, [Some(1), Some(0), Some(2)]);
    let head = device(&scan, "nvme1n1");
    assert_eq!(head.devnum, Some(DevNum { major: 259, minor: 2 }));
    assert_eq!((text(&head.model), text(&head.firmware)), ("3.2TB NVMe Gen4 U.2 SSD III", "REV.SN66"));
    let namespace = head.nvme.as_ref().unwrap();
    let (first, second) = (&controller(&scan, "nvme1").id, &controller(&scan, "nvme2").id);
    assert_ne!(first, second);
    assert!(first.0.ends_with("_cntlid66") && second.0.ends_with("_cntlid65"));
    let paths: Vec<_> = namespace.paths.iter().map(|path| (path.name.as_str(), &path.controller)).collect();
    assert_eq!(paths, [("nvme1c1n1", first), ("nvme1c2n1", second)]);
    let plain = device(&scan, "nvme0n1");
    assert_eq!(plain.nvme.as_ref().unwrap().controllers, [controller(&scan, "nvme0").id.clone()]);
    assert_eq!(text(&plain.pci_address), "0214:90:00.0");
    assert_eq!(plain.logical_block_bytes, Some(4096));
    for name in ["nvme0n1", "nvme1n1"] {
        assert!(root.block(name).join("size").is_file(), "{name}");
    }
}

#[test]
fn the_procfs_fixtures() {
    let Some(archive) = realdata::path("procfs/fixtures.ttar") else { return };
    let folder = tempfile::tempdir().unwrap();
    let count = ttar::unpack(&std::fs::read(archive).unwrap(), folder.path()).unwrap();
    assert_eq!(count, 2986);
    let root = Root::captured(&folder.path().join("fixtures"));
    let scan = discovery::scan(&root);
    assert_eq!(scan.faults, []);
    assert_eq!(selected(&scan), ["nvme0n0", "sda", "sdb", "sdc", "sdd", "sde"]);
    let nvme = controller(&scan, "nvme0");
    assert_eq!((text(&nvme.model), nvme.cntlid), ("Samsung SSD 970 PRO 512GB", Some(1997)));
    let fabrics = controller(&scan, "nvme3");
    assert_eq!((fabrics.transport, text(&fabrics.serial)), (Transport::NvmeFabrics, "NTAP98765"));
    assert_eq!(text(&fabrics.address), "traddr=10.0.0.1,trsvcid=4420");
    assert_eq!(device(&scan, "dm-1").id.0, "dm-uuid-mpath-360000000000001");
    assert_eq!(device(&scan, "md0").id.0, "md-uuid-155f29ff-1716-4107-b362-52307ef86cac");

    let stack = stack::read(&root).unwrap();
    assert_eq!(stack.faults, []);
    let label = |name: &str| text(&node(&stack, name).label).to_owned();
    assert_eq!(label("md6"), "md6 (raid6, 3 of 4)");
    assert_eq!(label("md7"), "md7 (container, inactive)");
    assert_eq!(label("md8"), "md8 (raid5, 11 of 11)");
    assert_eq!(label("md0"), "md0 (raid0, 2 disks)");
    assert_eq!(label("dm-0"), "vg0-lv_root");
    assert_eq!(label("dm-1"), "multipath mpathA");
    assert_eq!(node(&stack, "sda").above, ["dm-0"]);
    assert!(node(&stack, "dm-2").swap);
}

#[test]
fn this_host() {
    let root = Root::live();
    let Ok(folder) = std::fs::read_dir(root.sys("class/block")) else {
        eprintln!("skipped: no sysfs");
        return;
    };
    let listed = folder.count();
    let scan = discovery::scan(&root);
    // Devices may come and go meanwhile, one by one.
    assert!(scan.seen.abs_diff(u64::try_from(listed).unwrap()) <= 2, "{listed} listed, {} seen", scan.seen);
    for device in &scan.devices {
        assert!(!device.id.0.is_empty() && device.devnum.is_some(), "{device:?}");
        assert!(root.block(&device.name).join("size").exists(), "{device:?}");
    }
    assert!(stack::read(&root).unwrap().nodes.len().abs_diff(scan.devices.len()) <= 2);
}

#[test]
fn dumps_of_drives() {
    let Some(dumps) = realdata::path("nvme") else { return };
    let host = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(dumps.join("intel-p4510"), host.path().join("drives")).unwrap();
    let scan = discovery::scan(&Root::captured(host.path()));
    assert_eq!(scan.faults, []);
    assert_eq!((scan.devices.len(), scan.controllers.len()), (0, 2));
    for controller in &scan.controllers {
        assert!(text(&controller.model).starts_with("INTEL SSDPE2KX"), "{controller:?}");
        assert!(!text(&controller.firmware).is_empty() && controller.cntlid.is_some());
    }
    assert_ne!(scan.controllers[0].id, scan.controllers[1].id);
}

#[test]
fn a_ttar_archive_is_unpacked_inside_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let archive =
        b"# comment\nDirectory: a\nMode: 755\nPath: a/b\nLines: 3\nPath: x\nNULLBYTE\\NULLBYTE\nendEOF\nMode: 644\n\
        Path: a/c\nLines: 0\nMode: 644\nPath: a/d\nLines: 1\n\\EOF\nPath: a/l\nSymlinkTo: ../nowhere\n";
    assert_eq!(ttar::unpack(archive, folder.path()), Ok(4));
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("a/b"), b"Path: x\n\0NULLBYTE\nend");
    assert_eq!((read("a/c"), read("a/d")), (vec![], b"EOF\n".to_vec()));
    assert_eq!(std::fs::read_link(folder.path().join("a/l")).unwrap(), Path::new("../nowhere"));
    for bad in [
        "Path: ../x\nLines: 0\n",
        "Path: /x\nLines: 0\n",
        "Directory: a/../../b\n",
        "Path: x\nLines: 2\none\n",
        "Path: x\n",
    ] {
        assert!(ttar::unpack(bad.as_bytes(), folder.path()).is_err(), "{bad}");
    }
}

#[test]
fn ten_thousand_devices() {
    const DEVICES: usize = 10_000;
    // A hundred thousand files: in memory, where the host has such a place.
    let memory = Root::live().node("shm");
    let host = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap();
    let root = Root::captured(host.path());
    std::fs::create_dir_all(root.sys("class/block")).unwrap();
    for number in 0..DEVICES {
        let folder =
            format!("devices/pci0000:00/0000:00:05.0/host0/rport-0:0-{number}/target0:0:{number}/0:0:{number}:0");
        let disk = root.sys(&format!("{folder}/block/sd{number}"));
        std::fs::create_dir_all(&disk).unwrap();
        for (file, content) in [("size", "2048"), ("dev", "8:1"), ("ro", "0"), ("removable", "0"), ("hidden", "0")] {
            std::fs::write(disk.join(file), content).unwrap();
        }
        let scsi = root.sys(&folder);
        // Every tenth shares its serial number with others.
        let serial = if number % 10 == 0 { "SAME".to_owned() } else { format!("S{number}") };
        for (file, content) in [("vendor", "ACME"), ("model", "LUN"), ("rev", "1"), ("serial", &serial)] {
            std::fs::write(scsi.join(file), content).unwrap();
        }
        std::os::unix::fs::symlink(format!("../../../0:0:{number}:0"), disk.join("device")).unwrap();
        let link = root.sys(&format!("class/block/sd{number}"));
        std::os::unix::fs::symlink(format!("../../{folder}/block/sd{number}"), link).unwrap();
    }
    let began = std::time::Instant::now();
    let scan = discovery::scan(&root);
    eprintln!("scan: {:?}", began.elapsed());
    assert_eq!((scan.devices.len(), scan.faults.len()), (DEVICES, 0));
    let mut ids: Vec<&str> = scan.devices.iter().map(|device| device.id.0.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), DEVICES);
    assert_eq!(scan.devices.iter().filter(|device| device.id.is_weak()).count(), DEVICES / 10);
    let began = std::time::Instant::now();
    assert_eq!(stack::read(&root).unwrap().nodes.len(), DEVICES);
    eprintln!("stack: {:?}", began.elapsed());
}
