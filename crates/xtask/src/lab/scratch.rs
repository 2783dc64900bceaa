//! A folder for images and sockets that goes with its owner. It lies in the system's temporary directory: a socket's
//! path may have 107 bytes only.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

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
        let path = env::temp_dir().join(format!("storscope-lab-{}-{number}", process::id()));
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on its being gone.
        let _ = fs::remove_dir_all(&self.0);
    }
}
