//! The guest's devices, as the emulator's arguments. A device's identifier is its serial number, and its block nodes are
//! named after it, so that a fault needs only the serial.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Size of a drive's image.
const DRIVE_BYTES: u64 = 64 << 20;
/// Size of one namespace of the subsystem.
const NAMESPACE_BYTES: u64 = 64 << 20;
/// What an image has written at its start: three quarters of a drive's.
const WRITTEN_CHUNK: usize = 1 << 20;
const WRITTEN_CHUNKS: usize = 48;
/// Empty root ports for hot-plug.
const EMPTY_PORTS: [&str; 2] = ["empty-a", "empty-b"];
/// The rotating SATA disk.
const SATA_ROTATING: &str = "ide-hd,bus=ide.0,model=LAB-SATA-HDD,ver=FW1.0,rotation_rate=7200,wwn=0x5000c500a1b2c3d4";
/// Every NVMe endpoint's link at boot.
pub(super) const ENDPOINT_LINK: (LinkSpeed, u8) = (LinkSpeed::Gt16, 4);
/// The link of the switch and of what is behind it.
pub(super) const SWITCH_LINK: (LinkSpeed, u8) = (LinkSpeed::Gt8, 4);

/// Link speeds by their code in the PCI Express capability (PCIe base specification, link capabilities register).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkSpeed {
    /// 8 GT/s, generation 3.
    Gt8 = 3,
    /// 16 GT/s, generation 4.
    Gt16 = 4,
}

impl LinkSpeed {
    /// The register's code.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Gt8 => 3,
            Self::Gt16 => 4,
        }
    }

    /// Transfers a second.
    pub(crate) const fn transfers_per_second(self) -> f64 {
        match self {
            Self::Gt8 => 8e9,
            Self::Gt16 => 16e9,
        }
    }
}

/// An empty root port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The one.
    A,
    /// The other.
    B,
}

impl Slot {
    /// The port's device identifier.
    pub(super) fn port(self) -> String {
        format!("port-{}", EMPTY_PORTS[usize::from(self == Self::B)])
    }
}

/// Serial numbers of the topology.
pub(crate) mod serial {
    /// NVMe at 16 GT/s x4 on a root port; nothing on it: for faults.
    pub(crate) const NVME_FREE: &str = "LABNV1";
    /// NVMe at 16 GT/s x4 on a root port; LUKS, LVM and a file system on it.
    pub(crate) const NVME_CRYPT: &str = "LABNV2";
    /// NVMe behind a switch in an 8 GT/s port; dm-linear and a file system on it.
    pub(crate) const NVME_SWITCHED: &str = "LABNV3";
    /// Two controllers of one subsystem: namespaces shared, zoned, of 4 KiB blocks.
    pub(crate) const NVME_SUBSYSTEM: &str = "LABSS";
    /// NVMe over fabrics by the kernel's loop transport.
    pub(crate) const NVME_FABRICS: &str = "LABLOOP";
    /// NVMe over fabrics by TCP, connected by the cases that need it.
    pub(crate) const NVME_TCP: &str = "LABTCP";
    /// Rotating SATA disk; dm-delay on it.
    pub(crate) const SATA_ROTATING: &str = "LABSATA1";
    /// SATA solid-state disk; half of the mirror.
    pub(crate) const SATA_SOLID: &str = "LABSATA2";
    /// SCSI disk; the other half of the mirror.
    pub(crate) const SCSI: &str = "LABSCSI1";
}

/// Emulator arguments of all devices; their sparse images are made in `images`.
///
/// # Errors
/// When an image cannot be made.
pub(super) fn arguments(images: &Path) -> Result<Vec<String>> {
    let mut devices = Devices { images, arguments: Vec::new() };
    for name in [serial::NVME_FREE, serial::NVME_CRYPT] {
        devices.root_port(name, "16", "4");
        devices.nvme(name, &format!("port-{name}"))?;
    }
    devices.switched_nvme(serial::NVME_SWITCHED)?;
    devices.subsystem(serial::NVME_SUBSYSTEM)?;
    for name in EMPTY_PORTS {
        devices.root_port(name, "16", "4");
    }
    devices.disk(serial::SATA_ROTATING, SATA_ROTATING)?;
    devices.disk(serial::SATA_SOLID, "ide-hd,bus=ide.1,model=LAB-SATA-SSD,ver=FW2.0,rotation_rate=1")?;
    devices.device("virtio-scsi-pci,id=scsi");
    devices.disk(
        serial::SCSI,
        "scsi-hd,bus=scsi.0,vendor=LAB,product=SCSIDISK,ver=1.1,rotation_rate=10000,wwn=0x5000c500a1b2c3d5",
    )?;
    Ok(devices.arguments)
}

