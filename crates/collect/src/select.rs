//! Which of the discovered devices are watched.

use regex::Regex;
use storscope_model::device::{Device, Transport};

/// Longest regular expression that is taken, in bytes.
pub const MAX_PATTERN: usize = 4096;

/// A pattern that is no regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {reason}")]
pub struct BadPattern {
    /// The option that it came with: `include`, `exclude` or `only`.
    pub option: &'static str,
    /// What is wrong with it, and where.
    pub reason: String,
}

/// Which devices are watched, by kernel name. A pattern must match a name as a whole: `loop1` is not `loop10`.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    include: Option<Regex>,
    exclude: Option<Regex>,
    only: Option<Regex>,
}

impl Selection {
    /// Compiles the patterns that are given.
    ///
    /// # Errors
    /// [`BadPattern`] for the first one that is no regular expression or is longer than [`MAX_PATTERN`].
    pub fn new(include: Option<&str>, exclude: Option<&str>, only: Option<&str>) -> Result<Self, BadPattern> {
        Ok(Self {
            include: compile("include", include)?,
            exclude: compile("exclude", exclude)?,
            only: compile("only", only)?,
        })
    }

    /// Whether `device` is watched. `exclude` wins over everything; with `only`, nothing else counts; `include` adds to
    /// the defaults, which are whole disks. What [is free](is_free) is no drive whatever it is called.
    pub fn selected(&self, device: &Device) -> bool {
        let matches = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(&device.name));
        if matches(&self.exclude) || is_free(device) {
            return false;
        }
        if self.only.is_some() {
            return matches(&self.only);
        }
        matches(&self.include) || by_default(device)
    }
}

/// A numbered place of a driver with nothing attached to it: a loop device without a file, an unconnected network block
/// device, a zram device or an array that is not set up. It is a drive as soon as it has a size, which the kernel tells
/// by a uevent.
pub fn is_free(device: &Device) -> bool {
    let places = matches!(
        device.transport,
        Transport::Loop | Transport::Nbd | Transport::Zram | Transport::Ram | Transport::DeviceMapper | Transport::Md
    );
    places && device.size_bytes == Some(0)
}

fn compile(option: &'static str, pattern: Option<&str>) -> Result<Option<Regex>, BadPattern> {
    let Some(pattern) = pattern else {
        return Ok(None);
    };
    if pattern.len() > MAX_PATTERN {
        return Err(BadPattern { option, reason: format!("longer than {MAX_PATTERN} bytes") });
    }
    // Compiled alone first: `a)|(b` is an error, though it would close the group that anchors it.
    Regex::new(pattern)
        .and_then(|_| Regex::new(&format!("^(?:{pattern})$")))
        .map(Some)
        .map_err(|error| BadPattern { option, reason: error.to_string() })
}

