use super::fixture::Host;
use super::*;
use crate::{stack, unprivileged};
use storscope_model::device::{DevNum, Transport, Zoned};

const PORT: &str = "devices/pci0000:00/0000:00:01.0";
const SATA: &str = "devices/pci0000:00/0000:00:17.0";

fn device<'a>(scan: &'a Scan, name: &str) -> &'a Device {
    scan.devices.iter().find(|device| device.name == name).unwrap_or_else(|| panic!("no {name} in {scan:#?}"))
}

fn controller<'a>(scan: &'a Scan, name: &str) -> &'a Controller {
    scan.controllers.iter().find(|controller| controller.name == name).unwrap()
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("-")
}

fn names(scan: &Scan) -> Vec<&str> {
    scan.devices.iter().map(|device| device.name.as_str()).collect()
}

fn add_nvme(host: &Host, function: &str, name: &str, serial: &str, cntlid: &str) -> String {
    host.nvme(
        &format!("{PORT}/{function}"),
        name,
        &[
            ("model", "ACME FAST 1000G                         "),
            ("serial", &format!("{serial}    ")),
            ("firmware_rev", "FW1 "),
            ("cntlid", cntlid),
            ("address", function),
            ("subsysnqn", &format!("nqn.2020-01.com.acme:{serial}    ACME FAST  ")),
        ],
    )
}

#[test]
fn an_nvme_drive_with_partitions() {
    let host = Host::new();
    let nvme = add_nvme(&host, "0000:01:00.0", "nvme0", "S1", "7");
    host.files(&format!("{PORT}/0000:01:00.0"), &[("numa_node", "1")]);
    host.file("bus/pci/slots/4-1/address", "0000:01:00\n");
    let disk = host.namespace(
        &nvme,
        "nvme0n1",
        &[
            ("size", "1953525168"),
            ("dev", "259:0"),
            ("ro", "0"),
            ("removable", "0"),
            ("wwid", "eui.0000000000000001"),
            ("queue/logical_block_size", "4096"),
            ("queue/rotational", "0"),
            ("queue/zoned", "host-managed"),
        ],
    );
    host.partition(&disk, "nvme0n1p1", "1", "259:1");
    let scan = scan(&host.root);
    assert_eq!(scan.faults, []);
    assert_eq!(scan.seen, 2);
    let disk = device(&scan, "nvme0n1");
    assert_eq!(disk.id.0, "nvme-ACME_FAST_1000G_S1_1");
    assert_eq!((text(&disk.model), text(&disk.serial), text(&disk.firmware)), ("ACME FAST 1000G", "S1", "FW1"));
    assert_eq!(disk.transport, Transport::NvmePcie);
    assert_eq!(disk.devnum, Some(DevNum { major: 259, minor: 0 }));
    assert_eq!((disk.size_bytes, disk.logical_block_bytes), (Some(1_953_525_168 * 512), Some(4096)));
    assert_eq!((disk.rotational, disk.read_only, disk.zoned), (Some(false), Some(false), Some(Zoned::HostManaged)));
    assert_eq!((text(&disk.pci_address), disk.numa_node), ("0000:01:00.0", Some(1)));
    assert_eq!(text(&disk.place.slot), "4-1");
    let namespace = disk.nvme.as_ref().unwrap();
    assert_eq!(namespace.nsid, Some(1));
    assert_eq!(text(&namespace.subsystem_nqn), "nqn.2020-01.com.acme:S1    ACME FAST");
    let nvme = controller(&scan, "nvme0");
    assert_eq!(namespace.controllers, std::slice::from_ref(&nvme.id));
    assert_eq!(nvme.id.0, "nvme-ACME_FAST_1000G_S1_cntlid7");
    assert_eq!((nvme.cntlid, text(&nvme.place.slot)), (Some(7), "4-1"));
    let partition = device(&scan, "nvme0n1p1");
    assert_eq!(partition.id.0, "nvme-ACME_FAST_1000G_S1_1-part1");
    assert_eq!(text(&partition.partition_of), "nvme0n1");
    assert_eq!((partition.size_bytes, partition.transport), (Some(2048 * 512), Transport::NvmePcie));
}

