//! A host with an identity in every place that the kernel, a drive or a person puts one. All are made up.

use super::super::identity::{bytes, hexadecimal, swapped, uuid};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use storscope_collect::root::Root;

pub(super) const NVME_SERIAL: &str = "S64HNE0T517223";
pub(super) const FABRIC_SERIAL: &str = "a7c31b9e44d0f218";
pub(super) const SATA_SERIAL: &str = "WD-WX41A69K7RTE";
pub(super) const SAS_SERIAL: &str = "ZC1B9QX50000C8";
pub(super) const USB_SERIAL: &str = "070B6A41F7D33C12";
pub(super) const VIRTIO_SERIAL: &str = "acmeroot0017";
pub(super) const CARD: &str = "1b534d4542315154309c3fd71e013a00";
pub(super) const NGUID: &str = "36344830527172230025384500000001";
pub(super) const EUI: &str = "0025388b11d4e7f3";
pub(super) const SATA_WWN: &str = "50014ee2b9d47c1a";
pub(super) const SAS_WWN: &str = "5000c500d2e9f347";
pub(super) const SAS_ADDRESS: &str = "5000c500d2e9f345";
pub(super) const ENCLOSURE: &str = "500304801e8c77bf";
pub(super) const HOST_UUID: &str = "7d1f03c2a95b4e6685f04c19be27d08a";
pub(super) const BOOT_UUID: &str = "c40b7a1e93d24f588a6db31507e2f96c";
pub(super) const MD_UUID: &str = "9f2c6b71d05e48a3b1c77e0d4a86f253";
pub(super) const LUKS_UUID: &str = "5be80d1f7a6349c2905ed7c1b08a64f3";
pub(super) const BTRFS_UUID: &str = "e2907d5cb14f4a3c8d60f19b7e35c2a8";
pub(super) const GROUP_UUID: &str = "Qm7XwLk2RtZp9sVb4NcYh8FgDj3KaUe1";
pub(super) const VOLUME_UUID: &str = "bT5yHn8WqE2rSx6ZcVm4KpLd9GjFu7Ao";
pub(super) const ADDRESS: &str = "192.168.77.214";
pub(super) const HOST: &str = "kestrel-17.widgetworks.example";

/// Everything that must not be left: numbers, texts, and words.
pub(super) const NUMBERS: [&str; 14] = [
    CARD,
    NGUID,
    EUI,
    SATA_WWN,
    SAS_WWN,
    SAS_ADDRESS,
    ENCLOSURE,
    HOST_UUID,
    BOOT_UUID,
    MD_UUID,
    LUKS_UUID,
    BTRFS_UUID,
    FABRIC_SERIAL,
    USB_SERIAL,
];
pub(super) const TEXTS: [&str; 9] =
    [NVME_SERIAL, SATA_SERIAL, SAS_SERIAL, VIRTIO_SERIAL, GROUP_UUID, VOLUME_UUID, ADDRESS, FABRIC_SERIAL, USB_SERIAL];
pub(super) const WORDS: [&str; 8] =
    ["kestrel", "widgetworks", "wwgroup", "ledgers", "crypthome", "mariposa", "invoices", HOST];

pub(super) struct Host {
    pub(super) folder: tempfile::TempDir,
}

impl Host {
    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(super) fn root(&self) -> Root {
        Root::captured(self.folder.path())
    }

    pub(super) fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }

    fn files(&self, folder: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            self.file(&format!("{folder}/{name}"), format!("{text}\n"));
        }
    }

    pub(super) fn link(&self, path: &str, target: &str) {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(target, place).unwrap();
    }

    pub(super) fn block(&self, folder: &str, number: &str, files: &[(&str, &str)]) {
        let name = folder.rsplit('/').next().unwrap();
        self.files(
            folder,
            &[("dev", number), ("size", "2097152"), ("ro", "0"), ("removable", "0"), ("stat", "1 2 3 4")],
        );
        self.files(folder, files);
        self.files(&format!("{folder}/queue"), &[("rotational", "0"), ("logical_block_size", "512"), ("iostats", "1")]);
        self.link(&format!("sys/class/block/{name}"), &format!("../../{}", folder.strip_prefix("sys/").unwrap()));
    }
}

fn page(code: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[0, code, length[0], length[1]], body].concat()
}

pub(super) fn number(digits: &str) -> Vec<u8> {
    bytes(digits).unwrap()
}

pub(super) fn host() -> Host {
    let host = Host { folder: tempfile::tempdir().unwrap() };
    procfs_of(&host);
    local_nvme(&host);
    fabrics(&host);
    sata(&host);
    sas(&host);
    others(&host);
    stacked(&host);
    pages_of(&host);
    host
}

