//! One whole block device, described.

use super::attributes::Attributes;
use super::controller::Fabric;
use super::id::{self, Candidate};
use super::inquiry;
use super::mmc;
use super::namespace;
use super::pci::{self, Slots};
use super::place;
use super::scsi;
use super::sysfs::Entry;
use super::transport;
use crate::attribute::is_there;
use crate::root::Root;
use std::path::{Path, PathBuf};
use storscope_model::device::{DevNum, Device, Transport, Zoned};
use storscope_model::identity::DeviceId;

/// Bytes of the unit that sysfs counts sizes in, whatever the logical block size
/// (Documentation/ABI/stable/sysfs-block).
const SECTOR: u64 = 512;

/// What a device says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Identity {
    pub(super) vendor: Option<String>,
    pub(super) model: Option<String>,
    pub(super) serial: Option<String>,
    pub(super) firmware: Option<String>,
    pub(super) wwid: Option<String>,
    /// Identity that follows the device; `None` when it says nothing that tells it from another.
    pub(super) own: Option<String>,
}

/// A device whose identity is not known to be unique yet.
#[derive(Debug)]
pub(super) struct Draft {
    device: Device,
    candidate: Candidate,
}

/// Describes the whole disk `entry`.
pub(super) fn describe(
    root: &Root,
    entry: &Entry,
    fabric: &Fabric,
    slots: &Slots,
    attributes: &mut Attributes,
) -> Draft {
    attributes.about(&entry.name);
    let link = root.resolve(&entry.folder.join("device")).filter(|folder| folder.is_dir());
    if let Some(namespace) = namespace::describe(root, entry, fabric, attributes) {
        let place = match &namespace.controller_folder {
            Some(folder) => place::path(root, &folder.join(&entry.name), &entry.name),
            None => place::path(root, &entry.folder, &entry.name),
        };
        let nsid = namespace.nvme.nsid.map_or_else(String::new, |nsid| nsid.to_string());
        let mut draft =
            draft(entry, namespace.transport, namespace.identity, format!("{place}-nvme-{nsid}"), attributes);
        let anchor = namespace.controller_folder.unwrap_or_else(|| entry.folder.clone());
        locate(root, &mut draft.device, &anchor, None, slots, attributes);
        draft.device.nvme = Some(namespace.nvme);
        return draft;
    }
    let (transport, identity) = identify(entry, link.as_deref(), attributes);
    let place = place::path(root, &entry.folder, &entry.name);
    let mut draft = draft(entry, transport, identity, place, attributes);
    locate(root, &mut draft.device, &entry.folder, link.as_deref(), slots, attributes);
    draft
}

fn identify(entry: &Entry, link: Option<&Path>, attributes: &mut Attributes) -> (Transport, Identity) {
    let vendor =
        link.filter(|link| is_there(&link.join("model"))).and_then(|link| attributes.text(&link.join("vendor")));
    let transport = transport::of(&entry.folder, &entry.name, vendor.as_deref());
    let own_uuid = |path: &str, prefix: &str, attributes: &mut Attributes| {
        let uuid = attributes.text(&entry.folder.join(path));
        Identity { own: uuid.map(|uuid| id::joined(prefix, &[&uuid])), ..Identity::default() }
    };
    let identity = match (transport, link) {
        (Transport::DeviceMapper, _) => own_uuid("dm/uuid", "dm-uuid", attributes),
        (Transport::Md, _) => own_uuid("md/uuid", "md-uuid", attributes),
        (Transport::Mmc, Some(link)) => mmc::identify(link, &entry.name, attributes),
        (_, Some(link)) if is_there(&link.join("scsi_level")) || is_there(&link.join("rev")) => {
            scsi::identify(link, vendor, transport, attributes)
        }
        (Transport::Virtio, _) => virtio(&entry.folder, attributes),
        _ => Identity::default(),
    };
    (transport, identity)
}

/// virtio-blk has a serial number of up to 20 bytes that the host gives (VIRTIO 1.3, section 5.2.6).
fn virtio(folder: &Path, attributes: &mut Attributes) -> Identity {
    let serial = attributes.text(&folder.join("serial"));
    let telling = serial.as_deref().filter(|serial| !inquiry::says_nothing(serial));
    Identity { own: telling.map(|serial| id::joined("virtio", &[serial])), serial, ..Identity::default() }
}

fn draft(entry: &Entry, transport: Transport, identity: Identity, place: String, attributes: &mut Attributes) -> Draft {
    let candidate = Candidate { own: identity.own.clone(), place, name: entry.name.clone() };
    let mut device = geometry(entry, transport, attributes);
    device.vendor = identity.vendor;
    device.model = identity.model;
    device.serial = identity.serial;
    device.firmware = identity.firmware;
    device.wwid = identity.wwid;
    Draft { device, candidate }
}

/// What the block layer itself says of any block device, partitions included.
pub(super) fn geometry(entry: &Entry, transport: Transport, attributes: &mut Attributes) -> Device {
    let folder = &entry.folder;
    let queue = folder.join("queue");
    let size = attributes.number(&folder.join("size"));
    Device {
        id: DeviceId(String::new()),
        name: entry.name.clone(),
        devnum: attributes.text(&folder.join("dev")).and_then(|text| parse_devnum(&text)),
        transport,
        vendor: None,
        model: None,
        serial: None,
        firmware: None,
        wwid: None,
        size_bytes: size.and_then(|sectors| sectors.checked_mul(SECTOR)),
        logical_block_bytes: attributes.number32(&queue.join("logical_block_size")),
        rotational: attributes.flag(&queue.join("rotational")),
        removable: attributes.flag(&folder.join("removable")),
        read_only: attributes.flag(&folder.join("ro")),
        zoned: zoned(&queue, attributes),
        pci_address: None,
        numa_node: None,
        place: storscope_model::device::Place::default(),
        partition_of: None,
        nvme: None,
    }
}

fn zoned(queue: &Path, attributes: &mut Attributes) -> Option<Zoned> {
    match attributes.text(&queue.join("zoned"))?.as_str() {
        "none" => Some(Zoned::None),
        "host-aware" => Some(Zoned::HostAware),
        "host-managed" => Some(Zoned::HostManaged),
        _ => None,
    }
}

/// `major:minor` as in the attribute `dev` and in mountinfo.
pub(crate) fn parse_devnum(text: &str) -> Option<DevNum> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(DevNum { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

fn locate(
    root: &Root,
    device: &mut Device,
    folder: &Path,
    link: Option<&Path>,
    slots: &Slots,
    attributes: &mut Attributes,
) {
    let function: Option<(PathBuf, String)> = pci::nearest(folder);
    device.place = place::of(root, folder, link, slots, attributes);
    device.numa_node = match &function {
        Some((function, _)) => attributes.numa_node(function),
        None => None,
    };
    device.pci_address = function.map(|(_, address)| address);
}

/// The devices with identities that are unique among them.
pub(super) fn settle(drafts: Vec<Draft>) -> Vec<Device> {
    let (mut devices, candidates): (Vec<Device>, Vec<Candidate>) =
        drafts.into_iter().map(|draft| (draft.device, draft.candidate)).unzip();
    for (device, id) in devices.iter_mut().zip(id::settle(&candidates)) {
        device.id = DeviceId(id);
    }
    devices
}
