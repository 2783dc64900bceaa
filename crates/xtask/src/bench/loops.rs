//! Loop devices by losetup(8), taken down when dropped.

use anyhow::{Context, bail};
use nix::unistd::Uid;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, process};
use storscope_collect::root::Root;

/// Takes away the loop devices whose numbers it is given: losetup(8) detaches them, but leaves the empty devices.
const REMOVE: &str = "
import fcntl, sys
LOOP_CTL_REMOVE = 0x4C81
with open(sys.argv[1]) as control:
    for number in sys.argv[2:]:
        try:
            fcntl.ioctl(control, LOOP_CTL_REMOVE, int(number))
        except OSError:
            pass  # taken by somebody else meanwhile
";

/// Content of a device: reads of zeros are kept apart by the probes, so that a device must not hold any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Written all over.
    Written,
    /// A hole.
    Sparse,
}

/// Attached loop devices, and the folder with their files.
pub(super) struct Loops {
    root: Root,
    folder: PathBuf,
    names: Vec<String>,
    known: BTreeSet<String>,
}

/// Why there can be no loop devices here; `None` when there can.
pub(super) fn missing() -> Option<String> {
    let root = Root::live();
    if !Uid::effective().is_root() {
        return Some("loop devices need root".to_owned());
    }
    let control = root.node("loop-control");
    if !control.exists() {
        return Some(format!("{} is missing", control.display()));
    }
    lacks("losetup", "--version")
}

/// Why `program` cannot be used; `None` when it can.
pub(super) fn lacks(program: &str, version: &str) -> Option<String> {
    let status = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_err().then(|| format!("{program} is missing"))
}

impl Loops {
    /// `count` devices of `bytes` each over files in memory.
    ///
    /// # Errors
    /// What the files or losetup(8) object to; those already attached are detached.
    pub(super) fn in_memory(count: usize, bytes: usize, content: Content) -> anyhow::Result<Self> {
        let root = Root::live();
        let shared_memory = root.node("shm");
        Self::over(root, &shared_memory, count, bytes, content)
    }

    /// One device of `bytes` over a file in the temporary directory.
    ///
    /// # Errors
    /// As [`Loops::in_memory`].
    pub(super) fn on_disk(bytes: usize) -> anyhow::Result<Self> {
        Self::over(Root::live(), &env::temp_dir(), 1, bytes, Content::Written)
    }

    fn over(root: Root, parent: &Path, count: usize, bytes: usize, content: Content) -> anyhow::Result<Self> {
        let folder = parent.join(format!("storscope-bench-{}", process::id()));
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let known = present(&root);
        let mut loops = Self { root, folder, names: Vec::with_capacity(count), known };
        for number in 0..count {
            let file = loops.folder.join(number.to_string());
            match content {
                Content::Written => fs::write(&file, vec![0xA5_u8; bytes])?,
                Content::Sparse => fs::File::create(&file)?.set_len(u64::try_from(bytes)?)?,
            }
            let name = loops.attach(&file)?;
            let counts = loops.root.block(&name).join("queue/iostats");
            loops.names.push(name);
            // Settings outlive what is attached: without it the kernel counts nothing.
            fs::write(&counts, "1").with_context(|| counts.display().to_string())?;
        }
        Ok(loops)
    }

    fn attach(&self, file: &Path) -> anyhow::Result<String> {
        let done = Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(file).output()?;
        if !done.status.success() {
            bail!("losetup: {}", String::from_utf8_lossy(&done.stderr).trim());
        }
        let node = String::from_utf8(done.stdout)?;
        let name = Path::new(node.trim()).file_name().and_then(|name| name.to_str());
        Ok(name.with_context(|| format!("losetup printed {node}"))?.to_owned())
    }

    /// Device nodes.
    pub(super) fn nodes(&self) -> Vec<PathBuf> {
        self.names.iter().map(|name| self.root.node(name)).collect()
    }

    /// The kernel's statistics of the first device.
    pub(super) fn first_stat(&self) -> Option<PathBuf> {
        self.names.first().map(|name| self.root.block(name).join("stat"))
    }

    /// The folder with their files, for what else a run needs; it goes with the devices.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A regular expression for just these devices, short enough for the agent with a thousand of them.
    pub(super) fn pattern(&self) -> String {
        pattern(&self.names)
    }
}

/// Names that differ in their last character only become one alternative.
fn pattern(names: &[String]) -> String {
    let mut groups: BTreeMap<&str, String> = BTreeMap::new();
    for name in names {
        if let Some((at, last)) = name.char_indices().next_back() {
            groups.entry(name.get(..at).unwrap_or_default()).or_default().push(last);
        }
    }
    let groups: Vec<String> = groups.iter().map(|(start, last)| format!("{start}[{last}]")).collect();
    format!("^({})$", groups.join("|"))
}

impl Drop for Loops {
    fn drop(&mut self) {
        // One by one: a device that cannot be detached must not keep the others.
        for node in self.nodes() {
            let _ = Command::new("losetup").arg("-d").arg(node).status();
        }
        let made = self.names.iter().filter(|name| !self.known.contains(*name));
        let numbers: Vec<&str> = made.filter_map(|name| name.strip_prefix("loop")).collect();
        if !numbers.is_empty() {
            // Without Python the empty devices stay, which does no harm.
            let control = self.root.node("loop-control");
            let _ = Command::new("python3").args(["-c", REMOVE]).arg(control).args(numbers).status();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn present(root: &Root) -> BTreeSet<String> {
    let entries = fs::read_dir(root.sys("block")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_ten_share_an_alternative() {
        let names = ["loop1", "loop9", "loop10", "loop11"].map(str::to_owned);
        assert_eq!(pattern(&names), "^(loop[19]|loop1[01])$");
    }

    #[test]
    fn a_thousand_devices_fit_into_what_the_agent_takes() {
        let names: Vec<String> = (5000..6000).map(|number| format!("loop{number}")).collect();
        assert!(pattern(&names).len() <= 4096, "{}", pattern(&names).len());
    }
}
