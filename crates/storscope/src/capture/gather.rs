//! Reading everything that a capture holds, each device with a deadline of its own.

use super::desk::{self, Desk, Job, Read};
use super::sysfs::{self, Claims, Subject};
use super::tree::Tree;
use super::{drives, procfs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use storscope_collect::collector::Inventory;
use storscope_collect::discovery;
use storscope_collect::root::Root;
use storscope_collect::select::Selection;
use storscope_model::device::Controller;

/// Time for the kernel's files of one device, and for those of the host.
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
    let found: Arc<Mutex<Found>> = Arc::default();
    let place = Arc::clone(&found);
    let selection = selection.clone();
    let survey = Job::new("sysfs", move |desk: &Desk| {
        let subjects = sysfs::classes(desk);
        desk.busy_with("discovery");
        let asked = asked(desk.root(), &selection);
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Found { subjects, asked };
    });
    gathered.take(desk::run(&root, vec![Job::new("procfs", procfs::copy), survey], FILES_LIMIT));
    let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    let claims = Arc::new(Claims::default());
    let files = found.subjects.into_iter().map(|subject| {
        let claims = Arc::clone(&claims);
        Job::new(subject.name.clone(), move |desk: &Desk| sysfs::copy(desk, &subject, &claims))
    });
    gathered.take(desk::run(&root, files.collect(), FILES_LIMIT));
    let pages = found.asked.into_iter().map(|(controller, nsids)| {
        Job::new(controller.name.clone(), move |desk: &Desk| drives::copy(desk, &controller, &nsids))
    });
    gathered.take(desk::run(&root, pages.collect(), DRIVE_LIMIT));
    gathered.notes.sort_unstable();
    gathered.notes.dedup();
    gathered
}

#[derive(Debug, Default)]
struct Found {
    subjects: Vec<Subject>,
    asked: Vec<(Controller, Vec<u32>)>,
}

/// The controllers to ask, each with the namespaces that are read through it.
fn asked(root: &Root, selection: &Selection) -> Vec<(Controller, Vec<u32>)> {
    let inventory = Inventory::select(discovery::scan(root), selection);
    let nsids = |controller: &Controller| {
        let through = |device: &&storscope_model::device::Device| {
            inventory.drive_of(device).is_some_and(|drive| drive.id == controller.id)
        };
        let devices = inventory.devices.values().filter(through);
        let mut nsids: Vec<u32> = devices.filter_map(|device| device.nvme.as_ref()?.nsid).collect();
        nsids.sort_unstable();
        nsids.dedup();
        nsids
    };
    inventory.controllers.values().map(|controller| (controller.clone(), nsids(controller))).collect()
}
