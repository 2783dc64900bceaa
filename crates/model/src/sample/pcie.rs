//! PCIe link attributes and error counters of a drive and the ports above it.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// Speed and width of one end of a link. `None` is unknown: absent, `Unknown`, width 0, 63 or 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Link {
    /// Mega-transfers a second and lane: 2500, 5000, 8000, 16000, 32000, 64000, …
    pub mega_transfers: Option<u32>,
    /// Lanes.
    pub width: Option<u8>,
}

/// One PCI function on the way from the drive to the root.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Hop {
    /// PCI address, `domain:bus:device.function`.
    pub address: String,
    /// Link towards the root, now.
    pub current: Link,
    /// What this end can do.
    pub maximum: Link,
    /// True when the link files were left alone because this function or the bridge directly above it sleeps: reading
    /// them would wake it.
    pub suspended: bool,
}

/// The hops from the drive (first) up to the root port (last).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PcieLink {
    /// Drive first, root port last. At most 32.
    pub hops: Vec<Hop>,
    /// What could not be read, with the reason; bounded by the reader.
    pub faults: Vec<Fault>,
}

/// Severity of AER counters: the sysfs file that they stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the variants are the kernel's own words")]
pub enum Severity {
    Correctable,
    Nonfatal,
    Fatal,
}

impl Severity {
    /// The label value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Correctable => "correctable",
            Self::Nonfatal => "nonfatal",
            Self::Fatal => "fatal",
        }
    }
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AerCounter {
    /// Severity.
    pub severity: Severity,
    /// The kernel's token: `RxErr`, `BadTLP`, `Timeout`, …
    pub error: String,
    /// Count since the function was added.
    pub count: u64,
}

/// AER counters of one function (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AerFunction {
    /// PCI address.
    pub address: String,
    /// Counters; totals are left out.
    pub counters: Vec<AerCounter>,
}

/// AER counters of the drive (first) and of the port directly above it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Aer {
    /// Functions that have counters.
    pub functions: Vec<AerFunction>,
    /// What could not be read, with the reason; bounded by the reader.
    pub faults: Vec<Fault>,
}
