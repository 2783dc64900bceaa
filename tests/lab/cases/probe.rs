//! Timed reads: on every device, slower when the device is, and by another engine where io_uring is forbidden.

use super::super::agent::Run;
use super::super::guest::eventually;
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::{NVME_CRYPT, NVME_FREE};
use super::same;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// Enough for a few bursts on every device.
const FEW_BURSTS: Duration = Duration::from_secs(30);
/// Enough for slow reads to be most of a window that began with the case.
const WINDOW: Duration = Duration::from_secs(75);
/// How many times slower a throttled drive must look.
const SLOWER: f64 = 10.0;
/// What an unrecovered read error ends with: ENODATA, the kernel's for a medium error (block/blk-core.c).
const MEDIUM_ERROR: &str = "61";
/// The device-mapper device that delays every request, and by how much in seconds (see the guest's stacks).
const DELAYED: &str = "labdelay";
const DELAY_SECONDS: f64 = 0.1;
const EVEN_WITHIN: Duration = Duration::from_secs(90);
/// How far apart the two medians may be, as a share.
const MEDIANS_APART: f64 = 0.25;
/// I/Os a second of a throttled drive.
const THROTTLED_IOPS: u32 = 20;

/// Pauses and bursts of fio as those of the agent: where a processor has to be woken for a read, both must wake it.
const PAUSE_MICROSECONDS: u32 = 1_000_000;
const BURST: u32 = 2;
/// What the kernel is told at the beginning: other cases may have made it complain before.
const BEGINNING: &str = "storscope lab: every device is read from here on";

pub(super) fn every_device(rig: &Rig) -> Result<()> {
    rig.guest().sh(&format!("echo {BEGINNING} >/dev/kmsg"))?;
    rig.eventually(FEW_BURSTS, |scrape| {
        let planned = scrape.all("storscope_probe_planned", &[]);
        ensure!(!planned.is_empty(), "no device is planned");
        for device in planned {
            let name = device.label("device");
            // Beyond a zone's write pointer nothing may be read, so that a zoned device is left alone.
            let info = scrape.one("storscope_device_info", &[("device", name)])?;
            let zoned = !matches!(info.label("zoned"), "" | "none");
            ensure!((device.value == 0.0) == zoned, "{name}, zoned {zoned}: planned {}", device.value);
            if zoned {
                continue;
            }
            let reads: f64 =
                scrape.all("storscope_probe_reads_total", &[("device", name)]).iter().map(|s| s.value).sum();
            ensure!(reads > 0.0, "{name} is planned and not read");
        }
        let failed = scrape.all("storscope_probe_errors_total", &[]);
        ensure!(failed.iter().all(|series| series.value == 0.0), "reads failed: {failed:?}");
        Ok(())
    })?;
    let log = rig.guest().sh("dmesg")?;
    let (_, since) = log.rsplit_once(BEGINNING).context("the kernel's log has lost the beginning")?;
    let complaint =
        |line: &&str| ["I/O error", "critical medium", "critical target"].iter().any(|it| line.contains(it));
    let complaints: Vec<&str> = since.lines().filter(complaint).collect();
    ensure!(complaints.is_empty(), "the kernel complains of reads: {complaints:?}");
    Ok(())
}