/// A whole disk that is not made of other disks or of memory, with a size: an empty card reader or an unconnected
/// network block device has none.
fn by_default(device: &Device) -> bool {
    /// Drivers that the kernel stacks on other disks, beside dm and md.
    const STACKED: [&str; 3] = ["bcache", "drbd", "zd"];
    let made_up = matches!(
        device.transport,
        Transport::Loop
            | Transport::DeviceMapper
            | Transport::Md
            | Transport::Zram
            | Transport::Ram
            | Transport::Optical
            | Transport::Floppy
    );
    let stacked = device.transport == Transport::Other
        && STACKED.iter().any(|driver| {
            device.name.strip_prefix(driver).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
    let empty =
        device.size_bytes == Some(0) && (device.removable == Some(true) || device.transport == Transport::Other);
    let boot_area = device.transport == Transport::Mmc && device.name.contains("boot");
    device.partition_of.is_none() && !made_up && !stacked && !empty && !boot_area
}

#[cfg(test)]
mod tests {
    use super::*;
    use storscope_model::device::Place;
    use storscope_model::identity::DeviceId;

    fn device(name: &str, transport: Transport) -> Device {
        Device {
            id: DeviceId(name.to_owned()),
            name: name.to_owned(),
            devnum: None,
            transport,
            vendor: None,
            model: None,
            serial: None,
            firmware: None,
            wwid: None,
            size_bytes: Some(1 << 30),
            logical_block_bytes: None,
            rotational: None,
            removable: None,
            read_only: None,
            zoned: None,
            pci_address: None,
            numa_node: None,
            place: Place::default(),
            partition_of: None,
            nvme: None,
        }
    }

    fn names(selection: &Selection) -> Vec<String> {
        let mut partition = device("nvme0n1p1", Transport::NvmePcie);
        partition.partition_of = Some("nvme0n1".to_owned());
        let mut reader = device("sdh", Transport::Usb);
        (reader.size_bytes, reader.removable) = (Some(0), Some(true));
        let mut unusable = device("nvme1n1", Transport::NvmePcie);
        unusable.size_bytes = Some(0);
        let free = |name: &str, transport| Device { size_bytes: Some(0), ..device(name, transport) };
        [
            device("cciss/c0d0", Transport::Other),
            device("nvme0n1", Transport::NvmePcie),
            partition,
            unusable,
            device("sda", Transport::Sata),
            reader,
            device("vda", Transport::Virtio),
            device("mmcblk0", Transport::Mmc),
            device("mmcblk0boot0", Transport::Mmc),
            device("loop1", Transport::Loop),
            device("loop10", Transport::Loop),
            device("dm-0", Transport::DeviceMapper),
            device("md0", Transport::Md),
            device("zram0", Transport::Zram),
            device("ram0", Transport::Ram),
            device("sr0", Transport::Optical),
            device("fd0", Transport::Floppy),
            device("nbd0", Transport::Nbd),
            free("nbd1", Transport::Nbd),
            free("loop0", Transport::Loop),
            free("dm-9", Transport::DeviceMapper),
            device("zd16", Transport::Other),
        ]
        .iter()
        .filter(|device| selection.selected(device))
        .map(|device| device.name.clone())
        .collect()
    }

    const DEFAULTS: [&str; 7] = ["cciss/c0d0", "nvme0n1", "nvme1n1", "sda", "vda", "mmcblk0", "nbd0"];

    #[test]
    fn whole_disks_by_default() {
        assert_eq!(names(&Selection::default()), DEFAULTS);
    }

    #[test]
    fn include_adds_whole_names() {
        let selection = Selection::new(Some("loop1|dm-.*"), None, None).unwrap();
        let mut expected = DEFAULTS.to_vec();
        expected.splice(6..6, ["loop1", "dm-0"]);
        assert_eq!(names(&selection), expected);
    }

    #[test]
    fn exclude_wins() {
        let selection = Selection::new(Some("loop.*"), Some("loop10|nvme.*|nbd.|cciss/.*"), None).unwrap();
        assert_eq!(names(&selection), ["sda", "vda", "mmcblk0", "loop1"]);
        let selection = Selection::new(None, Some("sda"), Some("sd.*")).unwrap();
        assert_eq!(names(&selection), ["sdh"]);
    }

    #[test]
    fn only_means_only_that() {
        let selection = Selection::new(Some("loop1"), None, Some("nvme0n1p?.*")).unwrap();
        assert_eq!(names(&selection), ["nvme0n1", "nvme0n1p1"]);
    }

    #[test]
    fn what_is_free_is_no_drive_until_something_is_attached() {
        for (include, only) in [(Some(".*"), None), (None, Some(".*"))] {
            let names = names(&Selection::new(include, None, only).unwrap());
            assert!(names.contains(&"loop1".to_owned()) && names.contains(&"sdh".to_owned()), "{names:?}");
            assert!(!names.iter().any(|name| ["loop0", "nbd1", "dm-9"].contains(&name.as_str())), "{names:?}");
        }
        let attached = device("loop0", Transport::Loop);
        assert!(Selection::new(Some("loop[0-9]+"), None, None).unwrap().selected(&attached));
    }

    #[test]
    fn a_pattern_is_for_the_whole_name_with_anchors_or_without() {
        for pattern in ["loop1", "^loop1$", "loop1$", "(loop)1"] {
            let selection = Selection::new(None, None, Some(pattern)).unwrap();
            assert_eq!(names(&selection), ["loop1"], "{pattern}");
        }
        assert!(names(&Selection::new(None, None, Some("loop")).unwrap()).is_empty());
    }

    #[test]
    fn a_bad_pattern_names_its_option() {
        for bad in ["(", "a)|(b", "[z-a]"] {
            let error = Selection::new(None, Some(bad), None).unwrap_err();
            assert_eq!(error.option, "exclude");
            assert!(error.to_string().starts_with("exclude: "), "{error}");
        }
        let long = "a".repeat(MAX_PATTERN + 1);
        assert_eq!(Selection::new(Some(&long), None, None).unwrap_err().option, "include");
    }
}
