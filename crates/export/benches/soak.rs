//! A week of a host in a minute: its counters, log pages, links and probes at their default periods, with drives that come
//! and go, sources that fail and stall, and scrapes. Prints what is allocated and resident at the end of each day.
#![allow(clippy::expect_used, reason = "a benchmark may panic")]

use fastrand::Rng;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;
use storscope_export::prometheus::{Format, encode};
use storscope_export::{json, text};
use storscope_model::analysis::analyse;
use storscope_model::device::{Controller, DevNum, Device, NvmeNamespace, Place, Transport};
use storscope_model::distribution::{Bucket, Distribution};
use storscope_model::event::{Event, Outcome};
use storscope_model::fault::Fault;
use storscope_model::history::History;
use storscope_model::identity::{ControllerId, DeviceId, Subject};
use storscope_model::limits::Limits;
use storscope_model::probe_plan::{ProbePolicy, plan};
use storscope_model::sample::Sample;
use storscope_model::sample::diskstats::{Direction, DiskCounters, Row, Table};
use storscope_model::sample::nvme::{ControllerState, Identify, SmartHealth};
use storscope_model::sample::pcie::{Hop, Link, PcieLink};
use storscope_model::sample::probe::{Engine, ProbeClass, ProbeOp, ProbeReport};
use storscope_model::snapshot::Snapshot;
use storscope_model::time::BootTime;
use storscope_model::view::AgentStatus;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SLOTS: usize = 24;
const TICK: Duration = Duration::from_secs(5);
const DAYS: u64 = 7;
const TICKS_A_DAY: u64 = 24 * 3600 / 5;
/// Ticks between two scrapes, and between two looks at what is read once a minute.
const SCRAPE: u64 = 3;
const MINUTE: u64 = 12;
/// Ticks between two removals: one in five minutes, of which each ends ten ticks later.
const REMOVAL: u64 = 60;
const AWAY: u64 = 10;
/// Reads in a hundred that fail, and that stall.
const FAILING: u32 = 2;
const STALLING: u32 = 1;
/// Reads of a burst, and most distinct latencies of a drive.
const BURST: u64 = 16;
const BUCKETS: usize = 120;

/// What is in one slot.
struct Drive {
    /// Which drive, of all that ever were.
    number: u64,
    present: bool,
    returns: u64,
    done: u64,
    counts: [u64; BUCKETS],
    media_errors: u128,
}

impl Drive {
    fn new(number: u64) -> Self {
        Self { number, present: true, returns: 0, done: 0, counts: [0; BUCKETS], media_errors: 0 }
    }

    fn device_id(&self) -> DeviceId {
        DeviceId(format!("SAMPLE-MODEL-3T84 S{:09} 1", self.number))
    }

    fn controller_id(&self) -> ControllerId {
        ControllerId(format!("SAMPLE-MODEL-3T84 S{:09} c0", self.number))
    }

    fn appear(&self, slot: usize) -> [Event; 2] {
        let (model, serial) = (Some("SAMPLE-MODEL-3T84".to_owned()), Some(format!("S{:09}", self.number)));
        let device = Device {
            id: self.device_id(),
            name: format!("nvme{slot}n1"),
            devnum: Some(DevNum { major: 259, minor: u32::try_from(slot).unwrap_or(0) }),
            transport: Transport::NvmePcie,
            vendor: None,
            model: model.clone(),
            serial: serial.clone(),
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
            nvme: Some(NvmeNamespace {
                nsid: Some(1),
                controllers: vec![self.controller_id()],
                ..NvmeNamespace::default()
            }),
        };
        let controller = Controller {
            id: self.controller_id(),
            name: format!("nvme{slot}"),
            transport: Transport::NvmePcie,
            model,
            serial,
            firmware: Some("FW01".to_owned()),
            cntlid: Some(0),
            subsystem_nqn: None,
            address: None,
            pci_address: None,
            numa_node: None,
            place: Place::default(),
        };
        [Event::ControllerAppeared(Box::new(controller)), Event::DeviceAppeared(Box::new(device))]
    }
}

