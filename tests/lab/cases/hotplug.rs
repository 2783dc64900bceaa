//! Drives that come and go.

use super::super::guest::eventually;
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::Slot;
use super::same;
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::time::Duration;

/// Appearance or disappearance: by uevent, at the latest by the next scan.
const SEEN_WITHIN: Duration = Duration::from_secs(15);
/// Time for the last of it to go.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// First reads of a drive that has come.
const READ_WITHIN: Duration = Duration::from_secs(40);
/// Reads that count as a history.
const HISTORY_READS: f64 = 60.0;
/// The next round of questions and the next burst after a transport is held up.
const IN_FLIGHT_WITHIN: Duration = Duration::from_secs(40);
/// Removals with something outstanding.
const REMOVALS: usize = 2;
/// Looks at the agent during each.
const ANSWERS_MEANWHILE: usize = 5;
/// Cycles of adding and removing.
const CYCLES: usize = 50;
/// Cycles between two that wait for the agent to have seen the drive: with these it comes in the middle of anything.
const WATCHED: usize = 10;
/// What [`CYCLES`] cycles may leave more of: descriptors of a drive that is just being asked, and workers: the collector's
/// pool keeps eight, the prober has one for each device that is just being opened. A leak of one a cycle is far above both.
const SLACK: [(&str, f64); 2] = [("descriptors", 2.0), ("threads", 20.0)];

pub(super) fn cycles(rig: &Rig) -> Result<()> {
    let guest = rig.guest();
    let figures = |scrape: &Scrape| -> Result<[f64; 2]> {
        Ok([scrape.value("storscope_agent_open_fds", &[])?, scrape.value("storscope_agent_threads", &[])?])
    };
    // The first cycle pays for what is made once.
    once(rig, true)?;
    let before = rig.eventually(SEEN_WITHIN, figures)?;
    for cycle in 0..CYCLES {
        once(rig, cycle % WATCHED == 0)?;
    }
    eventually(SEEN_WITHIN, || {
        let left = guest.sh("grep -l LABHOT /sys/class/nvme/*/serial || true")?;
        ensure!(left.is_empty(), "the guest still has {left}");
        Ok(())
    })?;
    rig.eventually(SETTLED_WITHIN, |scrape| {
        ensure!(listed(scrape, "LABHOT").is_none(), "what vanished is still listed");
        for ((what, slack), (before, after)) in SLACK.into_iter().zip(before.into_iter().zip(figures(scrape)?)) {
            ensure!(after <= before + slack, "{what}: {before} before {CYCLES} cycles, {after} after");
        }
        nothing_left(scrape)?;
        Ok(())
    })
}

/// Fails when a series is about a device or a controller that is not there.
fn nothing_left(scrape: &Scrape) -> Result<()> {
    for (label, info) in [("device", "storscope_device_info"), ("controller", "storscope_controller_info")] {
        let there: BTreeSet<&str> = scrape.all(info, &[]).iter().map(|series| series.label(label)).collect();
        let stray = scrape.series().iter().find(|series| {
            let name = series.label(label);
            // That a drive is gone is told for a while, by the finding alone.
            let told = series.name.starts_with("storscope_finding") && series.label("rule") == "device_gone";
            !name.is_empty() && !there.contains(name) && !told
        });
        ensure!(stray.is_none(), "a series of a {label} that is not there: {stray:?}");
    }
    Ok(())
}

fn once(rig: &Rig, watched: bool) -> Result<()> {
    let plugged = rig.plug(Slot::A, "LABHOT")?;
    eventually(SEEN_WITHIN, || rig.guest().sh("grep -q LABHOT /sys/class/nvme/*/serial").map(drop))?;
    if watched {
        rig.eventually(SEEN_WITHIN, |scrape| {
            ensure!(listed(scrape, "LABHOT").is_some(), "LABHOT is not listed");
            Ok(())
        })?;
    }
    plugged.release()?;
    if watched {
        rig.eventually(SEEN_WITHIN, |scrape| {
            ensure!(listed(scrape, "LABHOT").is_none(), "LABHOT is still listed");
            Ok(())
        })?;
    }
    Ok(())
}

/// A drive is removed while a read and a command to it are outstanding; nothing of it stays, the agent answers all along.
pub(super) fn in_flight(rig: &Rig) -> Result<()> {
    let figures = |scrape: &Scrape| -> Result<[f64; 2]> {
        Ok([scrape.value("storscope_agent_open_fds", &[])?, scrape.value("storscope_agent_threads", &[])?])
    };
    removed_in_flight(rig)?;
    let before = figures(&rig.scrape()?)?;
    for _ in 0..REMOVALS {
        removed_in_flight(rig)?;
    }
    rig.eventually(SETTLED_WITHIN, |scrape| {
        for ((what, slack), (before, after)) in SLACK.into_iter().zip(before.into_iter().zip(figures(scrape)?)) {
            ensure!(after <= before + slack, "{what}: {before} before {REMOVALS} removals, {after} after");
        }
        nothing_left(scrape)
    })
}

