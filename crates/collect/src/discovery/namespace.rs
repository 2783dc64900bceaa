//! NVMe namespaces: plain ones, which lie below their controller, and multipath heads, which lie below their subsystem
//! and have hidden paths below the controllers (drivers/nvme/host/multipath.c).

use super::attributes::Attributes;
use super::block::Identity;
use super::controller::{self, Fabric};
use super::id;
use super::inquiry;
use super::sysfs::Entry;
use crate::root::Root;
use std::path::PathBuf;
use storscope_model::device::{Controller, NvmeNamespace, NvmePath, Transport};

/// A namespace and where it hangs.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) nvme: NvmeNamespace,
    pub(super) identity: Identity,
    pub(super) transport: Transport,
    /// Folder of the one controller that leads to it; `None` where there are several, or none.
    pub(super) controller_folder: Option<PathBuf>,
}

/// Describes `entry`, if it is an NVMe namespace.
pub(super) fn describe(root: &Root, entry: &Entry, fabric: &Fabric, attributes: &mut Attributes) -> Option<Namespace> {
    if !entry.name.starts_with("nvme") {
        return None;
    }
    let owner = controller::owner(root, entry)?;
    let nsid = attributes.number32(&entry.folder.join("nsid"));
    let mut paths = Vec::new();
    let (reaching, subsystem) = match fabric.index(&owner) {
        Some(index) => (vec![index], None),
        None => {
            let subsystem = fabric.subsystem(&owner)?;
            if let Some(nsid) = nsid {
                paths.extend_from_slice(fabric.paths(&owner, nsid));
            }
            let mut reaching: Vec<usize> = paths.iter().map(|path| path.controller).collect();
            reaching.sort_unstable();
            reaching.dedup();
            if reaching.is_empty() {
                reaching.clone_from(&subsystem.controllers);
            }
            (reaching, Some(subsystem))
        }
    };
    let controllers: Vec<&Controller> =
        reaching.iter().filter_map(|index| Some(fabric.controller(*index)?.0)).collect();
    let first = controllers.first().copied();
    let shared =
        |of_subsystem: Option<&String>, of_controller: Option<&String>| of_subsystem.or(of_controller).cloned();
    let model = shared(
        subsystem.and_then(|subsystem| subsystem.model.as_ref()),
        first.and_then(|controller| controller.model.as_ref()),
    );
    let serial = shared(
        subsystem.and_then(|subsystem| subsystem.serial.as_ref()),
        first.and_then(|controller| controller.serial.as_ref()),
    );
    let firmware = shared(
        subsystem.and_then(|subsystem| subsystem.firmware.as_ref()),
        first.and_then(|controller| controller.firmware.as_ref()),
    );
    let nqn = shared(
        subsystem.and_then(|subsystem| subsystem.nqn.as_ref()),
        first.and_then(|controller| controller.subsystem_nqn.as_ref()),
    );
    let transport = controller::common_transport(controllers.iter().copied());
    let wwid = attributes.text(&entry.folder.join("wwid"));
    let own = own_id(transport, model.as_deref(), serial.as_deref(), wwid.as_deref(), nsid);
    Some(Namespace {
        nvme: NvmeNamespace {
            nsid,
            subsystem_nqn: nqn,
            controllers: controllers.iter().map(|controller| controller.id.clone()).collect(),
            paths: described(&paths, fabric),
        },
        identity: Identity { vendor: None, model, serial, firmware, wwid, own },
        transport,
        controller_folder: match reaching.as_slice() {
            [only] => fabric.controller(*only).map(|(_, folder)| folder.to_path_buf()),
            _ => None,
        },
    })
}

fn described(paths: &[controller::HiddenPath], fabric: &Fabric) -> Vec<NvmePath> {
    paths
        .iter()
        .filter_map(|path| {
            Some(NvmePath {
                name: path.name.clone(),
                controller: fabric.controller(path.controller)?.0.id.clone(),
                ana_state: path.ana_state.clone(),
            })
        })
        .collect()
}

/// Model, serial number and NSID for a local drive, whose world-wide id may be another drive's as well; the world-wide
/// id for a namespace of an array, where many share the array's serial number.
fn own_id(
    transport: Transport,
    model: Option<&str>,
    serial: Option<&str>,
    wwid: Option<&str>,
    nsid: Option<u32>,
) -> Option<String> {
    let by_wwid = || {
        let wwid = wwid.filter(|wwid| ["uuid.", "eui."].iter().any(|kind| wwid.starts_with(kind)));
        wwid.map(|wwid| id::joined("nvme", &[wwid]))
    };
    let by_serial = || {
        let serial = serial.filter(|serial| !inquiry::says_nothing(serial))?;
        let nsid = nsid?.to_string();
        Some(id::joined("nvme", &[model.unwrap_or_default(), serial, &nsid]))
    };
    match transport {
        Transport::NvmeFabrics => by_wwid().or_else(by_serial),
        _ => by_serial().or_else(by_wwid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_world_wide_id_counts_on_fabrics_only() {
        let id = |transport| own_id(transport, Some("ACME  A1"), Some("S1"), Some("eui.00aa"), Some(2));
        assert_eq!(id(Transport::NvmePcie).as_deref(), Some("nvme-ACME_A1_S1_2"));
        assert_eq!(id(Transport::NvmeFabrics).as_deref(), Some("nvme-eui.00aa"));
        assert_eq!(own_id(Transport::NvmePcie, None, Some("0000"), None, Some(1)), None);
    }
}
