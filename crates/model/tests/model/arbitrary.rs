//! Made-up events of every shape.

use crate::scenario::{controller_id, device_id, nvme_controller, nvme_device, smart};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use storscope_model::distribution::{Bucket, Distribution};
use storscope_model::event::{Event, Outcome};
use storscope_model::fault::Fault;
use storscope_model::identity::Subject;
use storscope_model::sample::diskstats::{Direction, DiskCounters, Flushes, Row, Table};
use storscope_model::sample::host::{Cpu, Pressure, PressureLine, PressureResource};
use storscope_model::sample::nvme::{ControllerState, ErrorEntry, ErrorLog, FirmwareSlots, SmartHealth};
use storscope_model::sample::pcie::{Aer, AerCounter, AerFunction, Hop, Link, PcieLink, Severity};
use storscope_model::sample::power::{AtaPower, RuntimePower};
use storscope_model::sample::probe::{Engine, ProbeClass, ProbeOp, ProbeReport, SkipReason};
use storscope_model::sample::stack::{Mount, Node, Stack};
use storscope_model::sample::{Sample, Source};
use storscope_model::time::BootTime;

const SUBJECTS: usize = 4;

pub(crate) fn subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        Just(Subject::Host),
        (0..SUBJECTS).prop_map(|n| Subject::Device(device_id(n))),
        (0..SUBJECTS).prop_map(|n| Subject::Controller(controller_id(n))),
    ]
}

pub(crate) fn source() -> impl Strategy<Value = Source> {
    proptest::sample::select(Source::ALL.to_vec())
}

pub(crate) fn distribution() -> impl Strategy<Value = Distribution> {
    let bucket = (1_u64..100, 0_u64..1000).prop_map(|(upper, count)| Bucket { upper_ns: upper * 10_000, count });
    (vec(bucket, 0..20), 0_u64..1_000_000).prop_map(|(buckets, sum)| Distribution::new(buckets, sum))
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (any::<String>(), any::<i32>()).prop_map(|(path, errno)| Fault::Io { path, errno }),
        (any::<String>(), any::<u32>(), vec(any::<u8>(), 0..200))
            .prop_map(|(path, line, quoted)| Fault::parse(path, line, "odd", &quoted)),
        (any::<String>(), any::<u16>()).prop_map(|(command, status)| Fault::Status { command, status }),
        (any::<String>(), any::<String>()).prop_map(|(path, needs)| Fault::Denied { path, needs }),
        Just(Fault::Gone),
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>())
        .prop_map(|(completed, merged, sectors, time_ms)| Direction { completed, merged, sectors, time_ms })
}

fn table() -> impl Strategy<Value = Sample> {
    let flushes = (any::<u64>(), any::<u64>()).prop_map(|(completed, time_ms)| Flushes { completed, time_ms });
    let times = (any::<u64>(), any::<u64>(), any::<u64>());
    let row = (0..SUBJECTS, direction(), direction(), times, option::of(direction()), option::of(flushes)).prop_map(
        |(n, reads, writes, (in_flight, io_time_ms, weighted_time_ms), discards, flushes)| Row {
            name: format!("nvme{n}n1"),
            major: 259,
            minor: 0,
            counters: DiskCounters { reads, writes, in_flight, io_time_ms, weighted_time_ms, discards, flushes },
        },
    );
    (vec(row, 0..6), vec(fault(), 0..2)).prop_map(|(rows, faults)| Sample::Diskstats(Table { rows, faults }))
}

fn link() -> impl Strategy<Value = Sample> {
    let end = || {
        (option::of(any::<u32>()), option::of(any::<u8>()))
            .prop_map(|(mega_transfers, width)| Link { mega_transfers, width })
    };
    let hop = ("[0-9a-f:.]{0,12}", end(), end(), any::<bool>())
        .prop_map(|(address, current, maximum, suspended)| Hop { address, current, maximum, suspended });
    vec(hop, 0..6).prop_map(|hops| Sample::PcieLink(PcieLink { hops, faults: Vec::new() }))
}

fn aer() -> impl Strategy<Value = Sample> {
    let severity = prop_oneof![Just(Severity::Correctable), Just(Severity::Nonfatal), Just(Severity::Fatal)];
    let counter = (severity, any::<String>(), any::<u64>()).prop_map(|(severity, error, count)| AerCounter {
        severity,
        error,
        count,
    });
    let function =
        (any::<String>(), vec(counter, 0..4)).prop_map(|(address, counters)| AerFunction { address, counters });
    vec(function, 0..3).prop_map(|functions| Sample::PcieAer(Aer { functions, faults: Vec::new() }))
}

