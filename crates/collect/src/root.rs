//! Where the host's files are: the only place that names `/proc`, `/sys` and `/dev`.

use std::path::{Component, Path, PathBuf};
use storscope_drive::{denied_at, denied_by};

/// Symbolic links that resolving one path may pass.
const MAX_LINKS: usize = 40;

/// The host that is looked at: this one, one mounted under a prefix, or a captured one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// procfs.
    pub proc: PathBuf,
    /// sysfs.
    pub sys: PathBuf,
    /// Device nodes.
    pub dev: PathBuf,
    /// `drives/<controller>/identify.bin` and `logpage-0xNN.bin` of a captured host, which lie beside the other three.
    pub drives: Option<PathBuf>,
    /// False for a captured host: no ioctl, no probe, no uevent.
    pub live: bool,
}

impl Root {
    /// This host.
    pub fn live() -> Self {
        Self::host(Path::new("/"))
    }

    /// A live host whose `/proc`, `/sys` and `/dev` are seen under `prefix`, as in a container.
    pub fn host(prefix: &Path) -> Self {
        Self { proc: prefix.join("proc"), sys: prefix.join("sys"), dev: prefix.join("dev"), drives: None, live: true }
    }

    /// A captured host in `dir`.
    pub fn captured(dir: &Path) -> Self {
        Self { drives: Some(dir.join("drives")), live: false, ..Self::host(dir) }
    }

    /// A path below procfs.
    pub fn proc(&self, path: &str) -> PathBuf {
        self.proc.join(path)
    }

    /// A path below sysfs.
    pub fn sys(&self, path: &str) -> PathBuf {
        self.sys.join(path)
    }

    /// The node of the block device with the kernel name `name` (`cciss/c0d0` lies in a folder).
    pub fn node(&self, name: &str) -> PathBuf {
        self.dev.join(name)
    }

    /// Of a captured host, what stands for ATA CHECK POWER MODE to the disk `name`, if that was denied.
    pub fn ata_power_mode(&self, name: &str) -> Option<PathBuf> {
        let drives = self.drives.as_ref()?;
        Some(drives.with_file_name("ata").join(name.replace('/', "!")).join("check-power-mode"))
    }

    /// The name below `/dev` of a device node as files of the host name it: `sda1` for `/dev/sda1`.
    pub fn node_name(path: &str) -> Option<&str> {
        path.strip_prefix("/dev/").filter(|name| !name.is_empty())
    }

    /// The sysfs folder of a block device: `class/block/NAME`. A captured host may lack that folder: there it is the
    /// one in `block`, below an NVMe controller or subsystem, or below the disk of a partition, with links resolved
    /// inside the root. A slash in the kernel name is an exclamation mark in sysfs.
    pub fn block(&self, name: &str) -> PathBuf {
        let name = name.replace('/', "!");
        let class = self.sys.join("class/block").join(&name);
        if self.live || denied_at(&class).is_some() {
            return class;
        }
        self.captured_block(&name).unwrap_or(class)
    }

    fn captured_block(&self, name: &str) -> Option<PathBuf> {
        let folder = |path: PathBuf| self.resolve(&path).filter(|folder| folder.is_dir());
        if let Some(found) = ["block", "class/block"].iter().find_map(|class| folder(self.sys(class).join(name))) {
            return Some(found);
        }
        let below = |parents: &str| {
            let parents = std::fs::read_dir(self.sys(parents)).ok()?;
            parents.flatten().find_map(|parent| folder(parent.path().join(name)))
        };
        ["class/nvme", "class/nvme-subsystem", "block"].into_iter().find_map(below).or_else(|| {
            let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let disk = digits.strip_suffix('p').filter(|_| digits.len() < name.len())?;
            folder(self.captured_block(disk)?.join(name))
        })
    }

