//! A loop device of a number of its own, added, attached and removed by the caller.

use crate::agent::wait;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use storscope_collect::root::Root;

/// Requests of the loop control device (Documentation/admin-guide/devices.txt; include/uapi/linux/loop.h).
const ADD: &str = "0x4C80";
const REMOVE: &str = "0x4C81";

/// Devices that this process has added.
static ADDED: AtomicU32 = AtomicU32::new(0);

/// Bytes of the file below.
const SIZE: usize = 64 << 20;

/// A loop device; gone when dropped.
pub(crate) struct LoopDevice {
    number: u32,
    /// Its file, in memory where the host has such a place.
    file: tempfile::NamedTempFile,
}

impl LoopDevice {
    /// Adds a device, over a file that is written all over. `None`, with the reason, where that
    /// cannot be.
    pub(crate) fn add() -> Option<Self> {
        // Far above what anybody else numbers, below the 2^20 minors of a driver.
        let number = 100_000 + std::process::id() % 20_000 * 32 + ADDED.fetch_add(1, Ordering::Relaxed);
        Self::numbered(number)
    }

    /// Adds one with the same number, once this one was removed.
    pub(crate) fn add_again(&self) -> Option<Self> {
        Self::numbered(self.number)
    }

    fn numbered(number: u32) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: loop devices need root");
            return None;
        }
        control(ADD, number)?;
        let memory = Root::live().node("shm");
        let file = tempfile::NamedTempFile::new_in(memory).or_else(|_| tempfile::NamedTempFile::new()).unwrap();
        let block: Vec<u8> =
            (0..SIZE).map(|at| u8::try_from(at.wrapping_mul(2_654_435_761) >> 7 & 0xff).unwrap()).collect();
        std::fs::write(file.path(), block).unwrap();
        let device = Self { number, file };
        if !device.node().exists() {
            eprintln!("skipped: no node for a new loop device");
            return None;
        }
        Some(device)
    }

    /// Puts its file below it.
    pub(crate) fn attach(&self) {
        self.attach_to(self.file.path());
    }

    /// Puts `file` below it, read directly.
    pub(crate) fn attach_to(&self, file: &Path) {
        let status = Command::new("losetup").arg("--direct-io=on").arg(self.node()).arg(file).status().unwrap();
        assert!(status.success());
    }

    /// Takes the file away and the device with it.
    pub(crate) fn remove(&self) {
        let _ = Command::new("losetup").arg("-d").arg(self.node()).stderr(Stdio::null()).status();
        // The last one that has it open may be about to close it.
        wait("the device to go", || {
            control(REMOVE, self.number);
            (!Root::live().block(&self.name()).exists()).then_some(())
        });
    }

    pub(crate) fn name(&self) -> String {
        format!("loop{}", self.number)
    }

    pub(crate) fn node(&self) -> PathBuf {
        Root::live().node(&self.name())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if Root::live().block(&self.name()).exists() {
            self.remove();
        }
    }
}

/// Sends `request` for device `number`; a scripting language stands in for a tool that does not exist.
fn control(request: &str, number: u32) -> Option<()> {
    let node = Root::live().node("loop-control");
    let script = "import fcntl,sys; fcntl.ioctl(open(sys.argv[1]), int(sys.argv[2], 16), int(sys.argv[3]))";
    let output = Command::new("python3").args(["-c", script]).arg(node).args([request, &number.to_string()]).output();
    match output {
        Ok(output) if output.status.success() => Some(()),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            eprintln!("skipped: loop control: {}", why.lines().last().unwrap_or_default());
            None
        }
        Err(error) => {
            eprintln!("skipped: python3: {error}");
            None
        }
    }
}
