//! Drives and disks that never were, with the shape of real ones.

use crate::fixture::Host;

/// The folder of a root port in `devices`.
pub(crate) const PORT: &str = "devices/pci0000:00/0000:00:01.1";
/// The folder of a SATA adapter in `devices`.
pub(crate) const SATA: &str = "devices/pci0000:00/0000:00:17.0";
/// The folder of dm, md and other virtual devices in `devices`.
pub(crate) const VIRTUAL: &str = "devices/virtual/block";

/// Identify Controller (NVM Express Base Specification 2.0, figure 275) of a drive with the usual pages.
pub(crate) struct Identify {
    page: Vec<u8>,
}

impl Identify {
    pub(crate) fn new(serial: &str, model: &str, firmware: &str) -> Self {
        let mut page = vec![0; 4096];
        page[0..2].copy_from_slice(&0x1234_u16.to_le_bytes());
        padded(&mut page[4..24], serial);
        padded(&mut page[24..64], model);
        padded(&mut page[64..72], firmware);
        page[78..80].copy_from_slice(&1_u16.to_le_bytes());
        // Version 1.4.
        page[80..84].copy_from_slice(&0x0001_0400_u32.to_le_bytes());
        // Firmware slots: two. Error log: 64 entries.
        (page[260], page[262]) = (0b0000_0101, 63);
        page[266..268].copy_from_slice(&(273_u16 + 80).to_le_bytes());
        page[268..270].copy_from_slice(&(273_u16 + 85).to_le_bytes());
        page[280..296].copy_from_slice(&1_920_383_410_176_u128.to_le_bytes());
        page[516..520].copy_from_slice(&32_u32.to_le_bytes());
        Self { page }
    }

    /// States version `raw` as the VER field has it.
    pub(crate) fn version(mut self, raw: u32) -> Self {
        self.page[80..84].copy_from_slice(&raw.to_le_bytes());
        self
    }

    pub(crate) fn page(&self) -> &[u8] {
        &self.page
    }
}

fn padded(field: &mut [u8], text: &str) {
    field.fill(b' ');
    field[..text.len()].copy_from_slice(text.as_bytes());
}

/// SMART / Health Information (the same, figure 207) of a drive in good health.
#[derive(Debug, Clone)]
pub(crate) struct Smart {
    pub(crate) warning: u8,
    pub(crate) kelvin: u16,
    pub(crate) spare: u8,
    pub(crate) used: u8,
    pub(crate) units_written: u128,
    pub(crate) media_errors: u128,
    pub(crate) error_entries: u128,
    pub(crate) sensors: [u16; 8],
}

impl Default for Smart {
    fn default() -> Self {
        Self {
            warning: 0,
            kelvin: 273 + 41,
            spare: 100,
            used: 3,
            units_written: 750_000_000,
            media_errors: 0,
            error_entries: 0,
            sensors: [273 + 41, 273 + 52, 0, 0, 0, 0, 0, 0],
        }
    }
}

impl Smart {
    pub(crate) fn page(&self) -> Vec<u8> {
        let mut page = vec![0; 512];
        page[0] = self.warning;
        page[1..3].copy_from_slice(&self.kelvin.to_le_bytes());
        (page[3], page[4], page[5]) = (self.spare, 10, self.used);
        let counters: [(usize, u128); 10] = [
            (32, 370_000_000),
            (48, self.units_written),
            (64, 14_000_000_000),
            (80, 52_000_000_000),
            (96, 14_000),
            (112, 7),
            (128, 25_000),
            (144, 1),
            (160, self.media_errors),
            (176, self.error_entries),
        ];
        for (at, value) in counters {
            page[at..at + 16].copy_from_slice(&value.to_le_bytes());
        }
        for (slot, kelvin) in self.sensors.into_iter().enumerate() {
            page[200 + 2 * slot..202 + 2 * slot].copy_from_slice(&kelvin.to_le_bytes());
        }
        page
    }
}

/// What a drive answers, in `drives/NAME`.
pub(crate) fn pages(host: &Host, name: &str, identify: &Identify, smart: &Smart) {
    host.top(&format!("drives/{name}/identify.bin"), identify.page());
    host.top(&format!("drives/{name}/logpage-0x02.bin"), smart.page());
    let mut firmware = vec![0; 512];
    firmware[0] = 1;
    firmware[8..16].copy_from_slice(&identify.page()[64..72]);
    host.top(&format!("drives/{name}/logpage-0x03.bin"), firmware);
    host.top(&format!("drives/{name}/logpage-0x01.bin"), vec![0; 512]);
}

