//! The unpacked Debian packages: the emulator and kernel on this side, every tool on the guest's.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Dynamic loader inside the sysroot: the one that belongs to its C library.
const LOADER: &str = "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
/// Where programs look for it (System V ABI, AMD64 supplement).
pub(super) const LOADER_AS_LINKED: &str = "lib64/ld-linux-x86-64.so.2";
/// Library directories inside the sysroot; the last two are those of what fio's engines and systemd need.
const LIBRARIES: [&str; 4] = [
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/ceph",
    "usr/lib/x86_64-linux-gnu/systemd",
];

/// A directory tree of unpacked packages.
pub(super) struct Sysroot {
    root: PathBuf,
    kernel_release: String,
}

impl Sysroot {
    /// Looks at an unpacked tree.
    ///
    /// # Errors
    /// When it holds no kernel modules.
    pub(super) fn new(root: &Path) -> Result<Self> {
        let modules = root.join("lib/modules");
        let entries = fs::read_dir(&modules).with_context(|| modules.display().to_string())?;
        let mut releases: Vec<String> = entries
            .filter_map(std::result::Result::ok)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        releases.sort();
        let [kernel_release] = <[String; 1]>::try_from(releases)
            .map_err(|found| anyhow::anyhow!("{}: expected one kernel, found {found:?}", modules.display()))?;
        Ok(Self { root: root.to_owned(), kernel_release })
    }

    /// The tree.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The kernel's release, as uname(1) says it.
    pub(super) fn kernel_release(&self) -> &str {
        &self.kernel_release
    }

    /// The kernel image.
    pub(super) fn kernel(&self) -> PathBuf {
        self.root.join("boot").join(format!("vmlinuz-{}", self.kernel_release))
    }

    /// Directory of the kernel's modules.
    pub(super) fn modules(&self) -> PathBuf {
        self.root.join("lib/modules").join(&self.kernel_release)
    }

    /// A program of the sysroot with the sysroot's own libraries.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn program(&self, path: &str) -> Result<Command> {
        self.program_as(path, path)
    }

    /// A program that acts by the name it is called by.
    ///
    /// # Errors
    /// When it is not there.
    pub(super) fn program_as(&self, path: &str, name: &str) -> Result<Command> {
        let program = self.root.join(path);
        if !program.is_file() {
            bail!("{}: not in the packages", program.display());
        }
        let mut command = self.with_loader(&["--argv0", name]);
        command.arg(program);
        Ok(command)
    }

    /// The dynamic loader.
    pub(super) fn loader(&self) -> PathBuf {
        self.root.join(LOADER)
    }

    /// A command of the loader with the sysroot's own libraries; a program's path is to follow.
    pub(super) fn with_loader(&self, options: &[&str]) -> Command {
        let libraries: Vec<String> =
            LIBRARIES.iter().map(|directory| self.root.join(directory).display().to_string()).collect();
        let mut command = Command::new(self.loader());
        command.arg("--library-path").arg(libraries.join(":")).args(options);
        command
    }
}
