//! The closed set of things that collector and prober tell the state.

use crate::device::{Controller, Device};
use crate::fault::Fault;
use crate::identity::Subject;
use crate::sample::{Sample, Source};
use crate::time::BootTime;
use serde::{Deserialize, Serialize};

/// How one read ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// It gave a sample.
    Value(Box<Sample>),
    /// It failed.
    Failed(Fault),
    /// The device or kernel does not offer it.
    Unsupported(String),
    /// Not asked on purpose for now: asleep, suspended, not live.
    Withheld(String),
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// A block device is there, or its description changed.
    DeviceAppeared(Box<Device>),
    /// A controller is there, or its description changed.
    ControllerAppeared(Box<Controller>),
    /// A device or controller is gone.
    Vanished(Subject),
    /// One read of one source ended.
    Read {
        /// Whose source.
        subject: Subject,
        /// Which source; equal to the sample's own.
        source: Source,
        /// Just before the first system call.
        began: BootTime,
        /// Just after the last one.
        ended: BootTime,
        /// How it ended.
        outcome: Outcome,
    },
    /// A read passed its deadline and is still outstanding.
    Stalled {
        /// Whose source.
        subject: Subject,
        /// Which source.
        source: Source,
        /// When the read began.
        since: BootTime,
    },
}

impl Event {
    /// The slot in which a newer event replaces an older one that was not sent yet.
    pub fn slot(&self) -> (Subject, Option<Source>) {
        match self {
            Self::DeviceAppeared(device) => (Subject::Device(device.id.clone()), None),
            Self::ControllerAppeared(controller) => (Subject::Controller(controller.id.clone()), None),
            Self::Vanished(subject) => (subject.clone(), None),
            Self::Read { subject, source, .. } | Self::Stalled { subject, source, .. } => {
                (subject.clone(), Some(*source))
            }
        }
    }
}
