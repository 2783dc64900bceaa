//! What a failed drive command means for its source.

use nix::errno::Errno;
use std::path::Path;
use storscope_drive::{CommandError, FaultClass, QueryError};
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;

/// The outcome of a page that did not come; `node` is the device node or captured folder that was asked.
pub(crate) fn not_answered(error: &QueryError, node: &Path) -> Outcome {
    match error {
        QueryError::NotAsked { why, .. } => Outcome::Unsupported(why.to_string()),
        QueryError::Command(error) => failed(error, node),
    }
}

/// The outcome of a command that failed.
pub(crate) fn failed(error: &CommandError, node: &Path) -> Outcome {
    match error.class() {
        FaultClass::NotLive => Outcome::Withheld("the controller takes no commands now".to_owned()),
        FaultClass::Unsupported => Outcome::Unsupported(error.to_string()),
        FaultClass::NotServed => Outcome::Unsupported("not in the capture".to_owned()),
        FaultClass::Denied(_) | FaultClass::Gone | FaultClass::BadData | FaultClass::Failed => {
            Outcome::Failed(fault(error, node))
        }
    }
}

/// The fault that a failed command stands for, errno and status apart.
pub(crate) fn fault(error: &CommandError, node: &Path) -> Fault {
    let path = || node.display().to_string();
    match error.class() {
        FaultClass::Denied(capability) => return Fault::Denied { path: path(), needs: capability.name().to_owned() },
        FaultClass::Gone => return Fault::Gone,
        _ => {}
    }
    match error {
        CommandError::Open { path, errno } => Fault::Io { path: path.display().to_string(), errno: *errno },
        CommandError::Errno { errno, .. } => Fault::Io { path: path(), errno: *errno },
        CommandError::Status { command, status } => {
            Fault::Status { command: command.label().to_owned(), status: status.code() }
        }
        CommandError::Scsi { .. } => Fault::Io { path: path(), errno: Errno::EIO as i32 },
        CommandError::NotServed { .. } | CommandError::TooLong { .. } | CommandError::Page(_) => {
            Fault::Parse { path: path(), line: 0, what: error.to_string() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storscope_drive::{CommandId, LogPage, PageError, Status, WhyNot};

    const SMART: CommandId = CommandId::GetLog(LogPage::SmartHealth);

    fn errno(errno: Errno) -> Outcome {
        failed(&CommandError::Errno { command: SMART, errno: errno as i32 }, Path::new("nvme0"))
    }

    fn open(errno: Errno) -> Outcome {
        failed(&CommandError::Open { path: "nvme0".into(), errno: errno as i32 }, Path::new("nvme0"))
    }

    fn status(value: u16) -> Outcome {
        failed(&CommandError::Status { command: SMART, status: Status::from_ioctl(value) }, Path::new("nvme0"))
    }

    #[test]
    fn denial_names_what_would_allow_it() {
        let denied = |needs: &str| Outcome::Failed(Fault::Denied { path: "nvme0".to_owned(), needs: needs.to_owned() });
        assert_eq!(errno(Errno::EACCES), denied("CAP_SYS_ADMIN"));
        assert_eq!(open(Errno::EACCES), denied("read access to the device file"));
    }

    #[test]
    fn errno_and_status_stay_apart() {
        assert_eq!(errno(Errno::EIO), Outcome::Failed(Fault::Io { path: "nvme0".to_owned(), errno: 5 }));
        let internal = Fault::Status { command: SMART.label().to_owned(), status: 6 };
        assert_eq!(status(0x2006), Outcome::Failed(internal));
        assert_eq!(errno(Errno::ENODEV), Outcome::Failed(Fault::Gone));
    }

    #[test]
    fn a_resetting_controller_is_no_failure() {
        assert!(matches!(open(Errno::EAGAIN), Outcome::Withheld(_)));
        assert!(matches!(status(0x371), Outcome::Withheld(_)));
    }

    #[test]
    fn refusals_say_why() {
        assert!(matches!(status(0x2109), Outcome::Unsupported(why) if why.contains("109h")));
        let query = QueryError::NotAsked { page: LogPage::SelfTest, why: WhyNot::SelfTestUnsupported };
        assert!(matches!(not_answered(&query, Path::new("nvme0")), Outcome::Unsupported(why) if why.contains("OACS")));
    }

    #[test]
    fn damaged_pages_are_named() {
        let error = CommandError::Page(PageError::Short { page: LogPage::SmartHealth.name(), length: 3, least: 512 });
        let Outcome::Failed(Fault::Parse { path, what, .. }) = failed(&error, Path::new("nvme7")) else {
            panic!("not a parse fault");
        };
        assert_eq!(path, "nvme7");
        assert!(what.contains("SMART / Health (02h): 3 bytes"), "{what}");
    }
}
