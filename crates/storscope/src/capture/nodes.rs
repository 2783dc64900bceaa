//! Whether the device nodes open, and whether a disk may be asked for its power mode: what was denied is kept.

use super::desk::Desk;
use storscope_collect::{ata_power, node, power};
use storscope_drive::{AtaDevice, CommandError, denied_at};
use storscope_model::device::{Device, Zoned};

/// Opens the node of `device` as probes would, where that wakes nothing and locks no tray.
pub(super) fn copy(desk: &Desk, device: &Device) {
    let root = desk.root();
    let path = root.node(&device.name);
    if !root.live {
        if let Some(errno) = node::was_denied(root, &device.name) {
            desk.denied_at(&path, errno as i32);
        }
        if let Some(errno) = root.ata_power_mode(&device.name).and_then(|place| denied_at(&place)) {
            power_mode_denied(desk, device, errno);
        }
        return;
    }
    let asleep = || {
        let folder = root.resolve(&root.block(&device.name))?;
        power::read(root, &folder).ok().map(|power| power.suspended)
    };
    let probed = device.size_bytes != Some(0) && device.zoned != Some(Zoned::HostManaged);
    if !probed || device.removable == Some(true) || asleep() != Some(false) {
        return;
    }
    desk.busy_with(path.display());
    if let Err(errno) = node::opens(&path) {
        return desk.denied_at(&path, errno as i32);
    }
    if ata_power::why_not(device).is_none()
        && let Err(CommandError::Errno { errno, .. }) = AtaDevice::open(&path).and_then(|disk| disk.power_mode().0)
    {
        power_mode_denied(desk, device, errno);
    }
}

fn power_mode_denied(desk: &Desk, device: &Device, errno: i32) {
    desk.denied(format!("ata/{}/check-power-mode", device.name.replace('/', "!")), errno);
}