#[test]
fn a_head_has_paths_that_are_no_devices() {
    let host = Host::new();
    let first = add_nvme(&host, "052e:78:00.0", "nvme3", "S9", "66");
    let second = add_nvme(&host, "058e:78:00.0", "nvme10", "S9", "65");
    let subsystem = "devices/virtual/nvme-subsystem/nvme-subsys3";
    host.files(
        subsystem,
        &[("subsysnqn", "nqn.a:b"), ("model", "ACME FAST 1000G   "), ("serial", "S9  "), ("firmware_rev", "FW1")],
    );
    host.link("class/nvme-subsystem/nvme-subsys3", &format!("../../{subsystem}"));
    for (link, folder) in [("nvme3", &first), ("nvme10", &second)] {
        host.link(&format!("{subsystem}/{link}"), &format!("../../../../{folder}"));
    }
    host.namespace(subsystem, "nvme3n1", &[("nsid", "5")]);
    let hidden = [("nsid", "5"), ("hidden", "1")];
    let path = host.namespace(&first, "nvme3c3n1", &hidden);
    host.files(&path, &[("ana_state", "optimized")]);
    let path = host.namespace(&second, "nvme3c10n1", &hidden);
    host.files(&path, &[("ana_state", "inaccessible")]);
    host.namespace(&second, "nvme3c10n2", &[("nsid", "6"), ("hidden", "1")]);
    let scan = scan(&host.root);
    assert_eq!(names(&scan), ["nvme3n1"]);
    assert_eq!(scan.seen, 4);
    let head = device(&scan, "nvme3n1");
    assert_eq!(head.id.0, "nvme-ACME_FAST_1000G_S9_5");
    assert_eq!(head.transport, Transport::NvmePcie);
    assert_eq!(head.pci_address, None);
    let namespace = head.nvme.as_ref().unwrap();
    let (near, far) = (&controller(&scan, "nvme3").id, &controller(&scan, "nvme10").id);
    assert_eq!(namespace.controllers, [near.clone(), far.clone()]);
    let paths: Vec<_> =
        namespace.paths.iter().map(|path| (path.name.as_str(), &path.controller, text(&path.ana_state))).collect();
    assert_eq!(paths, [("nvme3c10n1", far, "inaccessible"), ("nvme3c3n1", near, "optimized")]);
    assert_eq!(scan.controllers[0].name, "nvme3");
}

#[test]
fn an_ata_disk_is_described_in_full() {
    let host = Host::new();
    let disk = host.scsi(
        &format!("{SATA}/ata3/host2"),
        "2:0:0:0",
        "sda",
        &[("vendor", "ATA     "), ("model", "ACME HARD 4000GX"), ("rev", "0001"), ("wwid", "t10.ATA     ACME   S77")],
    );
    host.file(&format!("{disk}/vpd_pg80"), b"\0\x80\0\x0c     S77    ");
    host.file(&format!("{disk}/vpd_pg83"), b"\0\x83\0\x0c\x01\x03\0\x08\x50\0\xc5\0\x01\x02\x03\x04");
    let mut page = vec![b' '; 572];
    page[..4].copy_from_slice(&[0, 0x89, 2, 0x38]);
    page[60 + 46..60 + 50].copy_from_slice(b"0A01");
    page[60 + 54..60 + 72].copy_from_slice(b"CAEMH RA D0400G0 X");
    host.file(&format!("{disk}/vpd_pg89"), page);
    let scan = scan(&host.root);
    let disk = device(&scan, "sda");
    assert_eq!(disk.id.0, "wwn-0x5000c50001020304");
    assert_eq!((text(&disk.model), text(&disk.firmware)), ("ACME HARD 40000GX", "A010"));
    assert_eq!((text(&disk.vendor), text(&disk.serial)), ("ATA", "S77"));
    assert_eq!((disk.transport, text(&disk.place.port)), (Transport::Sata, "ata3"));
    assert_eq!(text(&disk.pci_address), "0000:00:17.0");
}

