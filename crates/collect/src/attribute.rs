//! Bounded reads of kernel files.

use nix::errno::Errno;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use storscope_drive::{DENIED_LISTING, as_captured, denied_at};
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
    match contents(path, limit) {
        Ok(bytes) if bytes.len() > limit => {
            Err(Fault::Parse { path: path.display().to_string(), line: 0, what: format!("longer than {limit} bytes") })
        }
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => fault(path, &error).map_or(Ok(None), Err),
    }
}

/// The content of `path`, one byte more than `limit` when it is longer than that.
///
/// # Errors
/// The kernel's own; of a captured host what was denied there is denied here.
pub fn contents(path: &Path, limit: usize) -> std::io::Result<Vec<u8>> {
    // A captured host may hold a FIFO where the kernel has a file: opening must not wait for a writer.
    let opened = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC).open(path);
    let file = opened.map_err(|error| as_captured(path, error))?;
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True when there is an attribute `path`, readable or not.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The names in a folder, in no order; one that is not UTF-8 is none of the kernel's. At most `most` and one more.
///
/// # Errors
/// The kernel's own, with the names up to there; of a captured host what was denied there is denied here.
pub fn names(folder: &Path, most: usize) -> (Vec<String>, Option<std::io::Error>) {
    let listing = match std::fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(error) => return (Vec::new(), Some(as_captured(folder, error))),
    };
    if let Some(errno) = denied_at(&folder.join(DENIED_LISTING)) {
        return (Vec::new(), Some(std::io::Error::from_raw_os_error(errno)));
    }
    let mut names = Vec::new();
    for entry in listing {
        match entry.map(|entry| entry.file_name().into_string()) {
            Ok(name) => names.extend(name.ok()),
            Err(error) => return (names, Some(error)),
        }
        if names.len() > most {
            break;
        }
    }
    (names, None)
}

/// The whole content of `path`, a file that any supported kernel has.
///
/// # Errors
/// As [`read_bytes`], and [`Fault::Io`] with ENOENT when there is no such file.
pub fn read_required(path: &Path, limit: usize) -> Result<Vec<u8>, Fault> {
    read_bytes(path, limit)?.ok_or_else(|| Fault::Io { path: path.display().to_string(), errno: nix::libc::ENOENT })
}

/// True when there is a folder `path`, or one that could not be looked at.
pub fn may_be_folder(path: &Path) -> bool {
    !matches!(require_folder(path), Err(Fault::Gone))
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
    let errno = match error.raw_os_error() {
        Some(nix::libc::ENOENT) => denied_at(path).unwrap_or(nix::libc::ENOENT),
        known => known.unwrap_or(nix::libc::EIO),
    };
    let path = path.display().to_string();
    match Errno::from_raw(errno) {
        Errno::ENOENT | Errno::ENOTDIR => None,
        Errno::EACCES | Errno::EPERM => Some(Fault::Denied { path, needs: "read permission".to_owned() }),
        Errno::ENODEV | Errno::ENXIO => Some(Fault::Gone),
        _ => Some(Fault::Io { path, errno }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_was_denied_on_a_captured_host_is_denied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serial");
        symlink("denied:EACCES", &path).unwrap();
        assert!(is_there(&path) && !is_there(&dir.path().join("absent")));
        assert!(matches!(read_text(&path), Err(Fault::Denied { path, .. }) if path.ends_with("serial")));
        assert!(matches!(require_folder(&path), Err(Fault::Denied { .. })));
        assert_eq!(names(&path, 10).1.unwrap().raw_os_error(), Some(nix::libc::EACCES));
        assert_eq!(names(dir.path(), 10).0, ["serial"]);
        symlink("denied:EPERM", dir.path().join(DENIED_LISTING)).unwrap();
        let (names, error) = names(dir.path(), 10);
        assert_eq!((names.len(), error.unwrap().raw_os_error()), (0, Some(nix::libc::EPERM)));
    }
}
