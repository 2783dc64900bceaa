//! Probes of real block devices: loop devices, one of them hung where a test says so.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking, like the tests")]

mod loop_device;
mod slow_file;

use loop_device::LoopDevice;
use slow_file::SlowFile;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use storscope_model::sample::probe::{ProbeOp, ProbeReport, SkipReason};
use storscope_probe::{Config, EngineChoice, Limits, Pace, Prober, Report};
use tempfile::TempDir;

/// A failure after this long is a test that would wait for ever.
const PATIENCE: Duration = Duration::from_secs(120);
const ENGINES: [EngineChoice; 2] = [EngineChoice::IoUring, EngineChoice::Pread];
const OFTEN: Pace = Pace { burst: 8, interval: Duration::from_millis(20) };

/// A prober without a budget to speak of; `None` where the kernel refuses its engine.
fn start(engine: EngineChoice) -> Option<(Prober, Receiver<Report>)> {
    let config = Config {
        engine,
        limits: Limits { reads_per_second: 1_000_000, device_share: 1.0 },
        deadline: Duration::from_millis(200),
        idle_after: Duration::from_secs(3600),
        seed: 11,
    };
    let (sender, reports) = channel();
    match Prober::start(config, move |report| drop(sender.send(report))) {
        Ok(prober) => Some((prober, reports)),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// The first report of `key` that `fits`.
fn report(reports: &Receiver<Report>, key: u64, fits: impl Fn(&ProbeReport) -> bool) -> Report {
    loop {
        let report = reports.recv_timeout(PATIENCE).expect("a report");
        if report.key == key && fits(&report.probe) {
            return report;
        }
    }
}

fn count(report: &ProbeReport, op: ProbeOp) -> u64 {
    report.classes.iter().filter(|class| class.op == op).map(|class| class.latencies.count()).sum()
}

fn skips(report: &ProbeReport, reason: SkipReason) -> u64 {
    report.skipped.iter().filter(|(skipped, _)| *skipped == reason).map(|(_, count)| count).sum()
}

fn file(dir: &TempDir, name: &str, byte: u8) -> std::path::PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, vec![byte; 8 << 20]).unwrap();
    path
}

fn slow_file(dir: &TempDir, node: &Path) -> Option<SlowFile> {
    let mountpoint = dir.path().join("slow");
    std::fs::create_dir(&mountpoint).unwrap();
    match SlowFile::mount(&node.with_file_name("fuse"), &mountpoint) {
        Ok(file) => Some(file),
        Err(error) => {
            eprintln!("skipped: cannot mount a FUSE file system: {error}");
            None
        }
    }
}

#[test]
fn data_and_zeros_are_kept_apart() {
    let dir = tempfile::tempdir().unwrap();
    let Some(full) = LoopDevice::attach(&file(&dir, "full", 7)) else {
        return;
    };
    let Some(empty) = LoopDevice::attach(&file(&dir, "empty", 0)) else {
        return;
    };
    for engine in ENGINES {
        let Some((prober, reports)) = start(engine) else {
            continue;
        };
        prober.set_targets(&[full.target(1, OFTEN), empty.target(2, OFTEN)]).unwrap();
        let full = report(&reports, 1, |probe| count(probe, ProbeOp::Read) >= 23).probe;
        assert_eq!(count(&full, ProbeOp::ReadAfterIdle), 1, "{full:?}");
        assert_eq!(count(&full, ProbeOp::ReadZeros), 0);
        assert_eq!((full.errors, full.skipped), (vec![], vec![]));
        assert!(full.busy_ns > 0);
        assert_eq!(full.outstanding_since, None);
        let empty = report(&reports, 2, |probe| count(probe, ProbeOp::ReadZeros) >= 23).probe;
        assert_eq!(count(&empty, ProbeOp::Read), 0);
    }
}

#[test]
fn another_device_under_the_same_node_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let Some(device) = LoopDevice::attach(&file(&dir, "disk", 7)) else {
        return;
    };
    for engine in ENGINES {
        let Some((prober, reports)) = start(engine) else {
            continue;
        };
        let mut target = device.target(1, OFTEN);
        target.devnum.minor += 1;
        prober.set_targets(std::slice::from_ref(&target)).unwrap();
        let refused = report(&reports, 1, |probe| probe.last_skip.is_some()).probe;
        assert_eq!(refused.last_skip, Some(SkipReason::Gone));
        assert!(refused.classes.is_empty());

        target.devnum.minor -= 1;
        prober.set_targets(&[target]).unwrap();
        let read = report(&reports, 1, |probe| count(probe, ProbeOp::Read) > 0).probe;
        assert!(skips(&read, SkipReason::Gone) >= 1, "counts are kept");
        assert_eq!(read.last_skip, None);
    }
}

