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
/// Cycles of adding and removing.
const CYCLES: usize = 50;
/// Cycles between two that wait for the agent to have seen the drive: with these it comes in the middle of anything.
const WATCHED: usize = 10;
/// What [`CYCLES`] cycles may leave more of: descriptors of a drive that is just being asked, and workers that the
/// agent's pool has called up (it keeps eight). A leak of one a cycle is far above both.
const SLACK: [(&str, f64); 2] = [("descriptors", 2.0), ("threads", 10.0)];

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
            !name.is_empty() && !there.contains(name)
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

pub(super) fn identity(rig: &Rig) -> Result<()> {
    let appear = |serial: &'static str| {
        rig.eventually(SEEN_WITHIN, |scrape| {
            listed(scrape, serial).ok_or_else(|| anyhow::anyhow!("{serial} is not listed"))
        })
    };
    let first = rig.plug(Slot::A, "LABHOT")?;
    let (name, id) = appear("LABHOT")?;
    first.release()?;
    rig.eventually(SEEN_WITHIN, |scrape| {
        ensure!(listed(scrape, "LABHOT").is_none(), "LABHOT is still listed");
        Ok(())
    })?;
    let usurper = rig.plug(Slot::A, "LABOTHER")?;
    let (other_name, other_id) = appear("LABOTHER")?;
    same("name of the drive that came instead", &other_name, &name)?;
    ensure!(other_id != id, "another drive under the old name has its identity");
    let back = rig.plug(Slot::B, "LABHOT")?;
    let (new_name, same_id) = appear("LABHOT")?;
    ensure!(new_name != name, "the case needs another name, got {new_name} again");
    same("identity under another name", &same_id, &id)?;
    back.release()?;
    usurper.release()
}

/// Name and identity of the device with this serial.
fn listed(scrape: &Scrape, serial: &str) -> Option<(String, String)> {
    let found = scrape.all("storscope_device_info", &[("serial", serial)]);
    found.first().map(|device| (device.label("device").to_owned(), device.label("id").to_owned()))
}
