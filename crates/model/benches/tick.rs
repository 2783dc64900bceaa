//! One tick: take in diskstats, work out rates, windows, findings and view. Goals: under 1 ms at 24 devices, under
//! 20 ms at 1,000.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use storscope_model::analysis::analyse;
use storscope_model::device::{Controller, DevNum, Device, NvmeNamespace, Place, Transport};
use storscope_model::distribution::{Bucket, Distribution};
use storscope_model::event::{Event, Outcome};
use storscope_model::history::History;
use storscope_model::identity::{ControllerId, DeviceId, Subject};
use storscope_model::limits::Limits;
use storscope_model::probe_plan::{ProbePolicy, plan};
use storscope_model::sample::diskstats::{Direction, DiskCounters, Row, Table};
use storscope_model::sample::nvme::{ControllerState, Identify, SmartHealth};
use storscope_model::sample::pcie::{Hop, Link, PcieLink};
use storscope_model::sample::power::RuntimePower;
use storscope_model::sample::probe::{Engine, ProbeClass, ProbeOp, ProbeReport};
use storscope_model::sample::queue::QueueSettings;
use storscope_model::sample::stack::{Mount, Node, Stack};
use storscope_model::sample::{Sample, Source};
use storscope_model::snapshot::Snapshot;
use storscope_model::time::BootTime;
use storscope_model::view::AgentStatus;

const TICK: Duration = Duration::from_secs(5);
/// Distinct latencies of one device, at 1 % precision over two octaves.
const BUCKETS: u64 = 150;

fn device_id(n: usize) -> DeviceId {
    DeviceId(format!("SAMPLE-MODEL-3T84 S0000{n:06} 1"))
}

fn controller_id(n: usize) -> ControllerId {
    ControllerId(format!("SAMPLE-MODEL-3T84 S0000{n:06} c0"))
}

fn device(n: usize) -> Device {
    Device {
        id: device_id(n),
        name: format!("nvme{n}n1"),
        devnum: Some(DevNum { major: 259, minor: u32::try_from(n).unwrap_or(0) }),
        transport: Transport::NvmePcie,
        vendor: None,
        model: Some("SAMPLE-MODEL-3T84".to_owned()),
        serial: Some(format!("S0000{n:06}")),
        firmware: Some("FW01".to_owned()),
        wwid: None,
        size_bytes: Some(3_840_755_982_336),
        logical_block_bytes: Some(512),
        rotational: Some(false),
        removable: Some(false),
        read_only: Some(false),
        zoned: None,
        pci_address: None,
        numa_node: None,
        place: Place::default(),
        partition_of: None,
        nvme: Some(NvmeNamespace { nsid: Some(1), controllers: vec![controller_id(n)], ..NvmeNamespace::default() }),
    }
}

fn controller(n: usize) -> Controller {
    Controller {
        id: controller_id(n),
        name: format!("nvme{n}"),
        transport: Transport::NvmePcie,
        model: Some("SAMPLE-MODEL-3T84".to_owned()),
        serial: Some(format!("S0000{n:06}")),
        firmware: Some("FW01".to_owned()),
        cntlid: Some(0),
        subsystem_nqn: None,
        address: None,
        pci_address: None,
        numa_node: None,
        place: Place::default(),
    }
}

fn read(subject: Subject, sample: Sample, at: BootTime) -> Event {
    let source = sample.source();
    Event::Read { subject, source, began: at, ended: at, outcome: Outcome::Value(Box::new(sample)) }
}

fn diskstats(devices: usize, tick: u64) -> Event {
    let rows = (0..devices).map(|n| {
        let done = Direction { completed: tick * 900, merged: tick, sectors: tick * 7200, time_ms: tick * 400 };
        let counters = DiskCounters {
            reads: done,
            writes: done,
            in_flight: 2,
            io_time_ms: tick * 900,
            weighted_time_ms: tick * 1800,
            discards: Some(done),
            flushes: None,
        };
        Row { name: format!("nvme{n}n1"), major: 259, minor: 0, counters }
    });
    let table = Table { rows: rows.collect(), faults: Vec::new() };
    read(Subject::Host, Sample::Diskstats(table), at(tick))
}

fn at(tick: u64) -> BootTime {
    BootTime::from_secs(100_000).plus(TICK * u32::try_from(tick).unwrap_or(u32::MAX))
}

/// A burst of 16 reads a tick, each of another latency than the one before.
fn report(tick: u64) -> Sample {
    let reads = tick * 16;
    let count = |n: u64| reads / BUCKETS + u64::from(n < reads % BUCKETS);
    let buckets = (0..BUCKETS).map(|n| Bucket { upper_ns: 60_000 + n * 900, count: count(n) });
    let latencies = Distribution::new(buckets.collect(), tick * 1_000_000);
    Sample::Probe(Box::new(ProbeReport {
        engine: Engine::IoUring,
        classes: vec![ProbeClass { op: ProbeOp::Read, busy: true, latencies }],
        errors: Vec::new(),
        skipped: Vec::new(),
        last_skip: None,
        last_error: None,
        outstanding_since: None,
        in_flight_before: Some(1),
        busy_ns: tick * 1_000_000,
    }))
}

