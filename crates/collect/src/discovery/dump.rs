//! Controllers of which a captured host holds only what they answered: `drives/NAME/identify.bin`.

use super::attributes::Attributes;
use super::inquiry;
use super::sysfs::MAX_ENTRIES;
use crate::answer;
use crate::root::Root;
use std::path::Path;
use storscope_drive::{AdminChannel, CommandError, Identify, IdentifyController, Replay};
use storscope_model::device::{Controller, Place, Transport};
use storscope_model::fault::Fault;
use storscope_model::identity::ControllerId;

/// The controllers that `known` does not tell to be in sysfs. Their identities are not set yet. How they were attached
/// is not in a dump.
pub(super) fn controllers(root: &Root, known: impl Fn(&str) -> bool, attributes: &mut Attributes) -> Vec<Controller> {
    let Some(drives) = &root.drives else {
        return Vec::new();
    };
    let names = attributes.list(drives, MAX_ENTRIES);
    let missing = names.into_iter().filter(|name| !known(name));
    let folders = missing.filter(|name| drives.join(name).is_dir()).collect::<Vec<_>>();
    folders
        .into_iter()
        .map(|name| {
            attributes.about(&name);
            let identify = identify(&drives.join(&name), attributes);
            describe(name, identify)
        })
        .collect()
}

fn identify(folder: &Path, attributes: &mut Attributes) -> Option<IdentifyController> {
    let fault = |error: &dyn std::fmt::Display| Fault::Parse {
        path: folder.join("identify.bin").display().to_string(),
        line: 0,
        what: error.to_string(),
    };
    match Replay::new(folder).identify(Identify::Controller) {
        Ok(page) => match IdentifyController::decode(page.as_bytes()) {
            Ok(identify) => return Some(identify),
            Err(error) => attributes.note(fault(&error)),
        },
        // A capture need not hold every answer.
        Err(CommandError::NotServed { .. }) => {}
        Err(error @ CommandError::Errno { .. }) => attributes.note(answer::fault(&error, folder)),
        Err(CommandError::Open { path, errno }) => {
            attributes.failed(Fault::Io { path: path.display().to_string(), errno })
        }
        Err(error) => attributes.note(fault(&error)),
    }
    None
}

fn describe(name: String, identify: Option<IdentifyController>) -> Controller {
    let text = |field: fn(&IdentifyController) -> &String| {
        identify.as_ref().and_then(|identify| inquiry::text(field(identify).as_bytes()))
    };
    Controller {
        id: ControllerId(String::new()),
        transport: Transport::NvmeOther,
        model: text(|identify| &identify.model),
        serial: text(|identify| &identify.serial),
        firmware: text(|identify| &identify.firmware),
        cntlid: identify.as_ref().map(|identify| u32::from(identify.controller_id)),
        subsystem_nqn: text(|identify| &identify.subsystem_nqn),
        address: None,
        pci_address: None,
        numa_node: None,
        place: Place::default(),
        name,
    }
}