fn removed_in_flight(rig: &Rig) -> Result<()> {
    let remote = rig.connect()?;
    eventually(SEEN_WITHIN, || {
        let scrape = rig.scrape()?;
        let asked = [("controller", remote.controller.as_str()), ("source", "smart_health")];
        ensure!(scrape.value("storscope_source_up", &asked)? == 1.0, "{} is not asked", remote.controller);
        let read = [("device", remote.device.as_str()), ("source", "probe")];
        ensure!(scrape.value("storscope_source_up", &read)? == 1.0, "{} is not read", remote.device);
        Ok(())
    })?;
    let held = remote.hold_up()?;
    rig.eventually(IN_FLIGHT_WITHIN, |scrape| {
        let own = scrape.all("storscope_probe_outstanding_seconds", &[("device", &remote.device)]);
        ensure!(!own.is_empty(), "no read of {} is outstanding", remote.device);
        let collector = rig.agent.process("collector")?;
        let waiting = rig.guest().sh(&format!("cat /proc/{collector}/task/*/stack | grep -c nvme_ || true"))?;
        ensure!(waiting != "0", "no thread of the agent is in a command to {}", remote.controller);
        Ok(())
    })?;
    remote.begin_removal()?;
    for _ in 0..ANSWERS_MEANWHILE {
        rig.scrape()?;
        rig.guest().body("/status")?;
    }
    held.release()?;
    let (controller, device) = (remote.controller.clone(), remote.device.clone());
    remote.disconnect()?;
    rig.eventually(SETTLED_WITHIN, |scrape| {
        for labels in [[("controller", controller.as_str())], [("device", device.as_str())]] {
            let info = ["storscope_controller_info", "storscope_device_info"];
            let left = info.into_iter().flat_map(|name| scrape.all(name, &labels)).count();
            ensure!(left == 0, "{labels:?} is still listed");
        }
        Ok(())
    })
}

pub(super) fn identity(rig: &Rig) -> Result<()> {
    let appear = |serial: &'static str| {
        rig.eventually(SEEN_WITHIN, |scrape| {
            listed(scrape, serial).ok_or_else(|| anyhow::anyhow!("{serial} is not listed"))
        })
    };
    let reads = |device: &str| {
        let device = device.to_owned();
        rig.eventually(READ_WITHIN, move |scrape| {
            let labels = [("device", device.as_str()), ("window", "1h")];
            let reads: f64 = scrape.all("storscope_probe_window_reads", &labels).iter().map(|s| s.value).sum();
            ensure!(reads > 0.0, "{device} is not read");
            Ok(reads)
        })
    };
    let first = rig.plug(Slot::A, "LABHOT")?;
    let (name, id) = appear("LABHOT")?;
    reads(&name)?;
    // Enough that a drive without this history cannot have as many at once.
    let history = rig.eventually(READ_WITHIN, |scrape| {
        let labels = [("device", name.as_str()), ("window", "1h")];
        let reads: f64 = scrape.all("storscope_probe_window_reads", &labels).iter().map(|s| s.value).sum();
        ensure!(reads >= HISTORY_READS, "{name} was read only {reads} times");
        Ok(reads)
    })?;
    first.release()?;
    rig.eventually(SEEN_WITHIN, |scrape| {
        ensure!(listed(scrape, "LABHOT").is_none(), "LABHOT is still listed");
        Ok(())
    })?;
    let usurper = rig.plug(Slot::A, "LABOTHER")?;
    let (other_name, other_id) = appear("LABOTHER")?;
    same("name of the drive that came instead", &other_name, &name)?;
    ensure!(other_id != id, "another drive under the old name has its identity");
    let inherited = reads(&other_name)?;
    ensure!(inherited < history, "another drive under the old name has its {inherited} reads");
    let back = rig.plug(Slot::B, "LABHOT")?;
    let (new_name, same_id) = appear("LABHOT")?;
    ensure!(new_name != name, "the case needs another name, got {new_name} again");
    same("identity under another name", &same_id, &id)?;
    let kept = reads(&new_name)?;
    ensure!(kept >= history, "{kept} reads are known of the drive under another name, {history} were");
    back.release()?;
    usurper.release()
}

/// Name and identity of the device with this serial.
fn listed(scrape: &Scrape, serial: &str) -> Option<(String, String)> {
    let found = scrape.all("storscope_device_info", &[("serial", serial)]);
    found.first().map(|device| (device.label("device").to_owned(), device.label("id").to_owned()))
}