/// The host and what watches it.
struct Host {
    rng: Rng,
    tick: u64,
    drives: Vec<Drive>,
    drives_so_far: u64,
    snapshot: Snapshot,
    history: History,
    limits: Limits,
    agent: Arc<AgentStatus>,
    page: String,
}

impl Host {
    fn new() -> Self {
        let drives: Vec<Drive> = (0..).take(SLOTS).map(Drive::new).collect();
        let mut host = Self {
            rng: Rng::with_seed(7),
            tick: 1,
            drives_so_far: u64::try_from(drives.len()).unwrap_or(u64::MAX),
            drives,
            snapshot: Snapshot::default(),
            history: History::default(),
            limits: Limits::default(),
            agent: Arc::new(AgentStatus::default()),
            page: String::new(),
        };
        for slot in 0..SLOTS {
            host.put_in(slot);
        }
        host
    }

    fn now(&self) -> BootTime {
        BootTime::from_secs(100_000 + self.tick * TICK.as_secs())
    }

    fn take(&mut self, event: Event) {
        self.snapshot.apply(event, self.now());
    }

    fn put_in(&mut self, slot: usize) {
        for event in self.drives[slot].appear(slot) {
            self.take(event);
        }
    }

    /// One source is read, fails or stalls.
    fn read(&mut self, subject: Subject, sample: Sample) {
        let (source, now) = (sample.source(), self.now());
        let event = match self.rng.u32(0..100) {
            chance if chance < FAILING => {
                let fault = Fault::Io { path: format!("/sys/x{}", self.rng.u8(0..8)), errno: 5 };
                Event::Read { subject, source, began: now, ended: now, outcome: Outcome::Failed(fault) }
            }
            chance if chance < FAILING + STALLING => Event::Stalled { subject, source, since: now },
            _ => Event::Read { subject, source, began: now, ended: now, outcome: Outcome::Value(Box::new(sample)) },
        };
        self.take(event);
    }

    fn come_and_go(&mut self) {
        if self.tick.is_multiple_of(REMOVAL) {
            let slot = self.rng.usize(0..SLOTS);
            if self.drives[slot].present {
                self.drives[slot].present = false;
                self.drives[slot].returns = self.tick + AWAY;
                let (device, controller) = (self.drives[slot].device_id(), self.drives[slot].controller_id());
                self.take(Event::Vanished(Subject::Device(device)));
                self.take(Event::Vanished(Subject::Controller(controller)));
            }
        }
        for slot in 0..SLOTS {
            if !self.drives[slot].present && self.drives[slot].returns == self.tick {
                // One in three is replaced.
                if self.rng.u8(0..3) == 0 {
                    self.drives[slot] = Drive::new(self.drives_so_far);
                    self.drives_so_far += 1;
                }
                self.drives[slot].present = true;
                self.put_in(slot);
            }
        }
    }

    fn counters(&mut self) {
        let mut rows = Vec::new();
        for (slot, drive) in self.drives.iter_mut().enumerate().filter(|(_, drive)| drive.present) {
            drive.done += self.rng.u64(0..900);
            let done = drive.done;
            let moved = Direction { completed: done, merged: done / 9, sectors: done * 8, time_ms: done / 2 };
            let counters = DiskCounters {
                reads: moved,
                writes: moved,
                in_flight: self.rng.u64(0..8),
                io_time_ms: done,
                weighted_time_ms: done * 2,
                discards: Some(moved),
                flushes: None,
            };
            rows.push(Row { name: format!("nvme{slot}n1"), major: 259, minor: 0, counters });
        }
        self.read(Subject::Host, Sample::Diskstats(Table { rows, faults: Vec::new() }));
    }

