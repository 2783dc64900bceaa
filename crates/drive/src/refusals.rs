//! What drives have refused: asked once, remembered by model and firmware.
//!
//! A refused command adds an entry to the drive's own error log, so a monitor that asks again raises the count that it
//! watches.

use std::collections::BTreeMap;
use std::fmt;

use crate::command::CommandId;
use crate::error::{CommandError, PageError};
use crate::identify_controller::IdentifyController;
use crate::status::Status;

/// Most refusals that are remembered; beyond it new ones are not, and are asked again.
pub const MAX_REFUSALS: usize = 4096;

/// Drives that answer alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveKind {
    /// Model, trimmed.
    pub model: String,
    /// Firmware revision, trimmed: an update may add a page.
    pub firmware: String,
}

impl DriveKind {
    /// The kind of a controller.
    #[must_use]
    pub fn of(identify: &IdentifyController) -> Self {
        Self { model: identify.model.clone(), firmware: identify.firmware.clone() }
    }
}

/// Why a drive is not asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It answered with this status (001h, 002h or 109h).
    Status(Status),
    /// It answered with a page of another format.
    Foreign,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "refused: {status}"),
            Self::Foreign => f.write_str("the vendor's own page, not OCP's"),
        }
    }
}

/// Refusals by kind of drive and command label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    by_drive: BTreeMap<(DriveKind, String), Refusal>,
}

impl Refusals {
    /// Remembers a failure if it will not go away by itself. True if it is newly remembered.
    pub fn note(&mut self, drive: &DriveKind, command: CommandId, error: &CommandError) -> bool {
        let refusal = match error {
            CommandError::Status { status, .. } if status.is_refusal() => Refusal::Status(*status),
            CommandError::Page(PageError::Foreign { .. }) => Refusal::Foreign,
            _ => return false,
        };
        self.restore(drive.clone(), command.label(), refusal)
    }

    /// Puts back a refusal that was saved. True if it is newly remembered.
    pub fn restore(&mut self, drive: DriveKind, command_label: &str, refusal: Refusal) -> bool {
        let key = (drive, command_label.to_owned());
        if self.by_drive.len() >= MAX_REFUSALS || self.by_drive.contains_key(&key) {
            return false;
        }
        self.by_drive.insert(key, refusal);
        true
    }

    /// Why this drive is not asked this again.
    #[must_use]
    pub fn find(&self, drive: &DriveKind, command: CommandId) -> Option<Refusal> {
        let key = (drive.clone(), command.label().to_owned());
        self.by_drive.get(&key).copied()
    }

    /// Everything remembered, to be saved: drive, command label, refusal.
    pub fn iter(&self) -> impl Iterator<Item = (&DriveKind, &str, Refusal)> {
        self.by_drive.iter().map(|((drive, label), refusal)| (drive, label.as_str(), *refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::LogPage;

    const OCP: CommandId = CommandId::GetLog(LogPage::OcpSmart);

    fn drive(firmware: &str) -> DriveKind {
        DriveKind { model: "MADE UP 1000".to_owned(), firmware: firmware.to_owned() }
    }

    fn answer(code: u16) -> CommandError {
        CommandError::Status { command: OCP, status: Status::from_ioctl(code) }
    }

    #[test]
    fn only_lasting_refusals_are_remembered() {
        for code in [0x001, 0x4002, 0x2109] {
            assert!(Refusals::default().note(&drive("1"), OCP, &answer(code)), "{code:x}");
        }
        for code in [0x006, 0x01d, 0x281, 0x371] {
            assert!(!Refusals::default().note(&drive("1"), OCP, &answer(code)), "{code:x}");
        }
        let errno = CommandError::Errno { command: OCP, errno: 5 };
        assert!(!Refusals::default().note(&drive("1"), OCP, &errno));
    }

    #[test]
    fn a_refusal_belongs_to_model_firmware_and_command() {
        let mut refusals = Refusals::default();
        assert!(refusals.note(&drive("1"), OCP, &answer(0x2109)));
        assert!(!refusals.note(&drive("1"), OCP, &answer(0x2109)));
        let found = refusals.find(&drive("1"), OCP).unwrap();
        assert_eq!(found.to_string(), "refused: invalid log page (109h)");
        assert_eq!(refusals.find(&drive("2"), OCP), None);
        assert_eq!(refusals.find(&drive("1"), CommandId::GetLog(LogPage::SmartHealth)), None);
    }

    #[test]
    fn refusals_survive_being_saved() {
        let mut refusals = Refusals::default();
        refusals.note(&drive("1"), OCP, &answer(0x2109));
        let foreign = CommandError::Page(PageError::Foreign { page: "p", guid: 0 });
        refusals.note(&drive("2"), OCP, &foreign);
        let mut restored = Refusals::default();
        for (drive, label, refusal) in refusals.iter() {
            assert!(restored.restore(drive.clone(), label, refusal));
        }
        assert_eq!(restored, refusals);
    }

    #[test]
    fn memory_is_bounded() {
        let mut refusals = Refusals::default();
        for number in 0..=MAX_REFUSALS {
            refusals.restore(drive(&number.to_string()), "log", Refusal::Foreign);
        }
        assert_eq!(refusals.iter().count(), MAX_REFUSALS);
    }
}
