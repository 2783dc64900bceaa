//! A folder for images and sockets that goes with its owner. It lies in the system's temporary directory: a socket's
//! path may have 107 bytes only.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// Start of the folders' names; the owner's process id and a number follow.
const PREFIX: &str = "storscope-lab-";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The folder.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes it.
    ///
    /// # Errors
    /// With the path, when it cannot.
    pub(super) fn new() -> Result<Self> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            sweep(&env::temp_dir());
        }
        let path = env::temp_dir().join(format!("{PREFIX}{}-{number}", process::id()));
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

/// Removes the folders of owners that were killed.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        let there = |owner: u32| Path::new("/proc").join(owner.to_string()).exists();
        if owner.is_some_and(|owner| !there(owner)) {
            // Another run may be sweeping as well.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on its being gone.
        let _ = fs::remove_dir_all(&self.0);
    }
}
