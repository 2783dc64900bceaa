//! The part of sysfs that the agent reads, found the way it finds it: by links, never by composed names.

use super::attributes::{BLOCK, CONTROLLER, DEVICE, END_DEVICE, FUNCTION, LINK, QUEUE, RELATIONS, STACKED, USB};
use super::desk::Desk;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use storscope_collect::attribute::{self, MAX_ATTRIBUTE, is_there};
use storscope_collect::discovery::MAX_ENTRIES;
use storscope_collect::pcie;

/// Most children of one device's folder.
const MAX_CHILDREN: usize = 4096;
/// Most folders from a device up to the root of the device tree.
const MAX_LEVELS: usize = 64;

/// A folder that is copied as one job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    /// Kernel name, for notes.
    pub(super) name: String,
    /// Folder, links resolved.
    pub(super) folder: PathBuf,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A block device, partition or hidden path.
    Block,
    /// An NVMe controller or subsystem.
    Controller,
}

/// Why a folder is copied. A controller is copied for itself, and in part as what lies above its namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Itself,
    Above,
}

/// Folders that a job has taken on: many devices hang on one port.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<BTreeSet<(Role, PathBuf)>>);

impl Claims {
    /// True for the first who asks.
    fn claim(&self, role: Role, folder: &Path) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((role, folder.to_path_buf()))
    }
}

/// Copies the links of the kernel's classes and tells what they lead to.
pub(super) fn classes(desk: &Desk) -> Vec<Subject> {
    let classes = [
        ("class/block", Kind::Block),
        ("block", Kind::Block),
        ("class/nvme", Kind::Controller),
        ("class/nvme-subsystem", Kind::Controller),
    ];
    let mut subjects = BTreeSet::new();
    for (class, kind) in classes {
        for (name, folder) in members(desk, &desk.root().sys(class)) {
            subjects.insert(Subject { name, folder, kind });
        }
    }
    for (_, slot) in members(desk, &desk.root().sys("bus/pci/slots")) {
        desk.folder(&slot);
        let _ = desk.file(&slot.join("address"), MAX_ATTRIBUTE);
    }
    for (_, pool) in members(desk, &desk.root().sys("fs/btrfs")) {
        let devices = pool.join("devices");
        for name in desk.names(&devices, MAX_CHILDREN) {
            desk.link(&devices.join(name));
        }
    }
    subjects.into_iter().collect()
}

/// The members of a class, links resolved; the links themselves are copied.
fn members(desk: &Desk, class: &Path) -> Vec<(String, PathBuf)> {
    let names = desk.names(class, MAX_ENTRIES);
    if !names.is_empty() {
        desk.folder(class);
    }
    let folder_of = |name: String| {
        let path = class.join(&name);
        desk.link(&path);
        let folder = desk.root().resolve(&path).filter(|folder| desk.is_folder(folder))?;
        Some((name, folder))
    };
    names.into_iter().filter_map(folder_of).collect()
}

/// Copies one folder and everything above it.
pub(super) fn copy(desk: &Desk, subject: &Subject, claims: &Claims) {
    match subject.kind {
        Kind::Block => block(desk, &subject.folder, claims),
        Kind::Controller => controller(desk, &subject.folder, claims),
    }
    above(desk, &subject.folder, claims);
}

fn files(desk: &Desk, folder: &Path, names: &[&str]) {
    for name in names {
        let _ = desk.file(&folder.join(name), MAX_ATTRIBUTE);
    }
}

fn block(desk: &Desk, folder: &Path, claims: &Claims) {
    if !claims.claim(Role::Itself, folder) {
        return;
    }
    desk.folder(folder);
    files(desk, folder, &BLOCK);
    desk.link(&folder.join("subsystem"));
    let queue = folder.join("queue");
    if queue.is_dir() {
        desk.folder(&queue);
        files(desk, &queue, &QUEUE);
    }
    for (driver, names) in STACKED {
        files(desk, &folder.join(driver), names);
    }
    for relation in RELATIONS {
        let links = folder.join(relation);
        for name in desk.names(&links, MAX_CHILDREN) {
            if !desk.link(&links.join(&name)) {
                desk.folder(&links.join(&name));
            }
        }
    }
    // The number of hardware queues is the number of folders.
    for queue in desk.names(&folder.join("mq"), MAX_CHILDREN) {
        desk.folder(&folder.join("mq").join(queue));
    }
    // A tree without `class/block` has partitions only here.
    for child in desk.names(folder, MAX_CHILDREN) {
        let child = folder.join(child);
        if is_folder(&child) && is_there(&child.join("partition")) {
            block(desk, &child, claims);
        }
    }
    let link = folder.join("device");
    if desk.link(&link)
        && let Some(device) = desk.root().resolve(&link).filter(|device| desk.is_folder(device))
    {
        attached(desk, &device, claims);
        above(desk, &device, claims);
    } else if is_folder(&link) {
        attached(desk, &link, claims);
    }
}

