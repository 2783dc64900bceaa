//! The closed set of things that collector and prober tell the state.

use crate::device::{Controller, Device};
use crate::fault::Fault;
use crate::identity::Subject;
use crate::refused::Refused;
use crate::sample::probe::Engine;
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
    /// What reads the devices, and why it is not what was wished for.
    Engine {
        /// The engine in use.
        engine: Engine,
        /// Why it is not io_uring.
        fallback: Option<String>,
    },
    /// All that drives refuse.
    Refusals(Vec<Refused>),
}

/// The place in which a newer event replaces an older one that was not sent yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// Whether something is there, and what it is.
    Presence(Subject),
    /// One source of something.
    Reading(Subject, Source),
    /// The engine of the probes.
    Engine,
    /// What drives refuse.
    Refusals,
}

impl Slot {
    /// What the event is about, if it is one thing.
    pub const fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Presence(subject) | Self::Reading(subject, _) => Some(subject),
            Self::Engine | Self::Refusals => None,
        }
    }

    /// The source that was read, if one was.
    pub const fn source(&self) -> Option<Source> {
        match self {
            Self::Reading(_, source) => Some(*source),
            Self::Presence(_) | Self::Engine | Self::Refusals => None,
        }
    }
}

impl Event {
    /// The slot of this event.
    pub fn slot(&self) -> Slot {
        match self {
            Self::DeviceAppeared(device) => Slot::Presence(Subject::Device(device.id.clone())),
            Self::ControllerAppeared(controller) => Slot::Presence(Subject::Controller(controller.id.clone())),
            Self::Vanished(subject) => Slot::Presence(subject.clone()),
            Self::Read { subject, source, .. } | Self::Stalled { subject, source, .. } => {
                Slot::Reading(subject.clone(), *source)
            }
            Self::Engine { .. } => Slot::Engine,
            Self::Refusals(_) => Slot::Refusals,
        }
    }
}
