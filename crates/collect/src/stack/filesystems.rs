//! Which block devices the mounts and the swap areas lie on.

use super::label;
use super::mountinfo::{self, MAX_MOUNTS, MountLine};
use super::swaps;
use crate::attribute::{self, MAX_PROC_FILE};
use crate::discovery::attributes::Attributes;
use crate::discovery::block::parse_devnum;
use crate::discovery::sysfs::{self, Entry};
use crate::root::Root;
use std::collections::BTreeMap;
use std::path::PathBuf;
use storscope_model::device::DevNum;
use storscope_model::fault::Fault;
use storscope_model::sample::stack::{Mount, Node};

/// Most file systems, and most devices of one, that sysfs is asked for.
const MAX_FILESYSTEMS: usize = 4096;

/// Every name that a block device goes by in procfs.
pub(super) struct Names<'a> {
    root: &'a Root,
    by_devnum: BTreeMap<DevNum, usize>,
    by_name: BTreeMap<String, usize>,
    count: usize,
}

impl<'a> Names<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, by_devnum: BTreeMap::new(), by_name: BTreeMap::new(), count: 0 }
    }

    /// Adds the device of the next node.
    pub(super) fn add(&mut self, entry: &Entry, attributes: &mut Attributes) {
        let index = self.count;
        self.count += 1;
        self.by_name.insert(entry.name.clone(), index);
        let devnum = attributes.text(&entry.folder.join("dev"));
        if let Some(devnum) = devnum.and_then(|text| parse_devnum(&text)) {
            // The first of two devices with one number (a doctored tree) keeps it.
            self.by_devnum.entry(devnum).or_insert(index);
        }
        if entry.name.starts_with("dm-")
            && let Some(name) = attributes.text(&entry.folder.join("dm/name"))
        {
            let uuid = attributes.text(&entry.folder.join("dm/uuid")).unwrap_or_default();
            if uuid.starts_with("LVM-") {
                self.by_name.entry(label::device_mapper(&name, &uuid)).or_insert(index);
            }
            self.by_name.entry(format!("mapper/{name}")).or_insert(index);
        }
    }

    /// The node that a device node's path stands for.
    fn of_path(&self, path: &str) -> Option<usize> {
        let name = Root::node_name(path)?;
        if let Some(index) = self.by_name.get(name) {
            return Some(*index);
        }
        // udev's links: `disk/by-uuid/…` leads to `../../sda1`.
        let target = std::fs::read_link(self.root.dev.join(name)).ok()?;
        self.by_name.get(target.file_name()?.to_str()?).copied()
    }

    /// The devices that a mounted file system lies on. One over several devices has an anonymous device number (btrfs)
    /// or that of one of them (bcachefs, which names them all in its source).
    fn of_mount(&self, mount: &MountLine) -> Vec<usize> {
        let by_number = match mount.devnum.major {
            0 => None,
            _ => self.by_devnum.get(&mount.devnum).copied(),
        };
        let sources: Vec<&str> = mount.source.split(':').collect();
        let mut nodes = Vec::new();
        if sources.len() > 1 || by_number.is_none() {
            nodes.extend(sources.into_iter().filter_map(|path| self.of_path(path)));
        }
        nodes.extend(by_number);
        nodes
    }
}

/// Puts mounts and swap into `nodes`, which are in the order in which `names` got them.
pub(super) fn place(root: &Root, names: &Names<'_>, nodes: &mut [Node], attributes: &mut Attributes) {
    let pools = btrfs_devices(root, names, attributes);
    let mounts = match mounts(root, attributes) {
        Ok(mounts) => mounts,
        Err(fault) => {
            attributes.note(fault);
            Vec::new()
        }
    };
    let mut on_node: BTreeMap<usize, Vec<&MountLine>> = BTreeMap::new();
    for mount in &mounts {
        let mut carriers = names.of_mount(mount);
        if mount.fs_type == "btrfs" {
            let pool = pools.iter().find(|pool| carriers.iter().any(|carrier| pool.contains(carrier)));
            carriers.extend(pool.into_iter().flatten());
        }
        carriers.sort_unstable();
        carriers.dedup();
        for carrier in carriers {
            on_node.entry(carrier).or_default().push(mount);
        }
    }
    let mut room = MAX_MOUNTS;
    for (index, lines) in on_node {
        if let Some(node) = nodes.get_mut(index) {
            node.mounts = folded(&lines, room);
            room -= node.mounts.len();
        }
    }
    if room == 0 {
        attributes.note(Fault::Parse {
            path: "mountinfo".to_owned(),
            line: 0,
            what: format!("the limit of {MAX_MOUNTS} mounts of block devices is reached"),
        });
    }
    place_swap(root, names, nodes, attributes);
}

fn place_swap(root: &Root, names: &Names<'_>, nodes: &mut [Node], attributes: &mut Attributes) {
    match attribute::read_bytes(&root.proc("swaps"), MAX_PROC_FILE) {
        Ok(text) => {
            for path in swaps::parse(&text.unwrap_or_default()) {
                if let Some(node) = names.of_path(&path).and_then(|index| nodes.get_mut(index)) {
                    node.swap = true;
                }
            }
        }
        Err(fault) => attributes.note(fault),
    }
}

/// The mounts of one device, each point once. Bind mounts of its folders (containers make hundreds) are left out where
/// the file system itself is mounted.
fn folded(lines: &[&MountLine], most: usize) -> Vec<Mount> {
    let whole = lines.iter().any(|line| !line.is_bind());
    let mut mounts: Vec<Mount> = Vec::new();
    let mut points = std::collections::BTreeSet::new();
    for line in lines {
        if mounts.len() < most && (!whole || !line.is_bind()) && points.insert(&line.point) {
            mounts.push(Mount { point: line.point.clone(), fs_type: line.fs_type.clone() });
        }
    }
    mounts
}

/// The mounts as the first process sees them, which are the host's, or where that is denied as this process does, whose
/// namespace may be a service's own.
fn mounts(root: &Root, attributes: &mut Attributes) -> Result<Vec<MountLine>, Fault> {
    let mut denied = None;
    for file in ["1/mountinfo", "self/mountinfo"] {
        let path = root.proc(file);
        match attribute::read_bytes(&path, MAX_PROC_FILE) {
            Ok(Some(text)) => {
                let (mounts, faults) = mountinfo::parse(&path.display().to_string(), &text);
                faults.into_iter().for_each(|fault| attributes.note(fault));
                return Ok(mounts);
            }
            Ok(None) => {}
            Err(fault) => denied = Some(fault),
        }
    }
    let path = root.proc("self/mountinfo").display().to_string();
    Err(denied.unwrap_or(Fault::Io { path, errno: nix::libc::ENOENT }))
}

/// The devices of each btrfs file system (Documentation/ABI/testing/sysfs-fs-btrfs): its mounts name only one of them.
fn btrfs_devices(root: &Root, names: &Names<'_>, attributes: &mut Attributes) -> Vec<Vec<usize>> {
    let folder: PathBuf = root.sys("fs/btrfs");
    let mut pools = Vec::new();
    for filesystem in attributes.names(&folder, MAX_FILESYSTEMS) {
        let devices = attributes.names(&folder.join(filesystem).join("devices"), MAX_FILESYSTEMS);
        let pool: Vec<usize> =
            devices.iter().filter_map(|device| names.by_name.get(&sysfs::kernel_name(device)).copied()).collect();
        if pool.len() > 1 {
            pools.push(pool);
        }
    }
    pools
}
