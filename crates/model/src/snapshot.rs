//! The newest reading of every source of every subject: events in, no judgement.

use crate::device::{Controller, Device};
use crate::event::{Event, Outcome};
use crate::fault::Fault;
use crate::identity::{ControllerId, DeviceId, Subject};
use crate::reading::Reading;
use crate::sample::diskstats::{DiskCounters, Table};
use crate::sample::{Sample, Source};
use crate::time::{BootTime, ClockSync};
use crate::wall_clock::ClockStep;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

mod controller;
mod device;
mod host;
mod readings;

pub use controller::ControllerState;
pub use device::{DeviceCounters, DeviceState};
pub use host::{DiskstatsFile, HostState};

/// Most devices, and most controllers, that are kept; what appears beyond is refused and counted.
pub const MAX_SUBJECTS: usize = 20_000;

/// How one source of one subject has fared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Reads that ended, well or not.
    pub reads: u64,
    /// Failed reads by [`Fault::class`]; `stalled` counts deadlines passed.
    pub failures: BTreeMap<&'static str, u64>,
    /// How long the last read took.
    pub last_duration: Option<Duration>,
}

/// The newest reading of everything.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Boot time against wall clock at the newest tick.
    pub clock: ClockSync,
    /// When the wall clock was last set, as far as this process saw it.
    pub clock_step: Option<ClockStep>,
    /// The host.
    pub host: HostState,
    /// Block devices by identity.
    pub devices: BTreeMap<DeviceId, DeviceState>,
    /// Controllers by identity.
    pub controllers: BTreeMap<ControllerId, ControllerState>,
    /// Events about a subject that is not there, of a sample that is not its source's, or past [`MAX_SUBJECTS`].
    pub events_refused: u64,
}

/// One state of a reading, the same for every source: what `storscope_source_*` and `/status` show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    /// Which source.
    pub source: Source,
    /// See [`Reading::up`].
    pub up: Option<bool>,
    /// See [`Reading::state`].
    pub state: &'static str,
    /// End of the last good read.
    pub last_good: Option<BootTime>,
    /// Since when it is not fresh.
    pub since: Option<BootTime>,
    /// Why it is not fresh, for people.
    pub why: Option<String>,
    /// Counts and durations.
    pub stats: SourceStats,
}

impl SourceStatus {
    fn of<T>(source: Source, reading: &Reading<T>, stats: &BTreeMap<Source, SourceStats>) -> Self {
        let (since, why) = match reading {
            Reading::Never | Reading::Fresh(_) => (None, None),
            Reading::Failed { fault, since, .. } => (Some(*since), Some(fault.to_string())),
            Reading::Stalled { since, .. } => (Some(*since), Some("no answer".to_owned())),
            Reading::Withheld { why, since, .. } => (Some(*since), Some(why.clone())),
            Reading::Unsupported { why } => (None, Some(why.clone())),
        };
        Self {
            source,
            up: reading.up(),
            state: reading.state(),
            last_good: reading.last().map(|stamped| stamped.ended),
            since,
            why,
            stats: stats.get(&source).cloned().unwrap_or_default(),
        }
    }
}

/// A source that was asked in vain.
#[derive(Debug, Clone, Copy)]
pub struct Trouble<'a> {
    /// Which source.
    pub source: Source,
    /// Why; `None` when no answer came.
    pub fault: Option<&'a Fault>,
    /// When the first of the consecutive failures ended, or the outstanding read began.
    pub since: BootTime,
    /// Consecutive failures; 0 when no answer came.
    pub count: u64,
}

impl<'a> Trouble<'a> {
    fn note<T>(all: &mut Vec<Self>, source: Source, reading: &'a Reading<T>) {
        match reading {
            Reading::Failed { fault, since, count, .. } => {
                all.push(Self { source, fault: Some(fault), since: *since, count: *count });
            }
            Reading::Stalled { since, .. } => all.push(Self { source, fault: None, since: *since, count: 0 }),
            Reading::Never | Reading::Fresh(_) | Reading::Withheld { .. } | Reading::Unsupported { .. } => {}
        }
    }
}

impl Snapshot {
    /// Takes in one event that arrived at `now`. What cannot be taken in is counted in `events_refused`.
    pub fn apply(&mut self, event: Event, now: BootTime) {
        let taken = match event {
            Event::DeviceAppeared(device) => self.device_appeared(*device, now),
            Event::ControllerAppeared(controller) => self.controller_appeared(*controller, now),
            Event::Vanished(subject) => self.vanished(&subject),
            Event::Read { subject, source, began, ended, outcome } => {
                self.read(&subject, source, began, ended, outcome)
            }
            Event::Stalled { subject, source, since } => self.stalled(&subject, source, since),
            // These say nothing of the host.
            Event::Engine { .. } | Event::Refusals(_) => false,
        };
        if !taken {
            self.events_refused = self.events_refused.saturating_add(1);
        }
    }

    /// Turns fresh values that are older than their source's limit into stalled ones.
    pub fn expire(&mut self, now: BootTime, limit: &dyn Fn(Source) -> Duration) {
        self.host.expire(now, limit);
        self.devices.values_mut().for_each(|device| device.expire(now, limit));
        self.controllers.values_mut().for_each(|controller| controller.expire(now, limit));
    }

