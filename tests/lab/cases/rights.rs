//! What an agent without root's rights shows, and with exactly the capabilities that the documents name.

use super::super::agent::Run;
use super::super::rig::Rig;
use super::super::topology::serial::NVME_FREE;
use anyhow::{Context, Result, ensure};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// An ordinary user and group.
const NOBODY: &str =
    "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all";
/// The same with the group that a udev rule gives the devices.
const IN_GROUP: &str =
    "setpriv --reuid 65534 --regid 65534 --groups 6 --no-new-privs --inh-caps=-all --bounding-set=-all";
/// What says which capabilities a lesser user needs.
const README: &str = include_str!("../../../README.md");
/// How the sentence begins that names them.
const NEEDED: &str = "What a lesser user needs:";

/// What a udev rule does.
const GIVE_DEVICES_TO_GROUP: &str =
    "for device in /dev/nvme*n* /dev/nvme[0-9] /dev/sd*; do chgrp 6 $device; chmod g+r $device; done";

pub(super) fn unprivileged(rig: &Rig) -> Result<()> {
    let controller = rig.nvme(NVME_FREE)?.controller;
    // First the device files stand in the way, then the capability.
    rig.guest().sh("chmod go= /dev/nvme* /dev/sd*")?;
    restart(rig, NOBODY)?;
    let denied = |needed: &str| {
        rig.eventually(SOON, |scrape| {
            ensure!(!scrape.all("storscope_disk_reads_completed_total", &[]).is_empty(), "no counters");
            ensure!(!scrape.all("storscope_pcie_link_width_lanes", &[]).is_empty(), "no links");
            let health = scrape.all("storscope_nvme_power_cycles_total", &[("controller", &controller)]);
            ensure!(health.is_empty(), "a SMART log without rights: {health:?}");
            ensure!(
                !scrape.all("storscope_finding", &[("rule", "source_denied")]).is_empty(),
                "no finding source_denied"
            );
            let page = rig.guest().body("/status")?;
            ensure!(page.contains(needed), "/status does not name {needed}:\n{page}");
            Ok(())
        })
    };
    denied("read access")?;
    rig.guest().sh(GIVE_DEVICES_TO_GROUP)?;
    restart(rig, IN_GROUP)?;
    denied("CAP_SYS_ADMIN")
}

/// The capabilities that README names, as setpriv(1) writes them.
fn documented() -> Result<Vec<String>> {
    let (_, sentence) = README.split_once(NEEDED).context("README does not say what a lesser user needs")?;
    let sentence = sentence.split_once(". ").map_or(sentence, |(sentence, _)| sentence);
    let words = sentence.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let names: Vec<String> = words.filter_map(|word| word.strip_prefix("CAP_")).map(str::to_lowercase).collect();
    ensure!(!names.is_empty(), "README names no capability: {sentence}");
    Ok(names)
}

fn restart(rig: &Rig, prefix: &str) -> Result<()> {
    rig.agent.stop()?;
    rig.agent.start(Run { prefix, ..Run::default() })
}

pub(super) fn as_shipped(rig: &Rig) -> Result<()> {
    rig.guest().sh(GIVE_DEVICES_TO_GROUP)?;
    let capabilities = documented()?;
    let sets: Vec<String> = ["inh-caps", "ambient-caps", "bounding-set"]
        .into_iter()
        .map(|set| format!("--{set}=-all{}", capabilities.iter().map(|name| format!(",+{name}")).collect::<String>()))
        .collect();
    restart(rig, &format!("setpriv --reuid 65534 --regid 65534 --groups 6 --no-new-privs {}", sets.join(" ")))?;
    for (process, count) in
        [("supervisor", capabilities.len()), ("collector", capabilities.len()), ("prober", 0), ("server", 0)]
    {
        let held = rig.guest().sh(&format!("grep CapEff /proc/{}/status", rig.agent.process(process)?))?;
        let held = held.split_whitespace().last().and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let held = held.context("no CapEff")?;
        ensure!(held.count_ones() as usize == count, "{process} holds {held:#x}, documented {capabilities:?}");
    }
    rig.eventually(SOON, |scrape| {
        let down: Vec<_> =
            scrape.all("storscope_source_up", &[]).into_iter().filter(|series| series.value == 0.0).collect();
        ensure!(down.is_empty(), "sources down: {down:?}");
        ensure!(!scrape.all("storscope_nvme_power_cycles_total", &[]).is_empty(), "no SMART log");
        let probed = scrape.all("storscope_probe_reads_total", &[]);
        ensure!(!probed.is_empty(), "nothing is probed");
        Ok(())
    })
}
