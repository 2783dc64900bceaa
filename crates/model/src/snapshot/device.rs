//! Everything known of one block device.

use super::{SourceStats, SourceStatus, Trouble, settle};
use crate::device::Device;
use crate::event::Outcome;
use crate::fault::Fault;
use crate::reading::Reading;
use crate::sample::diskstats::DiskCounters;
use crate::sample::{Sample, Source, nvme, power, probe, queue};
use crate::time::BootTime;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

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

impl DeviceState {
    pub(super) fn new(device: Device, now: BootTime) -> Self {
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

    /// The sources that were asked in vain the last time; allocates nothing when there is none.
    pub fn troubles(&self) -> Vec<Trouble<'_>> {
        let mut all = Vec::new();
        Trouble::note(&mut all, Source::Diskstats, &self.counters);
        Trouble::note(&mut all, Source::Queue, &self.queue);
        Trouble::note(&mut all, Source::Power, &self.power);
        Trouble::note(&mut all, Source::AtaPower, &self.ata_power);
        Trouble::note(&mut all, Source::Namespace, &self.namespace);
        Trouble::note(&mut all, Source::Probe, &self.probe);
        all
    }

    pub(super) fn apply(&mut self, source: Source, began: BootTime, ended: BootTime, outcome: Outcome) -> bool {
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

    pub(super) fn stall(&mut self, source: Source, since: BootTime) -> bool {
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

    pub(super) fn expire(&mut self, now: BootTime, limit: &dyn Fn(Source) -> Duration) {
        self.counters.expire(now, limit(Source::Diskstats));
        self.queue.expire(now, limit(Source::Queue));
        self.power.expire(now, limit(Source::Power));
        self.ata_power.expire(now, limit(Source::AtaPower));
        self.namespace.expire(now, limit(Source::Namespace));
        self.probe.expire(now, limit(Source::Probe));
    }

    pub(super) fn take_counters(&mut self, rows: &HashMap<&str, &DiskCounters>, began: BootTime, ended: BootTime) {
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