/// As [`arguments`], with one NVMe drive and one rotating SATA disk only.
///
/// # Errors
/// When an image cannot be made.
pub(super) fn few(images: &Path) -> Result<Vec<String>> {
    let mut devices = Devices { images, arguments: Vec::new() };
    devices.root_port(serial::NVME_FREE, "16", "4");
    devices.nvme(serial::NVME_FREE, &format!("port-{}", serial::NVME_FREE))?;
    devices.disk(serial::SATA_ROTATING, SATA_ROTATING)?;
    Ok(devices.arguments)
}

struct Devices<'a> {
    images: &'a Path,
    arguments: Vec<String>,
}

impl Devices<'_> {
    fn push(&mut self, option: &str, value: impl Into<String>) {
        self.arguments.push(option.to_owned());
        self.arguments.push(value.into());
    }

    fn device(&mut self, value: impl Into<String>) {
        self.push("-device", value);
    }

    /// Image > file > error injection > filter; a device uses `top-NAME`. The filter (a throttle without limits) is there
    /// because its child can be replaced at run time.
    fn blocks(&mut self, name: &str, bytes: u64) -> Result<()> {
        let path = self.images.join(format!("{name}.img"));
        image(&path, bytes)?;
        self.push("-blockdev", format!("driver=file,filename={},node-name=file-{name}", path.display()));
        self.push("-object", format!("throttle-group,id=group-{name}"));
        self.push("-blockdev", format!("driver=blkdebug,image=file-{name},node-name=plain-{name}"));
        self.push(
            "-blockdev",
            format!("driver=throttle,throttle-group=group-{name},file=plain-{name},node-name=top-{name}"),
        );
        Ok(())
    }

    fn root_port(&mut self, name: &str, speed: &str, width: &str) {
        let number = self.arguments.len();
        self.device(format!(
            "pcie-root-port,id=port-{name},chassis={number},slot={number},x-speed={speed},x-width={width}"
        ));
    }

    fn nvme(&mut self, name: &str, bus: &str) -> Result<()> {
        self.blocks(name, DRIVE_BYTES)?;
        self.device(format!("nvme,id={name},bus={bus},serial={name},drive=top-{name}"));
        Ok(())
    }

    fn switched_nvme(&mut self, name: &str) -> Result<()> {
        self.root_port(name, "8", "4");
        self.device(format!("x3130-upstream,id=switch,bus=port-{name}"));
        self.device("xio3130-downstream,id=switch-port,bus=switch,chassis=100,slot=100");
        self.nvme(name, "switch-port")
    }

    fn subsystem(&mut self, name: &str) -> Result<()> {
        self.device("nvme-subsys,id=subsystem,nqn=labss");
        for side in ["a", "b"] {
            self.root_port(&format!("{name}{side}"), "16", "4");
            self.device(format!("nvme,id={name}{side},bus=port-{name}{side},serial={name},subsys=subsystem"));
        }
        let kinds = [
            "shared=on",
            "shared=off,zoned=on,zoned.zone_size=16M",
            "shared=off,logical_block_size=4096,physical_block_size=4096",
        ];
        for (nsid, kind) in (1..).zip(kinds) {
            let node = format!("{name}-{nsid}");
            self.blocks(&node, NAMESPACE_BYTES)?;
            self.device(format!("nvme-ns,id=ns-{node},bus={name}a,nsid={nsid},drive=top-{node},{kind}"));
        }
        Ok(())
    }

    fn disk(&mut self, name: &str, device: &str) -> Result<()> {
        self.blocks(name, DRIVE_BYTES)?;
        self.device(format!("{device},id={name},serial={name},drive=top-{name}"));
        Ok(())
    }
}

/// Makes an image: sparse but for its start, so that reads meet blocks both never written and written.
///
/// # Errors
/// With the path, when it cannot.
pub(super) fn image(path: &Path, bytes: u64) -> Result<()> {
    let make = || {
        let mut file = File::create(path)?;
        file.set_len(bytes)?;
        for _ in 0..WRITTEN_CHUNKS {
            file.write_all(&[0xa5; WRITTEN_CHUNK])?;
        }
        Ok::<(), std::io::Error>(())
    };
    make().with_context(|| path.display().to_string())
}
