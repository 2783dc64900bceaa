//! Captured pages in a directory, answered as a controller would.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use crate::admin::{AdminChannel, CommandReport, Outcome};
use crate::buffer::PageBuffer;
use crate::command::{AdminCommand, Identify};
use crate::denied::denied_at;
use crate::error::CommandError;

/// Largest captured page that is read: four times the largest that is ever asked for.
pub const MAX_CAPTURED_PAGE_BYTES: u64 = 64 * 1024;

/// A directory of captured pages: `identify.bin`, `identify-ns-N.bin`, `identify-uuid-list.bin`, `logpage-0xNN.bin`.
///
/// A file that is absent is [`CommandError::NotServed`]; a command that was denied on the host is denied here too
/// ([`denied_at`]). Symbolic links are not followed. Nothing is sent anywhere, so
/// reported durations are zero.
#[derive(Debug)]
pub struct Replay {
    folder: PathBuf,
    reports: Vec<CommandReport>,
}

impl Replay {
    /// Answers from the files of `folder`.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), reports: Vec::new() }
    }

    /// The file name that holds the answer to a command: also what a capture writes.
    #[must_use]
    pub fn file_name(command: &AdminCommand) -> String {
        match command {
            AdminCommand::Identify(Identify::Controller) => "identify.bin".to_owned(),
            AdminCommand::Identify(Identify::Namespace { nsid }) => format!("identify-ns-{nsid}.bin"),
            AdminCommand::Identify(Identify::UuidList) => "identify-uuid-list.bin".to_owned(),
            AdminCommand::GetLog(get_log) => format!("logpage-0x{:02x}.bin", get_log.page().id()),
        }
    }

    fn read(&self, command: &AdminCommand) -> Result<Vec<u8>, CommandError> {
        let path = self.folder.join(Self::file_name(command));
        if let Some(errno) = denied_at(&path) {
            return Err(CommandError::Errno { command: command.id(), errno });
        }
        let failed = |error: &io::Error| CommandError::Open {
            path: path.clone(),
            errno: error.raw_os_error().unwrap_or(Errno::EIO as i32),
        };
        let file = match OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CommandError::NotServed { command: command.id() });
            }
            Err(error) => return Err(failed(&error)),
        };
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        if !metadata.is_file() {
            return Err(CommandError::Open { path, errno: Errno::EINVAL as i32 });
        }
        let mut bytes = Vec::new();
        file.take(MAX_CAPTURED_PAGE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        if bytes.len() as u64 > MAX_CAPTURED_PAGE_BYTES {
            return Err(CommandError::TooLong { path, length: metadata.len(), most: MAX_CAPTURED_PAGE_BYTES });
        }
        Ok(bytes)
    }
}

impl AdminChannel for Replay {
    /// The captured bytes from the offset asked for, at most as many as asked for: a capture may hold fewer.
    fn submit(&mut self, command: &AdminCommand) -> Result<PageBuffer, CommandError> {
        let result = self.read(command).map(|bytes| {
            let offset = match command {
                AdminCommand::GetLog(get_log) => get_log.offset(),
                AdminCommand::Identify(_) => 0,
            };
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
            let end = start.saturating_add(command.length()).min(bytes.len());
            PageBuffer::copied(&bytes[start..end])
        });
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(CommandError::NotServed { .. }) => Outcome::NotServed,
            Err(CommandError::Open { errno, .. } | CommandError::Errno { errno, .. }) => Outcome::Errno(*errno),
            Err(_) => Outcome::Errno(Errno::EFBIG as i32),
        };
        self.reports.push(CommandReport { command: command.id(), took: Duration::ZERO, outcome });
        result
    }

    fn take_reports(&mut self) -> Vec<CommandReport> {
        std::mem::take(&mut self.reports)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::num::NonZeroU16;

    use super::*;
    use crate::command::{GetLog, LogPage};
    use crate::error::FaultClass;

    fn log(page: LogPage, dwords: u16) -> GetLog {
        GetLog::new(page, NonZeroU16::new(dwords).unwrap())
    }

    #[test]
    fn a_captured_page_is_served_and_an_absent_one_is_no_fault() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("logpage-0x02.bin"), [7; 512]).unwrap();
        let mut replay = Replay::new(folder.path());
        assert_eq!(replay.get_log(log(LogPage::SmartHealth, 128)).unwrap().as_bytes(), [7; 512]);
        let absent = replay.get_log(log(LogPage::OcpSmart, 128)).unwrap_err();
        assert_eq!(absent.class(), FaultClass::NotServed);
        assert_eq!(absent.to_string(), "Get Log Page OCP SMART Extended (C0h): not in the capture");
        let outcomes: Vec<_> = replay.take_reports().iter().map(|report| report.outcome).collect();
        assert_eq!(outcomes, [Outcome::Done, Outcome::NotServed]);
    }

    #[test]
    fn a_denied_command_is_denied_again() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("denied:EACCES", folder.path().join("logpage-0x02.bin")).unwrap();
        let mut replay = Replay::new(folder.path());
        let denied = replay.get_log(log(LogPage::SmartHealth, 128)).unwrap_err();
        assert_eq!(denied.class(), FaultClass::Denied(crate::Capability::SysAdmin));
        assert_eq!(replay.take_reports()[0].outcome, Outcome::Errno(Errno::EACCES as i32));
    }

    #[test]
    fn offsets_and_lengths_are_honoured_and_never_pass_the_end() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("logpage-0x01.bin"), (0..100).collect::<Vec<u8>>()).unwrap();
        let mut replay = Replay::new(folder.path());
        let mut part = |first, dwords| {
            replay.get_log(log(LogPage::ErrorInformation, dwords).starting_at(first)).unwrap().as_bytes().to_vec()
        };
        assert_eq!(part(1, 1), [4, 5, 6, 7]);
        assert_eq!(part(24, 16), [96, 97, 98, 99]);
        assert!(part(u32::MAX, 16).is_empty());
    }

    #[test]
    fn links_folders_and_oversized_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let outside = folder.path().join("outside");
        fs::write(&outside, [1; 512]).unwrap();
        let drive = folder.path().join("nvme0");
        fs::create_dir_all(drive.join("logpage-0x03.bin")).unwrap();
        std::os::unix::fs::symlink(&outside, drive.join("logpage-0x02.bin")).unwrap();
        fs::write(drive.join("identify.bin"), vec![1; 70_000]).unwrap();
        let mut replay = Replay::new(&drive);
        let link = replay.get_log(log(LogPage::SmartHealth, 128)).unwrap_err();
        assert!(matches!(link, CommandError::Open { errno, .. } if errno == Errno::ELOOP as i32));
        let directory = replay.get_log(log(LogPage::FirmwareSlots, 128)).unwrap_err();
        assert!(matches!(directory, CommandError::Open { errno, .. } if errno == Errno::EINVAL as i32));
        let long = replay.identify(Identify::Controller).unwrap_err();
        assert!(matches!(long, CommandError::TooLong { length: 70_000, .. }));
    }

    #[test]
    fn file_names_are_those_of_the_captures() {
        let name = |command: AdminCommand| Replay::file_name(&command);
        assert_eq!(name(AdminCommand::GetLog(log(LogPage::OcpSmart, 1))), "logpage-0xc0.bin");
        assert_eq!(name(AdminCommand::Identify(Identify::Namespace { nsid: 2 })), "identify-ns-2.bin");
        assert_eq!(name(AdminCommand::Identify(Identify::UuidList)), "identify-uuid-list.bin");
    }
}
