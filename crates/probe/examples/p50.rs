//! Reads a block device back to back, one read at a time, and prints quantiles of the latency.
//!
//! `p50 NODE STAT READS io_uring|pread`, where STAT is the device's `stat` attribute in sysfs.

use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;
use storscope_model::device::DevNum;
use storscope_model::distribution::Distribution;
use storscope_probe::{Config, EngineChoice, Limits, Pace, Prober, Target};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [node, stat, reads, engine] = arguments.as_slice() else {
        return Err("usage: p50 NODE STAT READS io_uring|pread".into());
    };
    let reads: u16 = reads.parse()?;
    let node = PathBuf::from(node);
    let number = std::fs::metadata(&node)?.rdev();
    let devnum = |part: fn(u64) -> u64| u32::try_from(part(number));
    let target = Target {
        key: 0,
        node,
        devnum: DevNum { major: devnum(nix::sys::stat::major)?, minor: devnum(nix::sys::stat::minor)? },
        stat: PathBuf::from(stat),
        queue: None,
        runtime_status: Vec::new(),
        logical_block_bytes: 4096,
        pace: Pace { burst: reads, interval: Duration::from_secs(3600) },
    };
    let config = Config {
        engine: match engine.as_str() {
            "io_uring" => EngineChoice::IoUring,
            "pread" => EngineChoice::Pread,
            other => return Err(format!("no engine {other}").into()),
        },
        limits: Limits { reads_per_second: u32::MAX, device_share: 1.0 },
        ..Config::default()
    };
    let (sender, reports) = channel();
    let prober = Prober::start(config, move |report| {
        // A report after the end of this program is of no use.
        let _ = sender.send(report);
    })?;
    prober.set_targets(std::slice::from_ref(&target))?;
    let report = reports.recv_timeout(Duration::from_secs(60))?.probe;
    let mut all = Distribution::default();
    for class in &report.classes {
        all.add(&class.latencies);
        println!("{} busy={} {}", class.op.as_str(), class.busy, class.latencies.count());
    }
    let quantile = |q| all.quantile_ns(q).unwrap_or(0);
    println!("reads {} p50_ns {} p99_ns {}", all.count(), quantile(0.5), quantile(0.99));
    if !report.errors.is_empty() || !report.skipped.is_empty() {
        println!("errors {:?} skipped {:?}", report.errors, report.skipped);
    }
    Ok(())
}