/// What a block device hangs on: a SCSI device, a card, a virtio device, an NVMe controller or subsystem.
fn attached(desk: &Desk, device: &Path, claims: &Claims) {
    if is_there(&device.join("cntlid")) || is_there(&device.join("subsysnqn")) {
        return controller(desk, device, claims);
    }
    if !claims.claim(Role::Itself, device) {
        return;
    }
    desk.folder(device);
    desk.link(&device.join("subsystem"));
    files(desk, device, &DEVICE);
    enclosure(desk, device);
    runtime_status(desk, device);
}

fn controller(desk: &Desk, folder: &Path, claims: &Claims) {
    if !claims.claim(Role::Itself, folder) {
        return;
    }
    desk.folder(folder);
    files(desk, folder, &CONTROLLER);
    for link in ["device", "subsystem"] {
        desk.link(&folder.join(link));
    }
    runtime_status(desk, folder);
    for name in desk.names(folder, MAX_CHILDREN) {
        let child = folder.join(&name);
        if is_folder(&child) {
            if is_there(&child.join("size")) && child.join("queue").is_dir() {
                block(desk, &child, claims);
            }
        } else if desk.root().resolve(&child).is_some_and(|target| is_there(&target.join("cntlid"))) {
            desk.link(&child);
        }
    }
}

/// Everything from a device's folder up to the root of the device tree.
fn above(desk: &Desk, folder: &Path, claims: &Claims) {
    let tree = desk.root().sys("devices");
    let ancestors = folder.ancestors().skip(1).take_while(|above| above.starts_with(&tree) && **above != tree);
    runtime_status(desk, folder);
    for above in ancestors.take(MAX_LEVELS) {
        if !claims.claim(Role::Above, above) {
            continue;
        }
        desk.folder(above);
        runtime_status(desk, above);
        if pcie::address(above).is_some() {
            files(desk, above, &FUNCTION);
            link_files(desk, above);
            enclosure(desk, above);
        }
        if is_there(&above.join("idVendor")) {
            files(desk, above, &USB);
        }
        let name = above.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("end_device-") {
            files(desk, &above.join("sas_device").join(name), &END_DEVICE);
        }
    }
}

fn runtime_status(desk: &Desk, folder: &Path) {
    let _ = desk.file(&folder.join("power/runtime_status"), MAX_ATTRIBUTE);
}

/// Only where neither the function nor the one above it would be woken.
fn link_files(desk: &Desk, function: &Path) {
    let awake = |folder: &Path| match attribute::read_text(&folder.join("power/runtime_status")) {
        Ok(Some(status)) => !matches!(status.trim(), "suspended" | "suspending" | "resuming"),
        Ok(None) => true,
        Err(_) => false,
    };
    if awake(function) && function.parent().is_none_or(awake) {
        files(desk, function, &LINK);
    } else {
        desk.note(format_args!(
            "{}: suspended, reading its link would wake it: link files left out",
            function.display()
        ));
    }
}

/// The bay that a device sits in, and the identifier of the enclosure (drivers/misc/enclosure.c).
fn enclosure(desk: &Desk, folder: &Path) {
    for name in desk.names(folder, MAX_CHILDREN) {
        let link = folder.join(&name);
        if !name.starts_with("enclosure_device:") || !desk.link(&link) {
            continue;
        }
        if let Some(component) = desk.root().resolve(&link).filter(|component| desk.is_folder(component)) {
            desk.folder(&component);
            if let Some(enclosure) = component.parent() {
                let _ = desk.file(&enclosure.join("id"), MAX_ATTRIBUTE);
            }
        }
    }
}

fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}
