//! Controllers: reset while they are asked, and what the asking itself does to them.

use super::super::agent::Run;
use super::super::guest::eventually;
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::NVME_FREE;
use anyhow::{Context, Result, ensure};
use std::thread;
use std::time::Duration;

/// A SMART period, and a tick.
const SOON: Duration = Duration::from_secs(20);
/// Resets in a row.
const RESETS: usize = 8;
/// Scrapes of the observer case.
const SCRAPES: usize = 200;
/// Several SMART periods, and the start of the agent.
const OBSERVED_WITHIN: Duration = Duration::from_secs(60);
/// Rounds of questions.
const POLLS: usize = 1000;
const POLLS_LIMIT: Duration = Duration::from_secs(120);
/// Buffer of the trace a processor: a round of questions is about ten lines of 200 bytes.
const TRACE_KIB: u32 = 8192;
/// Three SMART periods.
const SILENCE: Duration = Duration::from_secs(15);

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

/// A controller that is not live gets no command of the agent's, is said to be so, and is asked again once it is live.
pub(super) fn not_live(rig: &Rig) -> Result<()> {
    let remote = rig.connect()?;
    let controller = [("controller", remote.controller.as_str())];
    let live = |scrape: &Scrape| scrape.value("storscope_nvme_controller_live", &controller);
    let finding = [("rule", "controller_not_live"), controller[0]];
    eventually(SOON, || {
        let scrape = rig.scrape()?;
        ensure!(live(&scrape)? == 1.0, "{} is not live", remote.controller);
        ensure!(commands(&scrape, &remote.controller) > 0.0, "{} is not asked", remote.controller);
        Ok(())
    })?;
    let fault = remote.cut()?;
    rig.eventually(SOON, |scrape| {
        ensure!(live(scrape)? == 0.0, "{} still counts as live", remote.controller);
        ensure!(!scrape.all("storscope_finding", &finding).is_empty(), "no finding controller_not_live");
        Ok(())
    })?;
    // A command that was on its way is over now.
    let trace = Trace::start(rig)?;
    let before = commands(&rig.scrape()?, &remote.controller);
    thread::sleep(SILENCE);
    let sent = trace.stop(&remote.controller)?;
    ensure!(sent.is_empty(), "a controller that was not live got {sent:?}");
    let after = commands(&rig.scrape()?, &remote.controller);
    ensure!(after == before, "{} commands counted on a controller that was not live", after - before);
    fault.release()?;
    rig.eventually(SOON, |scrape| {
        ensure!(live(scrape)? == 1.0, "{} does not count as live again", remote.controller);
        ensure!(scrape.all("storscope_finding", &finding).is_empty(), "the finding did not end");
        ensure!(commands(scrape, &remote.controller) > before, "{} is not asked again", remote.controller);
        Ok(())
    })?;
    remote.disconnect()
}

/// The agent asks for no page that the drive does not declare, and counts every command that the kernel saw.
pub(super) fn observed(rig: &Rig) -> Result<()> {
    let drive = rig.nvme(NVME_FREE)?;
    let controller = drive.controller.as_str();
    let entries_before = error_log_entries(rig, controller)?;
    rig.agent.stop()?;
    let trace = Trace::start(rig)?;
    rig.agent.start(Run::default())?;
    let by_outcome = |scrape: &Scrape, outcome: &str| -> Vec<(String, f64)> {
        let labels = [("controller", controller), ("outcome", outcome)];
        let all = scrape.all("storscope_drive_commands_total", &labels);
        all.iter().map(|series| (series.label("command").to_owned(), series.value)).collect()
    };
    rig.eventually(OBSERVED_WITHIN, |scrape| {
        let most = by_outcome(scrape, "ok").into_iter().map(|(_, count)| count).fold(0.0, f64::max);
        ensure!(most >= 4.0, "the SMART log was read only {most} times");
        Ok(())
    })?;
    for _ in 0..SCRAPES {
        rig.guest().body("/metrics")?;
    }
    let after = rig.scrape()?;
    let traced = trace.stop(controller)?;
    // The emulated drive serves all that it declares, so that an agent that asks no more is refused nothing.
    for outcome in ["status", "errno"] {
        let failed = by_outcome(&after, outcome);
        ensure!(failed.is_empty(), "commands that failed ({outcome}): {failed:?}");
    }
    let counted = commands(&after, controller);
    let seen = traced.len() as f64;
    // One command may lie between the scrape and the end of the trace.
    ensure!((counted - seen).abs() <= 1.0, "{counted} commands counted, the kernel saw {seen}: {traced:?}");
    let now = error_log_entries(rig, controller)?;
    ensure!(now == entries_before, "num_err_log_entries went from {entries_before} to {now}");
    Ok(())
}

