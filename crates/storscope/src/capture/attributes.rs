//! Which files of a device's folder are copied: those that the agent reads, and what names the hardware around them.
//!
//! None of them makes the kernel send a command: `nuse` of a namespace and everything below `hwmon` are left out.

/// A block device (Documentation/ABI/stable/sysfs-block, and drivers/nvme/host/sysfs.c for namespaces and paths).
pub(super) const BLOCK: [&str; 19] = [
    "ana_grpid",
    "ana_state",
    "csi",
    "dev",
    "eui",
    "hidden",
    "inflight",
    "metadata_bytes",
    "nguid",
    "nsid",
    "partition",
    "removable",
    "ro",
    "serial",
    "size",
    "start",
    "stat",
    "uuid",
    "wwid",
];

/// Below `queue/`.
pub(super) const QUEUE: [&str; 27] = [
    "discard_granularity",
    "discard_max_bytes",
    "dma_alignment",
    "fua",
    "io_poll",
    "io_timeout",
    "iostats",
    "logical_block_size",
    "max_hw_sectors_kb",
    "max_sectors_kb",
    "minimum_io_size",
    "nomerges",
    "nr_requests",
    "nr_zones",
    "optimal_io_size",
    "physical_block_size",
    "read_ahead_kb",
    "rotational",
    "rq_affinity",
    "scheduler",
    "stable_writes",
    "virt_boundary_mask",
    "wbt_lat_usec",
    "write_cache",
    "write_zeroes_max_bytes",
    "zone_append_max_bytes",
    "zoned",
];

/// Below the folders of drivers that stack block devices.
pub(super) const STACKED: [(&str, &[&str]); 4] = [
    ("dm", &["name", "suspended", "uuid"]),
    (
        "md",
        &[
            "array_state",
            "chunk_size",
            "degraded",
            "level",
            "metadata_version",
            "raid_disks",
            "sync_action",
            "sync_completed",
            "uuid",
        ],
    ),
    ("loop", &["autoclear", "backing_file", "dio", "offset", "sizelimit"]),
    ("bcache", &["state"]),
];

/// Folders of links to other block devices.
pub(super) const RELATIONS: [&str; 2] = ["holders", "slaves"];

/// What the `device` link of a block device leads to: a SCSI device, a card, a virtio device.
pub(super) const DEVICE: [&str; 20] = [
    "cid",
    "device",
    "fwrev",
    "hwrev",
    "manfid",
    "model",
    "name",
    "oemid",
    "queue_depth",
    "queue_type",
    "rev",
    "scsi_level",
    "serial",
    "state",
    "type",
    "vendor",
    "vpd_pg80",
    "vpd_pg83",
    "vpd_pg89",
    "wwid",
];

/// An NVMe controller or subsystem.
pub(super) const CONTROLLER: [&str; 15] = [
    "address",
    "cntlid",
    "cntrltype",
    "firmware_rev",
    "iopolicy",
    "kato",
    "model",
    "numa_node",
    "queue_count",
    "serial",
    "sqsize",
    "state",
    "subsysnqn",
    "subsystype",
    "transport",
];

/// A PCI function; its link files are apart.
pub(super) const FUNCTION: [&str; 11] = [
    "aer_dev_correctable",
    "aer_dev_fatal",
    "aer_dev_nonfatal",
    "class",
    "device",
    "numa_node",
    "power_state",
    "revision",
    "subsystem_device",
    "subsystem_vendor",
    "vendor",
];

/// Reading these resumes the bridge above a PCI function, and the function itself out of D3cold.
pub(super) const LINK: [&str; 4] = ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"];

/// A USB device.
pub(super) const USB: [&str; 5] = ["idProduct", "idVendor", "serial", "speed", "version"];

/// A SAS end device (drivers/scsi/scsi_transport_sas.c).
pub(super) const END_DEVICE: [&str; 3] = ["bay_identifier", "enclosure_identifier", "sas_address"];

/// Files below sysfs in the kernel's own words and numbers: neither a device nor a person says what is in them.
pub(super) const SETTINGS: [&str; 53] = [
    "ana_grpid",
    "ana_state",
    "array_state",
    "autoclear",
    "bay_identifier",
    "chunk_size",
    "class",
    "cntlid",
    "cntrltype",
    "csi",
    "current_link_speed",
    "current_link_width",
    "degraded",
    "dev",
    "device",
    "dio",
    "hidden",
    "idProduct",
    "idVendor",
    "inflight",
    "iopolicy",
    "kato",
    "level",
    "max_link_speed",
    "max_link_width",
    "metadata_bytes",
    "nsid",
    "numa_node",
    "offset",
    "partition",
    "power_state",
    "queue_count",
    "queue_depth",
    "queue_type",
    "raid_disks",
    "removable",
    "revision",
    "ro",
    "runtime_status",
    "scsi_level",
    "size",
    "sizelimit",
    "speed",
    "sqsize",
    "start",
    "stat",
    "state",
    "subsystype",
    "suspended",
    "sync_action",
    "sync_completed",
    "transport",
    "type",
];

/// Below procfs: the areas that are swapped to (proc_swaps(5)).
pub(super) const SWAPS: &str = "swaps";

/// Below procfs. `version` holds who built the kernel where, and is cut when a capture is scrubbed.
pub(super) const PROC: [&str; 13] = [
    "diskstats",
    "loadavg",
    "meminfo",
    "pressure/cpu",
    "pressure/io",
    "pressure/memory",
    "stat",
    SWAPS,
    "sys/kernel/hostname",
    "sys/kernel/io_uring_disabled",
    "sys/kernel/osrelease",
    "sys/kernel/random/boot_id",
    "version",
];
