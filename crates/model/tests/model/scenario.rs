//! A made-up host whose drives are told what to say.

use std::sync::Arc;
use std::time::Duration;
use storscope_model::analysis::analyse;
use storscope_model::codec;
use storscope_model::device::{Controller, DevNum, Device, NvmeNamespace, Place, Transport};
use storscope_model::distribution::{Bucket, Distribution};
use storscope_model::event::{Event, Outcome};
use storscope_model::fault::Fault;
use storscope_model::finding::Finding;
use storscope_model::history::History;
use storscope_model::identity::{ControllerId, DeviceId, Subject};
use storscope_model::limits::Limits;
use storscope_model::sample::diskstats::{Direction, DiskCounters, Row, Table};
use storscope_model::sample::nvme::{ControllerState, Identify, SmartHealth};
use storscope_model::sample::pcie::{Hop, Link, PcieLink};
use storscope_model::sample::power::RuntimePower;
use storscope_model::sample::probe::{Engine, ProbeClass, ProbeOp, ProbeReport};
use storscope_model::sample::{Sample, Source};
use storscope_model::snapshot::Snapshot;
use storscope_model::time::{BootTime, ClockSync};
use storscope_model::view::{AgentStatus, View};

pub(crate) struct Host {
    pub(crate) snapshot: Snapshot,
    pub(crate) history: History,
    pub(crate) limits: Limits,
    pub(crate) agent: Arc<AgentStatus>,
    pub(crate) now: BootTime,
}

pub(crate) fn device_id(n: usize) -> DeviceId {
    DeviceId(format!("MODEL SERIAL{n} 1"))
}

pub(crate) fn controller_id(n: usize) -> ControllerId {
    ControllerId(format!("MODEL SERIAL{n} c0"))
}

pub(crate) fn disk(n: usize) -> Subject {
    Subject::Device(device_id(n))
}

pub(crate) fn controller(n: usize) -> Subject {
    Subject::Controller(controller_id(n))
}

pub(crate) fn nvme_device(n: usize) -> Device {
    Device {
        id: device_id(n),
        name: format!("nvme{n}n1"),
        devnum: Some(DevNum { major: 259, minor: u32::try_from(n).unwrap_or(0) }),
        transport: Transport::NvmePcie,
        vendor: None,
        model: Some("MODEL".to_owned()),
        serial: Some(format!("SERIAL{n}")),
        firmware: Some("FW1".to_owned()),
        wwid: None,
        size_bytes: Some(1 << 40),
        logical_block_bytes: Some(512),
        rotational: Some(false),
        removable: Some(false),
        read_only: Some(false),
        zoned: None,
        pci_address: Some(format!("0000:{n:02x}:00.0")),
        numa_node: None,
        place: Place::default(),
        partition_of: None,
        nvme: Some(NvmeNamespace {
            nsid: Some(1),
            subsystem_nqn: None,
            controllers: vec![controller_id(n)],
            paths: Vec::new(),
        }),
    }
}

pub(crate) fn nvme_controller(n: usize) -> Controller {
    Controller {
        id: controller_id(n),
        name: format!("nvme{n}"),
        transport: Transport::NvmePcie,
        model: Some("MODEL".to_owned()),
        serial: Some(format!("SERIAL{n}")),
        firmware: Some("FW1".to_owned()),
        cntlid: Some(0),
        subsystem_nqn: None,
        address: Some(format!("0000:{n:02x}:00.0")),
        pci_address: Some(format!("0000:{n:02x}:00.0")),
        numa_node: None,
        place: Place::default(),
    }
}

pub(crate) fn link(mega_transfers: u32, width: u8) -> PcieLink {
    let full = Link { mega_transfers: Some(16_000), width: Some(4) };
    let current = Link { mega_transfers: Some(mega_transfers), width: Some(width) };
    let hop = |address: &str| Hop { address: address.to_owned(), current, maximum: full, suspended: false };
    PcieLink { hops: vec![hop("0000:01:00.0"), hop("0000:00:01.1")], faults: Vec::new() }
}

/// A healthy drive's page.
pub(crate) fn smart() -> SmartHealth {
    SmartHealth {
        temperature_c: Some(40),
        available_spare_percent: 100,
        available_spare_threshold_percent: 10,
        percentage_used: 3,
        ..SmartHealth::default()
    }
}

pub(crate) fn identify() -> Identify {
    Identify { warning_temperature_c: Some(70), critical_temperature_c: Some(80), ..Identify::default() }
}

