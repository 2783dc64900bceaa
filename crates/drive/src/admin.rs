//! Sending an admin command: the channel, and the live one.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::{O_NOCTTY, O_NONBLOCK};

use crate::buffer::PageBuffer;
use crate::command::{AdminCommand, CommandId, GetLog, Identify};
use crate::error::CommandError;
use crate::ioctl;
use crate::status::Status;

/// How a command ended, for counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The controller answered with success.
    Done,
    /// The controller answered with an error.
    Status(Status),
    /// The kernel failed it.
    Errno(i32),
    /// The SCSI layer or a bridge failed it.
    Scsi(u8),
    /// A capture does not hold it: nothing was sent.
    NotServed,
}

impl Outcome {
    /// A word for a metric label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Status(_) => "status",
            Self::Errno(_) => "errno",
            Self::Scsi(_) => "scsi",
            Self::NotServed => "not_served",
        }
    }
}

/// One command that was sent: what asking cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandReport {
    /// What was asked.
    pub command: CommandId,
    /// From the system call to its return.
    pub took: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// Something that answers admin commands, one at a time.
pub trait AdminChannel {
    /// Sends one command and waits for its end. A live controller may take as long as the kernel's time-out.
    ///
    /// # Errors
    /// [`CommandError`], errno and status apart.
    fn submit(&mut self, command: &AdminCommand) -> Result<PageBuffer, CommandError>;

    /// The commands sent since the last call, in order.
    fn take_reports(&mut self) -> Vec<CommandReport>;

    /// Identify.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    fn identify(&mut self, identify: Identify) -> Result<PageBuffer, CommandError> {
        self.submit(&AdminCommand::Identify(identify))
    }

    /// Get Log Page.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    fn get_log(&mut self, get_log: GetLog) -> Result<PageBuffer, CommandError> {
        self.submit(&AdminCommand::GetLog(get_log))
    }
}

/// A live controller. Drop it after each poll: a descriptor that stays open forces a controller that was removed to
/// come back under another number.
#[derive(Debug)]
pub struct Controller {
    file: File,
    reports: Vec<CommandReport>,
}

impl Controller {
    /// Opens a controller's character device, read-only and close-on-exec.
    ///
    /// # Errors
    /// [`CommandError::Open`]: `EAGAIN` while the controller is not live.
    pub fn open(path: &Path) -> Result<Self, CommandError> {
        Ok(Self { file: open_device(path)?, reports: Vec::new() })
    }
}

impl AdminChannel for Controller {
    fn submit(&mut self, command: &AdminCommand) -> Result<PageBuffer, CommandError> {
        let mut buffer = PageBuffer::zeroed(command.length());
        let began = Instant::now();
        let returned = ioctl::nvme_admin(self.file.as_fd(), command, &mut buffer);
        let took = began.elapsed();
        let command = command.id();
        let (outcome, result) = match returned.map(Status::from_ioctl) {
            Ok(status) if status.is_success() => (Outcome::Done, Ok(buffer)),
            Ok(status) => (Outcome::Status(status), Err(CommandError::Status { command, status })),
            Err(errno) => {
                let errno = errno as i32;
                (Outcome::Errno(errno), Err(CommandError::Errno { command, errno }))
            }
        };
        self.reports.push(CommandReport { command, took, outcome });
        result
    }

    fn take_reports(&mut self) -> Vec<CommandReport> {
        std::mem::take(&mut self.reports)
    }
}

/// `O_NONBLOCK` so that a removable or absent medium, or a FIFO in the device's place, does not hold the caller.
pub(crate) fn open_device(path: &Path) -> Result<File, CommandError> {
    OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path).map_err(|error| CommandError::Open {
        path: path.to_owned(),
        errno: error.raw_os_error().unwrap_or(Errno::EIO as i32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FaultClass;

    #[test]
    fn an_absent_device_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let error = Controller::open(&folder.path().join("nvme0")).unwrap_err();
        assert_eq!(error.class(), FaultClass::Gone);
    }

    #[test]
    fn a_device_is_opened_read_only_and_close_on_exec() {
        use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
        let file = tempfile::NamedTempFile::new().unwrap();
        let device = open_device(file.path()).unwrap();
        let status = fcntl(&device, FcntlArg::F_GETFL).unwrap();
        assert_eq!(OFlag::from_bits_truncate(status) & OFlag::O_ACCMODE, OFlag::O_RDONLY);
        let descriptor = fcntl(&device, FcntlArg::F_GETFD).unwrap();
        assert!(FdFlag::from_bits_truncate(descriptor).contains(FdFlag::FD_CLOEXEC));
    }

    #[test]
    fn every_command_is_reported_also_those_that_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nvme0");
        std::fs::write(&path, b"").unwrap();
        let mut controller = Controller::open(&path).unwrap();
        let error = controller.identify(Identify::Controller).unwrap_err();
        assert_eq!(error.class(), FaultClass::Failed);
        let reports = controller.take_reports();
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0].command, CommandId::Identify(Identify::Controller));
        assert_eq!(reports[0].outcome, Outcome::Errno(Errno::ENOTTY as i32));
        assert!(controller.take_reports().is_empty());
    }
}
