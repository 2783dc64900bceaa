//! Controllers: reset while they are asked, and what the asking itself does to them.

use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::NVME_FREE;
use anyhow::{Context, Result, ensure};
use std::time::Duration;

/// A SMART period, and a tick.
const SOON: Duration = Duration::from_secs(15);
/// Resets in a row.
const RESETS: usize = 8;
/// Scrapes of the observer case.
const POLLS: usize = 1000;

pub(super) fn reset(rig: &Rig) -> Result<()> {
    let controller = rig.nvme(NVME_FREE)?.controller;
    // What the driver says of its queues each time it has set the controller up.
    let set_ups = || -> Result<usize> {
        let lines = rig.guest().sh(&format!("dmesg | grep -c '{controller}: .*default/read/poll queues' || true"))?;
        Ok(lines.parse()?)
    };
    let before = set_ups()?;
    for _ in 0..RESETS {
        rig.reset(NVME_FREE)?;
        rig.scrape()?;
    }
    rig.eventually(SOON, |scrape| {
        let labels = [("controller", controller.as_str())];
        ensure!(scrape.value("storscope_nvme_controller_live", &labels)? == 1.0, "{controller} is not live");
        let labels = [labels[0], ("source", "smart_health")];
        ensure!(scrape.value("storscope_source_up", &labels)? == 1.0, "no SMART log after the resets");
        let age = scrape.value("storscope_source_age_seconds", &labels)?;
        ensure!(age < SOON.as_secs_f64(), "the SMART log is {age} s old");
        let left: Vec<_> = scrape.all("storscope_finding", &[("controller", &controller)]);
        ensure!(left.is_empty(), "findings stay: {left:?}");
        Ok(())
    })?;
    let resets = set_ups()?.saturating_sub(before);
    ensure!(resets >= RESETS, "only {resets} resets: the case saw nothing");
    Ok(())
}

/// Polling leaves no trace in the drive, and every admin command that the kernel saw is counted.
pub(super) fn observed(rig: &Rig) -> Result<()> {
    let drive = rig.nvme(NVME_FREE)?;
    let controller = drive.controller.as_str();
    let entries = || -> Result<u64> {
        let log = rig.guest().sh(&format!("nvme smart-log /dev/{controller} --output-format json"))?;
        let log: serde_json::Value = serde_json::from_str(&log)?;
        log["num_err_log_entries"].as_str().context("no num_err_log_entries")?.parse().context("num_err_log_entries")
    };
    // What is asked once has been asked.
    rig.eventually(SOON, |scrape| {
        scrape.value("storscope_source_age_seconds", &[("controller", controller), ("source", "smart_health")])
    })?;
    let entries_before = entries()?;
    let tracing = "/sys/kernel/tracing";
    rig.guest().sh(&format!(
        "cd {tracing}; echo >trace; echo 'qid == 0' >events/nvme/nvme_setup_cmd/filter; echo 1 >events/nvme/nvme_setup_cmd/enable"
    ))?;
    let commands_before = commands(&rig.scrape()?, controller);
    for _ in 0..POLLS {
        rig.guest().body("/metrics")?;
    }
    // One pass later than the last command, so that both ends are counted.
    let after = rig.scrape()?;
    let traced = rig.guest().sh(&format!(
        "cd {tracing}; echo 0 >events/nvme/nvme_setup_cmd/enable; grep -c '{controller}: .*admin_get_log\\|{controller}: .*admin_identify' trace || true"
    ))?;
    let counted = commands(&after, controller) - commands_before;
    let traced: f64 = traced.parse()?;
    ensure!((counted - traced).abs() <= 1.0, "{counted} commands counted, the kernel saw {traced}");
    ensure!(counted > 0.0, "no command during {POLLS} scrapes: the case saw nothing");
    let now = entries()?;
    ensure!(now == entries_before, "num_err_log_entries went from {entries_before} to {now}");
    Ok(())
}

fn commands(scrape: &Scrape, controller: &str) -> f64 {
    scrape.all("storscope_drive_commands_total", &[("controller", controller)]).iter().map(|series| series.value).sum()
}