    /// `path` below sysfs with every symbolic link resolved inside this root, as the kernel's links would be on that
    /// host. The result need not exist (captured trees have dangling links). `None` when a link leads out of sysfs or
    /// links form a loop.
    pub fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let mut links = 0;
        let mut waiting: Vec<PathBuf> = vec![path.strip_prefix(&self.sys).ok()?.to_path_buf()];
        let mut done = self.sys.clone();
        while let Some(rest) = waiting.pop() {
            let mut parts = rest.components();
            let Some(part) = parts.next() else { continue };
            let after = parts.as_path().to_path_buf();
            if !after.as_os_str().is_empty() {
                waiting.push(after);
            }
            match part {
                Component::Normal(name) => {
                    let next = done.join(name);
                    match std::fs::read_link(&next) {
                        // What stands for a denial is no link of that host.
                        Ok(target) if denied_by(&target).is_some() => done = next,
                        Ok(target) => {
                            links += 1;
                            if links > MAX_LINKS {
                                return None;
                            }
                            if target.is_absolute() {
                                done.clone_from(&self.sys);
                                waiting.push(target.strip_prefix("/sys").ok()?.to_path_buf());
                            } else {
                                waiting.push(target);
                            }
                        }
                        Err(_) => done = next,
                    }
                }
                Component::ParentDir => {
                    if done == self.sys || !done.pop() {
                        return None;
                    }
                }
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn root() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir_all(root.sys("devices/pci/nvme0")).unwrap();
        std::fs::create_dir_all(root.sys("class/nvme")).unwrap();
        (dir, root)
    }

    #[test]
    fn relative_and_absolute_links_stay_inside() {
        let (_dir, root) = root();
        symlink("../../devices/pci/nvme0", root.sys("class/nvme/nvme0")).unwrap();
        symlink("/sys/devices/pci", root.sys("class/nvme/abs")).unwrap();
        symlink("../../..", root.sys("devices/pci/up")).unwrap();
        assert_eq!(root.resolve(&root.sys("class/nvme/nvme0")), Some(root.sys("devices/pci/nvme0")));
        assert_eq!(root.resolve(&root.sys("class/nvme/abs/nvme0")), Some(root.sys("devices/pci/nvme0")));
        assert_eq!(root.resolve(&root.sys("devices/pci/up")), None);
    }

    #[test]
    fn block_devices_are_found_in_every_layout() {
        let (_dir, root) = root();
        let disk = root.sys("devices/pci/host0/block/sda");
        std::fs::create_dir_all(disk.join("sda1")).unwrap();
        std::fs::create_dir_all(root.sys("devices/pci/nvme0/nvme0n1/nvme0n1p2")).unwrap();
        std::fs::create_dir_all(root.sys("block/cciss!c0d0")).unwrap();
        symlink("../devices/pci/host0/block/sda", root.sys("block/sda")).unwrap();
        symlink("../../devices/pci/nvme0", root.sys("class/nvme/nvme0")).unwrap();
        assert_eq!(root.block("sda"), disk);
        assert_eq!(root.block("sda1"), disk.join("sda1"));
        assert_eq!(root.block("cciss/c0d0"), root.sys("block/cciss!c0d0"));
        assert_eq!(root.block("nvme0n1"), root.sys("devices/pci/nvme0/nvme0n1"));
        assert_eq!(root.block("nvme0n1p2"), root.sys("devices/pci/nvme0/nvme0n1/nvme0n1p2"));
        assert_eq!(root.block("sdz"), root.sys("class/block/sdz"));
    }

    #[test]
    fn loops_and_escapes_end() {
        let (_dir, root) = root();
        symlink("loop", root.sys("class/nvme/loop")).unwrap();
        symlink("/etc/passwd", root.sys("class/nvme/out")).unwrap();
        symlink("../../devices/gone/there", root.sys("class/nvme/dangling")).unwrap();
        symlink("denied:EACCES", root.sys("devices/pci/nvme0/serial")).unwrap();
        let denied = root.sys("devices/pci/nvme0/serial");
        assert_eq!(root.resolve(&denied), Some(denied), "no link of that host");
        assert_eq!(root.resolve(&root.sys("class/nvme/loop")), None);
        assert_eq!(root.resolve(&root.sys("class/nvme/out")), None);
        assert_eq!(root.resolve(&root.sys("class/nvme/dangling")), Some(root.sys("devices/gone/there")));
    }
}
