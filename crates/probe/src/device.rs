//! Looking at a device and opening it. All of this may block, so none of it runs on the ring's thread.
//!
//! open(2) of a SCSI disk waits for its error recovery; a last close(2) writes back what another process left dirty in
//! the device's page cache. `IORING_OP_OPENAT` is no help: it calls the driver's `open` on the submitting thread first.

use crate::load::Load;
use crate::target::Target;
use nix::errno::Errno;
use nix::libc::{O_CLOEXEC, O_DIRECT};
use nix::sys::stat::{major, minor};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use storscope_model::sample::probe::SkipReason;

/// Longest runtime status that is read; the kernel's words have at most eleven letters.
const MAX_STATUS: u64 = 32;

/// Why a burst does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A condition with a name.
    Skip(SkipReason, Option<Load>),
    /// Any other failure.
    Failed(Errno),
}

/// A device that is ready to be read.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) stat: File,
    pub(crate) load: Load,
    pub(crate) size: u64,
    pub(crate) block: u32,
}

/// Looks at the device and opens it. `before` is its load one burst ago.
///
/// # Errors
/// A [`Refusal`]: the device sleeps, its queue is full, its node is another one, or a system call failed.
pub(crate) fn prepare(target: &Target, before: Option<Load>) -> Result<Opened, Refusal> {
    if target.runtime_status.iter().any(|path| is_suspended(path)) {
        return Err(Refusal::Skip(SkipReason::Suspended, None));
    }
    let stat = File::open(&target.stat).map_err(|error| refusal(&error, None))?;
    let load = Load::read(&stat).map_err(|error| refusal(&error, None))?;
    if target.queue.is_some_and(|queue| load.is_full(before, queue)) {
        return Err(Refusal::Skip(SkipReason::QueueFull, Some(load)));
    }
    let skip = |reason| Err(Refusal::Skip(reason, Some(load)));
    let Some(block) = target.block() else {
        return skip(SkipReason::Unsuitable);
    };
    // Before open(2), which of a character device or a pipe may have effects; after it, because the node may change.
    let node = std::fs::metadata(&target.node).map_err(|error| refusal(&error, Some(load)))?;
    if let Some(reason) = mismatch(&node, target) {
        return skip(reason);
    }
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(O_DIRECT | O_CLOEXEC)
        .open(&target.node)
        .map_err(|error| refusal(&error, Some(load)))?;
    let opened = file.metadata().map_err(|error| refusal(&error, Some(load)))?;
    if let Some(reason) = mismatch(&opened, target) {
        return skip(reason);
    }
    let size = file.seek(SeekFrom::End(0)).map_err(|error| refusal(&error, Some(load)))?;
    if size < u64::from(block) {
        return skip(SkipReason::Unsuitable);
    }
    Ok(Opened { file, stat, load, size, block })
}

fn mismatch(node: &Metadata, target: &Target) -> Option<SkipReason> {
    if !node.file_type().is_block_device() {
        return Some(SkipReason::Unsuitable);
    }
    let number = node.rdev();
    let expected = (u64::from(target.devnum.major), u64::from(target.devnum.minor));
    ((major(number), minor(number)) != expected).then_some(SkipReason::Gone)
}

/// Runtime power management (Documentation/ABI/testing/sysfs-devices-power); an absent file says nothing.
fn is_suspended(path: &Path) -> bool {
    let mut status = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_STATUS).read_to_string(&mut status));
    read.is_ok() && matches!(status.trim(), "suspended" | "suspending")
}

fn refusal(error: &io::Error, load: Option<Load>) -> Refusal {
    let errno = errno_of(error);
    match named(errno) {
        Some(reason) => Refusal::Skip(reason, load),
        None => Refusal::Failed(errno),
    }
}

