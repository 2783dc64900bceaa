//! What is watched, and what a new scan changes about it.

use super::{known, reads};
use crate::discovery::Scan;
use crate::lanes::Job;
use crate::lanes::pool::Change;
use crate::root::Root;
use crate::schedule::{Periods, Plan};
use crate::select::Selection;
use std::collections::{BTreeMap, BTreeSet};
use storscope_model::device::{Controller, Device};
use storscope_model::event::Event;
use storscope_model::identity::{ControllerId, DeviceId, Subject};

/// The devices and controllers that are watched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inventory {
    /// Selected devices.
    pub devices: BTreeMap<DeviceId, Device>,
    /// Their controllers, and those without any namespace.
    pub controllers: BTreeMap<ControllerId, Controller>,
}

impl Inventory {
    /// What `selection` leaves of `scan`. A controller is watched when one of its namespaces is, or when it has none.
    /// Where not everything was found, it is not known to have none.
    pub fn select(scan: Scan, selection: &Selection) -> Self {
        let serves = |device: &Device| -> Vec<ControllerId> {
            device.nvme.as_ref().map(|nvme| nvme.controllers.clone()).unwrap_or_default()
        };
        let serving: BTreeSet<ControllerId> = scan.devices.iter().flat_map(serves).collect();
        let mut devices = BTreeMap::new();
        for device in scan.devices {
            if selection.selected(&device) {
                devices.entry(device.id.clone()).or_insert(device);
            }
        }
        let wanted: BTreeSet<ControllerId> = devices.values().flat_map(serves).collect();
        let mut controllers = BTreeMap::new();
        for controller in scan.controllers {
            let bare = !serving.contains(&controller.id) && scan.incomplete.is_none();
            if wanted.contains(&controller.id) || bare {
                controllers.entry(controller.id.clone()).or_insert(controller);
            }
        }
        Self { devices, controllers }
    }

    /// What is watched after `scan`; what it could not read stays as it is here.
    pub(super) fn next(&self, scan: Scan, selection: &Selection) -> Self {
        let incomplete = scan.incomplete.is_some();
        let mut next = Self::select(known::completed(scan, self), selection);
        if incomplete {
            // Those without namespaces, which the selection does not concern.
            let used: BTreeSet<&ControllerId> = self
                .devices
                .values()
                .filter_map(|device| device.nvme.as_ref())
                .flat_map(|nvme| &nvme.controllers)
                .collect();
            for (id, controller) in self.controllers.iter().filter(|(id, _)| !used.contains(id)) {
                next.controllers.entry(id.clone()).or_insert_with(|| controller.clone());
            }
        }
        next
    }

    /// The controller that takes the commands for `device`: the first that is watched.
    pub fn drive_of(&self, device: &Device) -> Option<&Controller> {
        let nvme = device.nvme.as_ref()?;
        nvme.controllers.iter().find_map(|id| self.controllers.get(id))
    }

    /// What has to be told and read when this becomes `next`: what left first, then controllers, then devices. With
    /// `replan`, the periods of what stayed are set anew.
    pub fn changes(&self, next: &Self, root: &Root, periods: &Periods, replan: bool) -> Vec<Change> {
        let mut changes = Vec::new();
        let gone_devices = self.devices.keys().filter(|id| !next.devices.contains_key(id));
        let gone_controllers = self.controllers.keys().filter(|id| !next.controllers.contains_key(id));
        let gone = gone_devices
            .map(|id| Subject::Device(id.clone()))
            .chain(gone_controllers.map(|id| Subject::Controller(id.clone())));
        for subject in gone {
            changes.push(Change::Remove(subject.clone()));
            changes.push(Change::Announce(Event::Vanished(subject)));
        }
        for (id, controller) in &next.controllers {
            let same = self.controllers.get(id) == Some(controller);
            if !same {
                changes.push(Change::Announce(Event::ControllerAppeared(Box::new(controller.clone()))));
            }
            let plans = reads::of_controller(controller, root, periods);
            changes.extend(planned(plans, self.controllers.contains_key(id), same, replan));
        }
        for (id, device) in &next.devices {
            let same = self.devices.get(id) == Some(device)
                && self.drive_of(device).map(|drive| &drive.id) == next.drive_of(device).map(|drive| &drive.id);
            if !same {
                changes.push(Change::Announce(Event::DeviceAppeared(Box::new(device.clone()))));
            }
            let plans = reads::of_device(device, next.drive_of(device), root, periods);
            changes.extend(planned(plans, self.devices.contains_key(id), same, replan));
        }
        changes
    }
}

