//! NVMe controllers and subsystems (drivers/nvme/host/sysfs.c).

use super::attributes::Attributes;
use super::dump;
use super::id::{self, Candidate};
use super::inquiry;
use super::pci::{self, Slots};
use super::place;
use super::sysfs::{self, Entry, MAX_ENTRIES};
use super::transport;
use crate::root::Root;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use storscope_model::device::{Controller, Transport};
use storscope_model::identity::ControllerId;

/// Controller and subsystem folders, before their attributes are read.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Kernel name and folder, links resolved.
    controllers: BTreeMap<String, PathBuf>,
    /// Subsystem folders with the folders of their controllers.
    subsystems: BTreeMap<PathBuf, Vec<PathBuf>>,
}

/// Controllers of `class/nvme`, of the subsystems, and those that namespaces lead to: captured trees lack one or other.
pub(super) fn find(root: &Root, entries: &[Entry], attributes: &mut Attributes) -> Found {
    let mut found = Found::default();
    let class = root.sys("class/nvme");
    for name in attributes.list(&class, MAX_ENTRIES) {
        if let Some(folder) = root.resolve(&class.join(&name))
            && attributes.is_folder(&folder)
        {
            found.controllers.insert(name, folder);
        }
    }
    let class = root.sys("class/nvme-subsystem");
    for name in attributes.list(&class, MAX_ENTRIES) {
        if let Some(folder) = root.resolve(&class.join(&name)) {
            found.add_subsystem(root, folder, attributes);
        }
    }
    for entry in entries.iter().filter(|entry| may_be_namespace(entry)) {
        let Some(owner) = owner(root, entry) else {
            continue;
        };
        if is_controller(&owner) {
            found.add_controller(owner);
        } else if is_subsystem(&owner) {
            found.add_subsystem(root, owner, attributes);
        }
    }
    found
}

impl Found {
    fn add_controller(&mut self, folder: PathBuf) {
        let name = file_name(&folder).to_owned();
        if !name.is_empty() {
            self.controllers.entry(name).or_insert(folder);
        }
    }

    fn add_subsystem(&mut self, root: &Root, folder: PathBuf, attributes: &mut Attributes) {
        if self.subsystems.contains_key(&folder) {
            return;
        }
        let mut members = Vec::new();
        for name in attributes.list(&folder, MAX_ENTRIES) {
            let member = root.resolve(&folder.join(&name));
            if let Some(member) = member.filter(|member| is_controller(member)) {
                self.add_controller(member.clone());
                members.push(member);
            }
        }
        self.subsystems.insert(folder, members);
    }
}

fn file_name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn may_be_namespace(entry: &Entry) -> bool {
    entry.parent.is_none() && entry.name.starts_with("nvme")
}

/// What a namespace or path belongs to: its `device` link, or the folder that it lies in.
pub(super) fn owner(root: &Root, entry: &Entry) -> Option<PathBuf> {
    root.resolve(&entry.folder.join("device"))
        .filter(|folder| folder.is_dir())
        .filter(|folder| is_controller(folder) || is_subsystem(folder))
        .or_else(|| entry.folder.parent().map(Path::to_path_buf))
}

fn is_controller(folder: &Path) -> bool {
    folder.join("transport").is_file() || folder.join("cntlid").is_file()
}

fn is_subsystem(folder: &Path) -> bool {
    folder.join("subsysnqn").is_file() && !is_controller(folder)
}

/// A subsystem: what its controllers share.
#[derive(Debug, Default)]
pub(super) struct Subsystem {
    pub(super) nqn: Option<String>,
    pub(super) model: Option<String>,
    pub(super) serial: Option<String>,
    pub(super) firmware: Option<String>,
    /// Indices into the controllers, by kernel name.
    pub(super) controllers: Vec<usize>,
}

/// A path of a multipath head: a hidden block device.
#[derive(Debug, Clone)]
pub(super) struct HiddenPath {
    pub(super) name: String,
    /// Index into the controllers.
    pub(super) controller: usize,
    pub(super) ana_state: Option<String>,
}