    fn device_appeared(&mut self, device: Device, now: BootTime) -> bool {
        if let Some(known) = self.devices.get_mut(&device.id) {
            if known.device.name != device.name {
                known.counters = Reading::Never;
            }
            known.device = Arc::new(device);
            return true;
        }
        let room = self.devices.len() < MAX_SUBJECTS;
        if room {
            self.devices.insert(device.id.clone(), DeviceState::new(device, now));
        }
        room
    }

    fn controller_appeared(&mut self, controller: Controller, now: BootTime) -> bool {
        if let Some(known) = self.controllers.get_mut(&controller.id) {
            known.controller = Arc::new(controller);
            return true;
        }
        let room = self.controllers.len() < MAX_SUBJECTS;
        if room {
            self.controllers.insert(controller.id.clone(), ControllerState::new(controller, now));
        }
        room
    }

    fn vanished(&mut self, subject: &Subject) -> bool {
        match subject {
            Subject::Host => false,
            Subject::Device(id) => self.devices.remove(id).is_some(),
            Subject::Controller(id) => self.controllers.remove(id).is_some(),
        }
    }

    fn read(&mut self, subject: &Subject, source: Source, began: BootTime, ended: BootTime, outcome: Outcome) -> bool {
        if matches!(&outcome, Outcome::Value(sample) if sample.source() != source) {
            return false;
        }
        let Some(stats) = self.stats(subject) else {
            return false;
        };
        count(stats.entry(source).or_default(), began, ended, &outcome);
        match subject {
            Subject::Host => {
                if source == Source::Diskstats {
                    self.share_out(began, ended, &outcome);
                }
                self.host.apply(source, began, ended, outcome)
            }
            Subject::Device(id) => {
                self.devices.get_mut(id).is_some_and(|device| device.apply(source, began, ended, outcome))
            }
            Subject::Controller(id) => {
                self.controllers.get_mut(id).is_some_and(|known| known.apply(source, began, ended, outcome))
            }
        }
    }

    fn stats(&mut self, subject: &Subject) -> Option<&mut BTreeMap<Source, SourceStats>> {
        match subject {
            Subject::Host => Some(&mut self.host.stats),
            Subject::Device(id) => self.devices.get_mut(id).map(|device| &mut device.stats),
            Subject::Controller(id) => self.controllers.get_mut(id).map(|controller| &mut controller.stats),
        }
    }

    fn share_out(&mut self, began: BootTime, ended: BootTime, outcome: &Outcome) {
        for device in self.devices.values_mut() {
            count(device.stats.entry(Source::Diskstats).or_default(), began, ended, outcome);
        }
        match outcome {
            Outcome::Value(sample) => {
                let Sample::Diskstats(Table { rows, .. }) = sample.as_ref() else {
                    return;
                };
                let rows: HashMap<&str, &DiskCounters> =
                    rows.iter().map(|row| (row.name.as_str(), &row.counters)).collect();
                for device in self.devices.values_mut() {
                    device.take_counters(&rows, began, ended);
                }
            }
            Outcome::Failed(fault) => {
                self.devices.values_mut().for_each(|device| device.counters.fail(fault.clone(), ended));
            }
            Outcome::Unsupported(why) => {
                self.devices.values_mut().for_each(|device| device.counters.unsupport(why.clone()));
            }
            Outcome::Withheld(why) => {
                self.devices.values_mut().for_each(|device| device.counters.withhold(why.clone(), ended));
            }
        }
    }

    fn stalled(&mut self, subject: &Subject, source: Source, since: BootTime) -> bool {
        let Some(stats) = self.stats(subject) else {
            return false;
        };
        let failures = stats.entry(source).or_default().failures.entry("stalled").or_default();
        *failures = failures.saturating_add(1);
        match subject {
            Subject::Host => {
                if source == Source::Diskstats {
                    self.devices.values_mut().for_each(|device| device.counters.stall(since));
                }
                self.host.stall(source, since)
            }
            Subject::Device(id) => self.devices.get_mut(id).is_some_and(|device| device.stall(source, since)),
            Subject::Controller(id) => self.controllers.get_mut(id).is_some_and(|known| known.stall(source, since)),
        }
    }
}

fn count(stats: &mut SourceStats, began: BootTime, ended: BootTime, outcome: &Outcome) {
    match outcome {
        Outcome::Value(_) | Outcome::Failed(_) => {
            stats.reads = stats.reads.saturating_add(1);
            stats.last_duration = Some(ended.since(began));
        }
        Outcome::Unsupported(_) | Outcome::Withheld(_) => {}
    }
    if let Outcome::Failed(fault) = outcome {
        let failures = stats.failures.entry(fault.class()).or_default();
        *failures = failures.saturating_add(1);
    }
}

fn settle<T>(
    reading: &mut Reading<T>,
    began: BootTime,
    ended: BootTime,
    outcome: Outcome,
    pick: impl FnOnce(Sample) -> Option<T>,
) -> bool {
    match outcome {
        Outcome::Value(sample) => match pick(*sample) {
            Some(value) => reading.succeed(value, began, ended),
            None => return false,
        },
        Outcome::Failed(fault) => reading.fail(fault, ended),
        Outcome::Unsupported(why) => reading.unsupport(why),
        Outcome::Withheld(why) => reading.withhold(why, ended),
    }
    true
}
