//! A loop device, set up and taken down by losetup(8).

use nix::sys::stat::{major, minor};
use nix::unistd::Uid;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use storscope_model::device::DevNum;
use storscope_probe::{Pace, QueueSize, Target};

/// Attached loop device.
pub(crate) struct LoopDevice {
    pub(crate) node: PathBuf,
    sysfs: PathBuf,
}

impl LoopDevice {
    /// A loop device over `file`; `None`, with the reason on standard error, where this host has none to give.
    pub(crate) fn attach(file: &Path) -> Option<Self> {
        if !Uid::effective().is_root() {
            eprintln!("skipped: loop devices need root");
            return None;
        }
        let sysfs = output(Command::new("findmnt").args(["-n", "-o", "TARGET", "-t", "sysfs"]))?;
        let node = output(Command::new("losetup").args(["-f", "--show", "--direct-io=on"]).arg(file))?;
        let name = Path::new(&node).file_name()?.to_owned();
        let device = Self { sysfs: Path::new(sysfs.lines().next()?).join("block").join(name), node: node.into() };
        // Settings outlive what is attached: without it the kernel counts no request in flight.
        std::fs::write(device.attribute("queue/iostats"), "1").unwrap();
        Some(device)
    }

    pub(crate) fn attribute(&self, name: &str) -> PathBuf {
        self.sysfs.join(name)
    }

    pub(crate) fn target(&self, key: u64, pace: Pace) -> Target {
        let number = std::fs::metadata(&self.node).unwrap().rdev();
        let requests = std::fs::read_to_string(self.attribute("queue/nr_requests")).unwrap();
        Target {
            key,
            node: self.node.clone(),
            devnum: DevNum {
                major: u32::try_from(major(number)).unwrap(),
                minor: u32::try_from(minor(number)).unwrap(),
            },
            stat: self.attribute("stat"),
            queue: Some(QueueSize { requests: requests.trim().parse().unwrap(), hardware_queues: 1 }),
            runtime_status: vec![self.attribute("power/runtime_status")],
            logical_block_bytes: 512,
            pace,
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.node).status();
    }
}

fn output(command: &mut Command) -> Option<String> {
    let run = command.output();
    match run {
        Ok(run) if run.status.success() => Some(String::from_utf8_lossy(&run.stdout).trim().to_owned()),
        Ok(run) => {
            eprintln!("skipped: {command:?}: {}", String::from_utf8_lossy(&run.stderr).trim());
            None
        }
        Err(error) => {
            eprintln!("skipped: {command:?}: {error}");
            None
        }
    }
}
