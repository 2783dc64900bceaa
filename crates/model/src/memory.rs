//! What outlives the process: episodes of findings and baselines of media errors, in a form that an older and a newer
//! release can read (unknown fields are ignored, absent ones are empty).

use crate::finding::Since;
use crate::identity::Subject;
use crate::time::{BootTime, ClockSync};
use serde::{Deserialize, Serialize};

/// Version that this release writes.
pub const VERSION: u32 = 1;
/// Most episodes, and most baselines, that are taken from a memory.
pub const MAX_ENTRIES: usize = 40_000;

/// An instant on two clocks: boot time while the same boot lasts, the wall clock afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moment {
    /// Boot that `boot_ns` counts from; empty when only the wall clock is known.
    #[serde(default)]
    pub boot_id: String,
    /// Nanoseconds of boot time.
    #[serde(default)]
    pub boot_ns: u64,
    /// Nanoseconds since the Unix epoch.
    pub wall_ns: i64,
}

impl Moment {
    /// `since` on both clocks.
    pub fn of(since: Since, clock: &ClockSync) -> Self {
        let wall = |ns: i128| i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX });
        match since {
            Since::Boot(at) => Self { boot_id: clock.boot_id.clone(), boot_ns: at.0, wall_ns: wall(clock.wall_ns(at)) },
            Since::Wall(ns) => Self { boot_id: String::new(), boot_ns: 0, wall_ns: wall(ns) },
        }
    }

    /// The instant as this boot sees it.
    pub fn since(&self, clock: &ClockSync) -> Since {
        if !self.boot_id.is_empty() && self.boot_id == clock.boot_id {
            Since::Boot(BootTime(self.boot_ns))
        } else {
            Since::Wall(i128::from(self.wall_ns))
        }
    }
}

/// One finding that was open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeMemory {
    /// Rule id.
    pub rule: String,
    /// What it is about.
    pub subject: Subject,
    /// When it began.
    pub since: Moment,
}

/// Growth of media errors that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthMemory {
    /// Value before the first growth.
    #[serde(with = "decimal")]
    pub from: u128,
    /// When that value was seen.
    pub since: Moment,
    /// When the newest growth was seen.
    pub last: Moment,
}

/// Media errors of one controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaErrorMemory {
    /// Identity of the controller.
    pub controller: String,
    /// Newest value.
    #[serde(with = "decimal")]
    pub value: u128,
    /// When it was seen.
    pub seen: Moment,
    /// Growth, while it is remembered.
    #[serde(default)]
    pub growth: Option<GrowthMemory>,
}

/// One device whose absence was a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneMemory {
    /// Identity of the device.
    pub device: String,
    /// Its last kernel name.
    pub name: String,
    /// Model.
    #[serde(default)]
    pub model: Option<String>,
    /// Serial number.
    #[serde(default)]
    pub serial: Option<String>,
    /// Attachment, PCI address and place, in words.
    #[serde(default)]
    pub place: String,
    /// Title of the worst finding that was open as it vanished.
    #[serde(default)]
    pub trouble: Option<String>,
    /// What it carried.
    #[serde(default)]
    pub carries: Vec<String>,
    /// When it vanished.
    pub since: Moment,
}

/// Everything that outlives the process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// See [`VERSION`].
    #[serde(default)]
    pub version: u32,
    /// Open findings.
    #[serde(default)]
    pub episodes: Vec<EpisodeMemory>,
    /// Media errors by controller.
    #[serde(default)]
    pub media_errors: Vec<MediaErrorMemory>,
    /// Devices that are gone.
    #[serde(default)]
    pub gone: Vec<GoneMemory>,
}

/// 128-bit counts as decimal strings: JSON readers keep only 53 bits of a number.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_the_boot_as_wall_clock_time() {
        let clock = ClockSync { boot_id: "one".to_owned(), wall_offset_ns: 1_000 };
        let moment = Moment::of(Since::Boot(BootTime(50)), &clock);
        assert_eq!(moment.since(&clock), Since::Boot(BootTime(50)));
        let stepped = ClockSync { wall_offset_ns: 9_999, ..clock };
        assert_eq!(moment.since(&stepped), Since::Boot(BootTime(50)), "a clock step moves nothing");
        let rebooted = ClockSync { boot_id: "two".to_owned(), wall_offset_ns: 70_000 };
        assert_eq!(moment.since(&rebooted), Since::Wall(1_050));
        let nameless = ClockSync::default();
        assert_eq!(Moment::of(Since::Boot(BootTime(5)), &nameless).since(&nameless), Since::Wall(5));
    }
}