pub(super) fn latency(rig: &Rig) -> Result<()> {
    let sick = rig.nvme(NVME_FREE)?.block()?.to_owned();
    let well = rig.nvme(NVME_CRYPT)?.block()?.to_owned();
    // The fault's absence must not cut this short.
    let before = eventually(FEW_BURSTS, || median(&rig.scrape()?, &sick))?;
    let fault = rig.latency(NVME_FREE, THROTTLED_IOPS)?;
    // The limit is on the rate: readers that take all of it make every other read wait for each of theirs.
    let seconds = if rig.faults_on() { WINDOW.as_secs() } else { 1 };
    rig.guest().background(
        &format!(
            "fio --name=rest --filename=/dev/{sick} --rw=randread --bs=4k --direct=1 --ioengine=psync --numjobs=2 --thread \
             --time_based --runtime={seconds}"
        ),
        "/run/fio.log",
    )?;
    rig.eventually(WINDOW, |scrape| {
        let now = median(scrape, &sick)?;
        ensure!(now >= before * SLOWER, "p50 of {sick} is {now} s, was {before} s");
        let other = median(scrape, &well)?;
        ensure!(other < before * SLOWER, "p50 of {well} rose to {other} s as well");
        Ok(())
    })?;
    // The page's row shows it too: the tenth column, in milliseconds by now.
    let page = rig.guest().body("/status")?;
    let row = page.lines().find(|line| line.split_whitespace().next() == Some(sick.as_str()) && line.contains("50C"));
    let shown = row.and_then(|row| row.split_whitespace().nth(9)).with_context(|| format!("no row {sick}:\n{page}"))?;
    let shown = shown.strip_suffix("ms").with_context(|| format!("p50 of {sick} is shown as {shown}"))?;
    ensure!(shown.parse::<f64>()? / 1e3 >= before * SLOWER, "/status shows a p50 of {shown} ms, was {before} s");
    fault.release()?;
    let slow = reads_over(&rig.scrape()?, &sick)?;
    // Slow reads may have used up the probe's share of the last minute.
    rig.eventually(WINDOW, |scrape| {
        let now = reads_over(scrape, &sick)?;
        ensure!(now.0 >= slow.0 + 4.0, "too few reads after the release");
        ensure!(now.1 - slow.1 <= (now.0 - slow.0) / 2.0, "still slow: {slow:?} to {now:?}");
        Ok(())
    })
}

/// The median of the agent's reads is that of fio(1) on the same device. It is compared where the device decides it: on a
/// bare emulated drive software does, and fio against itself with and without pauses is apart by a factor of six.
pub(super) fn equal_to_fio(rig: &Rig) -> Result<()> {
    let device = rig.guest().sh(&format!("dmsetup info -c --noheadings -o blkdevname {DELAYED}"))?;
    // Both are measured again while the emulating host is too busy to be even.
    rig.eventually(EVEN_WITHIN, |_| {
        let report = rig.guest().sh(&format!(
            "fio --name=one --filename=/dev/{device} --rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth=1 \
             --thinktime={PAUSE_MICROSECONDS} --thinktime_blocks={BURST} --time_based --runtime=8 --lat_percentiles=1 \
             --output-format=json"
        ))?;
        let report: Value = serde_json::from_str(&report).context("fio")?;
        let latencies = &report["jobs"][0]["read"]["lat_ns"];
        let truth = latencies["percentile"]["50.000000"].as_f64().context("fio: no median")? / 1e9;
        ensure!(truth >= DELAY_SECONDS, "fio's median is {truth} s: the device does not delay");
        let agent = median(&rig.scrape()?, &device)?;
        ensure!(
            (agent / truth - 1.0).abs() <= MEDIANS_APART,
            "p50 of {device}: the agent says {agent} s, fio {truth} s"
        );
        Ok(())
    })
}

/// Median of a device's reads over the last minute.
fn median(scrape: &Scrape, device: &str) -> Result<f64> {
    let labels = [("device", device), ("op", "read"), ("window", "1m"), ("q", "0.5")];
    scrape.value("storscope_probe_latency_quantile_seconds", &labels)
}

/// All reads of a device, and those that took more than 16 ms, by its histogram.
fn reads_over(scrape: &Scrape, device: &str) -> Result<(f64, f64)> {
    let labels = [("device", device), ("op", "read")];
    let all = scrape.value("storscope_probe_latency_seconds_count", &labels)?;
    let fast = scrape
        .all("storscope_probe_latency_seconds_bucket", &labels)
        .into_iter()
        .filter(|bucket| bucket.label("le").parse::<f64>().is_ok_and(|bound| bound < 0.02))
        .map(|bucket| bucket.value)
        .fold(None, |most: Option<f64>, count| Some(most.map_or(count, |most| most.max(count))));
    Ok((all, all - fast.context("no buckets")?))
}

