//! One burst on an opened device: what the engine holds between two reads.

use crate::device::Opened;
use crate::load::Load;
use crate::offsets::Choice;
use crate::target::QueueSize;
use std::fs::File;
use storscope_model::sample::probe::ProbeOp;

/// An opened device, and how far its burst is.
pub(crate) struct Burst {
    pub(crate) opened: Opened,
    pub(crate) queue: Option<QueueSize>,
    /// Load one burst ago.
    pub(crate) before: Option<Load>,
    /// Reads that may still be made.
    pub(crate) left: u16,
    /// True until the first read, when that one measures the exit from a power state.
    pub(crate) after_idle: bool,
    /// The read in flight.
    pub(crate) current: Option<Current>,
}

/// A read in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Current {
    pub(crate) choice: Choice,
    pub(crate) after_idle: bool,
    pub(crate) busy: bool,
}

impl Current {
    /// The class of the read once its data are known.
    pub(crate) fn op(self, data: bool) -> ProbeOp {
        match (self.after_idle, data) {
            (true, _) => ProbeOp::ReadAfterIdle,
            (false, true) => ProbeOp::Read,
            (false, false) => ProbeOp::ReadZeros,
        }
    }
}

impl Burst {
    /// Length of one read in bytes.
    pub(crate) fn block(&self) -> u32 {
        self.opened.block
    }

    /// The opened device.
    pub(crate) fn file(&self) -> &File {
        &self.opened.file
    }

    /// The two descriptors, to be closed where that may block.
    pub(crate) fn into_opened(self) -> Opened {
        self.opened
    }
}