#[test]
fn a_sas_disk_has_enclosure_and_bay() {
    let host = Host::new();
    let sas = format!("{SATA}/host11/port-11:0/expander-11:0");
    let disk = host.scsi(
        &format!("{sas}/port-11:0:1/end_device-11:0:1"),
        "11:0:8:0",
        "sdb",
        &[("vendor", "HGST    "), ("model", "H1"), ("wwid", "naa.5000CCA000000001")],
    );
    let shelf = format!("{sas}/port-11:0:9/end_device-11:0:9/target11:0:9/11:0:9:0/enclosure/11:0:9:0");
    host.files(&shelf, &[("id", "0x5000ccab00000000")]);
    host.folder(&format!("{shelf}/Slot 24"));
    host.link(
        &format!("{disk}/enclosure_device:Slot 24"),
        "../../../../port-11:0:9/end_device-11:0:9/target11:0:9/11:0:9:0/enclosure/11:0:9:0/Slot 24",
    );
    let bare = format!("{sas}/port-11:0:2/end_device-11:0:2");
    host.scsi(&bare, "11:0:3:0", "sdc", &[("vendor", "HGST"), ("model", "H1"), ("wwid", "naa.5000CCA000000002")]);
    host.files(
        &format!("{bare}/sas_device/end_device-11:0:2"),
        &[("bay_identifier", "23"), ("enclosure_identifier", "0x5000ccab00000000")],
    );
    let scan = scan(&host.root);
    let disk = device(&scan, "sdb");
    assert_eq!((disk.id.0.as_str(), disk.transport), ("wwn-0x5000cca000000001", Transport::Sas));
    assert_eq!((text(&disk.place.enclosure), text(&disk.place.bay)), ("0x5000ccab00000000", "Slot 24"));
    assert_eq!(text(&disk.place.port), "end_device-11:0:1");
    let bare = &device(&scan, "sdc").place;
    assert_eq!((text(&bare.enclosure), text(&bare.bay)), ("0x5000ccab00000000", "23"));
}

#[test]
fn usb_units_share_a_plug() {
    let host = Host::new();
    let plug = "devices/pci0000:00/0000:00:14.0/usb2/2-1";
    host.files(plug, &[("idVendor", "1234"), ("serial", "PLUG1")]);
    for (unit, name) in [("6:0:0:0", "sdd"), ("6:0:0:1", "sde")] {
        host.scsi(
            &format!("{plug}/2-1:1.0/host6"),
            unit,
            name,
            &[("vendor", "ACME"), ("model", "READER"), ("rev", "1")],
        );
    }
    let scan = scan(&host.root);
    assert_eq!(device(&scan, "sdd").id.0, "usb-ACME_READER_PLUG1_0:0:0");
    assert_eq!(device(&scan, "sde").id.0, "usb-ACME_READER_PLUG1_0:0:1");
    assert_eq!(device(&scan, "sde").transport, Transport::Usb);
    assert_eq!(text(&device(&scan, "sde").place.port), "usb 2-1");
}

