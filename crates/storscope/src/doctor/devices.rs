//! Block devices: is there a node, may it be opened for direct reads, is it counted.

use super::nodes;
use super::privileges::Privileges;
use super::report::{Check, FREE, LeftOut};
use crate::deadline::{NoResult, within};
use nix::errno::Errno;
use std::path::Path;
use std::time::Duration;
use storscope_collect::root::Root;
use storscope_collect::select::{Selection, is_free};
use storscope_collect::{ata_power, node, power, queue};
use storscope_model::device::{Device, Transport, Zoned};
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;

/// Time for the kernel's files of a device, and for opening it.
const LIMIT: Duration = Duration::from_secs(5);

/// Everything about one device that is watched.
pub(super) fn checks(root: &Root, device: &Device, own: Privileges) -> Vec<Check> {
    let subject = device.name.as_str();
    let (files, known) = (root.clone(), device.clone());
    let (mut checks, awake) = match within(LIMIT, move || kernel_files(&files, &known)) {
        Ok(found) => found,
        Err(why) => return vec![hangs(subject, "its files in sysfs", &why)],
    };
    if !root.live {
        checks.extend(captured(root, device, own));
        return checks;
    }
    if let Some(why) = not_probed(device) {
        checks.push(Check::lacks(subject, format!("not probed: {why}")));
    } else if !awake {
        checks.push(Check::fine(subject, "asleep: not opened, which would wake it"));
    } else if device.removable == Some(true) {
        checks.push(Check::fine(subject, "removable: not opened, which would lock its tray"));
    } else {
        checks.push(opens(root, device, own));
        checks.extend(power_mode(root, device));
    }
    checks
}

/// What was denied on a captured host.
fn captured(root: &Root, device: &Device, own: Privileges) -> Vec<Check> {
    let errno = node::was_denied(root, &device.name);
    let node = errno.map(|errno| not_opened(root, device, &root.node(&device.name), errno, own));
    let power_mode = ata_power::was_denied(root, device).then(|| power_mode(root, device)).flatten();
    node.into_iter().chain(power_mode).collect()
}

fn hangs(subject: &str, what: &str, why: &NoResult) -> Check {
    match why {
        NoResult::Late => {
            let what = format!("{what}: no answer within {} s. The device hangs: see the kernel log", LIMIT.as_secs());
            Check::denied(subject, what).mend("dmesg -T | tail -50")
        }
        NoResult::Failed(error) => Check::denied(subject, format!("{what}: cannot be looked at: {error}")),
    }
}

/// What sysfs says, and whether the device is awake.
fn kernel_files(root: &Root, device: &Device) -> (Vec<Check>, bool) {
    let subject = device.name.as_str();
    let Some(folder) = root.resolve(&root.block(&device.name)) else {
        return (vec![Check::lacks(subject, "its folder in sysfs is gone")], false);
    };
    let mut checks = Vec::new();
    match queue::read(root, &folder) {
        Ok(settings) => {
            if settings.iostats == Some(false) {
                let switch = root.block(&device.name).join("queue/iostats");
                let what = "its requests are not counted (iostats is off): no rates, no latencies from the kernel";
                checks.push(Check::lacks(subject, what).mend(format!("echo 1 > {}", switch.display())));
            }
            for fault in settings.faults {
                checks.push(Check::lacks(subject, format!("queue setting: {fault}")));
            }
        }
        // A partition has no queue of its own.
        Err(_) if device.partition_of.is_some() => {}
        Err(fault) => checks.push(Check::lacks(subject, format!("queue settings: {fault}"))),
    }
    let awake = match power::read(root, &folder) {
        Ok(power) => !power.suspended,
        Err(fault) => {
            checks.push(Check::lacks(subject, format!("whether it sleeps is not known, so it is left alone: {fault}")));
            false
        }
    };
    (checks, awake)
}

/// Why probes leave a device alone whatever is permitted.
fn not_probed(device: &Device) -> Option<&'static str> {
    if device.size_bytes == Some(0) {
        return Some("it has no size: no medium, or a format that the kernel cannot use");
    }
    (device.zoned == Some(Zoned::HostManaged)).then_some("its zones are managed by the host")
}

