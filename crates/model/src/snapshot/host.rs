//! Everything known of the host and the agent.

use super::{SourceStats, SourceStatus, Trouble, settle};
use crate::event::Outcome;
use crate::fault::Fault;
use crate::reading::Reading;
use crate::sample::{Sample, Source, host, stack};
use crate::time::BootTime;
use std::collections::BTreeMap;
use std::time::Duration;

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

    /// The sources that were asked in vain the last time; allocates nothing when there is none.
    pub fn troubles(&self) -> Vec<Trouble<'_>> {
        let mut all = Vec::new();
        Trouble::note(&mut all, Source::Diskstats, &self.diskstats);
        Trouble::note(&mut all, Source::Pressure, &self.pressure);
        Trouble::note(&mut all, Source::Cpu, &self.cpu);
        Trouble::note(&mut all, Source::HostInfo, &self.info);
        Trouble::note(&mut all, Source::Agent, &self.agent);
        Trouble::note(&mut all, Source::Stack, &self.stack);
        Trouble::note(&mut all, Source::Discovery, &self.discovery);
        all
    }

    pub(super) fn apply(&mut self, source: Source, began: BootTime, ended: BootTime, outcome: Outcome) -> bool {
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

    pub(super) fn stall(&mut self, source: Source, since: BootTime) -> bool {
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

    pub(super) fn expire(&mut self, now: BootTime, limit: &dyn Fn(Source) -> Duration) {
        self.diskstats.expire(now, limit(Source::Diskstats));
        self.pressure.expire(now, limit(Source::Pressure));
        self.cpu.expire(now, limit(Source::Cpu));
        self.info.expire(now, limit(Source::HostInfo));
        self.agent.expire(now, limit(Source::Agent));
        self.stack.expire(now, limit(Source::Stack));
        self.discovery.expire(now, limit(Source::Discovery));
    }
}