#[test]
fn a_hung_device_is_reported_and_costs_no_neighbour_a_read() {
    let dir = tempfile::tempdir().unwrap();
    let Some(good) = LoopDevice::attach(&file(&dir, "good", 7)) else {
        return;
    };
    let Some(slow) = slow_file(&dir, &good.node) else {
        return;
    };
    let Some(hung) = LoopDevice::attach(&slow.path()) else {
        return;
    };
    for engine in ENGINES {
        let Some((prober, reports)) = start(engine) else {
            continue;
        };
        let targets = [good.target(1, OFTEN), hung.target(2, OFTEN)];
        prober.set_targets(&targets).unwrap();
        report(&reports, 2, |probe| count(probe, ProbeOp::Read) > 0);

        slow.hold();
        let stuck = report(&reports, 2, |probe| probe.outstanding_since.is_some());
        let since = stuck.probe.outstanding_since.unwrap();
        assert!(stuck.ended.since(since) >= Duration::from_millis(200));
        assert_eq!(stuck.probe.last_skip, Some(SkipReason::Outstanding));
        let reads = count(&stuck.probe, ProbeOp::Read);

        // Taken away and given back while it hangs: still one read.
        prober.set_targets(&targets[..1]).unwrap();
        prober.set_targets(&targets).unwrap();
        let before = report(&reports, 1, |_| true).probe;
        let more = count(&before, ProbeOp::Read) + 80;
        report(&reports, 1, |probe| count(probe, ProbeOp::Read) >= more);
        assert_eq!(slow.held(), 1);

        slow.release();
        let free = report(&reports, 2, |probe| probe.outstanding_since.is_none()).probe;
        assert!(count(&free, ProbeOp::Read) > reads, "the late read counts");
        let longest = free.classes.iter().filter_map(|class| class.latencies.quantile_ns(1.0)).max();
        assert!(longest >= Some(200_000_000), "{longest:?}");
    }
}

#[test]
fn a_full_queue_is_evidence_and_gets_no_further_read() {
    const TAGS: u64 = 4;
    // Neighbours could be merged into one request of the queue.
    const APART: u64 = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let Some(good) = LoopDevice::attach(&file(&dir, "good", 7)) else {
        return;
    };
    let Some(slow) = slow_file(&dir, &good.node) else {
        return;
    };
    let Some(hung) = LoopDevice::attach(&slow.path()) else {
        return;
    };
    std::fs::write(hung.attribute("queue/nr_requests"), TAGS.to_string()).unwrap();
    for engine in ENGINES {
        let Some((prober, reports)) = start(engine) else {
            continue;
        };
        slow.hold();
        let readers: Vec<_> = (0..TAGS)
            .map(|number| {
                let node = hung.node.clone();
                std::thread::spawn(move || read_block(&node, number * APART))
            })
            .collect();
        slow.wait_for_held(readers.len());

        prober.set_targets(&[good.target(1, OFTEN), hung.target(2, OFTEN)]).unwrap();
        let full = report(&reports, 2, |probe| probe.last_skip.is_some()).probe;
        assert_eq!(full.last_skip, Some(SkipReason::QueueFull), "{engine:?}: {full:?}");
        assert_eq!(full.in_flight_before, Some(TAGS));
        assert!(full.classes.is_empty());
        report(&reports, 1, |probe| count(probe, ProbeOp::Read) >= 40);
        let still = report(&reports, 2, |probe| skips(probe, SkipReason::QueueFull) >= 3).probe;
        assert_eq!(still.outstanding_since, None);

        slow.release();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 4096);
        }
        report(&reports, 2, |probe| count(probe, ProbeOp::Read) > 0);
    }
}

/// One direct read of 4 KiB.
fn read_block(node: &Path, offset: u64) -> usize {
    let mut memory = vec![0_u8; 8192];
    let start = memory.as_ptr().align_offset(4096);
    OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_DIRECT)
        .open(node)
        .unwrap()
        .read_at(&mut memory[start..start + 4096], offset)
        .unwrap()
}