fn procfs_of(host: &Host) {
    host.file("proc/diskstats", "259 0 nvme0n1 1 2 3 4 5 6 7 8 0 9 10\n9 127 md_kestrel 1 2 3 4 5 6 7 8 0 9 10\n");
    host.file("proc/stat", "cpu 1 2 3 4 5 6 7 8\nbtime 1700000000\n");
    host.file("proc/sys/kernel/hostname", format!("{HOST}\n"));
    host.file("proc/sys/kernel/osrelease", "6.12.0\n");
    host.file("proc/version", "Linux version 6.12.0 (root@kestrel-17) #1\n");
    host.file("proc/sys/kernel/random/boot_id", format!("{}\n", uuid(BOOT_UUID).unwrap()));
    host.file(
        "proc/1/mountinfo",
        format!(
            "22 1 259:1 / / rw - ext4 /dev/disk/by-uuid/{} rw\n\
             23 22 252:0 / /srv/mariposa/data rw - xfs /dev/mapper/wwgroup-ledgers rw,attr2\n\
             24 22 0:40 / /home rw - btrfs /dev/sdb rw,subvolid=5,subvol=/\n\
             25 22 0:41 / /mnt/nas rw - nfs4 nas.widgetworks.example:/invoices rw,clientaddr={ADDRESS}\n",
            uuid(HOST_UUID).unwrap()
        ),
    );
    host.file(
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/dm-1 partition 1 0 -2\n/home/mariposa/swap file 1 0 -3\n",
    );
    host.link(&format!("dev/disk/by-uuid/{}", uuid(HOST_UUID).unwrap()), "../../nvme0n1p1");
    host.link("dev/mapper/wwgroup-ledgers", "../dm-0");
}

fn local_nvme(host: &Host) {
    let port = "sys/devices/pci0000:00/0000:00:01.0";
    let function = format!("{port}/0000:01:00.0");
    for folder in [port, function.as_str()] {
        host.files(
            folder,
            &[("current_link_speed", "16.0 GT/s PCIe"), ("current_link_width", "4"), ("numa_node", "0")],
        );
        host.files(
            folder,
            &[("max_link_speed", "16.0 GT/s PCIe"), ("max_link_width", "4"), ("power/runtime_status", "active")],
        );
    }
    host.file(&format!("{function}/aer_dev_correctable"), "RxErr 3\nTOTAL_ERR_COR 3\n");
    let controller = format!("{function}/nvme/nvme0");
    let nqn = format!("nqn.1994-11.com.samsung:nvme:PM9A3:2.5-inch:{NVME_SERIAL}      ");
    host.files(
        &controller,
        &[
            ("transport", "pcie"),
            ("model", "SAMSUNG MZQL27T6HBLA-00A07              "),
            ("serial", &format!("{NVME_SERIAL}      ")),
            ("firmware_rev", "GDC5902Q"),
            ("cntlid", "6"),
            ("subsysnqn", &nqn),
            ("address", "0000:01:00.0"),
            ("state", "live"),
        ],
    );
    host.link("sys/class/nvme/nvme0", &format!("../../{}", controller.strip_prefix("sys/").unwrap()));
    let wwid = format!(
        "nvme.144d-{}-{}-00000001",
        hexadecimal(NVME_SERIAL.as_bytes()),
        hexadecimal(b"SAMSUNG MZQL27T6HBLA-00A07")
    );
    let disk = format!("{controller}/nvme0n1");
    let pairs: Vec<String> = (0..8).map(|at| EUI[at * 2..at * 2 + 2].to_owned()).collect();
    host.block(
        &disk,
        "259:0",
        &[("nsid", "1"), ("wwid", &wwid), ("nguid", &uuid(NGUID).unwrap()), ("eui", &pairs.join(" "))],
    );
    host.link(&format!("{disk}/device"), "../../nvme0");
    host.files(&format!("{disk}/nvme0n1p1"), &[("partition", "1"), ("dev", "259:1"), ("size", "2048"), ("ro", "0")]);
    host.link("sys/class/block/nvme0n1p1", &format!("../../{}/nvme0n1p1", disk.strip_prefix("sys/").unwrap()));
}

