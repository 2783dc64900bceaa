//! What a capture holds in the place of what the kernel denied: a symbolic link to `denied:EACCES` or `denied:EPERM`,
//! which leads nowhere. In the place of a file it stands for reading it, in that of a device node for opening it, in
//! that of a page for the command, in that of a folder for everything below it. A folder that could be entered and not
//! listed holds one named [`DENIED_LISTING`].
//!
//! A link, because it survives what copies a captured tree of links, and because no content of a file looks like one.

use std::io;
use std::path::Path;

use nix::errno::Errno;

/// The name that stands for the list of a folder's names.
pub const DENIED_LISTING: &str = ".denied";

const TARGETS: [(Errno, &str); 2] = [(Errno::EACCES, "denied:EACCES"), (Errno::EPERM, "denied:EPERM")];

/// The target that stands for `errno`; `None` for one that is no denial.
#[must_use]
pub fn denied_target(errno: i32) -> Option<&'static str> {
    TARGETS.iter().find(|(known, _)| *known as i32 == errno).map(|(_, target)| *target)
}

/// The errno(3) value that a link to `target` stands for.
#[must_use]
pub fn denied_by(target: &Path) -> Option<i32> {
    TARGETS.iter().find(|(_, known)| target == Path::new(known)).map(|(errno, _)| *errno as i32)
}

/// The errno(3) value with which `path`, or a folder above it, was denied on the host that was captured.
#[must_use]
pub fn denied_at(path: &Path) -> Option<i32> {
    for path in path.ancestors() {
        match std::fs::read_link(path) {
            Ok(target) => return denied_by(&target),
            // Below a link that leads nowhere nothing exists either.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    None
}

/// The error of an access to `path` that failed with `error`, as it was on the host that was captured.
#[must_use]
pub fn as_captured(path: &Path, error: io::Error) -> io::Error {
    // A link that leads nowhere is ENOENT to who follows it and ELOOP to who does not.
    let leads_nowhere = matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::ENOENT | Errno::ELOOP));
    match denied_at(path).filter(|_| leads_nowhere) {
        Some(errno) => io::Error::from_raw_os_error(errno),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_denial_is_told_as_the_kernel_told_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serial");
        for errno in [Errno::EACCES, Errno::EPERM] {
            symlink(denied_target(errno as i32).unwrap(), &path).unwrap();
            assert_eq!(denied_at(&path), Some(errno as i32));
            let error = as_captured(&path, File::open(&path).unwrap_err());
            assert_eq!(error.raw_os_error(), Some(errno as i32));
            let below = path.join("a/b");
            let error = as_captured(&below, File::open(&below).unwrap_err());
            assert_eq!(error.raw_os_error(), Some(errno as i32));
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn nothing_else_is_a_denial() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serial");
        let errno = |path: &Path| as_captured(path, File::open(path).unwrap_err()).raw_os_error();
        assert_eq!(errno(&path), Some(Errno::ENOENT as i32));
        for target in ["gone", "denied:ENOENT", "x/denied:EPERM", "denied:"] {
            symlink(target, &path).unwrap();
            assert_eq!((denied_at(&path), errno(&path)), (None, Some(Errno::ENOENT as i32)), "{target}");
            std::fs::remove_file(&path).unwrap();
        }
        assert_eq!(denied_target(Errno::ENOENT as i32), None);
    }
}
