//! The newest reading of every source of every subject: events in, no judgement.

use crate::device::{Controller, Device};
use crate::event::{Event, Outcome};
use crate::fault::Fault;
use crate::identity::{ControllerId, DeviceId, Subject};
use crate::reading::Reading;
use crate::sample::diskstats::{DiskCounters, Table};
use crate::sample::{Sample, Source, host, nvme, pcie, power, probe, queue, stack};
use crate::time::{BootTime, ClockSync};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

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

/// What diskstats says of one device: its own line, and those of its multipath paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceCounters {
    /// The device's own line.
    pub own: Option<DiskCounters>,
    /// Lines of its paths, by kernel name of the path.
    pub paths: Vec<(String, DiskCounters)>,
}

/// Everything known of one block device.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are the sources")]
pub struct DeviceState {
    pub device: Arc<Device>,
    /// When it was first seen by this process under this identity.
    pub appeared: BootTime,
    pub counters: Reading<DeviceCounters>,
    pub queue: Reading<queue::QueueSettings>,
    pub power: Reading<power::RuntimePower>,
    pub ata_power: Reading<power::AtaPower>,
    pub namespace: Reading<nvme::Namespace>,
    pub probe: Reading<probe::ProbeReport>,
    pub stats: BTreeMap<Source, SourceStats>,
}

/// Everything known of one NVMe controller.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the fields are the sources")]
pub struct ControllerState {
    pub controller: Arc<Controller>,
    /// When it was first seen by this process under this identity.
    pub appeared: BootTime,
    pub state: Reading<nvme::ControllerState>,
    pub power: Reading<power::RuntimePower>,
    pub link: Reading<pcie::PcieLink>,
    pub aer: Reading<pcie::Aer>,
    pub identify: Reading<nvme::Identify>,
    pub smart: Reading<nvme::SmartHealth>,
    pub error_log: Reading<nvme::ErrorLog>,
    pub firmware: Reading<nvme::FirmwareSlots>,
    pub self_test: Reading<nvme::SelfTestLog>,
    pub ocp: Reading<nvme::OcpSmart>,
    pub commands: Reading<nvme::DriveCommands>,
    pub stats: BTreeMap<Source, SourceStats>,
}

/// Everything known of the host and the agent.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields are the sources")]
pub struct HostState {
    pub info: Reading<host::HostInfo>,
    pub pressure: Reading<host::Pressure>,
    pub cpu: Reading<host::Cpu>,
    pub agent: Reading<host::Agent>,
    pub stack: Reading<stack::Stack>,
    pub discovery: Reading<host::Discovery>,
    /// The diskstats file as a whole; the counters are with the devices.
    pub diskstats: Reading<DiskstatsFile>,
    pub stats: BTreeMap<Source, SourceStats>,
}

/// What is kept of the diskstats file as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskstatsFile {
    /// Lines read.
    pub rows: usize,
    /// Lines skipped, with the reason.
    pub faults: Vec<Fault>,
}

/// The newest reading of everything.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Boot time against wall clock at the newest tick.
    pub clock: ClockSync,
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

impl DeviceState {
    fn new(device: Device, now: BootTime) -> Self {
        Self {
            device: Arc::new(device),
            appeared: now,
            counters: Reading::Never,
            queue: Reading::Never,
            power: Reading::Never,
            ata_power: Reading::Never,
            namespace: Reading::Never,
            probe: Reading::Never,
            stats: BTreeMap::new(),
        }
    }