#[test]
fn virtual_devices() {
    let host = Host::new();
    host.block("devices/virtual/block", "loop0", &[("size", "0")]);
    host.block("devices/virtual/block", "dm-0", &[("dm/uuid", "LVM-abc"), ("dm/name", "vg0-data")]);
    host.block("devices/virtual/block", "md127", &[("md/uuid", "155f29ff")]);
    host.block("devices/virtual/block", "zram0", &[]);
    host.block("devices/pci0000:00/0000:00:05.0/virtio2/block", "vda", &[("serial", "vol-7")]);
    host.block("devices/pci0000:00/0000:00:06.0/virtio3/block", "vdb", &[]);
    host.block("devices/pci0000:00/0000:00:07.0/cciss0/block", "cciss!c0d0", &[("size", "8")]);
    host.partition("devices/pci0000:00/0000:00:07.0/cciss0/block/cciss!c0d0", "cciss!c0d0p6", "6", "104:6");
    host.files(
        "devices/platform/soc/mmc_host/mmc0/mmc0:0001",
        &[("cid", "1501004a"), ("name", "AJTD4R"), ("serial", "0x12ab")],
    );
    for name in ["mmcblk0", "mmcblk0boot0"] {
        let folder = host.block("devices/platform/soc/mmc_host/mmc0/mmc0:0001/block", name, &[]);
        host.link(&format!("{folder}/device"), "../../../mmc0:0001");
    }
    let scan = scan(&host.root);
    let ids: Vec<_> = scan.devices.iter().map(|device| (device.name.as_str(), device.id.0.as_str())).collect();
    assert_eq!(
        ids,
        [
            ("cciss/c0d0", "weak:pci-0000:00:07.0-cciss0"),
            ("cciss/c0d0p6", "weak:pci-0000:00:07.0-cciss0-part6"),
            ("dm-0", "dm-uuid-LVM-abc"),
            ("loop0", "weak:loop0"),
            ("md127", "md-uuid-155f29ff"),
            ("mmcblk0", "mmc-1501004a"),
            ("mmcblk0boot0", "mmc-1501004a_boot0"),
            ("vda", "virtio-vol-7"),
            ("vdb", "weak:pci-0000:00:06.0"),
            ("zram0", "weak:zram0"),
        ]
    );
    assert_eq!(device(&scan, "mmcblk0").transport, Transport::Mmc);
    assert_eq!(text(&device(&scan, "cciss/c0d0p6").partition_of), "cciss/c0d0");
}

#[test]
fn shared_serial_numbers_are_told_apart_by_place() {
    let host = Host::new();
    for (function, name) in [("0000:01:00.0", "nvme0"), ("0000:02:00.0", "nvme1")] {
        let controller = add_nvme(&host, function, name, "SCRUBBED", "0");
        host.namespace(&controller, &format!("{name}n1"), &[]);
    }
    let scan = scan(&host.root);
    assert_eq!(device(&scan, "nvme0n1").id.0, "weak:nvme-ACME_FAST_1000G_SCRUBBED_1@pci-0000:01:00.0-nvme-1");
    assert_eq!(device(&scan, "nvme1n1").id.0, "weak:nvme-ACME_FAST_1000G_SCRUBBED_1@pci-0000:02:00.0-nvme-1");
    let ids: Vec<_> = scan.controllers.iter().map(|controller| controller.id.0.as_str()).collect();
    assert_eq!(
        ids,
        [
            "weak:nvme-ACME_FAST_1000G_SCRUBBED_cntlid0@nvme-pci-0000:01:00.0",
            "weak:nvme-ACME_FAST_1000G_SCRUBBED_cntlid0@nvme-pci-0000:02:00.0",
        ]
    );
}

#[test]
fn the_identity_survives_a_new_number() {
    let ids = |function: &str, name: &str| {
        let host = Host::new();
        let controller = add_nvme(&host, function, name, "S1", "0");
        host.namespace(&controller, &format!("{name}n1"), &[]);
        let scan = scan(&host.root);
        (scan.devices[0].id.clone(), scan.controllers[0].id.clone())
    };
    assert_eq!(ids("0000:01:00.0", "nvme0"), ids("0000:09:00.0", "nvme7"));
}

#[test]
fn layouts_of_captured_trees() {
    let with_block = Host::new();
    let disk = "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";
    with_block.files(disk, &[("size", "4096"), ("sda1/partition", "1"), ("sda1/size", "8")]);
    with_block.link("block/sda", &format!("../{disk}"));
    assert_eq!(names(&scan(&with_block.root)), ["sda", "sda1"]);

    let with_class_nvme = Host::new();
    let nvme = "devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0";
    with_class_nvme.files(nvme, &[("cntlid", "1"), ("serial", "S1"), ("nvme0n1/size", "8"), ("ng0n1/dev", "1:1")]);
    with_class_nvme.link(&format!("{nvme}/nvme0n1/subsystem"), "../../../../../../../class/block");
    with_class_nvme.link(&format!("{nvme}/ng0n1/subsystem"), "../../../../../../../class/nvme-generic");
    with_class_nvme.link("class/nvme/nvme0", &format!("../../{nvme}"));
    assert_eq!(names(&scan(&with_class_nvme.root)), ["nvme0n1"]);
}