/// The errors of opening and looking that have a name of their own.
pub(crate) fn named(errno: Errno) -> Option<SkipReason> {
    match errno {
        Errno::EPERM | Errno::EACCES => Some(SkipReason::Denied),
        Errno::ENOENT | Errno::ENXIO | Errno::ENODEV => Some(SkipReason::Gone),
        Errno::ENOMEDIUM => Some(SkipReason::Unsuitable),
        Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::EAGAIN => Some(SkipReason::Exhausted),
        _ => None,
    }
}

/// The errno of an error; what comes from no system call (a malformed `stat`) is `EBADMSG`.
pub(crate) fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EBADMSG, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Pace, QueueSize};
    use std::path::PathBuf;
    use storscope_model::device::DevNum;

    fn target(dir: &Path) -> Target {
        std::fs::write(dir.join("stat"), "1 0 0 0 2 0 0 0 3 0 0\n").unwrap();
        std::fs::write(dir.join("node"), vec![1_u8; 8192]).unwrap();
        Target {
            key: 1,
            node: dir.join("node"),
            devnum: DevNum { major: 7, minor: 0 },
            stat: dir.join("stat"),
            queue: Some(QueueSize { requests: 128, hardware_queues: 1 }),
            runtime_status: vec![dir.join("runtime_status")],
            logical_block_bytes: 512,
            pace: Pace::default(),
        }
    }

    fn reason(target: &Target) -> Option<SkipReason> {
        match prepare(target, None) {
            Err(Refusal::Skip(reason, _)) => Some(reason),
            _ => None,
        }
    }

    #[test]
    fn a_regular_file_is_no_device() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(reason(&target(dir.path())), Some(SkipReason::Unsuitable));
    }

    #[test]
    fn a_suspended_device_is_left_alone_before_anything_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut target = target(dir.path());
        target.stat = PathBuf::from("absent");
        for status in ["suspended\n", "suspending\n"] {
            std::fs::write(dir.path().join("runtime_status"), status).unwrap();
            assert_eq!(reason(&target), Some(SkipReason::Suspended));
        }
        std::fs::write(dir.path().join("runtime_status"), "active\n").unwrap();
        assert_eq!(reason(&target), Some(SkipReason::Gone));
    }

    #[test]
    fn a_full_queue_is_seen_before_the_node_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let target = target(dir.path());
        std::fs::write(&target.stat, "1 0 0 0 2 0 0 0 128 0 0\n").unwrap();
        std::fs::remove_file(&target.node).unwrap();
        let load = Load { completed: 3, in_flight: 128 };
        assert_eq!(prepare(&target, None).err(), Some(Refusal::Skip(SkipReason::QueueFull, Some(load))));
    }

    #[test]
    fn a_malformed_stat_is_a_failure_and_no_idle_device() {
        let dir = tempfile::tempdir().unwrap();
        let target = target(dir.path());
        std::fs::write(&target.stat, "").unwrap();
        assert_eq!(prepare(&target, None).err(), Some(Refusal::Failed(Errno::EBADMSG)));
    }

    #[test]
    fn an_absent_node_is_gone_and_an_odd_block_size_unsuitable() {
        let dir = tempfile::tempdir().unwrap();
        let mut target = target(dir.path());
        std::fs::remove_file(&target.node).unwrap();
        assert_eq!(reason(&target), Some(SkipReason::Gone));
        for bytes in [0, 520, 4 << 20] {
            target.logical_block_bytes = bytes;
            assert_eq!(reason(&target), Some(SkipReason::Unsuitable), "{bytes}");
        }
    }

    #[test]
    fn errors_with_a_name_are_skips() {
        assert_eq!(named(Errno::EPERM), Some(SkipReason::Denied));
        assert_eq!(named(Errno::ENXIO), Some(SkipReason::Gone));
        assert_eq!(named(Errno::ENOMEDIUM), Some(SkipReason::Unsuitable));
        assert_eq!(named(Errno::EMFILE), Some(SkipReason::Exhausted));
        assert_eq!(named(Errno::EIO), None);
    }
}