struct Host {
    devices: usize,
    tick: u64,
    snapshot: Snapshot,
    history: History,
    limits: Limits,
    agent: Arc<AgentStatus>,
}

impl Host {
    /// A host whose probes ran for an hour and whose every source was just read.
    fn new(devices: usize) -> Self {
        let mut host = Self {
            devices,
            tick: 1,
            snapshot: Snapshot::default(),
            history: History::default(),
            limits: Limits::default(),
            agent: Arc::new(AgentStatus::default()),
        };
        // Sources are read once: nothing must grow old while the benchmark runs through its own time.
        for source in Source::ALL {
            host.limits.periods.insert(source, Duration::from_secs(1_000_000_000));
        }
        for n in 0..devices {
            host.snapshot.apply(Event::ControllerAppeared(Box::new(controller(n))), at(0));
            host.snapshot.apply(Event::DeviceAppeared(Box::new(device(n))), at(0));
            host.read_sources(n);
        }
        let nodes = (0..devices).map(|n| Node {
            name: format!("nvme{n}n1"),
            mounts: vec![Mount { point: format!("/srv/{n}"), fs_type: "xfs".to_owned() }],
            ..Node::default()
        });
        let stack = Stack { nodes: nodes.collect(), ..Stack::default() };
        host.snapshot.apply(read(Subject::Host, Sample::Stack(stack), at(0)), at(0));
        for tick in (1..720).step_by(30) {
            host.tick = tick;
            for n in 0..devices {
                host.snapshot.apply(read(Subject::Device(device_id(n)), report(tick), at(tick)), at(tick));
            }
            host.tick(diskstats(devices, tick));
        }
        host
    }

    fn read_sources(&mut self, n: usize) {
        let link = Link { mega_transfers: Some(16_000), width: Some(4) };
        let hop = Hop { address: "0000:01:00.0".to_owned(), current: link, maximum: link, suspended: false };
        let smart = SmartHealth { temperature_c: Some(40), available_spare_percent: 100, ..SmartHealth::default() };
        let identify = Identify { warning_temperature_c: Some(70), ..Identify::default() };
        let device = Subject::Device(device_id(n));
        let controller = Subject::Controller(controller_id(n));
        let samples = [
            (&device, Sample::Queue(Box::new(QueueSettings { nr_requests: Some(1023), ..QueueSettings::default() }))),
            (&device, Sample::Power(RuntimePower::default())),
            (&controller, Sample::ControllerState(ControllerState { state: "live".to_owned() })),
            (&controller, Sample::SmartHealth(Box::new(smart))),
            (&controller, Sample::Identify(Box::new(identify))),
            (&controller, Sample::PcieLink(PcieLink { hops: vec![hop.clone(), hop], faults: Vec::new() })),
        ];
        for (subject, sample) in samples {
            self.snapshot.apply(read(subject.clone(), sample, at(0)), at(0));
        }
    }

    fn tick(&mut self, diskstats: Event) {
        let now = at(self.tick);
        self.snapshot.apply(diskstats, now);
        let limits = &self.limits;
        self.snapshot.expire(now, &|source| limits.freshness(source));
        let view = analyse(&mut self.history, &self.snapshot, &self.agent, &self.limits, now);
        let plan = plan(&self.snapshot, &mut self.history, &ProbePolicy::default(), now);
        black_box((view, plan));
    }
}

fn tick(c: &mut Criterion) {
    for devices in [24, 1000] {
        let mut host = Host::new(devices);
        host.tick = 721;
        c.bench_function(&format!("tick/{devices}"), |bencher| {
            // The window of an hour stays filled: the benchmark's own time stands still but for the counters.
            let mut n = host.tick;
            bencher.iter_batched(
                || {
                    n += 1;
                    diskstats(devices, n)
                },
                |event| {
                    host.tick(event);
                    black_box(host.devices)
                },
                BatchSize::SmallInput,
            );
        });
        c.bench_function(&format!("tick with a report of every device/{devices}"), |bencher| {
            let mut n = 800;
            bencher.iter_batched(
                || {
                    n += 1;
                    let reports = (0..devices).map(|d| read(Subject::Device(device_id(d)), report(n), at(n)));
                    (n, reports.collect::<Vec<_>>(), diskstats(devices, n))
                },
                |(n, reports, diskstats)| {
                    host.tick = n;
                    for report in reports {
                        host.snapshot.apply(report, at(n));
                    }
                    host.tick(diskstats);
                },
                BatchSize::PerIteration,
            );
        });
    }
}

criterion_group!(benches, tick);
criterion_main!(benches);
