//! Devices that vanished: what each was, for as long as its absence is a finding.

use crate::device::{Device, Transport};
use crate::finding::{Finding, Since};
use crate::identity::DeviceId;
use crate::memory::{GoneMemory, Moment};
use crate::snapshot::Snapshot;
use crate::time::{BootTime, ClockSync};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::MAX_VANISHED;

/// How long a device must have been there for its absence alone to be a finding.
const SETTLED: Duration = Duration::from_secs(60);

/// How long the kernel may take to remove a drive that was pulled.
const PULLED: Duration = Duration::from_secs(10);

/// Rules that open when a drive is pulled.
const FAILS_WHEN_PULLED: [&str; 2] = ["probe_errors", "source_failing"];

/// A device as it was when it was last looked at.
#[derive(Debug, Clone)]
pub(super) struct LastSeen {
    pub(super) device: Arc<Device>,
    pub(super) appeared: BootTime,
    /// What it carried; kept when the stack no longer says.
    pub(super) carries: Vec<String>,
    /// Title of its worst open finding, warning or critical.
    pub(super) trouble: Option<String>,
}

/// False of a finding that may be the vanishing itself: reads of a drive that is pulled fail before the kernel takes it away.
pub(super) fn ails(finding: &Finding, now: BootTime) -> bool {
    let fresh = matches!(finding.since, Since::Boot(at) if now.since(at) < PULLED);
    !(fresh && FAILS_WHEN_PULLED.contains(&finding.rule))
}

/// A device whose absence is a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gone {
    /// Its last kernel name.
    pub name: String,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Attachment, PCI address and place, in words.
    pub place: String,
    /// Title of the worst finding, warning or critical, that was open as it vanished.
    pub trouble: Option<String>,
    /// What it carried.
    pub carries: Vec<String>,
    /// When it vanished.
    pub since: Since,
    /// True when a former run saw it vanish.
    restored: bool,
}

impl Gone {
    /// What `last` leaves behind: a device in trouble always, any other only when it was there for a while and is of a
    /// kind that nobody takes away in passing.
    fn of(last: &LastSeen, now: BootTime) -> Option<Self> {
        let device = &last.device;
        let missed = fixed(device) && now.since(last.appeared) >= SETTLED;
        (missed || last.trouble.is_some()).then(|| Self {
            name: device.name.clone(),
            model: device.model.clone(),
            serial: device.serial.clone(),
            place: place(device),
            trouble: last.trouble.clone(),
            carries: last.carries.clone(),
            since: Since::Boot(now),
            restored: false,
        })
    }

    fn memory(&self, id: &DeviceId, clock: &ClockSync) -> GoneMemory {
        GoneMemory {
            device: id.0.clone(),
            name: self.name.clone(),
            model: self.model.clone(),
            serial: self.serial.clone(),
            place: self.place.clone(),
            trouble: self.trouble.clone(),
            carries: self.carries.clone(),
            since: Moment::of(self.since, clock),
        }
    }

    fn restore(memory: &GoneMemory, clock: &ClockSync) -> Self {
        Self {
            name: memory.name.clone(),
            model: memory.model.clone(),
            serial: memory.serial.clone(),
            place: memory.place.clone(),
            trouble: memory.trouble.clone(),
            carries: memory.carries.clone(),
            since: memory.since.since(clock),
            restored: true,
        }
    }
}

/// True of drives that are built in: not of what is plugged, attached over a session or set up by software.
fn fixed(device: &Device) -> bool {
    let built_in = match device.transport {
        Transport::NvmePcie
        | Transport::NvmeFabrics
        | Transport::NvmeOther
        | Transport::Sata
        | Transport::Sas
        | Transport::Scsi
        | Transport::FibreChannel
        | Transport::Virtio
        | Transport::Xen => true,
        Transport::Iscsi
        | Transport::Usb
        | Transport::Mmc
        | Transport::Loop
        | Transport::DeviceMapper
        | Transport::Md
        | Transport::Zram
        | Transport::Ram
        | Transport::Nbd
        | Transport::Rbd
        | Transport::Optical
        | Transport::Floppy
        | Transport::Other => false,
    };
    built_in && device.removable != Some(true)
}

fn place(device: &Device) -> String {
    let of = &device.place;
    let parts = [
        Some(device.transport.as_str().to_owned()),
        device.pci_address.clone(),
        of.enclosure.as_ref().map(|enclosure| format!("enclosure {enclosure}")),
        of.bay.as_ref().map(|bay| format!("bay {bay}")),
        of.slot.as_ref().map(|slot| format!("slot {slot}")),
        of.port.as_ref().map(|port| format!("port {port}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// The devices whose absence is a finding, by identity; at most [`MAX_VANISHED`].
#[derive(Debug, Clone, Default)]
pub struct AllGone(BTreeMap<DeviceId, Gone>);

impl AllGone {
    pub(super) fn restore(memory: &[GoneMemory], clock: &ClockSync) -> Self {
        let known = memory.iter().take(MAX_VANISHED);
        Self(known.map(|gone| (DeviceId(gone.device.clone()), Gone::restore(gone, clock))).collect())
    }

    pub(super) fn memory(&self, clock: &ClockSync) -> Vec<GoneMemory> {
        self.0.iter().map(|(id, gone)| gone.memory(id, clock)).collect()
    }

    /// Notes that a device vanished.
    pub(super) fn add(&mut self, id: &DeviceId, last: &LastSeen, now: BootTime) {
        if let Some(gone) = Gone::of(last, now) {
            self.0.insert(id.clone(), gone);
        }
    }

    /// Lets go of what is back, of what vanished longer than `keep` ago, and of the oldest past the bound.
    pub(super) fn forget(&mut self, snapshot: &Snapshot, keep: Duration, now: BootTime) {
        let age = |gone: &Gone| gone.since.elapsed(now, snapshot.clock.wall_offset_ns);
        // A weak identity is only a place: when its name is in use again, the place is taken, or has got its true identity.
        let taken = |id: &DeviceId, gone: &Gone| {
            id.is_weak() && snapshot.devices.values().any(|state| state.device.name == gone.name)
        };
        self.0.retain(|id, gone| !snapshot.devices.contains_key(id) && age(gone) < keep && !taken(id, gone));
        while self.0.len() > MAX_VANISHED {
            let oldest = self.0.iter().max_by_key(|(_, gone)| age(gone)).map(|(id, _)| id.clone());
            if let Some(id) = oldest {
                self.0.remove(&id);
            }
        }
    }

    /// True while the absence of `id` is a finding.
    pub(super) fn contains(&self, id: &DeviceId) -> bool {
        self.0.contains_key(id)
    }

    /// What is known to be gone. What a former run saw vanish counts only once this run has looked for it.
    pub(crate) fn iter<'a>(&'a self, snapshot: &Snapshot) -> impl Iterator<Item = (&'a DeviceId, &'a Gone)> {
        let looked = snapshot.host.discovery.last().is_some();
        self.0.iter().filter(move |(_, gone)| looked || !gone.restored)
    }
}