/// A prober that has read `reads` times, 100 µs each.
pub(crate) fn report(reads: u64) -> ProbeReport {
    let buckets = vec![Bucket { upper_ns: 100_000, count: reads }];
    ProbeReport {
        engine: Engine::IoUring,
        classes: vec![ProbeClass {
            op: ProbeOp::Read,
            busy: false,
            latencies: Distribution::new(buckets, reads * 100_000),
        }],
        errors: Vec::new(),
        skipped: Vec::new(),
        last_skip: None,
        last_error: None,
        outstanding_since: None,
        in_flight_before: None,
        busy_ns: reads * 100_000,
    }
}

pub(crate) fn line(name: &str, completed: u64) -> Row {
    let reads = Direction { completed, merged: 0, sectors: completed * 8, time_ms: completed };
    Row {
        name: name.to_owned(),
        major: 259,
        minor: 0,
        counters: DiskCounters { reads, io_time_ms: completed, weighted_time_ms: completed, ..DiskCounters::default() },
    }
}

impl Host {
    /// A host with `drives` healthy NVMe drives that were just found.
    pub(crate) fn new(drives: usize) -> Self {
        let clock = ClockSync { boot_id: "boot".to_owned(), wall_offset_ns: 1_790_000_000_000_000_000 };
        let mut host = Self {
            snapshot: Snapshot { clock, ..Snapshot::default() },
            history: History::default(),
            limits: Limits::default(),
            agent: Arc::new(AgentStatus::default()),
            now: BootTime::from_secs(1000),
        };
        for n in 0..drives {
            host.tell(Event::ControllerAppeared(Box::new(nvme_controller(n))));
            host.tell(Event::DeviceAppeared(Box::new(nvme_device(n))));
        }
        host.healthy();
        host
    }

    /// Every drive says once that it is well.
    pub(crate) fn healthy(&mut self) {
        let ids: Vec<ControllerId> = self.snapshot.controllers.keys().cloned().collect();
        for id in ids {
            let subject = Subject::Controller(id);
            self.read(&subject, Sample::ControllerState(ControllerState { state: "live".to_owned() }));
            self.read(&subject, Sample::SmartHealth(Box::new(smart())));
            self.read(&subject, Sample::Identify(Box::new(identify())));
            self.read(&subject, Sample::PcieLink(link(16_000, 4)));
        }
        let ids: Vec<DeviceId> = self.snapshot.devices.keys().cloned().collect();
        for id in ids {
            let subject = Subject::Device(id);
            self.read(&subject, Sample::Power(RuntimePower::default()));
            self.read(&subject, Sample::Queue(Box::default()));
        }
    }

    /// Every event goes through the codec, as it does between processes.
    pub(crate) fn tell(&mut self, event: Event) {
        let frame = codec::encode(&event).unwrap_or_default();
        if let Ok(event) = codec::decode(frame.get(codec::HEADER..).unwrap_or_default()) {
            self.snapshot.apply(event, self.now);
        }
    }

    pub(crate) fn read(&mut self, subject: &Subject, sample: Sample) {
        let source = sample.source();
        self.outcome(subject, source, Outcome::Value(Box::new(sample)));
    }

    pub(crate) fn fail(&mut self, subject: &Subject, source: Source, fault: Fault) {
        self.outcome(subject, source, Outcome::Failed(fault));
    }

    fn outcome(&mut self, subject: &Subject, source: Source, outcome: Outcome) {
        let (began, ended) = (self.now, self.now);
        self.tell(Event::Read { subject: subject.clone(), source, began, ended, outcome });
    }

    /// One diskstats file with a line a drive, each with `completed` reads.
    pub(crate) fn diskstats(&mut self, completed: u64) {
        let names: Vec<String> = self.snapshot.devices.values().map(|state| state.device.name.clone()).collect();
        let rows = names.iter().map(|name| line(name, completed)).collect();
        self.read(&Subject::Host, Sample::Diskstats(Table { rows, faults: Vec::new() }));
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = self.now.plus(Duration::from_secs(seconds));
    }

    pub(crate) fn view(&mut self) -> View {
        let limits = self.limits.clone();
        self.snapshot.expire(self.now, &|source| limits.freshness(source));
        analyse(&mut self.history, &self.snapshot, &self.agent, &limits, self.now)
    }

    /// The open finding of `rule`, worked out now.
    pub(crate) fn finding(&mut self, rule: &str) -> Option<Finding> {
        self.view().findings.into_iter().find(|finding| finding.rule == rule)
    }

    pub(crate) fn rules(&mut self) -> Vec<&'static str> {
        self.view().findings.iter().map(|finding| finding.rule).collect()
    }
}
