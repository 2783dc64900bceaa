//! What discovery says of block devices and NVMe controllers.

use crate::identity::{ControllerId, DeviceId};
use serde::{Deserialize, Serialize};

/// Kernel device number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DevNum {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

/// How a device is attached, or what kind of virtual device it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants are the field's own names")]
pub enum Transport {
    NvmePcie,
    NvmeFabrics,
    /// NVMe that is neither on PCI nor on fabrics (for example `apple-nvme`).
    NvmeOther,
    Sata,
    Sas,
    Scsi,
    Iscsi,
    FibreChannel,
    Usb,
    Virtio,
    Xen,
    Mmc,
    Loop,
    DeviceMapper,
    Md,
    Zram,
    Ram,
    Nbd,
    Rbd,
    Optical,
    Floppy,
    Other,
}

impl Transport {
    /// The word used in labels, JSON and text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NvmePcie => "nvme-pcie",
            Self::NvmeFabrics => "nvme-fabrics",
            Self::NvmeOther => "nvme",
            Self::Sata => "sata",
            Self::Sas => "sas",
            Self::Scsi => "scsi",
            Self::Iscsi => "iscsi",
            Self::FibreChannel => "fc",
            Self::Usb => "usb",
            Self::Virtio => "virtio",
            Self::Xen => "xen",
            Self::Mmc => "mmc",
            Self::Loop => "loop",
            Self::DeviceMapper => "dm",
            Self::Md => "md",
            Self::Zram => "zram",
            Self::Ram => "ram",
            Self::Nbd => "nbd",
            Self::Rbd => "rbd",
            Self::Optical => "optical",
            Self::Floppy => "floppy",
            Self::Other => "other",
        }
    }

    /// True for NVMe of any attachment.
    pub const fn is_nvme(self) -> bool {
        matches!(self, Self::NvmePcie | Self::NvmeFabrics | Self::NvmeOther)
    }
}

/// Zone model of a block device (Documentation/ABI/stable/sysfs-block, `queue/zoned`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants are the kernel's own words")]
pub enum Zoned {
    None,
    HostAware,
    HostManaged,
}

/// Where a device sits, as far as the kernel knows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// PCI slot name from `/sys/bus/pci/slots`.
    pub slot: Option<String>,
    /// Enclosure (SES) name.
    pub enclosure: Option<String>,
    /// Bay within the enclosure.
    pub bay: Option<String>,
    /// Port: `ata3`, SAS phy, USB port path.
    pub port: Option<String>,
}

/// One path of a multipath namespace (`nvme0c0n1`): counted, never listed as a disk, never opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvmePath {
    /// Kernel name of the hidden path device.
    pub name: String,
    /// Controller the path leads to.
    pub controller: ControllerId,
    /// `ana_state`: `optimized`, `non-optimized`, `inaccessible`, `persistent-loss`, `change`.
    pub ana_state: Option<String>,
}

/// What is particular to an NVMe namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NvmeNamespace {
    /// Namespace id.
    pub nsid: Option<u32>,
    /// Subsystem NQN, inner bytes kept.
    pub subsystem_nqn: Option<String>,
    /// Controllers that reach the namespace, in kernel-name order.
    pub controllers: Vec<ControllerId>,
    /// Paths, when native multipath is in use.
    pub paths: Vec<NvmePath>,
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Identity that histories are keyed by.
    pub id: DeviceId,
    /// Kernel name as in /proc/diskstats and labels (`cciss/c0d0`, where sysfs has `cciss!c0d0`).
    pub name: String,
    /// Device number; `None` in a captured host without it.
    pub devnum: Option<DevNum>,
    /// Attachment.
    pub transport: Transport,
    /// Vendor, where the bus has one apart from the model (SCSI).
    pub vendor: Option<String>,
    /// Model, ends trimmed.
    pub model: Option<String>,
    /// Serial number, ends trimmed.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// World-wide id as sysfs prints it; secondary, known to lie on local NVMe.
    pub wwid: Option<String>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Logical block size in bytes.
    pub logical_block_bytes: Option<u32>,
    /// Rotating medium.
    pub rotational: Option<bool>,
    /// Removable medium.
    pub removable: Option<bool>,
    /// Read-only.
    pub read_only: Option<bool>,
    /// Zone model.
    pub zoned: Option<Zoned>,
    /// PCI address of the function that the device hangs on.
    pub pci_address: Option<String>,
    /// NUMA node of that function; `None` when the kernel says -1.
    pub numa_node: Option<u32>,
    /// Physical place.
    pub place: Place,
    /// A partition's parent disk, by kernel name.
    pub partition_of: Option<String>,
    /// NVMe particulars.
    pub nvme: Option<NvmeNamespace>,
}

/// One NVMe controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    /// Identity that histories are keyed by.
    pub id: ControllerId,
    /// Kernel name (`nvme0`).
    pub name: String,
    /// Attachment.
    pub transport: Transport,
    /// Model, ends trimmed.
    pub model: Option<String>,
    /// Serial number, ends trimmed.
    pub serial: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Controller id within the subsystem.
    pub cntlid: Option<u32>,
    /// Subsystem NQN, inner bytes kept.
    pub subsystem_nqn: Option<String>,
    /// PCI address, or the transport address for fabrics.
    pub address: Option<String>,
    /// PCI address of the function; `None` off PCI.
    pub pci_address: Option<String>,
    /// NUMA node; `None` when the kernel says -1.
    pub numa_node: Option<u32>,
    /// Physical place.
    pub place: Place,
}
