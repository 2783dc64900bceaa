//! Rates under a known load, as iostat(1) sees it over the same interval.

use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::NVME_FREE;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// Length of iostat's interval.
const INTERVAL_SECONDS: u32 = 12;
/// I/Os a second of the drive.
const IOPS: u32 = 200;
/// Reads after which the load generator keeps its pace: four seconds of them.
const STEADY_AFTER_READS: f64 = 560.0;
const STEADY_WITHIN: Duration = Duration::from_secs(30);
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
            INTERVAL_SECONDS + 30
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
    let before = rig.scrape()?;
    let report = rig.guest().sh_within(&format!("iostat -x -y -o JSON {INTERVAL_SECONDS} 1 {device}"), LIMIT)?;
    let after = rig.scrape()?;
    let report: Value = serde_json::from_str(&report).context("iostat")?;
    let disk = &report["sysstat"]["hosts"][0]["statistics"][0]["disk"][0];
    let truth = |field: &str| disk[field].as_f64().with_context(|| format!("iostat: no {field}: {report}"));
    let rate = |name: &str| -> Result<f64> {
        // When the counters were read.
        let taken = |scrape: &Scrape| -> Result<f64> {
            let age = [("device", device), ("source", "diskstats")];
            let shown = scrape.value("storscope_agent_view_timestamp_seconds", &[])?;
            Ok(shown - scrape.value("storscope_source_age_seconds", &age)?)
        };
        Ok((after.value(name, &labels)? - before.value(name, &labels)?) / (taken(&after)? - taken(&before)?))
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
    rig.guest().sh("pkill -x fio || true")?;
    limit.release()
}

fn near(what: &str, agent: f64, truth: f64, share: f64) -> Result<()> {
    ensure!((agent - truth).abs() <= truth * share, "{what}: the agent says {agent:.3}, iostat {truth:.3}");
    Ok(())
}