pub(super) fn read_errors(rig: &Rig) -> Result<()> {
    let drive = rig.nvme(NVME_FREE)?;
    let device = drive.block()?.to_owned();
    let failed = |scrape: &Scrape| -> f64 {
        scrape.all("storscope_probe_errors_total", &[("device", &device)]).iter().map(|series| series.value).sum()
    };
    let by_errno = |scrape: &Scrape, errno: &str| {
        scrape.value("storscope_probe_errors_total", &[("device", &device), ("errno", errno)])
    };
    let fault = rig.read_errors(NVME_FREE)?;
    rig.eventually(FEW_BURSTS, |scrape| {
        ensure!(failed(scrape) > 0.0, "no failed read of {device}");
        same("failed reads, all by errno ENODATA", &by_errno(scrape, MEDIUM_ERROR)?, &failed(scrape))?;
        let labels = [("rule", "probe_errors"), ("device", &device)];
        ensure!(!scrape.all("storscope_finding", &labels).is_empty(), "no finding probe_errors on {device}");
        for source in ["smart_health", "error_log", "pcie_link", "controller_state"] {
            let labels = [("controller", drive.controller.as_str()), ("source", source)];
            ensure!(scrape.value("storscope_source_up", &labels)? == 1.0, "{source} of the drive is gone as well");
        }
        for source in ["diskstats", "queue"] {
            let labels = [("device", device.as_str()), ("source", source)];
            ensure!(scrape.value("storscope_source_up", &labels)? == 1.0, "{source} of the drive is gone as well");
        }
        let others = scrape.all("storscope_probe_errors_total", &[]);
        let others = others.iter().filter(|series| series.label("device") != device && series.value > 0.0).count();
        ensure!(others == 0, "reads of {others} other devices fail as well");
        Ok(())
    })?;
    fault.release()?;
    let (errors, reads) = rig.eventually(FEW_BURSTS, |scrape| Ok((failed(scrape), reads_over(scrape, &device)?.0)))?;
    rig.eventually(FEW_BURSTS, |scrape| {
        ensure!(reads_over(scrape, &device)?.0 > reads, "no read succeeds after the release");
        ensure!(failed(scrape) <= errors + 1.0, "reads still fail after the release");
        Ok(())
    })
}

pub(super) fn without_io_uring(rig: &Rig) -> Result<()> {
    rig.agent.stop()?;
    let forbidden = Sysctl::set(rig, "kernel/io_uring_disabled", "2")?;
    rig.agent.start(Run::default())?;
    rig.eventually(FEW_BURSTS, |scrape| {
        scrape.one("storscope_probe_engine_info", &[("engine", "pread")])?;
        let device = rig.nvme(NVME_FREE)?.block()?.to_owned();
        ensure!(reads_over(scrape, &device)?.0 > 0.0, "nothing is read");
        Ok(())
    })?;
    drop(forbidden);
    Ok(())
}

/// A kernel setting that is put back.
struct Sysctl<'rig> {
    rig: &'rig Rig,
    path: String,
    before: String,
}

impl<'rig> Sysctl<'rig> {
    fn set(rig: &'rig Rig, name: &str, value: &str) -> Result<Self> {
        let path = format!("/proc/sys/{name}");
        let before = rig.guest().sh(&format!("cat {path}; echo {value} >{path}"))?;
        Ok(Self { rig, path, before })
    }
}

impl Drop for Sysctl<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.rig.guest().sh(&format!("echo {} >{}", self.before, self.path)) {
            eprintln!("lab: {}: {error:#}", self.path);
        }
    }
}
