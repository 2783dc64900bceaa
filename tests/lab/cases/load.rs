//! Rates under a known load, as iostat(1) sees it over the same interval.

use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::NVME_FREE;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// Length of iostat's interval.
const INTERVAL_SECONDS: u32 = 12;
/// Reads after which the load generator keeps its pace: four seconds of them.
const STEADY_AFTER_READS: f64 = 560.0;
const STEADY_WITHIN: Duration = Duration::from_secs(30);
/// Room for the guest's noise.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn equal_to_iostat(rig: &Rig) -> Result<()> {
    let drive = rig.nvme(NVME_FREE)?;
    let device = drive.block()?;
    rig.guest().background(
        &format!(
            "fio --name=load --filename=/dev/{device} --rw=randrw --rwmixread=70 --bs=8k --direct=1 --iodepth=4 \
             --ioengine=io_uring --rate_iops=140,60 --time_based --runtime={}",
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
        let taken = |scrape: &Scrape| scrape.value("storscope_agent_view_timestamp_seconds", &[]);
        Ok((after.value(name, &labels)? - before.value(name, &labels)?) / (taken(&after)? - taken(&before)?))
    };
    let reads = rate("storscope_disk_reads_completed_total")?;
    let writes = rate("storscope_disk_writes_completed_total")?;
    let await_ms = rate("storscope_disk_read_time_seconds_total")? / reads * 1e3;
    near("r/s", reads, truth("r/s")?, 0.05)?;
    near("w/s", writes, truth("w/s")?, 0.05)?;
    near("rkB/s", rate("storscope_disk_read_bytes_total")? / 1024.0, truth("rkB/s")?, 0.05)?;
    near("wkB/s", rate("storscope_disk_written_bytes_total")? / 1024.0, truth("wkB/s")?, 0.05)?;
    // The load generator paces the rates, not the latency: that is noise under emulation, and the two intervals do not
    // begin and end together.
    near("r_await", await_ms, truth("r_await")?, 0.35)
}

fn near(what: &str, agent: f64, truth: f64, share: f64) -> Result<()> {
    ensure!((agent - truth).abs() <= truth * share, "{what}: the agent says {agent:.3}, iostat {truth:.3}");
    Ok(())
}
