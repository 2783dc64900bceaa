//! Rates under a known load, as iostat(1) sees it over the same interval.

use super::super::guest::eventually;
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::NVME_FREE;
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// Length of iostat's interval.
const INTERVAL_SECONDS: u32 = 12;
/// I/Os a second of the drive.
const IOPS: u32 = 200;
/// Reads after which the load generator keeps its pace: four seconds of them.
const STEADY_AFTER_READS: f64 = 560.0;
const STEADY_WITHIN: Duration = Duration::from_secs(30);
/// Twice a tick.
const BETWEEN_SCRAPES: Duration = Duration::from_millis(500);
/// Intervals measured at most: the emulating host must be even for the length of one.
const MEASUREMENTS: u32 = 3;
/// Room for the guest's noise.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn equal_to_iostat(rig: &Rig) -> Result<()> {
    let drive = rig.nvme(NVME_FREE)?;
    let device = drive.block()?;
    // The drive's limit paces the load, so that waiting times and queue are steady as well.
    let limit = rig.latency(NVME_FREE, IOPS)?;
    rig.guest().background(
        &format!(
            "fio --name=load --filename=/dev/{device} --rw=randrw --rwmixread=70 --bs=8k --direct=1 --iodepth=8 \
             --ioengine=io_uring --time_based --runtime={}",
            INTERVAL_SECONDS * MEASUREMENTS + 60
        ),
        "/run/fio.log",
    )?;
    // The load has to be steady before it is measured.
    let labels = [("device", device)];
    let idle = rig.scrape()?.value("storscope_disk_reads_completed_total", &labels)?;
    rig.eventually(STEADY_WITHIN, |scrape| {
        let done = scrape.value("storscope_disk_reads_completed_total", &labels)? - idle;
        ensure!(done > STEADY_AFTER_READS, "{done} reads since the load was started");
        Ok(())
    })?;
    let mut measured = measure(rig, device);
    for _ in 1..MEASUREMENTS {
        measured = measured.or_else(|_| measure(rig, device));
    }
    measured?;
    rig.guest().sh("pkill -x fio || true")?;
    limit.release()
}

/// Compares the agent's rates with those of iostat over one interval of it.
fn measure(rig: &Rig, device: &str) -> Result<()> {
    let (report, track) = while_tracked(rig, device, || {
        // The last sample is taken just before it ends.
        let script = format!("iostat -x -y -o JSON {INTERVAL_SECONDS} 1 {device}; date +%s.%N");
        rig.guest().sh_within(&script, LIMIT)
    })?;
    let (report, end) =
        report?.rsplit_once('\n').map(|(report, end)| (report.to_owned(), end.to_owned())).context("iostat")?;
    let end: f64 = end.parse().context("date")?;
    let begin = end - f64::from(INTERVAL_SECONDS);
    let report: Value = serde_json::from_str(&report).context("iostat")?;
    let disk = &report["sysstat"]["hosts"][0]["statistics"][0]["disk"][0];
    let truth = |field: &str| disk[field].as_f64().with_context(|| format!("iostat: no {field}: {report}"));
    let rate = |name: &str| -> Result<f64> {
        Ok((track.at(end, name)? - track.at(begin, name)?) / f64::from(INTERVAL_SECONDS))
    };
    let reads = rate("storscope_disk_reads_completed_total")?;
    let writes = rate("storscope_disk_writes_completed_total")?;
    let read_await = rate("storscope_disk_read_time_seconds_total")? / reads * 1e3;
    let write_await = rate("storscope_disk_write_time_seconds_total")? / writes * 1e3;
    near("r/s", reads, truth("r/s")?, 0.05)?;
    near("w/s", writes, truth("w/s")?, 0.05)?;
    near("rkB/s", rate("storscope_disk_read_bytes_total")? / 1024.0, truth("rkB/s")?, 0.05)?;
    near("wkB/s", rate("storscope_disk_written_bytes_total")? / 1024.0, truth("wkB/s")?, 0.05)?;
    near("r_await", read_await, truth("r_await")?, 0.05)?;
    near("w_await", write_await, truth("w_await")?, 0.05)?;
    near("aqu-sz", rate("storscope_disk_io_time_weighted_seconds_total")?, truth("aqu-sz")?, 0.05)?;
    Ok(())
}

/// The agent's counters of one device over time: when they were read, and the scrape that showed them.
struct Track<'d> {
    device: &'d str,
    samples: Vec<(f64, Scrape)>,
}

impl Track<'_> {
    /// The counter at a moment, between the two reads around it.
    fn at(&self, moment: f64, name: &str) -> Result<f64> {
        let after = self.samples.iter().position(|(read, _)| *read >= moment).filter(|at| *at > 0);
        let after = after.with_context(|| format!("the agent read nothing around {moment}"))?;
        let value = |at: usize| -> Result<(f64, f64)> {
            let (read, scrape) = &self.samples[at];
            Ok((*read, scrape.value(name, &[("device", self.device)])?))
        };
        let ((t0, v0), (t1, v1)) = (value(after - 1)?, value(after)?);
        Ok(v0 + (v1 - v0) * (moment - t0) / (t1 - t0))
    }
}

/// Runs `measure` while the agent's counters are followed from before its beginning until after its end.
fn while_tracked<'d, T: Send>(
    rig: &Rig,
    device: &'d str,
    measure: impl FnOnce() -> T + Send,
) -> Result<(T, Track<'d>)> {
    let mut track = Track { device, samples: Vec::new() };
    let measured = thread::scope(|scope| -> Result<T> {
        take(rig, &mut track)?;
        let measuring = scope.spawn(measure);
        while !measuring.is_finished() {
            take(rig, &mut track)?;
            thread::sleep(BETWEEN_SCRAPES);
        }
        measuring.join().map_err(|_| anyhow!("measuring panicked"))
    })?;
    let known = track.samples.len();
    eventually(LIMIT, || {
        take(rig, &mut track)?;
        ensure!(track.samples.len() > known + 1, "no read after the end");
        Ok(())
    })?;
    Ok((measured, track))
}

/// Adds a scrape whose counters were read after those of the last one.
fn take(rig: &Rig, track: &mut Track<'_>) -> Result<()> {
    let scrape = rig.scrape()?;
    let shown = scrape.value("storscope_agent_view_timestamp_seconds", &[])?;
    let age = scrape.value("storscope_source_age_seconds", &[("device", track.device), ("source", "diskstats")])?;
    let read = shown - age;
    if track.samples.last().is_none_or(|(last, _)| read > *last) {
        track.samples.push((read, scrape));
    }
    Ok(())
}

fn near(what: &str, agent: f64, truth: f64, share: f64) -> Result<()> {
    ensure!((agent - truth).abs() <= truth * share, "{what}: the agent says {agent:.3}, iostat {truth:.3}");
    Ok(())
}
