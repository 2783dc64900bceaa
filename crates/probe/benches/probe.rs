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
use std::sync::mpsc::channel;
use std::time::Duration;
use storscope_probe::{Config, EngineChoice, Limits, Pace, Prober};

const SIZE: usize = 64 << 20;
/// Reads a burst: the cost of opening hardly shows.
const READS: u16 = 2000;

/// Time of `reads` reads in bursts of [`READS`], opening and closing left out.
fn read(device: &LoopDevice, engine: EngineChoice, reads: u64) -> Duration {
    let config =
        Config { engine, limits: Limits { reads_per_second: u32::MAX, device_share: 1.0 }, ..Config::default() };
    let (sender, reports) = channel();
    let prober = Prober::start(config, move |report| drop(sender.send(report))).unwrap();
    let pace = Pace { burst: READS, interval: Duration::from_millis(1) };
    prober.set_targets(&[device.target(0, pace)]).unwrap();
    for report in reports {
        let classes = report.probe.classes.iter();
        let done: u64 = classes.map(|class| class.latencies.count()).sum();
        if done >= reads {
            let spent = u128::from(report.probe.busy_ns) * u128::from(reads) / u128::from(done);
            return Duration::from_nanos(u64::try_from(spent).unwrap());
        }
    }
    unreachable!("the prober lives as long as its reports are awaited")
}

fn engines(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("disk");
    std::fs::write(&file, vec![7_u8; SIZE]).unwrap();
    let Some(device) = LoopDevice::attach(&file) else {
        return;
    };
    let mut group = criterion.benchmark_group("read_4k");
    for (name, engine) in [("io_uring", EngineChoice::IoUring), ("pread", EngineChoice::Pread)] {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|reads| read(&device, engine, reads));
        });
    }
    group.finish();
}

criterion_group!(benches, engines);
criterion_main!(benches);
