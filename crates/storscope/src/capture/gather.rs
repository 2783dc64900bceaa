//! Reading everything that a capture holds, each device with a deadline of its own.

use super::desk::{self, Desk, Job, Read};
use super::sysfs::{self, Claims, Subject};
use super::tree::Tree;
use super::{drives, nodes, procfs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use storscope_collect::collector::Inventory;
use storscope_collect::discovery;
use storscope_collect::root::Root;
use storscope_collect::select::Selection;
use storscope_model::device::{Controller, Device};

/// Time to find what there is, on a host with thousands of devices too.
const HOST_LIMIT: Duration = Duration::from_secs(60);
/// Time for the kernel's files of one device, and for opening it.
const FILES_LIMIT: Duration = Duration::from_secs(10);
/// Time for all pages of one controller. A command that takes longer is left to the kernel, whose own limit is 60 s.
const DRIVE_LIMIT: Duration = Duration::from_secs(20);

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Files, links and folders.
    pub(super) tree: Tree,
    /// What could not be read, and why.
    pub(super) notes: Vec<String>,
    full: bool,
}

impl Gathered {
    fn take(&mut self, reads: Vec<Read>) {
        for read in reads {
            self.notes.extend(read.notes);
            for (path, node) in read.entries {
                if !self.tree.insert(path.clone(), node) && !std::mem::replace(&mut self.full, true) {
                    self.notes.push(format!("the capture is full: {path} and more left out"));
                }
            }
        }
    }
}

/// Reads the host. Only the controllers of devices that `selection` takes are asked.
pub(super) fn gather(root: &Root, selection: &Selection) -> Gathered {
    let root = Arc::new(root.clone());
    let mut gathered = Gathered::default();
    let (subjects, asked): (Found<Subject>, Found<(Controller, Vec<u32>)>) = Default::default();
    let opened: Found<Device> = Found::default();
    let (to_subjects, to_asked, to_opened) = (Arc::clone(&subjects), Arc::clone(&asked), Arc::clone(&opened));
    let selection = selection.clone();
    let jobs = vec![
        Job::new("procfs", procfs::copy),
        Job::new("sysfs", move |desk: &Desk| *lock(&to_subjects) = sysfs::classes(desk)),
        Job::new("discovery", move |desk: &Desk| {
            desk.busy_with("the list of devices");
            let inventory = Inventory::select(discovery::scan(desk.root()), &selection);
            *lock(&to_asked) = controllers(&inventory);
            *lock(&to_opened) = inventory.devices.into_values().collect();
        }),
    ];
    gathered.take(desk::run(&root, jobs, HOST_LIMIT));
    let claims = Arc::new(Claims::default());
    let files = std::mem::take(&mut *lock(&subjects)).into_iter().map(|subject| {
        let claims = Arc::clone(&claims);
        Job::new(subject.name.clone(), move |desk: &Desk| sysfs::copy(desk, &subject, &claims))
    });
    gathered.take(desk::run(&root, files.collect(), FILES_LIMIT));
    let pages = std::mem::take(&mut *lock(&asked)).into_iter().map(|(controller, nsids)| {
        Job::new(controller.name.clone(), move |desk: &Desk| drives::copy(desk, &controller, &nsids))
    });
    gathered.take(desk::run(&root, pages.collect(), DRIVE_LIMIT));
    let nodes = std::mem::take(&mut *lock(&opened)).into_iter().filter(|device| device.partition_of.is_none());
    let nodes = nodes.map(|device| Job::new(device.name.clone(), move |desk: &Desk| nodes::copy(desk, &device)));
    gathered.take(desk::run(&root, nodes.collect(), FILES_LIMIT));
    gathered.tree.settle();
    gathered.notes.sort_unstable();
    gathered.notes.dedup();
    gathered
}

/// Where a job leaves what it found; empty when it got stuck.
type Found<T> = Arc<Mutex<Vec<T>>>;

fn lock<T>(found: &Mutex<T>) -> MutexGuard<'_, T> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The controllers to ask, each with the namespaces that are read through it.
fn controllers(inventory: &Inventory) -> Vec<(Controller, Vec<u32>)> {
    let nsids = |controller: &Controller| {
        let through = |device: &&Device| inventory.drive_of(device).is_some_and(|drive| drive.id == controller.id);
        let devices = inventory.devices.values().filter(through);
        let mut nsids: Vec<u32> = devices.filter_map(|device| device.nvme.as_ref()?.nsid).collect();
        nsids.sort_unstable();
        nsids.dedup();
        nsids
    };
    inventory.controllers.values().map(|controller| (controller.clone(), nsids(controller))).collect()
}
