//! What a sick drive carries.

use super::super::rig::Rig;
use super::super::topology::serial::NVME_CRYPT;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Two SMART periods of the lab's configuration, and a tick.
const SOON: Duration = Duration::from_secs(12);
/// Bit of the critical warning: the media are read-only.
const READ_ONLY: u8 = 0x08;

pub(super) fn carries(rig: &Rig) -> Result<()> {
    let fault = rig.critical_warning(NVME_CRYPT, READ_ONLY)?;
    rig.eventually(SOON, |_| {
        let page = rig.guest().body("/status")?;
        let carried = page.lines().find(|line| line.contains("carries") && line.contains("/mnt/crypt"));
        ensure!(carried.is_some_and(|line| line.contains("labvg")), "what {NVME_CRYPT} carries is not said:\n{page}");
        Ok(())
    })?;
    fault.release()
}
