//! What a view tells of who a drive is. Applied to a whole view, so that no renderer can tell more.

use crate::device::{Controller, Device};
use crate::finding::Finding;
use crate::identity::{ControllerId, DeviceId, Subject};
use crate::reading::Reading;
use crate::view::View;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands before a serial number in texts for people.
const MARK: &str = "S/N ";

/// How serial numbers, world-wide ids and what is made of them are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Serials {
    /// As they are.
    #[default]
    Full,
    /// As pseudonyms, the same everywhere and always. Who knows a serial number finds its pseudonym: it is no secret.
    Hash,
    /// Not at all; drives are told apart by kernel name.
    None,
}

/// `view` as it may be told.
pub fn veiled(mut view: View, how: Serials) -> View {
    if how == Serials::Full {
        return view;
    }
    let veil = Veil::new(&view, how);
    for device in &mut view.devices {
        device.state.device = Arc::new(veil.device(&device.state.device));
    }
    for controller in &mut view.controllers {
        controller.state.controller = Arc::new(veil.controller(&controller.state.controller));
        veil.reading(&mut controller.state.identify, |veil, identify| {
            identify.serial = veil.text(&identify.serial).unwrap_or_default();
        });
    }
    for finding in view.findings.iter_mut().chain(&mut view.closed) {
        veil.finding(finding);
    }
    view
}

struct Veil {
    how: Serials,
    /// Kernel names by identity.
    devices: BTreeMap<DeviceId, String>,
    controllers: BTreeMap<ControllerId, String>,
}

impl Veil {
    fn new(view: &View, how: Serials) -> Self {
        let devices = view.devices.iter().map(|known| &known.state.device);
        let controllers = view.controllers.iter().map(|known| &known.state.controller);
        Self {
            how,
            devices: devices.map(|device| (device.id.clone(), device.name.clone())).collect(),
            controllers: controllers.map(|known| (known.id.clone(), known.name.clone())).collect(),
        }
    }

    fn text(&self, text: &str) -> Option<String> {
        (self.how == Serials::Hash).then(|| pseudonym(text))
    }

    fn maybe(&self, text: Option<&String>) -> Option<String> {
        text.and_then(|text| self.text(text))
    }

    /// What a weak identity tells is a place, which stays told.
    fn device_id(&self, id: &DeviceId) -> DeviceId {
        let known = || self.devices.get(id).map_or_else(|| "unknown".to_owned(), |name| format!("name:{name}"));
        let prefix = if id.is_weak() { DeviceId::WEAK_PREFIX } else { "" };
        DeviceId(format!("{prefix}{}", self.text(&id.0).unwrap_or_else(known)))
    }

    fn controller_id(&self, id: &ControllerId) -> ControllerId {
        let known = || self.controllers.get(id).map_or_else(|| "unknown".to_owned(), |name| format!("name:{name}"));
        ControllerId(self.text(&id.0).unwrap_or_else(known))
    }

    fn device(&self, device: &Device) -> Device {
        let mut told = device.clone();
        told.id = self.device_id(&device.id);
        told.serial = self.maybe(device.serial.as_ref());
        told.wwid = self.maybe(device.wwid.as_ref());
        if let Some(nvme) = &mut told.nvme {
            nvme.subsystem_nqn = self.maybe(nvme.subsystem_nqn.as_ref());
            nvme.controllers.iter_mut().for_each(|id| *id = self.controller_id(id));
            nvme.paths.iter_mut().for_each(|path| path.controller = self.controller_id(&path.controller));
        }
        told
    }

    fn controller(&self, controller: &Controller) -> Controller {
        let mut told = controller.clone();
        told.id = self.controller_id(&controller.id);
        told.serial = self.maybe(controller.serial.as_ref());
        told.subsystem_nqn = self.maybe(controller.subsystem_nqn.as_ref());
        told
    }

    fn finding(&self, finding: &mut Finding) {
        finding.subject = match &finding.subject {
            Subject::Host => Subject::Host,
            Subject::Device(id) => Subject::Device(self.device_id(id)),
            Subject::Controller(id) => Subject::Controller(self.controller_id(id)),
        };
        finding.evidence.iter_mut().for_each(|line| *line = self.line(line));
    }

    /// A line for people, with what follows [`MARK`] replaced up to the next comma.
    fn line(&self, line: &str) -> String {
        let mut told = String::with_capacity(line.len());
        let mut rest = line;
        while let Some((before, after)) = rest.split_once(MARK) {
            let (serial, behind) = after.split_at(after.find(',').unwrap_or(after.len()));
            told.push_str(before);
            told.push_str(MARK);
            told.push_str(&self.text(serial).unwrap_or_else(|| "not told".to_owned()));
            rest = behind;
        }
        told.push_str(rest);
        told
    }

    fn reading<T: Clone>(&self, reading: &mut Reading<T>, change: impl Fn(&Self, &mut T)) {
        if let Some(stamped) = reading.last_mut() {
            change(self, Arc::make_mut(&mut stamped.value));
        }
    }
}

/// Twelve hexadecimal digits of the FNV-1a hash of `text`: of a fleet of a hundred thousand drives two share one with a
/// probability of 2 in 100,000.
fn pseudonym(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{:012x}", hash & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn veil(how: Serials) -> Veil {
        Veil { how, devices: BTreeMap::new(), controllers: BTreeMap::new() }
    }

    #[test]
    fn a_pseudonym_is_the_same_in_every_release() {
        // FNV-1a of the empty string and of "a" (draft-eastlake-fnv).
        assert_eq!(pseudonym(""), "9ce484222325");
        assert_eq!(pseudonym("a"), "dc4c8601ec8c");
        assert_ne!(pseudonym("S1"), pseudonym("S2"));
    }

    #[test]
    fn serial_numbers_in_lines_are_replaced() {
        let line = "MODEL 1, S/N SECRET 7, PCIe 0000:01:00.0";
        let hidden = veil(Serials::Hash).line(line);
        assert_eq!(hidden, format!("MODEL 1, S/N {}, PCIe 0000:01:00.0", pseudonym("SECRET 7")));
        assert_eq!(veil(Serials::None).line(line), "MODEL 1, S/N not told, PCIe 0000:01:00.0");
        assert_eq!(veil(Serials::None).line("12 errors"), "12 errors");
    }
}