fn fabrics(host: &Host) {
    let nqn = format!("nqn.2014-08.org.nvmexpress:uuid:{}", uuid(HOST_UUID).unwrap());
    let about =
        [("model", "Linux"), ("serial", FABRIC_SERIAL), ("firmware_rev", "6.12.0"), ("subsysnqn", nqn.as_str())];
    let controller = "sys/devices/virtual/nvme-fabrics/ctl/nvme1";
    host.files(controller, &about);
    let address = format!("traddr={ADDRESS},trsvcid=4420,src_addr=10.77.3.5");
    host.files(controller, &[("transport", "tcp"), ("cntlid", "1"), ("state", "live"), ("address", &address)]);
    host.link("sys/class/nvme/nvme1", "../../devices/virtual/nvme-fabrics/ctl/nvme1");
    let subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys1";
    host.files(subsystem, &about);
    host.link("sys/class/nvme-subsystem/nvme-subsys1", "../../devices/virtual/nvme-subsystem/nvme-subsys1");
    host.link(&format!("{subsystem}/nvme1"), "../../nvme-fabrics/ctl/nvme1");
    let wwid = format!("uuid.{}", uuid(HOST_UUID).unwrap());
    host.block(&format!("{subsystem}/nvme1n1"), "259:5", &[("nsid", "1"), ("wwid", &wwid), ("hidden", "0")]);
    host.block(
        &format!("{controller}/nvme1c1n1"),
        "259:6",
        &[("nsid", "1"), ("hidden", "1"), ("ana_state", "optimized")],
    );
    host.link(&format!("{subsystem}/nvme1n1/device"), "../../nvme-subsys1");
    host.link(&format!("{controller}/nvme1c1n1/device"), "../../nvme1");
}

fn sata(host: &Host) {
    let scsi = "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0";
    host.block(&format!("{scsi}/block/sda"), "8:0", &[]);
    host.link(&format!("{scsi}/block/sda/device"), "../../../2:0:0:0");
    host.files(scsi, &[("vendor", "ATA     "), ("model", "WDC WD40EFRX-68N"), ("rev", "0A82"), ("scsi_level", "6")]);
    host.files(scsi, &[("state", "running"), ("wwid", &format!("naa.{SATA_WWN}"))]);
    host.file(&format!("{scsi}/vpd_pg80"), page(0x80, format!("{SATA_SERIAL:>20}").as_bytes()));
    let t10 = format!("ATA     {:40}{SATA_SERIAL:>20}", "WDC WD40EFRX-68N32N0");
    let designators = [&[2, 1, 0, 68][..], t10.as_bytes(), &[1, 3, 0, 8], number(SATA_WWN).as_slice()].concat();
    host.file(&format!("{scsi}/vpd_pg83"), page(0x83, &designators));
    let mut identify = vec![0; 568];
    identify[56 + 20..56 + 40].copy_from_slice(&swapped(format!("{SATA_SERIAL:>20}").as_bytes()));
    identify[56 + 46..56 + 54].copy_from_slice(&swapped(b"82.00A82"));
    identify[56 + 54..56 + 94].copy_from_slice(&swapped(format!("{:40}", "WDC WD40EFRX-68N32N0").as_bytes()));
    identify[56 + 216..56 + 224].copy_from_slice(&swapped(&number(SATA_WWN)));
    host.file(&format!("{scsi}/vpd_pg89"), page(0x89, &identify));
}

fn sas(host: &Host) {
    let end_device = "sys/devices/pci0000:00/0000:00:02.0/0000:03:00.0/host0/port-0:0/end_device-0:0";
    host.files(
        &format!("{end_device}/sas_device/end_device-0:0"),
        &[
            ("sas_address", &format!("0x{SAS_ADDRESS}")),
            ("enclosure_identifier", &format!("0x{ENCLOSURE}")),
            ("bay_identifier", "4"),
        ],
    );
    let scsi = format!("{end_device}/target0:0:0/0:0:0:0");
    host.block(&format!("{scsi}/block/sdb"), "8:16", &[]);
    host.link(&format!("{scsi}/block/sdb/device"), "../../../0:0:0:0");
    host.files(&scsi, &[("vendor", "SEAGATE "), ("model", "ST18000NM004J   "), ("rev", "E002"), ("scsi_level", "7")]);
    host.file(&format!("{scsi}/vpd_pg80"), page(0x80, SAS_SERIAL.as_bytes()));
    host.file(&format!("{scsi}/vpd_pg83"), page(0x83, &[&[1, 3, 0, 8][..], &number(SAS_WWN)].concat()));
    // A maker of enclosures that names its bays by what is in them.
    let bay = format!("Slot04-{SAS_SERIAL}");
    host.files("sys/devices/pseudo/enclosure/0:0:9:0", &[("id", &format!("0x{ENCLOSURE}"))]);
    host.files(&format!("sys/devices/pseudo/enclosure/0:0:9:0/{bay}"), &[("status", "OK")]);
    let up = "../".repeat(scsi.split('/').count() - 2);
    host.link(&format!("{scsi}/enclosure_device:{bay}"), &format!("{up}devices/pseudo/enclosure/0:0:9:0/{bay}"));
}

