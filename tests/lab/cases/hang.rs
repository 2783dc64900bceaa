//! A drive whose reads do not come back.

use super::super::agent::Run;
use super::super::guest::eventually;
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::{NVME_CRYPT, NVME_FREE, SATA_SOLID};
use anyhow::{Result, bail, ensure};
use std::thread;
use std::time::{Duration, Instant};

/// How long the drive hangs once the agent has said so.
const HANG: Duration = Duration::from_secs(60);
/// Probe deadline, a few bursts, and a tick.
const FOUND_WITHIN: Duration = Duration::from_secs(40);
/// The analysis waits 30 s before a full queue is a hang.
const FULL_QUEUE_FOUND_WITHIN: Duration = Duration::from_secs(75);
/// Start of the load generator.
const FILLED_WITHIN: Duration = Duration::from_secs(15);
/// Recovery: the next burst, which an idle device gets late.
const RECOVERED_WITHIN: Duration = Duration::from_secs(40);
/// Slowest answer while a drive hangs, under emulation.
const ANSWER: Duration = Duration::from_secs(2);
/// Age past which the data of other drives would not be fresh.
const FRESH_SECONDS: f64 = 20.0;

pub(super) fn free_tags(rig: &Rig) -> Result<()> {
    let sick = rig.nvme(NVME_FREE)?;
    let device = sick.block()?.to_owned();
    let fault = rig.hang(NVME_FREE)?;
    rig.eventually(FOUND_WITHIN, |scrape| stalled(scrape, &device))?;
    while_hanging(rig, &device, |scrape| {
        let controller = [("controller", sick.controller.as_str())];
        fresh(scrape, &[controller[0], ("source", "smart_health")])?;
        fresh(scrape, &[controller[0], ("source", "pcie_link")])?;
        Ok(())
    })?;
    let flying = in_flight(rig, &device)?;
    ensure!(flying == 1, "{flying} requests of {device} are outstanding, not one");
    fault.release()?;
    recovered(rig, &device)
}

pub(super) fn full_queue(rig: &Rig) -> Result<()> {
    let device = rig.disk(SATA_SOLID)?;
    // At the SCSI layer's second time-out the emulator stops answering.
    rig.guest().sh(&format!("echo 600 >/sys/block/{device}/device/timeout"))?;
    // The agent comes to a queue that is full already: it must say so without a read of its own.
    rig.agent.stop()?;
    let fault = rig.hang(SATA_SOLID)?;
    rig.guest().background(
        &format!(
            "fio --name=full --filename=/dev/{device} --rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth=256 \
             --number_ios=256"
        ),
        "/run/fio.log",
    )?;
    let depth: u64 = rig.guest().sh(&format!("cat /sys/block/{device}/queue/nr_requests"))?.parse()?;
    let filled = eventually(FILLED_WITHIN, || {
        let flying = in_flight(rig, &device)?;
        ensure!(flying + 1 >= depth, "{flying} of {depth} requests in flight");
        Ok(())
    });
    rig.agent.start(Run::default())?;
    filled?;
    rig.eventually(FULL_QUEUE_FOUND_WITHIN, |scrape| {
        stalled(scrape, &device)?;
        let skipped =
            scrape.value("storscope_probe_skipped_total", &[("device", &device), ("reason", "queue_full")])?;
        ensure!(skipped > 0.0, "no burst was skipped for the full queue");
        let own = scrape.all("storscope_probe_outstanding_seconds", &[("device", &device)]);
        ensure!(own.is_empty(), "the agent put a read of its own into the full queue");
        Ok(())
    })?;
    while_hanging(rig, &device, |_| Ok(()))?;
    fault.release()?;
    recovered(rig, &device)
}

/// Requests in flight by /proc/diskstats, of a head those of its busiest path.
fn in_flight(rig: &Rig, device: &str) -> Result<u64> {
    let subsystem =
        if device.starts_with("nvme") { device.rsplit_once('n').map_or(device, |(name, _)| name) } else { device };
    let listing = rig.guest().sh("cat /proc/diskstats")?;
    let flying = listing.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        let own = fields.next().is_some_and(|name| name.starts_with(subsystem));
        // Field 9 after the name: I/Os currently in progress (Documentation/admin-guide/iostats.rst).
        if own { fields.nth(8)?.parse::<u64>().ok() } else { None }
    });
    Ok(flying.max().unwrap_or(0))
}

/// Looks at the agent for a while: it answers at once, the drive stays stalled, other drives stay fresh.
fn while_hanging(rig: &Rig, device: &str, also: impl Fn(&Scrape) -> Result<()>) -> Result<()> {
    let other = rig.nvme(NVME_CRYPT)?;
    let began = Instant::now();
    while began.elapsed() < HANG {
        let asked = Instant::now();
        let scrape = rig.scrape()?;
        let page = rig.guest().body("/status")?;
        ensure!(asked.elapsed() < 2 * ANSWER, "two answers took {:?}", asked.elapsed());
        ensure!(page.contains(device), "/status does not name {device}:\n{page}");
        stalled(&scrape, device)?;
        for source in ["smart_health", "pcie_link"] {
            fresh(&scrape, &[("controller", &other.controller), ("source", source)])?;
        }
        fresh(&scrape, &[("device", other.block()?), ("source", "probe")])?;
        also(&scrape)?;
        thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn stalled(scrape: &Scrape, device: &str) -> Result<()> {
    if scrape.all("storscope_finding", &[("rule", "device_stalled"), ("device", device)]).is_empty() {
        bail!("no finding device_stalled on {device}");
    }
    let others = scrape.all("storscope_finding", &[("rule", "device_stalled")]);
    ensure!(others.len() == 1, "stalled as well: {others:?}");
    Ok(())
}

fn fresh(scrape: &Scrape, labels: &[(&str, &str)]) -> Result<()> {
    ensure!(scrape.value("storscope_source_up", labels)? == 1.0, "{labels:?} is down");
    let age = scrape.value("storscope_source_age_seconds", labels)?;
    ensure!(age < FRESH_SECONDS, "{labels:?} is {age} s old");
    Ok(())
}

fn recovered(rig: &Rig, device: &str) -> Result<()> {
    let reads = |scrape: &Scrape| -> f64 {
        scrape.all("storscope_probe_reads_total", &[("device", device)]).iter().map(|series| series.value).sum()
    };
    let before = reads(&rig.scrape()?);
    rig.eventually(RECOVERED_WITHIN, |scrape| {
        ensure!(stalled(scrape, device).is_err(), "the finding did not end");
        ensure!(reads(scrape) > before, "{device} is not read again");
        Ok(())
    })
}
