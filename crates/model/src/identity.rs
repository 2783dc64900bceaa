//! What a history is keyed by: identities that follow the drive, not its kernel name.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest identity in bytes; longer ones are cut by discovery.
pub const MAX_ID: usize = 256;

/// The identity of a block device: model, serial and NSID for local NVMe; WWN or serial elsewhere; path-based and
/// marked weak (`weak:` prefix) where a device has neither. Never a kernel name such as `nvme0n1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId(pub String);

impl DeviceId {
    /// Prefix of an identity that is only a place, so that another device put there would inherit it.
    pub const WEAK_PREFIX: &'static str = "weak:";

    /// True when the identity is only a place.
    pub fn is_weak(&self) -> bool {
        self.0.starts_with(Self::WEAK_PREFIX)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The identity of an NVMe controller: model, serial and controller id (CNTLID).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ControllerId(pub String);

impl fmt::Display for ControllerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a read, a lane or a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// The host as a whole.
    Host,
    /// One NVMe controller.
    Controller(ControllerId),
    /// One block device.
    Device(DeviceId),
}
