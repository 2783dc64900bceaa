//! Sleep: whether a device may be asked at all.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// `power/runtime_status` (Documentation/ABI/testing/sysfs-devices-power) of a device and of what it hangs on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RuntimePower {
    /// Status of the device itself, or of the nearest device above it that manages its power: `active`, `suspended`, `suspending`, `resuming`, `error`, `unsupported`.
    pub device: Option<String>,
    /// PCI power state of the function: `D0`, `D3hot`, …
    pub pci_power_state: Option<String>,
    /// True when the device or a bridge above it is suspended or on its way there.
    pub suspended: bool,
    /// What could not be read and does not bear on `suspended`, with the reason.
    pub faults: Vec<Fault>,
}

/// Answer of ATA CHECK POWER MODE (ACS, sector count field).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtaPower {
    /// The raw byte: 00h/01h standby, 40h spun down, 80h–83h idle, FFh active or idle.
    pub mode: u8,
}

impl AtaPower {
    /// True when asking or reading would wake the disk; unknown values count as asleep.
    pub const fn asleep(self) -> bool {
        !matches!(self.mode, 0x80..=0x83 | 0xFF)
    }
}
