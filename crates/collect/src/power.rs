//! Runtime power management: whether a device may be asked at all
//! (Documentation/ABI/testing/sysfs-devices-power, `runtime_status`; sysfs-bus-pci, `power_state`).

use crate::attribute::{read_text, require_folder};
use crate::pcie;
use crate::root::Root;
use std::path::Path;
use storscope_model::fault::Fault;
use storscope_model::sample::power::RuntimePower;

/// Folders that are looked at from a device up to the root of the device tree.
pub const MAX_LEVELS: usize = 64;

/// A `runtime_status` (drivers/base/power/sysfs.c, `runtime_status_show`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Active,
    Suspended,
    Suspending,
    Resuming,
    Error,
    Unsupported,
}

impl Status {
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "active" => Some(Self::Active),
            "suspended" => Some(Self::Suspended),
            "suspending" => Some(Self::Suspending),
            "resuming" => Some(Self::Resuming),
            "error" => Some(Self::Error),
            "unsupported" => Some(Self::Unsupported),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Suspending => "suspending",
            Self::Resuming => "resuming",
            Self::Error => "error",
            Self::Unsupported => "unsupported",
        }
    }

    /// Asleep or on its way there.
    const fn asleep(self) -> bool {
        matches!(self, Self::Suspended | Self::Suspending)
    }

    /// Asleep, or on its way there or back.
    pub(crate) const fn not_awake(self) -> bool {
        self.asleep() || matches!(self, Self::Resuming)
    }
}

/// The status of the device whose folder is `folder`; `None` where the kernel gives none.
///
/// # Errors
/// When it cannot be read, or is a word that the kernel does not have.
pub(crate) fn status(folder: &Path) -> Result<Option<Status>, Fault> {
    let path = folder.join("power/runtime_status");
    let Some(text) = read_text(&path)? else {
        return Ok(None);
    };
    match Status::parse(&text) {
        Some(status) => Ok(Some(status)),
        None => Err(Fault::parse(path.display().to_string(), 1, "not a runtime status", text.as_bytes())),
    }
}

/// The power of the device whose resolved sysfs folder is `device` (block device, controller or PCI function) and of
/// everything above it.
///
/// # Errors
/// [`Fault::Gone`] when there is no such folder, else when a status cannot be read: a device of unknown state must not
/// be taken for awake.
pub fn read(root: &Root, device: &Path) -> Result<RuntimePower, Fault> {
    require_folder(device)?;
    let mut power = RuntimePower::default();
    let mut nearest = None;
    let tree = root.sys("devices");
    let above = device.ancestors().take_while(|folder| folder.starts_with(&tree) && **folder != tree);
    for folder in above.take(MAX_LEVELS) {
        let Some(status) = status(folder)? else {
            continue;
        };
        power.suspended |= status.asleep();
        if matches!(nearest, None | Some(Status::Unsupported)) {
            nearest = Some(status);
        }
    }
    power.device = nearest.map(|status| status.as_str().to_owned());
    if let Some(function) = pcie::functions(root, device).first() {
        match read_text(&function.join("power_state")) {
            Ok(text) => power.pci_power_state = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
            Err(fault) => power.faults.push(fault),
        }
    }
    Ok(power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;

    const PORT: &str = "devices/pci0000:00/0000:00:1f.2";
    const DISK: &str = "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0";
    const BLOCK: &str = "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda";

    fn root(statuses: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir_all(root.sys(BLOCK)).unwrap();
        for (folder, word) in statuses {
            let power = root.sys(folder).join("power");
            std::fs::create_dir_all(&power).unwrap();
            std::fs::write(power.join("runtime_status"), format!("{word}\n")).unwrap();
        }
        (dir, root)
    }

    fn power(statuses: &[(&str, &str)]) -> (Option<String>, bool) {
        let (_dir, root) = root(statuses);
        let power = read(&root, &root.sys(BLOCK)).unwrap();
        (power.device, power.suspended)
    }

    #[test]
    fn the_nearest_device_that_manages_power_and_all_above() {
        let word = |text: &str| Some(text.to_owned());
        assert_eq!(power(&[(BLOCK, "unsupported"), (DISK, "active"), (PORT, "active")]), (word("active"), false));
        assert_eq!(power(&[(BLOCK, "unsupported"), (DISK, "suspended"), (PORT, "active")]), (word("suspended"), true));
        assert_eq!(power(&[(BLOCK, "unsupported"), (DISK, "active"), (PORT, "suspending")]), (word("active"), true));
        assert_eq!(power(&[(BLOCK, "unsupported")]), (word("unsupported"), false));
        assert_eq!(power(&[(DISK, "resuming")]), (word("resuming"), false));
        assert_eq!(power(&[(DISK, "error")]), (word("error"), false));
    }

    #[test]
    fn absent_files_are_unknown_and_awake() {
        assert_eq!(power(&[]), (None, false));
        let (_dir, root) = root(&[]);
        assert_eq!(read(&root, &root.sys("devices/none")), Err(Fault::Gone));
    }

    #[test]
    fn the_power_state_is_that_of_the_function() {
        let (_dir, root) = root(&[]);
        let state = root.sys(PORT).join("power_state");
        std::fs::write(&state, "D3hot\n").unwrap();
        let power = read(&root, &root.sys(BLOCK)).unwrap();
        assert_eq!(power.pci_power_state.as_deref(), Some("D3hot"));
        std::fs::write(&state, "").unwrap();
        assert_eq!(read(&root, &root.sys(BLOCK)).unwrap().pci_power_state, None);
    }

    #[test]
    fn a_power_state_that_cannot_be_read_costs_only_itself() {
        let (_dir, root) = root(&[(DISK, "suspended")]);
        std::fs::create_dir(root.sys(PORT).join("power_state")).unwrap();
        let power = read(&root, &root.sys(BLOCK)).unwrap();
        assert_eq!((power.suspended, power.pci_power_state), (true, None));
        assert!(matches!(power.faults.as_slice(), [Fault::Io { path, .. }] if path.ends_with("power_state")));
    }

    #[test]
    fn an_unknown_word_is_not_taken_for_awake() {
        let (_dir, root) = root(&[(DISK, "act\u{0}ve")]);
        let fault = read(&root, &root.sys(BLOCK)).unwrap_err();
        assert_eq!(fault.class(), "parse");
        assert!(fault.to_string().contains("0:0:0:0/power/runtime_status"), "{fault}");
    }

    #[test]
    fn a_denied_status_is_not_taken_for_awake() {
        if !unprivileged::go_on("power::tests::a_denied_status_is_not_taken_for_awake") {
            return;
        }
        let (_dir, root) = root(&[(DISK, "active")]);
        unprivileged::deny(&root.sys(DISK).join("power/runtime_status"));
        assert_eq!(read(&root, &root.sys(BLOCK)).unwrap_err().class(), "denied");
    }

    proptest! {
        #[test]
        fn any_text_parses(text in any::<String>()) {
            let _ = Status::parse(&text);
        }
    }
}
