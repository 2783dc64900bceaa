//! Device nodes: whether one opens for direct reads, and what a captured host tells of it.

use crate::root::Root;
use crate::{controller_state, queue};
use nix::errno::Errno;
use nix::libc::{O_CLOEXEC, O_DIRECT, O_NONBLOCK};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use storscope_drive::denied_at;
use storscope_model::device::{Controller, Device, Transport};
use storscope_model::event::Outcome;
use storscope_model::sample::Sample;
use storscope_model::sample::probe::{Engine, ProbeReport, SkipReason};

/// Opens `node` as probes do, and closes it again.
///
/// # Errors
/// The kernel's own.
pub fn opens(node: &Path) -> Result<(), Errno> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_DIRECT | O_NONBLOCK | O_CLOEXEC);
    options.open(node).map(drop).map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
}

/// With what a captured host denied the node `name`; `None` when it did not.
pub fn was_denied(root: &Root, name: &str) -> Option<Errno> {
    let node = root.node(name);
    denied_at(&node).filter(|_| !root.live).map(Errno::from_raw)
}

/// True when probes of a captured host met with that denial; `drive` is the controller of a namespace. Other devices were
/// not to be probed (`storscope_model::probe_plan`): a disk that could sleep is not read without knowing its power mode,
/// which needs the node too, nor anything that is not known to be running. A node is captured of what is awake only.
pub(crate) fn probes_were_denied(root: &Root, device: &Device, drive: Option<&Controller>) -> bool {
    let may_sleep = matches!(device.transport, Transport::Sata | Transport::Usb) && device.rotational != Some(false);
    if may_sleep || was_denied(root, &device.name).is_none() {
        return false;
    }
    let settings = root.resolve(&root.block(&device.name)).and_then(|folder| queue::read(root, &folder).ok());
    let runs =
        settings.and_then(|settings| settings.device_state).is_none_or(|word| word == "running" || word == "live");
    let live = |controller: &Controller| {
        let folder = root.resolve(&root.sys("class/nvme").join(&controller.name));
        folder.is_some_and(|folder| controller_state::read(&folder).is_ok_and(|state| state.is_live()))
    };
    runs && (device.nvme.is_none() || drive.is_some_and(live))
}

/// What the probes of a captured host told of a device whose node was denied.
pub(crate) fn denied_probes() -> Outcome {
    Outcome::Value(Box::new(Sample::Probe(Box::new(ProbeReport {
        engine: Engine::Pread,
        classes: Vec::new(),
        errors: Vec::new(),
        skipped: vec![(SkipReason::Denied, 1)],
        last_skip: Some(SkipReason::Denied),
        last_error: None,
        outstanding_since: None,
        in_flight_before: None,
        busy_ns: 0,
    }))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::made_up;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_captured_node_tells_its_denial() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir_all(&root.dev).unwrap();
        symlink("denied:EPERM", root.node("vda")).unwrap();
        assert_eq!(was_denied(&root, "vda"), Some(Errno::EPERM));
        assert_eq!(was_denied(&root, "vdb"), None);
        assert_eq!(was_denied(&Root::host(dir.path()), "vda"), None, "a live host is asked");
        let mut disk = made_up::device("vda", Transport::Virtio);
        assert!(probes_were_denied(&root, &disk, None));
        let folder = root.sys("class/block/vda");
        std::fs::create_dir_all(folder.join("device/scsi_device")).unwrap();
        std::fs::create_dir_all(folder.join("queue")).unwrap();
        std::fs::write(folder.join("device/state"), "offline\n").unwrap();
        assert!(!probes_were_denied(&root, &disk, None), "it was not to be probed");
        std::fs::write(folder.join("device/state"), "running\n").unwrap();
        assert!(probes_were_denied(&root, &disk, None));
        (disk.transport, disk.rotational) = (Transport::Sata, Some(true));
        assert!(!probes_were_denied(&root, &disk, None), "it was not to be probed");
    }

    #[test]
    fn a_node_that_is_not_there_does_not_open() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(opens(&dir.path().join("vda")), Err(Errno::ENOENT));
    }
}
