//! The other subcommands on a real kernel: `capture`, `status --root`, `doctor`.

use super::super::agent::BINARY;
use super::super::drive;
use super::super::rig::Rig;
use super::same;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// A walk of the guest's sysfs under emulation.
const LIMIT: Duration = Duration::from_secs(60);
const FOLDER: &str = "/tmp/capture";

pub(super) fn round_trip(rig: &Rig) -> Result<()> {
    let guest = rig.guest();
    guest.sh_within(&format!("rm -rf {FOLDER}; {BINARY} capture {FOLDER}"), LIMIT)?;
    // Its exit status is the verdict.
    let shown = guest.sh_within(&format!("{BINARY} status --root {FOLDER} --json 2>/tmp/capture.log; true"), LIMIT)?;
    let shown: Value = serde_json::from_str(&shown).context("status --root")?;
    let live = rig.json("/status.json")?;
    for (list, field) in [("devices", "name"), ("devices", "model"), ("controllers", "name"), ("controllers", "model")]
    {
        same(
            &format!("{field} of {list} in the capture"),
            &values(&shown, list, field)?,
            &values(&live, list, field)?,
        )?;
    }
    for nvme in drive::nvme_controllers(&guest)? {
        // Links lead to what was not captured.
        let found = guest.sh(&format!("grep -rl '{}' {FOLDER} 2>/dev/null || true", nvme.serial))?;
        ensure!(found.is_empty(), "the serial {} is in the capture: {found}", nvme.serial);
    }
    // The pages of a drive came with it.
    let asked =
        drive::nvme_controllers(&guest)?.into_iter().find(|nvme| !nvme.address.is_empty()).context("no drive")?;
    let page = guest.sh(&format!("wc -c <{FOLDER}/drives/{}/logpage-0x02.bin", asked.controller))?;
    same("bytes of the SMART page", &page.trim(), &"512")
}

/// All values of a field, sorted; null where absent.
fn values(status: &Value, list: &str, field: &str) -> Result<BTreeSet<String>> {
    let all = status[list].as_array().with_context(|| format!("no {list}"))?;
    Ok(all.iter().map(|entry| entry[field].to_string()).collect())
}

pub(super) fn doctor(rig: &Rig) -> Result<()> {
    let ask = |prefix: &str| {
        let ended = rig.guest().sh_within(&format!("{prefix} {BINARY} doctor; echo ended with $?"), LIMIT)?;
        Ok::<_, anyhow::Error>(ended)
    };
    let as_root = ask("")?;
    ensure!(as_root.contains("\n0 denied"), "something is denied to root:\n{as_root}");
    let lesser =
        ask("setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all")?;
    ensure!(!lesser.contains("\n0 denied"), "nothing is denied to a lesser user:\n{lesser}");
    for nvme in drive::nvme_controllers(&rig.guest())? {
        let said = lesser.lines().any(|line| line.split_whitespace().next() == Some(nvme.controller.as_str()));
        ensure!(said, "doctor does not name {}:\n{lesser}", nvme.controller);
    }
    Ok(())
}
