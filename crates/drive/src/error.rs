//! What can go wrong between a question and a decoded answer, with errno and NVMe status kept apart.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::command::CommandId;
use crate::status::Status;

/// SCSI sense key with which a device that is not ATA refuses ATA PASS-THROUGH.
const ILLEGAL_REQUEST: u8 = 5;

/// A page came back, but it does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// Fewer bytes than the page has.
    #[error("{page}: {length} bytes, at least {least} needed")]
    Short {
        /// The page's name.
        page: &'static str,
        /// Bytes that came.
        length: usize,
        /// Bytes needed.
        least: usize,
    },
    /// The bytes cannot be a true answer.
    #[error("{page}: not plausible: {reason}")]
    Implausible {
        /// The page's name.
        page: &'static str,
        /// Why.
        reason: Implausible,
    },
    /// The controller serves the page and says nothing in it, as those that only imitate a drive do (nvmet).
    #[error("{page}: the controller fills it with zeros")]
    Blank {
        /// The page's name.
        page: &'static str,
    },
    /// A vendor page whose GUID is not that of the format asked for: normal on many drives.
    #[error("{page}: the vendor's own page, not OCP's (GUID {guid:032x})")]
    Foreign {
        /// The page's name.
        page: &'static str,
        /// The 16 GUID bytes in the order stored, as one number for printing.
        guid: u128,
    },
}

/// Why a page is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Implausible {
    /// Every byte is 00h.
    #[error("every byte is 00h")]
    AllZero,
    /// Every byte is FFh: what a device that fell off the bus reads as.
    #[error("every byte is FFh")]
    AllOnes,
    /// Fields contradict what the standard allows, too many at once to be one vendor's habit.
    #[error("{0}")]
    Fields(&'static str),
}

/// A command failed, or its answer could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The device file, or a captured file, could not be opened or read.
    #[error("{}: {}", path.display(), io::Error::from_raw_os_error(*errno))]
    Open {
        /// What was opened.
        path: PathBuf,
        /// Error number.
        errno: i32,
    },
    /// The kernel refused or failed the command.
    #[error("{command}: {}", io::Error::from_raw_os_error(*errno))]
    Errno {
        /// What was asked.
        command: CommandId,
        /// Error number.
        errno: i32,
    },
    /// The controller answered with an error.
    #[error("{command}: {status}")]
    Status {
        /// What was asked.
        command: CommandId,
        /// Its answer.
        status: Status,
    },
    /// The SCSI layer or a bridge failed the command.
    #[error("{command}: SCSI status {scsi:02x}h, host {host:04x}h, driver {driver:04x}h")]
    Scsi {
        /// What was asked.
        command: CommandId,
        /// SCSI status byte.
        scsi: u8,
        /// Host adapter status.
        host: u16,
        /// Driver status.
        driver: u16,
        /// Sense key, where the device gave one; 5 is "illegal request".
        sense_key: Option<u8>,
    },
    /// A captured host does not hold this answer. Not a fault of the drive.
    #[error("{command}: not in the capture")]
    NotServed {
        /// What was asked.
        command: CommandId,
    },
    /// A captured file is larger than any page.
    #[error("{}: {length} bytes, at most {most} expected", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        length: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The answer could not be used.
    #[error(transparent)]
    Page(#[from] PageError),
}

/// What an operator must grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// The device file itself may not be opened: its group, or its mode.
    DeviceFile,
    /// `CAP_SYS_ADMIN`: NVMe admin pass-through.
    SysAdmin,
    /// `CAP_SYS_RAWIO`: ATA PASS-THROUGH.
    SysRawio,
}

impl Capability {
    /// For a message.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DeviceFile => "read access to the device file",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysRawio => "CAP_SYS_RAWIO",
        }
    }
}

/// What a failure means to whoever has to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultClass {
    /// The controller is resetting, connecting or dead: ask later.
    NotLive,
    /// The kernel denies it until this is granted.
    Denied(Capability),
    /// The device is not there any more.
    Gone,
    /// The drive does not offer this: do not ask again with this firmware.
    Unsupported,
    /// A capture does not hold it.
    NotServed,
    /// The answer is damaged: unavailable, with the reason.
    BadData,
    /// It failed this time.
    Failed,
}

impl FaultClass {
    /// A word for a metric label.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::NotLive => "not_live",
            Self::Denied(_) => "denied",
            Self::Gone => "gone",
            Self::Unsupported => "unsupported",
            Self::NotServed => "not_served",
            Self::BadData => "bad_data",
            Self::Failed => "failed",
        }
    }
}

