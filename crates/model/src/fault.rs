//! Why a read gave no value.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest piece of foreign input that a fault quotes, in bytes.
pub const MAX_QUOTE: usize = 80;

/// Why a read gave no value. Errno and NVMe status are kept apart: a refused command is not a failed system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// A system call on `path` failed with `errno`.
    Io {
        /// File or device node.
        path: String,
        /// errno(3) value.
        errno: i32,
    },
    /// The content of `path` was not what its format allows.
    Parse {
        /// File, device node or log page.
        path: String,
        /// One-based line; 0 where the input has no lines.
        line: u32,
        /// What was wrong, with a bounded and escaped quotation.
        what: String,
    },
    /// The drive completed a command with an error status.
    Status {
        /// Command name, as in `storscope_drive_commands_total{command}`.
        command: String,
        /// NVMe status: SC in bits 7:0, SCT in bits 10:8 (NVMe base specification, completion queue entry).
        status: u16,
    },
    /// The kernel refused access; `needs` names the capability or permission that is missing.
    Denied {
        /// File or device node.
        path: String,
        /// What would allow it, for example `CAP_SYS_ADMIN`.
        needs: String,
    },
    /// The device or file went away.
    Gone,
}

impl Fault {
    /// The class of the fault, as in the label `reason` of `storscope_source_failures_total`.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::Parse { .. } => "parse",
            Self::Status { .. } => "status",
            Self::Denied { .. } => "denied",
            Self::Gone => "gone",
        }
    }

    /// A parse fault whose quotation of foreign input is escaped and cut to [`MAX_QUOTE`] bytes.
    pub fn parse(path: impl Into<String>, line: u32, what: &str, quoted: &[u8]) -> Self {
        Self::Parse { path: path.into(), line, what: format!("{what}: {}", quote(quoted)) }
    }
}

/// Foreign bytes made printable: escaped, and cut to [`MAX_QUOTE`] input bytes.
pub fn quote(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(MAX_QUOTE)];
    let mut text = format!("\"{}\"", cut.escape_ascii());
    if cut.len() < bytes.len() {
        text.push('…');
    }
    text
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, errno } => {
                write!(f, "{path}: {}", std::io::Error::from_raw_os_error(*errno))
            }
            Self::Parse { path, line: 0, what } => write!(f, "{path}: {what}"),
            Self::Parse { path, line, what } => write!(f, "{path}:{line}: {what}"),
            Self::Status { command, status } => {
                write!(f, "{command}: the drive answered status {status:03x}h")
            }
            Self::Denied { path, needs } => write!(f, "{path}: permission denied; needs {needs}"),
            Self::Gone => f.write_str("device is gone"),
        }
    }
}

impl std::error::Error for Fault {}
