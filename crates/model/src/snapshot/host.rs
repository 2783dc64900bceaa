//! Everything known of the host and the agent.

use super::SourceStats;
use super::readings::readings;
use crate::fault::Fault;
use crate::reading::Reading;
use crate::sample::{Sample, Source, host, stack};
use crate::time::BootTime;
use std::collections::BTreeMap;

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

readings! {
    HostState {
        diskstats: Diskstats = Sample::Diskstats(table) => DiskstatsFile { rows: table.rows.len(), faults: table.faults },
        pressure: Pressure = Sample::Pressure(value) => value,
        cpu: Cpu = Sample::Cpu(value) => value,
        info: HostInfo = Sample::HostInfo(value) => value,
        agent: Agent = Sample::Agent(value) => value,
        stack: Stack = Sample::Stack(value) => value,
        discovery: Discovery = Sample::Discovery(value) => value,
    }
}