    /// The state of every source that was asked for or answered.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let stats = &self.stats;
        let mut all = vec![
            SourceStatus::of(Source::Diskstats, &self.counters, stats),
            SourceStatus::of(Source::Queue, &self.queue, stats),
            SourceStatus::of(Source::Power, &self.power, stats),
            SourceStatus::of(Source::AtaPower, &self.ata_power, stats),
            SourceStatus::of(Source::Namespace, &self.namespace, stats),
            SourceStatus::of(Source::Probe, &self.probe, stats),
        ];
        all.retain(|status| status.state != "never");
        all
    }

    fn apply(&mut self, source: Source, began: BootTime, ended: BootTime, outcome: Outcome) -> bool {
        match source {
            Source::Queue => settle(&mut self.queue, began, ended, outcome, |sample| match sample {
                Sample::Queue(value) => Some(*value),
                _ => None,
            }),
            Source::Power => settle(&mut self.power, began, ended, outcome, |sample| match sample {
                Sample::Power(value) => Some(value),
                _ => None,
            }),
            Source::AtaPower => settle(&mut self.ata_power, began, ended, outcome, |sample| match sample {
                Sample::AtaPower(value) => Some(value),
                _ => None,
            }),
            Source::Namespace => settle(&mut self.namespace, began, ended, outcome, |sample| match sample {
                Sample::Namespace(value) => Some(value),
                _ => None,
            }),
            Source::Probe => settle(&mut self.probe, began, ended, outcome, |sample| match sample {
                Sample::Probe(value) => Some(*value),
                _ => None,
            }),
            _ => false,
        }
    }

    fn stall(&mut self, source: Source, since: BootTime) -> bool {
        match source {
            Source::Diskstats => self.counters.stall(since),
            Source::Queue => self.queue.stall(since),
            Source::Power => self.power.stall(since),
            Source::AtaPower => self.ata_power.stall(since),
            Source::Namespace => self.namespace.stall(since),
            Source::Probe => self.probe.stall(since),
            _ => return false,
        }
        true
    }

    fn expire(&mut self, now: BootTime, limit: &dyn Fn(Source) -> Duration) {
        self.counters.expire(now, limit(Source::Diskstats));
        self.queue.expire(now, limit(Source::Queue));
        self.power.expire(now, limit(Source::Power));
        self.ata_power.expire(now, limit(Source::AtaPower));
        self.namespace.expire(now, limit(Source::Namespace));
        self.probe.expire(now, limit(Source::Probe));
    }

    fn take_counters(&mut self, rows: &HashMap<&str, &DiskCounters>, began: BootTime, ended: BootTime) {
        let own = rows.get(self.device.name.as_str()).map(|counters| **counters);
        let paths: Vec<_> = self
            .device
            .nvme
            .iter()
            .flat_map(|nvme| &nvme.paths)
            .filter_map(|path| rows.get(path.name.as_str()).map(|counters| (path.name.clone(), **counters)))
            .collect();
        if own.is_none() && paths.is_empty() {
            let what = format!("no line for {}", self.device.name);
            self.counters.fail(Fault::Parse { path: "diskstats".to_owned(), line: 0, what }, ended);
        } else {
            self.counters.succeed(DeviceCounters { own, paths }, began, ended);
        }
    }
}

impl ControllerState {
    fn new(controller: Controller, now: BootTime) -> Self {
        Self {
            controller: Arc::new(controller),
            appeared: now,
            state: Reading::Never,
            power: Reading::Never,
            link: Reading::Never,
            aer: Reading::Never,
            identify: Reading::Never,
            smart: Reading::Never,
            error_log: Reading::Never,
            firmware: Reading::Never,
            self_test: Reading::Never,
            ocp: Reading::Never,
            commands: Reading::Never,
            stats: BTreeMap::new(),
        }
    }

    /// The state of every source that was asked for or answered.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let stats = &self.stats;
        let mut all = vec![
            SourceStatus::of(Source::ControllerState, &self.state, stats),
            SourceStatus::of(Source::Power, &self.power, stats),
            SourceStatus::of(Source::PcieLink, &self.link, stats),
            SourceStatus::of(Source::PcieAer, &self.aer, stats),
            SourceStatus::of(Source::Identify, &self.identify, stats),
            SourceStatus::of(Source::SmartHealth, &self.smart, stats),
            SourceStatus::of(Source::ErrorLog, &self.error_log, stats),
            SourceStatus::of(Source::FirmwareSlots, &self.firmware, stats),
            SourceStatus::of(Source::SelfTest, &self.self_test, stats),
            SourceStatus::of(Source::OcpSmart, &self.ocp, stats),
        ];
        all.retain(|status| status.state != "never");
        all
    }

    fn apply(&mut self, source: Source, began: BootTime, ended: BootTime, outcome: Outcome) -> bool {
        macro_rules! take {
            ($field:ident, $pattern:pat => $value:expr) => {
                settle(&mut self.$field, began, ended, outcome, |sample| match sample {
                    $pattern => Some($value),
                    _ => None,
                })
            };
        }
        match source {
            Source::ControllerState => take!(state, Sample::ControllerState(value) => value),
            Source::Power => take!(power, Sample::Power(value) => value),
            Source::PcieLink => take!(link, Sample::PcieLink(value) => value),
            Source::PcieAer => take!(aer, Sample::PcieAer(value) => value),
            Source::Identify => take!(identify, Sample::Identify(value) => *value),
            Source::SmartHealth => take!(smart, Sample::SmartHealth(value) => *value),
            Source::ErrorLog => take!(error_log, Sample::ErrorLog(value) => value),
            Source::FirmwareSlots => take!(firmware, Sample::FirmwareSlots(value) => value),
            Source::SelfTest => take!(self_test, Sample::SelfTest(value) => value),
            Source::OcpSmart => take!(ocp, Sample::OcpSmart(value) => *value),
            Source::DriveCommands => take!(commands, Sample::DriveCommands(value) => value),
            _ => false,
        }
    }

    fn stall(&mut self, source: Source, since: BootTime) -> bool {
        match source {
            Source::ControllerState => self.state.stall(since),
            Source::Power => self.power.stall(since),
            Source::PcieLink => self.link.stall(since),
            Source::PcieAer => self.aer.stall(since),
            Source::Identify => self.identify.stall(since),
            Source::SmartHealth => self.smart.stall(since),
            Source::ErrorLog => self.error_log.stall(since),
            Source::FirmwareSlots => self.firmware.stall(since),
            Source::SelfTest => self.self_test.stall(since),
            Source::OcpSmart => self.ocp.stall(since),
            Source::DriveCommands => self.commands.stall(since),
            _ => return false,
        }
        true
    }

    fn expire(&mut self, now: BootTime, limit: &dyn Fn(Source) -> Duration) {
        self.state.expire(now, limit(Source::ControllerState));
        self.power.expire(now, limit(Source::Power));
        self.link.expire(now, limit(Source::PcieLink));
        self.aer.expire(now, limit(Source::PcieAer));
        self.identify.expire(now, limit(Source::Identify));
        self.smart.expire(now, limit(Source::SmartHealth));
        self.error_log.expire(now, limit(Source::ErrorLog));
        self.firmware.expire(now, limit(Source::FirmwareSlots));
        self.self_test.expire(now, limit(Source::SelfTest));
        self.ocp.expire(now, limit(Source::OcpSmart));
        self.commands.expire(now, limit(Source::DriveCommands));
    }
}