/// Controllers and subsystems, described, and how they hang together.
#[derive(Debug, Default)]
pub(super) struct Fabric {
    /// Those in sysfs, by kernel name, then those that are only in a capture's dumps.
    controllers: Vec<Controller>,
    /// Folders of those in sysfs, in the same order.
    folders: Vec<PathBuf>,
    by_folder: BTreeMap<PathBuf, usize>,
    subsystems: BTreeMap<PathBuf, Subsystem>,
    /// By subsystem and namespace id, which is what paths share with their head.
    paths: BTreeMap<(PathBuf, u32), Vec<HiddenPath>>,
}

impl Fabric {
    /// Reads what `found` names, and the hidden paths among `entries`.
    pub(super) fn describe(
        root: &Root,
        found: Found,
        entries: &[Entry],
        slots: &Slots,
        attributes: &mut Attributes,
    ) -> Self {
        let mut named: Vec<(String, PathBuf)> = found.controllers.into_iter().collect();
        named.sort_by(|(a, _), (b, _)| sysfs::by_kernel_name(a, b));
        let mut fabric = Self {
            by_folder: named.iter().enumerate().map(|(index, (_, folder))| (folder.clone(), index)).collect(),
            ..Self::default()
        };
        for (folder, members) in found.subsystems {
            let subsystem = fabric.read_subsystem(&folder, &members, attributes);
            fabric.subsystems.insert(folder, subsystem);
        }
        let mut candidates = Vec::with_capacity(named.len());
        for (name, folder) in &named {
            let subsystem = fabric.subsystem_of(folder);
            let controller = read(root, name, folder, subsystem, slots, attributes);
            candidates.push(candidate(root, &controller, folder));
            fabric.controllers.push(controller);
        }
        let known = |name: &str| named.iter().any(|(known, _)| known == name);
        for controller in dump::controllers(root, known, attributes) {
            candidates.push(Candidate {
                own: own_id(&controller),
                place: format!("captured-{}", controller.name),
                name: controller.name.clone(),
            });
            fabric.controllers.push(controller);
        }
        for (controller, id) in fabric.controllers.iter_mut().zip(id::settle(&candidates)) {
            controller.id = ControllerId(id);
        }
        fabric.folders = named.into_iter().map(|(_, folder)| folder).collect();
        for entry in entries.iter().filter(|entry| entry.hidden) {
            fabric.add_path(root, entry, attributes);
        }
        fabric
    }

    fn read_subsystem(&self, folder: &Path, members: &[PathBuf], attributes: &mut Attributes) -> Subsystem {
        let mut controllers: Vec<usize> =
            members.iter().filter_map(|member| self.by_folder.get(member).copied()).collect();
        controllers.sort_unstable();
        let name = file_name(folder);
        attributes.about(name);
        let subsystem = Subsystem {
            nqn: attributes.text(&folder.join("subsysnqn")),
            model: attributes.text(&folder.join("model")),
            serial: attributes.text(&folder.join("serial")),
            firmware: attributes.text(&folder.join("firmware_rev")),
            controllers,
        };
        if attributes.is_unread(name) {
            members.iter().for_each(|member| attributes.mark_unread(file_name(member)));
        }
        subsystem
    }

    fn subsystem_of(&self, controller: &Path) -> Option<&Subsystem> {
        let index = self.by_folder.get(controller)?;
        self.subsystems.values().find(|subsystem| subsystem.controllers.contains(index))
    }

    fn add_path(&mut self, root: &Root, entry: &Entry, attributes: &mut Attributes) {
        let Some(controller) = owner(root, entry).and_then(|folder| self.index(&folder)) else {
            return;
        };
        // What is missing of a path is missing of every namespace that its controller leads to.
        attributes.about(self.controllers.get(controller).map_or("", |controller| controller.name.as_str()));
        let subsystem = self.subsystems.iter().find(|(_, subsystem)| subsystem.controllers.contains(&controller));
        let (Some((subsystem, _)), Some(nsid)) = (subsystem, attributes.number32(&entry.folder.join("nsid"))) else {
            return;
        };
        let path = HiddenPath {
            name: entry.name.clone(),
            controller,
            ana_state: attributes.text(&entry.folder.join("ana_state")),
        };
        self.paths.entry((subsystem.clone(), nsid)).or_default().push(path);
    }

