//! Everything known of one block device.

use super::SourceStats;
use super::readings::readings;
use crate::device::{Device, Transport};
use crate::fault::Fault;
use crate::reading::Reading;
use crate::sample::diskstats::DiskCounters;
use crate::sample::{Sample, Source, nvme, power, probe, queue};
use crate::time::BootTime;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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

    /// True when the kernel does not count the device's I/O (`queue/iostats` is 0), so that its counters stand still. The
    /// setting of a multipath head says nothing of its paths, and zram and brd count all the same.
    pub fn uncounted(&self) -> bool {
        let off = self.queue.fresh().is_some_and(|queue| queue.iostats == Some(false));
        let by_path = self.device.nvme.as_ref().is_some_and(|nvme| !nvme.paths.is_empty());
        off && !by_path && !matches!(self.device.transport, Transport::Zram | Transport::Ram)
    }

    /// Takes its own lines out of a diskstats table.
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
            let fault = Fault::Parse { path: "diskstats".to_owned(), line: 0, what };
            let stats = self.stats.entry(Source::Diskstats).or_default();
            let failures = stats.failures.entry(fault.class()).or_default();
            *failures = failures.saturating_add(1);
            self.counters.fail(fault, ended);
        } else {
            self.counters.succeed(DeviceCounters { own, paths }, began, ended);
        }
    }
}

readings! {
    DeviceState {
        counters: Diskstats,
        queue: Queue = Sample::Queue(value) => *value,
        power: Power = Sample::Power(value) => value,
        ata_power: AtaPower = Sample::AtaPower(value) => value,
        namespace: Namespace = Sample::Namespace(value) => value,
        probe: Probe = Sample::Probe(value) => *value,
    }
}
