//! Bounded reads of kernel files.

use nix::errno::Errno;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use storscope_model::fault::Fault;

/// Longest sysfs attribute that is read, in bytes: the kernel itself gives at most one page.
pub const MAX_ATTRIBUTE: usize = 64 << 10;
/// Longest procfs file that is read, in bytes.
pub const MAX_PROC_FILE: usize = 16 << 20;

/// The whole content of `path`; `None` when there is no such file.
///
/// # Errors
/// [`Fault::Denied`] without permission, [`Fault::Parse`] when it is longer than `limit`, [`Fault::Gone`] when the
/// device behind it went away, else [`Fault::Io`].
pub fn read_bytes(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, Fault> {
    let failed = |error: &std::io::Error| match fault(path, error) {
        None => Ok(None),
        Some(fault) => Err(fault),
    };
    // A captured host may hold a FIFO where the kernel has a file: opening must not wait for a writer.
    let opened = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => return failed(&error),
    };
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    if let Err(error) = file.take(most).read_to_end(&mut bytes) {
        return failed(&error);
    }
    if bytes.len() > limit {
        return Err(Fault::Parse {
            path: path.display().to_string(),
            line: 0,
            what: format!("longer than {limit} bytes"),
        });
    }
    Ok(Some(bytes))
}

/// The whole content of `path`, a file that any supported kernel has.
///
/// # Errors
/// As [`read_bytes`], and [`Fault::Io`] with ENOENT when there is no such file.
pub fn read_required(path: &Path, limit: usize) -> Result<Vec<u8>, Fault> {
    read_bytes(path, limit)?.ok_or_else(|| Fault::Io { path: path.display().to_string(), errno: nix::libc::ENOENT })
}

/// Makes sure that the sysfs folder of a device is there.
///
/// # Errors
/// [`Fault::Gone`] when it is not, else as [`read_bytes`].
pub fn require_folder(path: &Path) -> Result<(), Fault> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(Fault::Gone),
        Err(error) => Err(fault(path, &error).unwrap_or(Fault::Gone)),
    }
}

/// A sysfs attribute as text without its trailing newline and NULs; bytes that are not UTF-8 are replaced. `None` when
/// the kernel has no such attribute here.
///
/// # Errors
/// As [`read_bytes`].
pub fn read_text(path: &Path) -> Result<Option<String>, Fault> {
    let bytes = read_bytes(path, MAX_ATTRIBUTE)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\0']).to_owned()))
}

/// A sysfs attribute as an unsigned decimal number; `None` when absent or empty.
///
/// # Errors
/// As [`read_bytes`], and [`Fault::Parse`] when it is no such number.
pub fn read_u64(path: &Path) -> Result<Option<u64>, Fault> {
    let Some(text) = read_text(path)? else {
        return Ok(None);
    };
    let word = text.trim();
    if word.is_empty() {
        return Ok(None);
    }
    let bad = || Fault::parse(path.display().to_string(), 1, "not an unsigned number", text.as_bytes());
    word.parse().map(Some).map_err(|_| bad())
}

/// The fault that an I/O error on `path` stands for; `None` when it says that the file does not exist.
pub fn fault(path: &Path, error: &std::io::Error) -> Option<Fault> {
    let path = path.display().to_string();
    let errno = error.raw_os_error().unwrap_or(nix::libc::EIO);
    match Errno::from_raw(errno) {
        Errno::ENOENT | Errno::ENOTDIR => None,
        Errno::EACCES | Errno::EPERM => Some(Fault::Denied { path, needs: "read permission".to_owned() }),
        Errno::ENODEV | Errno::ENXIO => Some(Fault::Gone),
        _ => Some(Fault::Io { path, errno }),
    }
}