    /// The controller whose folder is `folder`.
    pub(super) fn index(&self, folder: &Path) -> Option<usize> {
        self.by_folder.get(folder).copied()
    }

    /// The subsystem whose folder is `folder`.
    pub(super) fn subsystem(&self, folder: &Path) -> Option<&Subsystem> {
        self.subsystems.get(folder)
    }

    /// The controller at `index` and its folder.
    pub(super) fn controller(&self, index: usize) -> Option<(&Controller, &Path)> {
        Some((self.controllers.get(index)?, self.folders.get(index)?))
    }

    /// The paths to namespace `nsid` of the subsystem in `folder`.
    pub(super) fn paths(&self, folder: &Path, nsid: u32) -> &[HiddenPath] {
        self.paths.get(&(folder.to_path_buf(), nsid)).map_or(&[], Vec::as_slice)
    }

    /// All controllers.
    pub(super) fn into_controllers(self) -> Vec<Controller> {
        self.controllers
    }
}

fn read(
    root: &Root,
    name: &str,
    folder: &Path,
    subsystem: Option<&Subsystem>,
    slots: &Slots,
    attributes: &mut Attributes,
) -> Controller {
    attributes.about(name);
    let function = pci::nearest(folder);
    let word = attributes.text(&folder.join("transport"));
    let shared = |pick: fn(&Subsystem) -> &Option<String>| subsystem.and_then(|s| pick(s).clone());
    let numa_node = match &function {
        Some((function, _)) => attributes.numa_node(function),
        None => None,
    };
    Controller {
        id: ControllerId(String::new()),
        name: name.to_owned(),
        transport: transport::of_controller(word.as_deref(), function.is_some()),
        model: attributes.text(&folder.join("model")).or_else(|| shared(|subsystem| &subsystem.model)),
        serial: attributes.text(&folder.join("serial")).or_else(|| shared(|subsystem| &subsystem.serial)),
        firmware: attributes.text(&folder.join("firmware_rev")).or_else(|| shared(|subsystem| &subsystem.firmware)),
        cntlid: attributes.number32(&folder.join("cntlid")),
        subsystem_nqn: attributes.text(&folder.join("subsysnqn")).or_else(|| shared(|subsystem| &subsystem.nqn)),
        address: attributes
            .text(&folder.join("address"))
            .or_else(|| function.as_ref().map(|(_, address)| address.clone())),
        numa_node: numa_node.or_else(|| attributes.numa_node(folder)),
        place: place::of(root, folder, None, slots, attributes),
        pci_address: function.map(|(_, address)| address),
    }
}

fn candidate(root: &Root, controller: &Controller, folder: &Path) -> Candidate {
    let place = match (&controller.pci_address, &controller.address) {
        (None, Some(address)) => address.clone(),
        _ => place::path(root, folder, &controller.name),
    };
    Candidate { own: own_id(controller), place: format!("nvme-{place}"), name: controller.name.clone() }
}

/// Model, serial number and CNTLID: two controllers of one drive differ in the last.
fn own_id(controller: &Controller) -> Option<String> {
    let serial = controller.serial.as_deref().filter(|serial| !inquiry::says_nothing(serial))?;
    let model = controller.model.as_deref().unwrap_or_default();
    let own = id::joined("nvme", &[model, serial]);
    Some(match controller.cntlid {
        Some(cntlid) => format!("{own}_cntlid{cntlid}"),
        None => own,
    })
}

/// The transport that a namespace is reached by: its controllers', which agree.
pub(super) fn common_transport<'a>(controllers: impl Iterator<Item = &'a Controller>) -> Transport {
    controllers.map(|controller| controller.transport).next().unwrap_or(Transport::NvmeOther)
}