#[test]
fn a_host_without_disks_is_no_fault() {
    let host = Host::new();
    assert_eq!(scan(&host.root), Scan::default());
    std::fs::remove_dir_all(&host.root.sys).unwrap();
    assert_eq!(scan(&host.root), Scan::default());
}

#[test]
fn malformed_attributes_cost_only_themselves() {
    let host = Host::new();
    let nvme = host.nvme(
        &format!("{PORT}/0000:01:00.0"),
        "nvme0",
        &[("cntlid", "99999999999"), ("transport", ""), ("address", "")],
    );
    host.file(&format!("{nvme}/model"), b"\xc0\x1c[\x87 \0\0");
    host.file(&format!("{nvme}/serial"), b"\0\0\0\0");
    host.namespace(
        &nvme,
        "nvme0n1",
        &[("nsid", "-1"), ("size", "99999999999999999999"), ("dev", "259"), ("ro", "maybe"), ("queue/zoned", "odd")],
    );
    host.link("class/block/loop", "loop");
    host.link("class/block/gone", "../../devices/gone/block/gone");
    host.link(&format!("{nvme}/nvme0n1/holders/x"), "x");
    host.file("bus/pci/slots/1/address", b"\xff\xff");
    let scan = scan(&host.root);
    assert_eq!(names(&scan), ["nvme0n1"]);
    let disk = device(&scan, "nvme0n1");
    assert_eq!(text(&disk.model), "\\xc0\\x1c[\\x87");
    assert_eq!((disk.size_bytes, disk.devnum, disk.read_only, disk.zoned), (None, None, None, None));
    assert_eq!(disk.id.0, "weak:pci-0000:01:00.0-nvme-");
    assert_eq!(controller(&scan, "nvme0").transport, Transport::NvmePcie);
    let faults: Vec<String> = scan.faults.iter().map(ToString::to_string).collect();
    for file in ["nvme0/cntlid", "nvme0n1/nsid", "nvme0n1/size", "nvme0n1/ro"] {
        assert!(faults.iter().any(|fault| fault.contains(file)), "{file}: {faults:#?}");
    }
}

#[test]
fn a_link_loop_is_not_followed() {
    let host = Host::new();
    host.link("devices/a/device", "../a");
    host.link("class/block/sda", "../../devices/a/device");
    host.link("devices/a/slaves", "../a");
    let disk = host.block("devices/pci0000:00/0000:00:01.0", "sdb", &[("size", "8")]);
    host.link(&format!("{disk}/device"), "device");
    host.link(&format!("{disk}/size2"), "size2");
    let scan = scan(&host.root);
    assert_eq!(names(&scan), ["sda", "sdb"]);
    assert_eq!(device(&scan, "sdb").size_bytes, Some(8 * 512));
}

#[test]
fn links_do_not_lead_to_the_host_that_replays() {
    let host = Host::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(outside.path().join("vda")).unwrap();
    host.link("class/block/vda", outside.path().join("vda").to_str().unwrap());
    host.link("class/block/vdb", "../../../../../../../../../../../../tmp");
    assert_eq!(names(&scan(&host.root)), Vec::<&str>::new());
}

#[test]
fn denied_attributes_are_told() {
    if !unprivileged::go_on("discovery::tests::denied_attributes_are_told") {
        return;
    }
    let host = Host::new();
    let disk = host.scsi(
        &format!("{SATA}/ata1/host0"),
        "0:0:0:0",
        "sda",
        &[("vendor", "ATA"), ("model", "ACME"), ("rev", "1")],
    );
    let page = host.file(&format!("{disk}/vpd_pg80"), b"\0\x80\0\x02S1");
    unprivileged::deny(&page);
    let scan = scan(&host.root);
    assert_eq!((text(&device(&scan, "sda").model), &device(&scan, "sda").serial), ("ACME", &None));
    assert!(device(&scan, "sda").id.is_weak());
    assert!(
        matches!(scan.faults.as_slice(), [Fault::Denied { path, .. }] if path.ends_with("vpd_pg80")),
        "{:?}",
        scan.faults
    );
}

