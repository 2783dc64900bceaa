//! Where the lab keeps what it fetched: outside the work tree, so that a clean clone starts fast.

use anyhow::{Context, Result, anyhow};
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Environment variable that overrides the place.
pub(super) const CACHE_VARIABLE: &str = "STORSCOPE_LAB_CACHE";

/// The cache directory, locked against another run that fills it.
pub(super) struct Cache {
    root: PathBuf,
    _lock: File,
}

impl Cache {
    /// Opens the cache, waiting for another run that is filling it.
    ///
    /// # Errors
    /// When no place for it is known or it cannot be written.
    pub(super) fn open() -> Result<Self> {
        let root = place()?;
        fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
        let path = root.join("lock");
        let lock = File::create(&path).with_context(|| path.display().to_string())?;
        lock.lock().with_context(|| path.display().to_string())?;
        Ok(Self { root, _lock: lock })
    }

    /// The directory.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A directory named `name`, built by `fill` on first use. A build that fails leaves nothing behind.
    ///
    /// # Errors
    /// Those of `fill`, and of moving the result to its place.
    pub(super) fn directory(&self, name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let done = self.root.join(name);
        if done.is_dir() {
            return Ok(done);
        }
        let partial = self.root.join(format!("{name}.partial"));
        if partial.exists() {
            fs::remove_dir_all(&partial).with_context(|| partial.display().to_string())?;
        }
        fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
        fill(&partial)?;
        fs::rename(&partial, &done).with_context(|| done.display().to_string())?;
        Ok(done)
    }
}

fn place() -> Result<PathBuf> {
    if let Some(path) = env::var_os(CACHE_VARIABLE) {
        return std::path::absolute(PathBuf::from(path)).context(CACHE_VARIABLE);
    }
    if let Some(path) = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()) {
        return Ok(path.join("storscope-lab"));
    }
    let home = env::var_os("HOME").ok_or_else(|| anyhow!("HOME is not set: set {CACHE_VARIABLE}"))?;
    Ok(PathBuf::from(home).join(".cache").join("storscope-lab"))
}
