//! What people call a virtual block device.

use crate::discovery::attributes::Attributes;
use crate::discovery::sysfs::Entry;
use std::path::Path;

/// The label of `entry`; `None` when it has no other name than the kernel's.
pub(super) fn of(entry: &Entry, attributes: &mut Attributes) -> Option<String> {
    let folder = &entry.folder;
    let name = &entry.name;
    if name.starts_with("dm-") {
        let dm_name = attributes.text(&folder.join("dm/name"))?;
        let uuid = attributes.text(&folder.join("dm/uuid")).unwrap_or_default();
        return Some(device_mapper(&dm_name, &uuid));
    }
    if name.starts_with("md") {
        return md(name, &folder.join("md"), attributes);
    }
    if name.starts_with("loop") {
        let file = attributes.text(&folder.join("loop/backing_file"))?;
        return Some(format!("{name} ({file})"));
    }
    if name.starts_with("bcache") {
        let state = attributes.text(&folder.join("bcache/state"))?;
        return Some(format!("{name} ({state})"));
    }
    None
}

/// The name that a device-mapper device was given, read by the subsystem prefix of its uuid (libdevmapper(3), and
/// Documentation/ABI/testing/sysfs-block-dm).
pub(super) fn device_mapper(name: &str, uuid: &str) -> String {
    if uuid.starts_with("LVM-") {
        return logical_volume(name);
    }
    if uuid.starts_with("CRYPT-LUKS") {
        return format!("luks {name}");
    }
    if uuid.starts_with("CRYPT-VERITY") {
        return format!("verity {name}");
    }
    if uuid.starts_with("CRYPT-") {
        return format!("crypt {name}");
    }
    if uuid.starts_with("mpath-") {
        return format!("multipath {name}");
    }
    name.to_owned()
}

/// `group/volume`: in LVM's names one dash separates them and two are a dash (lvm(8), "device-mapper names").
fn logical_volume(name: &str) -> String {
    let plain = |part: &str| part.replace("--", "-");
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'-', Some(b'-')) => at += 2,
            (b'-', Some(_)) if at > 0 => return format!("{}/{}", plain(&name[..at]), plain(&name[at + 1..])),
            _ => at += 1,
        }
    }
    plain(name)
}

/// `md0 (raid1, 2 of 2)` (Documentation/admin-guide/md.rst).
fn md(name: &str, folder: &Path, attributes: &mut Attributes) -> Option<String> {
    let level = attributes.text(&folder.join("level"));
    let inactive = attributes
        .text(&folder.join("array_state"))
        .is_some_and(|state| matches!(state.as_str(), "inactive" | "clear"));
    // While it is reshaped: `11 (10)`, the new number and the old one.
    let disks = attributes.text(&folder.join("raid_disks"));
    let disks: Option<u64> = disks.and_then(|text| text.split_whitespace().next()?.parse().ok());
    let degraded = attributes.number(&folder.join("degraded"));
    let members = match (disks, degraded) {
        (None | Some(0), _) => None,
        (Some(disks), Some(degraded)) => Some(format!("{} of {disks}", disks.saturating_sub(degraded))),
        // A level without redundancy has no `degraded`.
        (Some(disks), None) => Some(format!("{disks} disks")),
    };
    let words = [level, members, inactive.then(|| "inactive".to_owned())];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| format!("{name} ({})", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dashes_mean_something_in_lvm_names_only() {
        for (name, uuid, label) in [
            ("ubuntu--image--new-root", "LVM-abc", "ubuntu-image-new/root"),
            ("vg0-data", "LVM-abc", "vg0/data"),
            ("vg0-my--data-real", "LVM-abc-real", "vg0/my-data-real"),
            ("vg0--lv_root", "LVM-abc", "vg0-lv_root"),
            ("vg_foo.4059-lv_foo.4059", "LVM-abc", "vg_foo.4059/lv_foo.4059"),
            ("ubuntu--image--new-root", "", "ubuntu--image--new-root"),
            ("mpatha-part1", "part1-mpath-3600", "mpatha-part1"),
            ("mpatha", "mpath-3600", "multipath mpatha"),
            ("dm_crypt-1", "CRYPT-LUKS2-0123-dm_crypt-1", "luks dm_crypt-1"),
            ("root", "CRYPT-VERITY-0123-root", "verity root"),
            ("swap", "CRYPT-PLAIN-swap", "crypt swap"),
        ] {
            assert_eq!(device_mapper(name, uuid), label);
        }
    }

    proptest! {
        #[test]
        fn group_and_volume_come_back(group in "[a-z0-9_.+][a-z0-9_.+-]{0,9}[a-z0-9]", volume in "[a-z0-9_.+][a-z0-9_.+-]{0,9}") {
            let name = format!("{}-{}", group.replace('-', "--"), volume.replace('-', "--"));
            prop_assert_eq!(logical_volume(&name), format!("{group}/{volume}"));
        }

        #[test]
        fn any_name_is_taken(name in "\\PC{0,40}") {
            logical_volume(&name);
        }
    }
}