fn report() -> impl Strategy<Value = Sample> {
    let class = (proptest::sample::select(ProbeOp::ALL.to_vec()), any::<bool>(), distribution())
        .prop_map(|(op, busy, latencies)| ProbeClass { op, busy, latencies });
    let skip = || prop_oneof![Just(SkipReason::QueueFull), Just(SkipReason::Denied), Just(SkipReason::Budget)];
    let newest = (option::of(skip()), option::of((any::<i32>(), any::<u64>())), option::of(any::<u64>()));
    (vec(class, 0..4), vec((any::<i32>(), any::<u64>()), 0..3), vec((skip(), any::<u64>()), 0..3), newest, any::<u64>())
        .prop_map(|(classes, errors, skipped, (last_skip, last_error, outstanding), busy_ns)| {
            Sample::Probe(Box::new(ProbeReport {
                engine: Engine::Pread,
                classes,
                errors,
                skipped,
                last_skip,
                last_error: last_error.map(|(errno, at)| (errno, BootTime(at))),
                outstanding_since: outstanding.map(BootTime),
                in_flight_before: None,
                busy_ns,
            }))
        })
}

fn health() -> impl Strategy<Value = Sample> {
    (any::<u8>(), option::of(any::<i32>()), any::<(u8, u8, u8)>(), any::<(u128, u128)>()).prop_map(
        |(critical_warning, temperature_c, (spare, threshold, used), (media_errors, units))| {
            Sample::SmartHealth(Box::new(SmartHealth {
                critical_warning,
                temperature_c,
                available_spare_percent: spare,
                available_spare_threshold_percent: threshold,
                percentage_used: used,
                media_errors,
                data_units_read: units,
                ..smart()
            }))
        },
    )
}

fn stack() -> impl Strategy<Value = Sample> {
    let name = || "(nvme[0-3]n1|md[0-3]|dm-[0-9])";
    let mount = (any::<String>(), any::<String>()).prop_map(|(point, fs_type)| Mount { point, fs_type });
    let node = (name(), option::of(any::<String>()), vec(name(), 0..4), vec(mount, 0..2), any::<bool>())
        .prop_map(|(name, label, above, mounts, swap)| Node { name, label, above, mounts, swap });
    vec(node, 0..12).prop_map(|nodes| Sample::Stack(Stack { nodes, ..Stack::default() }))
}

fn small() -> impl Strategy<Value = Sample> {
    prop_oneof![
        "[a-z ]{0,12}".prop_map(|state| Sample::ControllerState(ControllerState { state })),
        Just(Sample::ControllerState(ControllerState { state: "live".to_owned() })),
        any::<u8>().prop_map(|mode| Sample::AtaPower(AtaPower { mode })),
        any::<bool>().prop_map(|suspended| Sample::Power(RuntimePower { suspended, ..RuntimePower::default() })),
        (any::<u64>(), any::<u16>()).prop_map(|(count, status)| Sample::ErrorLog(ErrorLog {
            entries: vec![ErrorEntry { count, status, ..ErrorEntry::default() }]
        })),
        (any::<u8>(), option::of(any::<u8>())).prop_map(|(active, next)| Sample::FirmwareSlots(FirmwareSlots {
            active,
            next,
            ..FirmwareSlots::default()
        })),
        any::<(u64, u64, u64)>().prop_map(|(total_ticks, idle_ticks, iowait_ticks)| Sample::Cpu(Cpu {
            total_ticks,
            idle_ticks,
            iowait_ticks,
            load1: Some(0.5),
            ..Cpu::default()
        })),
        (0.0_f64..1.0, any::<u64>()).prop_map(|(avg10, total_us)| {
            let line = PressureLine { avg10, total_us, ..PressureLine::default() };
            let io = PressureResource { some: Some(line), full: None };
            Sample::Pressure(Pressure { io, ..Pressure::default() })
        }),
    ]
}

fn sample() -> impl Strategy<Value = Sample> {
    prop_oneof![table(), link(), aer(), report(), health(), stack(), small()]
}

fn read() -> impl Strategy<Value = Event> {
    let fitting = (subject(), sample())
        .prop_map(|(subject, sample)| (subject, sample.source(), Outcome::Value(Box::new(sample))));
    let astray = (subject(), source(), sample())
        .prop_map(|(subject, source, sample)| (subject, source, Outcome::Value(Box::new(sample))));
    let vain = prop_oneof![
        fault().prop_map(Outcome::Failed),
        any::<String>().prop_map(Outcome::Unsupported),
        any::<String>().prop_map(Outcome::Withheld),
    ];
    let vain = (subject(), source(), vain);
    (prop_oneof![6 => fitting, 1 => astray, 3 => vain], any::<u64>(), any::<u64>()).prop_map(
        |((subject, source, outcome), began, ended)| Event::Read {
            subject,
            source,
            began: BootTime(began),
            ended: BootTime(ended),
            outcome,
        },
    )
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..SUBJECTS).prop_map(|n| Event::DeviceAppeared(Box::new(nvme_device(n)))),
        2 => (0..SUBJECTS).prop_map(|n| Event::ControllerAppeared(Box::new(nvme_controller(n)))),
        1 => subject().prop_map(Event::Vanished),
        12 => read(),
        1 => (subject(), source(), any::<u64>())
            .prop_map(|(subject, source, since)| Event::Stalled { subject, source, since: BootTime(since) }),
    ]
}