/// Opening `path` fails with ELOOP, whoever asks.
fn unreadable(host: &Host, path: &str) {
    let name = path.rsplit('/').next().unwrap();
    host.link(path, name);
}

#[test]
fn a_failed_read_marks_its_device_and_no_other() {
    let host = Host::new();
    let sata = format!("{SATA}/ata1/host0");
    let disk = host.scsi(&sata, "0:0:0:0", "sda", &[("vendor", "ATA"), ("model", "ACME"), ("rev", "1")]);
    host.scsi(&sata, "0:0:1:0", "sdb", &[("vendor", "ATA"), ("model", "ACME"), ("rev", "1")]);
    unreadable(&host, &format!("{disk}/vpd_pg80"));
    let drive = host.nvme("devices/pci0000:00/0000:01:00.0", "nvme0", &[("model", "ACME")]);
    unreadable(&host, &format!("{drive}/serial"));
    let scan = scan(&host.root);
    assert_eq!(scan.unread.iter().map(String::as_str).collect::<Vec<_>>(), ["nvme0", "sda"]);
    assert_eq!(scan.incomplete, None);
    assert_eq!(scan.devices.len(), 2);
}

#[test]
fn each_list_that_fails_makes_the_scan_incomplete() {
    for list in ["block", "class/block", "class/nvme", "class/nvme-subsystem"] {
        let host = Host::new();
        host.folder("class");
        unreadable(&host, list);
        let scan = scan(&host.root);
        assert!(
            matches!(&scan.incomplete, Some(Fault::Io { path, errno: nix::libc::ELOOP }) if path.ends_with(list)),
            "{list}: {:?}",
            scan.incomplete
        );
        assert!(stack::read(&host.root).is_err(), "{list}");
    }
}

#[test]
fn a_denied_list_makes_the_scan_incomplete() {
    if !unprivileged::go_on("discovery::tests::a_denied_list_makes_the_scan_incomplete") {
        return;
    }
    let host = Host::new();
    let folder = host.folder("class/block");
    unprivileged::deny(&folder);
    assert!(matches!(scan(&host.root).incomplete, Some(Fault::Denied { .. })));
}

#[test]
fn faults_are_bounded() {
    let host = Host::new();
    for number in 0..MAX_FAULTS + 10 {
        host.block("devices/virtual/block", &format!("sd{number}"), &[("size", "much")]);
    }
    let scan = scan(&host.root);
    assert_eq!(scan.devices.len(), MAX_FAULTS + 10);
    assert_eq!(scan.faults.len(), MAX_FAULTS);
}

#[test]
fn controllers_of_a_dump_are_shown() {
    let host = Host::new();
    let mut page = vec![0; 4096];
    page[4..24].copy_from_slice(b"S4711               ");
    page[24..64].copy_from_slice(b"ACME DUMPED 2T                          ");
    page[64..72].copy_from_slice(b"FW9     ");
    page[78..80].copy_from_slice(&[3, 0]);
    page[80..84].copy_from_slice(&[0, 4, 1, 0]);
    host.top("drives/nvme5/identify.bin", &page);
    host.top("drives/nvme6/identify.bin", b"short");
    host.top("drives/nvme7/logpage-0x02.bin", b"");
    host.top("drives/README", b"");
    let scan = scan(&host.root);
    let found: Vec<_> = scan.controllers.iter().map(|found| (found.name.as_str(), found.id.0.as_str())).collect();
    assert_eq!(
        found,
        [
            ("nvme5", "nvme-ACME_DUMPED_2T_S4711_cntlid3"),
            ("nvme6", "weak:captured-nvme6"),
            ("nvme7", "weak:captured-nvme7"),
        ]
    );
    assert_eq!(text(&scan.controllers[0].firmware), "FW9");
    assert!(matches!(scan.faults.as_slice(), [Fault::Parse { path, .. }] if path.ends_with("nvme6/identify.bin")));
}
