//! What devices carry: partitions, holders (dm, LVM, LUKS, md), mount points and swap.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// One block device in the stack, partitions and virtual devices included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Node {
    /// Kernel name.
    pub name: String,
    /// What people call it: `vg0/data`, `luks-…`, `md0 (raid1, 2 of 2)`; `None` when only the kernel name is known.
    pub label: Option<String>,
    /// Kernel names directly above: partitions and holders.
    pub above: Vec<String>,
    /// Mount points, decoded.
    pub mounts: Vec<Mount>,
    /// In use as swap.
    pub swap: bool,
}

/// One mount of a block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Mount point, octal escapes decoded.
    pub point: String,
    /// File system type.
    pub fs_type: String,
}

/// The whole stack.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stack {
    /// Nodes, by kernel name.
    pub nodes: Vec<Node>,
    /// Files that could not be read or understood; bounded by the reader. The nodes hold what the others say.
    pub faults: Vec<Fault>,
}
