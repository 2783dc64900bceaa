//! Whether a SATA disk sleeps: runtime power management first, then ATA CHECK POWER MODE, which wakes nothing.

use crate::answer;
use crate::node;
use crate::power;
use crate::root::Root;
use storscope_drive::{AtaDevice, CommandError, CommandId, PowerMode, denied_at};
use storscope_model::device::{Device, Transport};
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;
use storscope_model::sample::Sample;
use storscope_model::sample::power::AtaPower;

/// Why `device` is not asked; `None` when it is. The command is not queued: the kernel drains the disk's queue for it,
/// so that a solid-state disk, which has nothing to spin down, is left alone.
pub fn why_not(device: &Device) -> Option<&'static str> {
    match device.transport {
        Transport::Sata => {}
        Transport::Usb => return Some("behind a USB bridge: many do not pass the command on"),
        Transport::Sas | Transport::Scsi | Transport::Iscsi | Transport::FibreChannel => {
            return Some("not an ATA disk");
        }
        _ => return Some("has no ATA power mode"),
    }
    if device.removable == Some(true) {
        return Some("removable medium");
    }
    (device.rotational == Some(false)).then_some("a solid-state disk has nothing to spin down")
}

/// True for the buses on which an operator may expect a power mode, so that its absence is told with the reason.
pub const fn may_have_mode(device: &Device) -> bool {
    matches!(device.transport, Transport::Sata | Transport::Usb | Transport::Sas | Transport::Scsi)
}

/// Asks `device`. The open needs the device's group, the command CAP_SYS_RAWIO.
pub fn read(root: &Root, device: &Device) -> Outcome {
    if let Some(why) = why_not(device) {
        return Outcome::Unsupported(why.to_owned());
    }
    if !root.live {
        return as_captured(root, device);
    }
    let Some(folder) = root.resolve(&root.block(&device.name)) else {
        return Outcome::Failed(Fault::Gone);
    };
    match power::read(root, &folder) {
        Ok(power) if power.suspended => {
            return Outcome::Withheld("suspended: asking would wake it".to_owned());
        }
        Ok(_) => {}
        Err(fault) => return Outcome::Failed(fault),
    }
    let node = root.node(&device.name);
    let mode = AtaDevice::open(&node).and_then(|disk| disk.power_mode().0);
    match mode {
        Ok(mode) => Outcome::Value(Box::new(Sample::AtaPower(AtaPower { mode: count(mode) }))),
        Err(error) => answer::failed(&error, &node),
    }
}

/// True when a captured host denied the question.
pub fn was_denied(root: &Root, device: &Device) -> bool {
    why_not(device).is_none() && matches!(as_captured(root, device), Outcome::Failed(_))
}

fn as_captured(root: &Root, device: &Device) -> Outcome {
    let path = root.node(&device.name);
    let command = || denied_at(&root.ata_power_mode(&device.name)?);
    let error = match (node::was_denied(root, &device.name), command()) {
        (Some(errno), _) => CommandError::Open { path: path.clone(), errno: errno as i32 },
        (None, Some(errno)) => CommandError::Errno { command: CommandId::CheckPowerMode, errno },
        (None, None) => return Outcome::Unsupported("a captured host is not asked".to_owned()),
    };
    answer::failed(&error, &path)
}

/// The count register that stands for `mode`; of several that mean the same, the first.
const fn count(mode: PowerMode) -> u8 {
    match mode {
        PowerMode::Standby => 0x00,
        PowerMode::SpunDown => 0x40,
        PowerMode::SpunUp => 0x41,
        PowerMode::Idle => 0x80,
        PowerMode::Active => 0xff,
        PowerMode::Unknown(count) => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::made_up;
    use std::fs;

    #[test]
    fn only_rotating_sata_disks_are_asked() {
        let sata = made_up::device("sda", Transport::Sata);
        assert_eq!(why_not(&sata), None);
        assert_eq!(why_not(&Device { rotational: Some(true), ..sata.clone() }), None);
        for device in [
            Device { rotational: Some(false), ..sata.clone() },
            Device { removable: Some(true), ..sata.clone() },
            Device { transport: Transport::Usb, ..sata.clone() },
            Device { transport: Transport::Sas, ..sata },
        ] {
            assert!(why_not(&device).is_some(), "{device:?}");
        }
    }

    #[test]
    fn a_suspended_disk_is_left_asleep_and_an_absent_node_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::host(dir.path());
        let disk = made_up::device("sda", Transport::Sata);
        let folder = root.block("sda");
        fs::create_dir_all(folder.join("device/power")).unwrap();
        assert_eq!(read(&root, &disk), Outcome::Failed(Fault::Gone));

        let pci = root.sys("devices/pci0000:00/ata1/block/sda");
        fs::create_dir_all(pci.join("power")).unwrap();
        fs::write(pci.join("power/runtime_status"), "suspended\n").unwrap();
        fs::remove_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("../../devices/pci0000:00/ata1/block/sda", &folder).unwrap();
        assert!(matches!(read(&root, &disk), Outcome::Withheld(_)));
    }

    #[test]
    fn captured_hosts_are_not_asked() {
        let dir = tempfile::tempdir().unwrap();
        let disk = made_up::device("sda", Transport::Sata);
        let root = Root::captured(dir.path());
        assert!(matches!(read(&root, &disk), Outcome::Unsupported(_)) && !was_denied(&root, &disk));
        let place = root.ata_power_mode("sda").unwrap();
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("denied:EPERM", &place).unwrap();
        assert!(matches!(read(&root, &disk), Outcome::Failed(Fault::Denied { needs, .. }) if needs == "CAP_SYS_RAWIO"));
        fs::create_dir_all(&root.dev).unwrap();
        std::os::unix::fs::symlink("denied:EACCES", root.node("sda")).unwrap();
        assert!(was_denied(&root, &disk));
        assert!(
            matches!(read(&root, &disk), Outcome::Failed(Fault::Denied { needs, .. }) if needs.starts_with("read"))
        );
    }

    #[test]
    fn modes_keep_their_meaning_as_samples() {
        for (mode, asleep) in [
            (PowerMode::Standby, true),
            (PowerMode::SpunDown, true),
            (PowerMode::Idle, false),
            (PowerMode::Active, false),
        ] {
            assert_eq!(AtaPower { mode: count(mode) }.asleep(), asleep, "{mode:?}");
        }
    }
}
