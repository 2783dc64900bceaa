//! The guest's first file system: busybox, the modules that reach 9p and the network, and the start-up scripts. All
//! else is read from the sysroot over 9p, so that this stays small and boots fast.

use super::sysroot::Sysroot;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const INIT: &str = include_str!("../../../../tests/lab/guest/init.sh");
const START: &str = include_str!("../../../../tests/lab/guest/start.sh");
const STACKS: &str = include_str!("../../../../tests/lab/guest/stacks.sh");

/// Modules that the guest needs before it has its tools; what they depend on is added.
const MODULES: [&str; 3] = ["9p", "9pnet_virtio", "virtio_net"];
/// Mount points and folders that start-up expects.
const DIRECTORIES: [&str; 14] =
    ["bin", "modules", "lab", "sysroot", "host", "proc", "sys", "dev", "run", "tmp", "etc", "mnt", "root", "var"];

/// File type bits of cpio's mode field, as in stat(2).
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// Builds the archive at `path`.
///
/// # Errors
/// When a module or busybox is missing, or the archive cannot be written.
pub(super) fn build(sysroot: &Sysroot, path: &Path) -> Result<()> {
    let mut archive = Archive::default();
    for directory in DIRECTORIES {
        archive.add(directory, DIRECTORY | 0o755, &[]);
    }
    let busybox = sysroot.root().join("bin/busybox");
    archive.add("bin/busybox", REGULAR | 0o755, &fs::read(&busybox).with_context(|| busybox.display().to_string())?);
    let mut order = String::new();
    for module in loading_order(sysroot)? {
        let name = module.rsplit('/').next().unwrap_or(&module).trim_end_matches(".xz").to_owned();
        let packed = sysroot.modules().join(&module);
        archive.add(&format!("modules/{name}"), REGULAR | 0o644, &unpack(&busybox, &packed)?);
        order.push_str(&name);
        order.push('\n');
    }
    archive.add("modules/order", REGULAR | 0o644, order.as_bytes());
    archive.add("init", REGULAR | 0o755, INIT.as_bytes());
    archive.add("lab/start.sh", REGULAR | 0o644, START.as_bytes());
    archive.add("lab/stacks.sh", REGULAR | 0o644, STACKS.as_bytes());
    fs::write(path, archive.finish()).with_context(|| path.display().to_string())
}

/// Paths of the modules under the kernel's module directory, each after what it depends on.
fn loading_order(sysroot: &Sysroot) -> Result<Vec<String>> {
    let path = sysroot.modules().join("modules.dep");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut order: Vec<String> = Vec::new();
    for name in MODULES {
        let file = format!("/{name}.ko.xz");
        let line = text.lines().find_map(|line| line.split_once(':').filter(|(module, _)| module.ends_with(&file)));
        let Some((module, needed)) = line else { bail!("{}: no module {name}", path.display()) };
        // modules.dep(5) lists what a module needs nearest first.
        for module in needed.split_whitespace().rev().chain([module]) {
            if !order.iter().any(|known| known == module) {
                order.push(module.to_owned());
            }
        }
    }
    Ok(order)
}

fn unpack(busybox: &Path, packed: &Path) -> Result<Vec<u8>> {
    let output = Command::new(busybox).args(["unxz", "-c"]).arg(packed).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{}: {}", packed.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// A cpio archive in the "new ASCII" format that the kernel reads (Documentation/driver-api/early-userspace/buffer-format.rst).
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let fields = [
            self.entries,
            mode,
            0,
            0,
            links,
            0,
            u32::try_from(content.len()).unwrap_or(u32::MAX),
            0,
            0,
            0,
            0,
            u32::try_from(name.len() + 1).unwrap_or(u32::MAX),
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    /// Pads to the format's four bytes.
    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_aligned_and_ends_with_its_trailer() {
        let mut archive = Archive::default();
        archive.add("a", REGULAR | 0o644, b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&bytes[..6], b"070701");
        // 110 bytes of header, the name and its NUL, then the content.
        assert_eq!(&bytes[112..117], b"hello");
        assert_eq!(&bytes[54..62], b"00000005");
        assert_eq!(&bytes[120 + 110..120 + 120], b"TRAILER!!!");
    }
}