impl CommandError {
    /// What the failure means.
    #[must_use]
    pub fn class(&self) -> FaultClass {
        match self {
            Self::Open { errno, .. } => class_of_errno(*errno, Capability::DeviceFile),
            Self::Errno { command, errno } => {
                let needed = match command {
                    CommandId::CheckPowerMode => Capability::SysRawio,
                    CommandId::Identify(_) | CommandId::GetLog(_) => Capability::SysAdmin,
                };
                class_of_errno(*errno, needed)
            }
            Self::Status { status, .. } if status.is_refusal() => FaultClass::Unsupported,
            // Set by the host when a reset or a removal took the command away.
            Self::Status { status, .. } if matches!(status.code(), 0x370 | 0x371) => FaultClass::NotLive,
            Self::Scsi { host: 0, sense_key: Some(ILLEGAL_REQUEST), .. } => FaultClass::Unsupported,
            Self::Status { .. } | Self::Scsi { .. } => FaultClass::Failed,
            Self::NotServed { .. } => FaultClass::NotServed,
            Self::Page(PageError::Foreign { .. } | PageError::Blank { .. }) => FaultClass::Unsupported,
            Self::TooLong { .. } | Self::Page(_) => FaultClass::BadData,
        }
    }

    /// The controller's own answer, if that is what failed.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

fn class_of_errno(errno: i32, needed: Capability) -> FaultClass {
    match Errno::from_raw(errno) {
        Errno::EAGAIN => FaultClass::NotLive,
        Errno::EACCES | Errno::EPERM => FaultClass::Denied(needed),
        Errno::ENODEV | Errno::ENXIO | Errno::ENOENT => FaultClass::Gone,
        _ => FaultClass::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::LogPage;

    fn errno(errno: Errno) -> CommandError {
        CommandError::Errno { command: CommandId::GetLog(LogPage::SmartHealth), errno: errno as i32 }
    }

    #[test]
    fn errors_are_classified_by_what_to_do() {
        assert_eq!(errno(Errno::EWOULDBLOCK).class(), FaultClass::NotLive);
        assert_eq!(errno(Errno::EACCES).class(), FaultClass::Denied(Capability::SysAdmin));
        assert_eq!(errno(Errno::ENODEV).class(), FaultClass::Gone);
        assert_eq!(errno(Errno::EIO).class(), FaultClass::Failed);
        let ata = CommandError::Errno { command: CommandId::CheckPowerMode, errno: Errno::EPERM as i32 };
        assert_eq!(ata.class(), FaultClass::Denied(Capability::SysRawio));
        let open = CommandError::Open { path: PathBuf::from("x"), errno: Errno::EACCES as i32 };
        assert_eq!(open.class(), FaultClass::Denied(Capability::DeviceFile));
    }

    #[test]
    fn statuses_are_classified_apart_from_errnos() {
        let answer = |code| CommandError::Status {
            command: CommandId::GetLog(LogPage::OcpSmart),
            status: Status::from_ioctl(code),
        };
        assert_eq!(answer(0x2109).class(), FaultClass::Unsupported);
        assert_eq!(answer(0x006).class(), FaultClass::Failed);
        assert_eq!(answer(0x371).class(), FaultClass::NotLive);
        assert_eq!(answer(0x2109).to_string(), "Get Log Page OCP SMART Extended (C0h): invalid log page (109h)");
    }

    #[test]
    fn a_device_that_is_not_ata_does_not_support_the_question() {
        let refused = |host, sense_key| CommandError::Scsi {
            command: CommandId::CheckPowerMode,
            scsi: 2,
            host,
            driver: 8,
            sense_key,
        };
        assert_eq!(refused(0, Some(5)).class(), FaultClass::Unsupported);
        // NOT READY passes (FIELD-CASES F7), a failing host adapter says nothing about the device.
        assert_eq!(refused(0, Some(2)).class(), FaultClass::Failed);
        assert_eq!(refused(1, Some(5)).class(), FaultClass::Failed);
        assert_eq!(refused(0, None).class(), FaultClass::Failed);
    }

    #[test]
    fn page_errors_name_page_and_length() {
        let short = PageError::Short { page: LogPage::SmartHealth.name(), length: 12, least: 512 };
        assert_eq!(short.to_string(), "SMART / Health (02h): 12 bytes, at least 512 needed");
        assert_eq!(CommandError::from(short).class(), FaultClass::BadData);
    }
}