impl HostState {
    /// The state of every host-wide source that was asked for or answered.
    pub fn sources(&self) -> Vec<SourceStatus> {
        let stats = &self.stats;
        let mut all = vec![
            SourceStatus::of(Source::Diskstats, &self.diskstats, stats),
            SourceStatus::of(Source::Pressure, &self.pressure, stats),
            SourceStatus::of(Source::Cpu, &self.cpu, stats),
            SourceStatus::of(Source::HostInfo, &self.info, stats),
            SourceStatus::of(Source::Agent, &self.agent, stats),
            SourceStatus::of(Source::Stack, &self.stack, stats),
            SourceStatus::of(Source::Discovery, &self.discovery, stats),
        ];
        all.retain(|status| status.state != "never");
        all
    }

    fn apply(&mut self, source: Source, began: BootTime, ended: BootTime, outcome: Outcome) -> bool {
        macro_rules! take {
            ($field:ident, $pattern:pat => $value:expr) => {
                settle(&mut self.$field, began, ended, outcome, |sample| match sample {
                    $pattern => Some($value),
                    _ => None,
                })
            };
        }
        match source {
            Source::Pressure => take!(pressure, Sample::Pressure(value) => value),
            Source::Cpu => take!(cpu, Sample::Cpu(value) => value),
            Source::HostInfo => take!(info, Sample::HostInfo(value) => value),
            Source::Agent => take!(agent, Sample::Agent(value) => value),
            Source::Stack => take!(stack, Sample::Stack(value) => value),
            Source::Discovery => take!(discovery, Sample::Discovery(value) => value),
            Source::Diskstats => take!(diskstats, Sample::Diskstats(table) => DiskstatsFile {
                rows: table.rows.len(),
                faults: table.faults,
            }),
            _ => false,
        }
    }

    fn stall(&mut self, source: Source, since: BootTime) -> bool {
        match source {
            Source::Diskstats => self.diskstats.stall(since),
            Source::Pressure => self.pressure.stall(since),
            Source::Cpu => self.cpu.stall(since),
            Source::HostInfo => self.info.stall(since),
            Source::Agent => self.agent.stall(since),
            Source::Stack => self.stack.stall(since),
            Source::Discovery => self.discovery.stall(since),
            _ => return false,
        }
        true
    }

    fn expire(&mut self, now: BootTime, limit: &dyn Fn(Source) -> Duration) {
        self.diskstats.expire(now, limit(Source::Diskstats));
        self.pressure.expire(now, limit(Source::Pressure));
        self.cpu.expire(now, limit(Source::Cpu));
        self.info.expire(now, limit(Source::HostInfo));
        self.agent.expire(now, limit(Source::Agent));
        self.stack.expire(now, limit(Source::Stack));
        self.discovery.expire(now, limit(Source::Discovery));
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
