//! What drives refuse, so that it is not asked again.

use serde::{Deserialize, Serialize};

/// One command that drives of one kind refuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Model of the drive.
    pub model: String,
    /// Its firmware.
    pub firmware: String,
    /// Label of the command.
    pub command: String,
    /// NVMe status; `None` when the page is not the one that was asked for.
    pub status: Option<u16>,
}
