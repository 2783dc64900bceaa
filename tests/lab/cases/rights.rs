//! What an agent without root's rights shows, and with exactly the capabilities that the documents name.

use super::super::agent::Run;
use super::super::rig::Rig;
use super::super::topology::serial::NVME_FREE;
use anyhow::{Result, ensure};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
/// An ordinary user and group.
const NOBODY: &str =
    "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all";
/// The same with the group that a udev rule gives the devices.
const IN_GROUP: &str =
    "setpriv --reuid 65534 --regid 65534 --groups 6 --no-new-privs --inh-caps=-all --bounding-set=-all";
/// The same with the capabilities of the shipped unit.
const AS_SHIPPED: &str = "setpriv --reuid 65534 --regid 65534 --groups 6 --inh-caps=-all,+sys_admin,+sys_rawio,+syslog \
                          --ambient-caps=-all,+sys_admin,+sys_rawio,+syslog --bounding-set=-all,+sys_admin,+sys_rawio,+syslog";

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

fn restart(rig: &Rig, prefix: &str) -> Result<()> {
    rig.agent.stop()?;
    rig.agent.start(Run { prefix, ..Run::default() })
}

pub(super) fn as_shipped(rig: &Rig) -> Result<()> {
    rig.guest().sh(GIVE_DEVICES_TO_GROUP)?;
    restart(rig, AS_SHIPPED)?;
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