/// The link of a PCI function: what it runs at and what it can do, as `(GT/s, lanes)`.
pub(crate) fn link(host: &Host, function: &str, current: (&str, &str), maximum: (&str, &str)) {
    host.files(
        function,
        &[
            ("current_link_speed", current.0),
            ("current_link_width", current.1),
            ("max_link_speed", maximum.0),
            ("max_link_width", maximum.1),
        ],
    );
}

pub(crate) const FULL: (&str, &str) = ("16.0 GT/s PCIe", "4");

/// An NVMe drive with one namespace `NAMEn1` at `function` below the port, its link at full speed.
pub(crate) fn nvme(host: &Host, function: &str, name: &str, serial: &str, minor: u32) -> String {
    let folder = format!("{PORT}/{function}");
    link(host, &folder, FULL, FULL);
    link(host, PORT, FULL, FULL);
    host.files(&folder, &[("numa_node", "0"), ("power/runtime_status", "active"), ("power_state", "D0")]);
    let controller = host.nvme(
        &folder,
        name,
        &[
            ("model", "ACME FAST 1920G                         "),
            ("serial", &format!("{serial}    ")),
            ("firmware_rev", "FW1     "),
            ("cntlid", "1"),
            ("address", function),
            ("subsysnqn", &format!("nqn.2020-01.com.acme:{serial}")),
        ],
    );
    let number = format!("259:{minor}");
    let files = [("size", "3750748848"), ("dev", number.as_str()), ("ro", "0"), ("removable", "0")];
    let namespace = host.namespace(&controller, &format!("{name}n1"), &files);
    queue(host, &namespace, &[("scheduler", "[none] mq-deadline "), ("rotational", "0")]);
    controller
}

/// The usual queue settings of a block device in `folder`, and what a test adds or changes.
pub(crate) fn queue(host: &Host, folder: &str, more: &[(&str, &str)]) {
    let queue = format!("{folder}/queue");
    host.files(
        &queue,
        &[
            ("logical_block_size", "512"),
            ("physical_block_size", "4096"),
            ("nr_requests", "1023"),
            ("read_ahead_kb", "128"),
            ("max_sectors_kb", "512"),
            ("write_cache", "write back"),
        ],
    );
    host.files(&queue, more);
    host.file(&format!("{folder}/inflight"), "       0        0\n");
}

/// A SATA disk on port `port`, whether it rotates as `rotational` says.
pub(crate) fn sata(host: &Host, port: u32, name: &str, serial: &str, rotational: bool) -> String {
    let ata = format!("{SATA}/ata{port}/host{}", port - 1);
    let address = format!("{}:0:0:0", port - 1);
    let device = host.scsi(
        &ata,
        &address,
        name,
        &[("vendor", "ATA     "), ("model", "ACME HARD 4T    "), ("rev", "1A01"), ("state", "running")],
    );
    host.file(&format!("{device}/vpd_pg80"), [&[0, 0x80, 0, 8][..], format!("{serial:>8}").as_bytes()].concat());
    let folder = format!("{device}/block/{name}");
    let letter = u32::from(name.as_bytes()[2] - b'a');
    host.files(&folder, &[("dev", &format!("8:{}", 16 * letter)), ("size", "7814037168")]);
    queue(host, &folder, &[("rotational", if rotational { "1" } else { "0" }), ("scheduler", "none [mq-deadline]")]);
    device
}

/// A small host: one NVMe drive and one SATA disk, both healthy, with counters.
pub(crate) fn small() -> Host {
    let host = Host::new();
    nvme(&host, "0000:65:00.0", "nvme0", "S1", 0);
    pages(&host, "nvme0", &Identify::new("S1", "ACME FAST 1920G", "FW1"), &Smart::default());
    sata(&host, 1, "sda", "D1", true);
    host.proc("diskstats", diskstats(&["259 0 nvme0n1", "8 0 sda"]));
    host.proc("stat", "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 100 0 50 800 50 0 0 0 0 0\nbtime 1700000000\nprocs_running 1\nprocs_blocked 0\n");
    host.proc("loadavg", "0.10 0.20 0.30 1/100 1234\n");
    host.proc("sys/kernel/hostname", "db-17\n");
    host.proc("sys/kernel/osrelease", "6.12.1-amd64\n");
    host.proc("self/mountinfo", "21 0 259:0 / / rw - ext4 /dev/nvme0n1 rw\n");
    host
}

/// Lines of diskstats with 20 fields for each `MAJOR MINOR NAME`, all counting the same.
pub(crate) fn diskstats(devices: &[&str]) -> String {
    let line = |device: &&str| format!("{device} 1000 10 80000 500 2000 20 160000 1500 0 1800 2100 5 0 40 1 30 100\n");
    devices.iter().map(line).collect()
}

/// The folder of the host for `--root`.
pub(crate) fn folder(host: &Host) -> &str {
    host.root.sys.parent().unwrap().to_str().unwrap()
}
