//! Time of one direct read through each engine, back to back, on a loop device over a file in the temporary directory.
//! Needs root; the kernel's own share is the same for both engines.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "criterion's macros; a bench that fails may panic"
)]

#[path = "../tests/devices/loop_device.rs"]
mod loop_device;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use loop_device::LoopDevice;
use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::time::Duration;
use storscope_probe::{Config, EngineChoice, Limits, Pace, Prober};

const SIZE: usize = 64 << 20;
/// Reads a burst: the cost of opening hardly shows.
const READS: u16 = 2000;

/// Devices that are read at once.
const CROWD: u64 = 24;

/// Time of `reads` reads of every device in bursts of [`READS`], opening and closing left out: the mean of the devices.
fn read(devices: &[LoopDevice], engine: EngineChoice, reads: u64) -> Duration {
    let config =
        Config { engine, limits: Limits { reads_per_second: u32::MAX, device_share: 1.0 }, ..Config::default() };
    let (sender, reports) = channel();
    let prober = Prober::start(config, move |report| drop(sender.send(report))).unwrap();
    let pace = Pace { burst: READS, interval: Duration::from_millis(1) };
    let targets: Vec<_> = (0..).zip(devices).map(|(key, device)| device.target(key, pace)).collect();
    prober.set_targets(&targets).unwrap();
    let mut spent = BTreeMap::new();
    for report in reports {
        let classes = report.probe.classes.iter();
        let done: u64 = classes.map(|class| class.latencies.count()).sum();
        if done >= reads {
            spent.insert(report.key, u128::from(report.probe.busy_ns) * u128::from(reads) / u128::from(done));
        }
        if spent.len() == devices.len() {
            let mean = spent.values().sum::<u128>() / u128::try_from(devices.len()).unwrap();
            return Duration::from_nanos(u64::try_from(mean).unwrap());
        }
    }
    unreachable!("the prober lives as long as its reports are awaited")
}

fn engines(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("disk");
    std::fs::write(&file, vec![7_u8; SIZE]).unwrap();
    let Some(devices) = (0..CROWD).map(|_| LoopDevice::attach(&file)).collect::<Option<Vec<_>>>() else {
        return;
    };
    for (group, devices) in [("read_4k", &devices[..1]), ("read_4k_of_24_at_once", &devices[..])] {
        let mut group = criterion.benchmark_group(group);
        for (name, engine) in [("io_uring", EngineChoice::IoUring), ("pread", EngineChoice::Pread)] {
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter_custom(|reads| read(devices, engine, reads));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, engines);
criterion_main!(benches);