fn others(host: &Host) {
    let plug = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-2";
    host.files("sys/devices/pci0000:00/0000:00:14.0/usb1", &[("idVendor", "1d6b"), ("serial", "0000:00:14.0")]);
    host.files(plug, &[("idVendor", "0781"), ("idProduct", "5583"), ("serial", USB_SERIAL)]);
    let scsi = format!("{plug}/1-2:1.0/host6/target6:0:0/6:0:0:0");
    host.block(&format!("{scsi}/block/sdc"), "8:32", &[]);
    host.link(&format!("{scsi}/block/sdc/device"), "../../../6:0:0:0");
    host.files(&scsi, &[("vendor", "SanDisk "), ("model", "Ultra Fit       "), ("rev", "1.00"), ("scsi_level", "7")]);
    let virtio = "sys/devices/pci0000:00/0000:00:05.0/virtio2";
    host.block(&format!("{virtio}/block/vda"), "254:0", &[("serial", VIRTIO_SERIAL)]);
    host.link(&format!("{virtio}/block/vda/device"), "../../../virtio2");
    let card = "sys/devices/platform/soc/fe340000.mmc/mmc_host/mmc0/mmc0:0001";
    host.block(&format!("{card}/block/mmcblk0"), "179:0", &[]);
    host.link(&format!("{card}/block/mmcblk0/device"), "../../../mmc0:0001");
    host.files(card, &[("name", "EB1QT"), ("serial", &format!("0x{}", &CARD[18..26])), ("cid", CARD), ("type", "SD")]);
    host.file("sys/bus/pci/slots/4/address", "0000:01:00\n");
}

fn stacked(host: &Host) {
    let of = |name: &str| format!("sys/devices/virtual/block/{name}");
    host.block(
        &of("dm-0"),
        "252:0",
        &[("dm/name", "wwgroup-ledgers"), ("dm/uuid", &format!("LVM-{GROUP_UUID}{VOLUME_UUID}"))],
    );
    host.block(
        &of("dm-1"),
        "252:1",
        &[("dm/name", "luks-crypthome"), ("dm/uuid", &format!("CRYPT-LUKS2-{LUKS_UUID}-luks-crypthome"))],
    );
    let groups: Vec<&str> = (0..4).map(|at| &MD_UUID[at * 8..at * 8 + 8]).collect();
    host.block(
        &of("md_kestrel"),
        "9:127",
        &[("md/uuid", &groups.join(":")), ("md/level", "raid1"), ("md/raid_disks", "2")],
    );
    host.block(&of("loop0"), "7:0", &[("loop/backing_file", "/home/mariposa/invoices.img")]);
    host.link(
        &format!("{}/slaves/sda", of("md_kestrel")),
        "../../../../pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0/block/sda",
    );
    host.link(&format!("{}/slaves/md_kestrel", of("dm-0")), "../../md_kestrel");
    let pool = format!("sys/fs/btrfs/{}/devices", uuid(BTRFS_UUID).unwrap());
    host.link(&format!("{pool}/sdb"), "../../../../class/block/sdb");
    host.link(&format!("{pool}/sdc"), "../../../../class/block/sdc");
}

fn pages_of(host: &Host) {
    let mut identify = vec![0; 4096];
    identify[0..2].copy_from_slice(&[0x4d, 0x14]);
    identify[4..24].copy_from_slice(format!("{NVME_SERIAL:20}").as_bytes());
    identify[24..64].copy_from_slice(format!("{:40}", "SAMSUNG MZQL27T6HBLA-00A07").as_bytes());
    identify[64..72].copy_from_slice(b"GDC5902Q");
    identify[80..84].copy_from_slice(&[0, 4, 1, 0]);
    identify[516] = 1;
    let nqn = format!("nqn.1994-11.com.samsung:nvme:PM9A3:2.5-inch:{NVME_SERIAL}      ");
    identify[768..768 + nqn.len()].copy_from_slice(nqn.as_bytes());
    identify[3072..3072 + NVME_SERIAL.len()].copy_from_slice(NVME_SERIAL.as_bytes());
    host.file("drives/nvme0/identify.bin", identify);
    let mut namespace = vec![0; 4096];
    namespace[..8].copy_from_slice(&0x1000_u64.to_le_bytes());
    namespace[104..120].copy_from_slice(&number(NGUID));
    namespace[120..128].copy_from_slice(&number(EUI));
    namespace[130] = 9;
    host.file("drives/nvme0/identify-ns-1.bin", namespace);
    let mut smart = vec![0; 512];
    smart[1..3].copy_from_slice(&310_u16.to_le_bytes());
    (smart[3], smart[4]) = (100, 10);
    host.file("drives/nvme0/logpage-0x02.bin", smart);
}