/// A thousand rounds of questions, by the code that the agent asks with: every command is one that the kernel saw, none is
/// refused, and the error log does not grow.
pub(super) fn thousand_polls(rig: &Rig) -> Result<()> {
    let controller = rig.nvme(NVME_FREE)?.controller;
    rig.agent.stop()?;
    let before = error_log_entries(rig, &controller)?;
    let trace = Trace::start(rig)?;
    let report = rig.guest().sh_within(&format!("/lab/ask --rounds {POLLS} /dev/{controller}"), POLLS_LIMIT)?;
    let traced = trace.stop(&controller)?;
    rig.agent.start(Run::default())?;
    let mut sent = 0;
    for line in report.lines() {
        let (count, rest) = line.split_once(' ').with_context(|| format!("ask: {line}"))?;
        let count: usize = count.parse().with_context(|| format!("ask: {line}"))?;
        sent += count;
        ensure!(rest.starts_with("ok "), "a command failed: {line}");
    }
    ensure!(sent >= POLLS, "only {sent} commands:\n{report}");
    ensure!(sent == traced.len(), "{sent} commands reported, the kernel saw {}", traced.len());
    let after = error_log_entries(rig, &controller)?;
    ensure!(after == before, "num_err_log_entries went from {before} to {after}");
    Ok(())
}

/// The error log's length as nvme(1) says.
fn error_log_entries(rig: &Rig, controller: &str) -> Result<String> {
    let log = rig.guest().sh(&format!("nvme smart-log /dev/{controller} --output-format json"))?;
    let log: serde_json::Value = serde_json::from_str(&log)?;
    Ok(log["num_err_log_entries"].as_str().context("nvme smart-log: no num_err_log_entries")?.to_owned())
}

/// The kernel's trace of admin commands.
struct Trace<'rig>(&'rig Rig);

impl<'rig> Trace<'rig> {
    const FOLDER: &'static str = "/sys/kernel/tracing";

    fn start(rig: &'rig Rig) -> Result<Self> {
        rig.guest().sh(&format!(
            "cd {}; echo {TRACE_KIB} >buffer_size_kb; echo >trace; echo 'qid == 0' >events/nvme/nvme_setup_cmd/filter; \
             echo 1 >events/nvme/nvme_setup_cmd/enable",
            Self::FOLDER
        ))?;
        Ok(Self(rig))
    }

    /// Ends it; returns the lines of what a controller was asked for (Identify and Get Log Page, the agent's two).
    fn stop(self, controller: &str) -> Result<Vec<String>> {
        let lines = self.0.guest().sh(&format!(
            "cd {}; echo 0 >events/nvme/nvme_setup_cmd/enable; \
             grep '{controller}: .*\\(admin_get_log\\|admin_identify\\)' trace || true",
            Self::FOLDER
        ))?;
        Ok(lines.lines().map(str::to_owned).collect())
    }
}

impl Drop for Trace<'_> {
    fn drop(&mut self) {
        // It is off already, or the guest is lost.
        let _ = self.0.guest().sh(&format!("echo 0 >{}/events/nvme/nvme_setup_cmd/enable", Self::FOLDER));
    }
}

/// All commands that the agent counts for a controller.
fn commands(scrape: &Scrape, controller: &str) -> f64 {
    scrape.all("storscope_drive_commands_total", &[("controller", controller)]).iter().map(|series| series.value).sum()
}