/// The plans of one subject. What is new is read at once by itself; one whose description changed is read again, because
/// that may be another name or other firmware.
fn planned(plans: Vec<Plan>, known: bool, same: bool, replan: bool) -> Vec<Change> {
    if same && !replan {
        return Vec::new();
    }
    let jobs: Vec<Job> = plans.iter().map(|plan| plan.job.clone()).collect();
    let mut changes: Vec<Change> = plans.into_iter().map(Change::Plan).collect();
    if known {
        changes.extend(jobs.into_iter().map(Change::Hasten));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::super::made_up;
    use super::*;
    use std::path::Path;
    use storscope_model::device::{NvmeNamespace, Transport};
    use storscope_model::sample::Source;

    fn namespace(name: &str, controllers: &[&str]) -> Device {
        let controllers = controllers.iter().map(|id| ControllerId((*id).to_owned())).collect();
        Device {
            nvme: Some(NvmeNamespace { nsid: Some(1), controllers, ..NvmeNamespace::default() }),
            ..made_up::device(name, Transport::NvmePcie)
        }
    }

    fn scan(devices: Vec<Device>, controllers: &[&str]) -> Scan {
        let controllers = controllers.iter().map(|name| made_up::controller(name)).collect();
        Scan { devices, controllers, ..Scan::default() }
    }

    fn inventory(devices: Vec<Device>, controllers: &[&str], exclude: Option<&str>) -> Inventory {
        let selection = Selection::new(None, exclude, None).unwrap();
        Inventory::select(scan(devices, controllers), &selection)
    }

    fn told(changes: &[Change]) -> Vec<String> {
        changes
            .iter()
            .filter_map(|change| match change {
                Change::Announce(Event::DeviceAppeared(device)) => Some(format!("+{}", device.name)),
                Change::Announce(Event::ControllerAppeared(controller)) => Some(format!("+{}", controller.name)),
                Change::Announce(Event::Vanished(Subject::Device(id))) => Some(format!("-{id}")),
                Change::Announce(Event::Vanished(Subject::Controller(id))) => Some(format!("-{id}")),
                _ => None,
            })
            .collect()
    }

    fn changes(from: &Inventory, to: &Inventory) -> Vec<Change> {
        from.changes(to, &Root::host(Path::new("nowhere")), &Periods::default(), false)
    }

    #[test]
    fn a_controller_is_watched_with_one_of_its_namespaces_or_without_any() {
        let devices = || vec![namespace("nvme0n1", &["nvme0"]), namespace("nvme1n1", &["nvme1"])];
        let all = ["nvme0", "nvme1", "nvme2"];
        let names = |inventory: &Inventory| {
            inventory.controllers.values().map(|controller| controller.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&inventory(devices(), &all, None)), all);
        assert_eq!(names(&inventory(devices(), &all, Some("nvme1n1"))), ["nvme0", "nvme2"]);
    }

    #[test]
    fn controllers_come_before_their_namespaces_and_what_left_before_both() {
        let before = inventory(vec![namespace("nvme0n1", &["nvme0"])], &["nvme0"], None);
        let after = inventory(vec![namespace("nvme1n1", &["nvme1"])], &["nvme1"], None);
        assert_eq!(told(&changes(&Inventory::default(), &before)), ["+nvme0", "+nvme0n1"]);
        assert_eq!(told(&changes(&before, &after)), ["-nvme0n1", "-nvme0", "+nvme1", "+nvme1n1"]);
        assert!(changes(&after, &after).is_empty());
    }

    #[test]
    fn a_rename_is_told_and_read_again_under_the_same_identity() {
        let before = inventory(vec![namespace("nvme0n1", &["nvme0"])], &["nvme0"], None);
        let mut after = before.clone();
        for device in after.devices.values_mut() {
            device.name = "nvme7n1".to_owned();
        }
        let changes = changes(&before, &after);
        assert_eq!(told(&changes), ["+nvme7n1"]);
        let early: Vec<Source> = changes
            .iter()
            .filter_map(|change| match change {
                Change::Hasten(job) => Some(job.source),
                _ => None,
            })
            .collect();
        assert_eq!(early, [Source::Queue, Source::Power, Source::Namespace]);
    }

    #[test]
    fn a_namespace_is_asked_through_its_first_controller_that_is_there() {
        let shared = namespace("nvme0n1", &["nvme0", "nvme1"]);
        let both = inventory(vec![shared.clone()], &["nvme0", "nvme1"], None);
        assert_eq!(both.drive_of(&shared).unwrap().name, "nvme0");
        let one = inventory(vec![shared.clone()], &["nvme1"], None);
        assert_eq!(one.drive_of(&shared).unwrap().name, "nvme1");
        // The lane follows: the namespace is planned anew though its description is the same.
        let plans = changes(&both, &one);
        assert!(plans.iter().any(|change| matches!(change, Change::Plan(plan)
            if plan.job.source == Source::Namespace
                && plan.lane == crate::lanes::Lane::Commands(Subject::Controller(ControllerId("nvme1".to_owned()))))));
    }

    #[test]
    fn new_periods_are_planned_without_telling_anything() {
        let same = inventory(vec![namespace("nvme0n1", &["nvme0"])], &["nvme0"], None);
        let changes = same.changes(&same, &Root::host(Path::new("nowhere")), &Periods::default(), true);
        assert!(told(&changes).is_empty());
        assert!(changes.iter().any(|change| matches!(change, Change::Plan(_))));
    }
}
