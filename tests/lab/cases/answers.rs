//! The agent answers, and does not cry wolf.

use super::super::drive;
use super::super::rig::Rig;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Long enough for every source to have been read once.
const ALL_READ: Duration = Duration::from_secs(20);

pub(super) fn run(rig: &Rig) -> Result<()> {
    let guest = rig.guest();
    for path in ["/healthz", "/readyz", "/metrics", "/status", "/status.json", "/"] {
        guest.body(path)?;
    }
    ensure!(guest.get("/nothing")?.status == 404, "an unknown path is not 404");
    ensure!(guest.request("POST", "/metrics", "Content-Length: 0\r\n")?.status == 405, "POST is not 405");
    // The kernel's own target has no firmware slots.
    let controllers = drive::nvme_controllers(&guest)?.iter().filter(|drive| !drive.address.is_empty()).count();
    rig.eventually(ALL_READ, |scrape| {
        // Asked last, and of every controller.
        let asked = scrape.all("storscope_source_up", &[("source", "firmware_slots")]).len();
        ensure!(asked >= controllers, "firmware slots asked of {asked} of {controllers} controllers");
        let down: Vec<_> =
            scrape.all("storscope_source_up", &[]).into_iter().filter(|series| series.value == 0.0).collect();
        ensure!(down.is_empty(), "sources down: {down:?}");
        let alarms: Vec<_> = scrape
            .all("storscope_finding", &[])
            .into_iter()
            .filter(|finding| finding.label("severity") != "info")
            .collect();
        ensure!(alarms.is_empty(), "findings on healthy drives: {alarms:?}");
        Ok(())
    })
}