fn opens(root: &Root, device: &Device, own: Privileges) -> Check {
    let subject = device.name.as_str();
    let node = root.node(&device.name);
    let place = node.clone();
    match within(LIMIT, move || node::opens(&place)) {
        Ok(Ok(())) => Check::fine(subject, format!("{} opens for direct reads: probes are possible", node.display())),
        Ok(Err(errno)) => not_opened(root, device, &node, errno, own),
        Err(why) => hangs(subject, &format!("opening {}", node.display()), &why),
    }
}

/// Why the node does not open, and what helps.
fn not_opened(root: &Root, device: &Device, node: &Path, errno: Errno, own: Privileges) -> Check {
    let subject = device.name.as_str();
    let path = node.display();
    match errno {
        Errno::ENOENT => {
            let number = device.devnum.map_or_else(String::new, |n| format!("b {} {}", n.major, n.minor));
            let what = format!("no node {path}: not probed. A container sees the host's nodes with --device {path}");
            Check::lacks(subject, what).mend(format!("mknod -m 0600 {path} {number}"))
        }
        Errno::EPERM | Errno::EACCES => {
            nodes::denied(root, subject, node, errno, own, "Not probed; counters and settings are read")
        }
        Errno::ENOMEDIUM => Check::fine(subject, "no medium"),
        Errno::EINVAL => Check::lacks(subject, format!("{path} takes no direct reads: not probed")),
        Errno::ENXIO | Errno::ENODEV => Check::lacks(
            subject,
            format!("{path} leads to no device ({}): it has just left, or is not set up", errno.desc()),
        ),
        _ => Check::denied(subject, format!("{path} does not open: {}", errno.desc())),
    }
}

/// Only for disks that can spin down.
fn power_mode(root: &Root, device: &Device) -> Option<Check> {
    if !ata_power::may_have_mode(device) || ata_power::why_not(device).is_some() {
        return None;
    }
    let subject = device.name.as_str();
    let (host, disk) = (root.clone(), device.clone());
    Some(match within(LIMIT, move || ata_power::read(&host, &disk)) {
        Ok(Outcome::Value(_)) => Check::fine(subject, "tells whether it sleeps (ATA CHECK POWER MODE)"),
        Ok(Outcome::Failed(fault @ Fault::Denied { .. })) => {
            Check::denied(subject, format!("whether it sleeps cannot be asked: {fault}"))
        }
        Ok(Outcome::Failed(fault)) => Check::lacks(subject, format!("whether it sleeps cannot be told: {fault}")),
        Ok(Outcome::Unsupported(why) | Outcome::Withheld(why)) => {
            Check::lacks(subject, format!("whether it sleeps cannot be told: {why}"))
        }
        Err(why) => hangs(subject, "ATA CHECK POWER MODE", &why),
    })
}

/// The devices that `selection` leaves out, by reason.
pub(super) fn left_out(devices: &[Device], selection: &Selection, asked: bool) -> Vec<LeftOut> {
    let mut groups: Vec<LeftOut> = Vec::new();
    for device in devices.iter().filter(|device| !selection.selected(device)) {
        let why = why_left_out(device, asked);
        match groups.iter_mut().find(|group| group.why == why) {
            Some(group) => group.names.push(device.name.clone()),
            None => groups.push(LeftOut { names: vec![device.name.clone()], why }),
        }
    }
    groups
}

/// `asked`: the command line chose.
fn why_left_out(device: &Device, asked: bool) -> &'static str {
    if is_free(device) {
        return FREE;
    }
    if device.partition_of.is_some() {
        return "part of a disk that is watched as a whole";
    }
    match device.transport {
        Transport::Loop => "made of files",
        Transport::DeviceMapper | Transport::Md => "made of other disks",
        Transport::Zram | Transport::Ram => "made of memory",
        Transport::Optical | Transport::Floppy => "a drive for removable media",
        _ if device.size_bytes == Some(0) => "without a size: nothing in it or behind it",
        _ if asked => "left out by --exclude or --only",
        _ => "not a whole disk of its own",
    }
}

#[cfg(test)]
mod tests;