    fn probe(&mut self, slot: usize) {
        let slow = usize::from(self.rng.u8(0..200) == 0) * BUCKETS / 2;
        for _ in 0..BURST {
            let bucket = (self.rng.usize(0..BUCKETS / 2) + slow).min(BUCKETS - 1);
            self.drives[slot].counts[bucket] += 1;
        }
        let drive = &self.drives[slot];
        let buckets = (60_000..).step_by(900).zip(drive.counts).map(|(upper_ns, count)| Bucket { upper_ns, count });
        let latencies = Distribution::new(buckets.filter(|bucket| bucket.count > 0).collect(), self.tick * 1_000_000);
        let report = ProbeReport {
            engine: Engine::IoUring,
            classes: vec![ProbeClass { op: ProbeOp::Read, busy: true, latencies }],
            errors: Vec::new(),
            skipped: Vec::new(),
            last_skip: None,
            last_error: None,
            outstanding_since: None,
            in_flight_before: Some(1),
            busy_ns: self.tick * 1_000_000,
        };
        self.read(Subject::Device(drive.device_id()), Sample::Probe(Box::new(report)));
    }

    fn pages(&mut self, slot: usize) {
        self.drives[slot].media_errors += u128::from(self.rng.u16(0..5000) == 0);
        let controller = Subject::Controller(self.drives[slot].controller_id());
        let smart = SmartHealth {
            temperature_c: Some(i32::from(self.rng.u8(30..75))),
            available_spare_percent: 100,
            media_errors: self.drives[slot].media_errors,
            ..SmartHealth::default()
        };
        let identify = Identify { warning_temperature_c: Some(70), ..Identify::default() };
        let width = if self.rng.u16(0..2000) == 0 { 2 } else { 4 };
        let link = |width| Link { mega_transfers: Some(16_000), width: Some(width) };
        let hop =
            Hop { address: format!("0000:{slot:02x}:00.0"), current: link(width), maximum: link(4), suspended: false };
        self.read(controller.clone(), Sample::ControllerState(ControllerState { state: "live".to_owned() }));
        self.read(controller.clone(), Sample::SmartHealth(Box::new(smart)));
        self.read(controller.clone(), Sample::Identify(Box::new(identify)));
        self.read(controller, Sample::PcieLink(PcieLink { hops: vec![hop.clone(), hop], faults: Vec::new() }));
    }

    fn turn(&mut self) {
        let now = self.now();
        let limits = &self.limits;
        self.snapshot.expire(now, &|source| limits.freshness(source));
        let view = Arc::new(analyse(&mut self.history, &self.snapshot, &self.agent, &self.limits, now));
        std::hint::black_box(plan(&self.snapshot, &mut self.history, &ProbePolicy::default(), now));
        if self.tick.is_multiple_of(SCRAPE) {
            self.page.clear();
            encode(&view, Format::Text, &mut self.page).expect("encodes");
        }
        if self.tick.is_multiple_of(MINUTE) {
            std::hint::black_box(text::render(&view, &text::Options::default()));
            std::hint::black_box(json::render(&view).expect("renders"));
        }
    }

    fn step(&mut self) {
        self.come_and_go();
        self.counters();
        for slot in 0..SLOTS {
            let turn = self.tick + u64::try_from(slot).unwrap_or(0);
            if self.drives[slot].present && turn.is_multiple_of(SCRAPE) {
                self.probe(slot);
            }
            if self.drives[slot].present && turn.is_multiple_of(MINUTE) {
                self.pages(slot);
            }
        }
        self.turn();
        self.tick += 1;
    }
}

fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

fn main() {
    let mut host = Host::new();
    for day in 1..=DAYS {
        for _ in 0..TICKS_A_DAY {
            host.step();
        }
        let memory = serde_json::to_vec(&host.history.memory(&host.snapshot.clock)).expect("serialises").len();
        println!("day {day} allocated {} state {memory} drives {}", allocated(), host.drives_so_far);
    }
}
