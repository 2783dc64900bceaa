//! Captured hosts that are not part of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder or file of the real data: below `$STORSCOPE_REALDATA`, else beside the checkout. `None`, and a line on
/// standard error, when it is not there.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/realdata");
    let folder = std::env::var_os("STORSCOPE_REALDATA").map_or_else(beside, PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: no {}", path.display());
    None
}

/// Unpacks the sysfs archive `name` into a new folder.
pub(crate) fn sysfs(name: &str) -> Option<tempfile::TempDir> {
    let archive = path(&format!("sysfs/{name}.tar.xz"))?;
    let folder = tempfile::tempdir().unwrap();
    let status =
        Command::new("tar").arg("-xJf").arg(archive).arg("--no-same-owner").arg("-C").arg(folder.path()).status();
    assert!(status.unwrap().success());
    Some(folder)
}
