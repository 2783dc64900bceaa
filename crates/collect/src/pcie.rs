//! PCIe link attributes of a drive and of every port above it (drivers/pci/pci-sysfs.c,
//! Documentation/ABI/testing/sysfs-bus-pci).

use crate::attribute::read_text;
use crate::power::{Status, status};
use crate::root::Root;
use nix::errno::Errno;
use std::path::Path;
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;
use storscope_model::sample::Sample;
use storscope_model::sample::pcie::{Hop, PcieLink};

/// Hops that are followed from a drive to the root.
pub const MAX_HOPS: usize = 32;

const NOT_PCIE: &str = "not applicable: no PCIe link attributes";

/// The links from the device whose resolved sysfs folder is `device` (the PCI function or anything below it) to the
/// root port. Not supported where no function on the way has link attributes.
pub fn read(root: &Root, device: &Path) -> Outcome {
    let mut link = PcieLink::default();
    let mut offered = false;
    let functions = functions(root, device);
    for (index, function) in functions.iter().enumerate() {
        let above = functions.get(index + 1).copied();
        let (hop, any) = hop(function, above, &mut link.faults);
        offered |= any || hop.suspended;
        link.hops.push(hop);
    }
    if offered {
        return Outcome::Value(Box::new(Sample::PcieLink(link)));
    }
    match link.faults.into_iter().next() {
        Some(fault) => Outcome::Failed(fault),
        None => Outcome::Unsupported(NOT_PCIE.to_owned()),
    }
}

/// The folders of the PCI functions from `device` up to its host bridge, nearest first. A function above that bridge
/// (Intel VMD) is no part of the link.
pub fn functions<'a>(root: &Root, device: &'a Path) -> Vec<&'a Path> {
    device
        .ancestors()
        .take_while(|folder| folder.starts_with(&root.sys))
        .skip_while(|folder| address(folder).is_none())
        .take_while(|folder| address(folder).is_some())
        .take(MAX_HOPS)
        .collect()
}

/// The PCI address that a folder is named by: hexadecimal domain of four digits or more, bus, device, function.
pub fn address(folder: &Path) -> Option<&str> {
    let name = folder.file_name()?.to_str()?;
    let (domain, rest) = name.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let hex = |text: &str, length: std::ops::RangeInclusive<usize>| {
        length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let sound = hex(domain, 4..=8) && hex(bus, 2..=2) && hex(device, 2..=2) && hex(function, 1..=2);
    sound.then_some(name)
}

/// One hop, and whether any of its link attributes is there.
fn hop(function: &Path, above: Option<&Path>, faults: &mut Vec<Fault>) -> (Hop, bool) {
    let mut hop = Hop { address: address(function).unwrap_or_default().to_owned(), ..Hop::default() };
    // Reading the files resumes the bridge above, and the function itself out of D3cold.
    for folder in [Some(function), above].into_iter().flatten() {
        match status(folder) {
            Ok(status) => hop.suspended |= status.is_some_and(Status::not_awake),
            Err(fault) => {
                faults.push(fault);
                return (hop, false);
            }
        }
    }
    if hop.suspended {
        return (hop, false);
    }
    let mut any = false;
    let mut text = |name| {
        let text = attribute(read_text(&function.join(name)), faults);
        any |= text.is_some();
        text.flatten()
    };
    hop.current.mega_transfers = text("current_link_speed").as_deref().and_then(speed);
    hop.current.width = text("current_link_width").as_deref().and_then(width);
    hop.maximum.mega_transfers = text("max_link_speed").as_deref().and_then(speed);
    hop.maximum.width = text("max_link_width").as_deref().and_then(width);
    (hop, any)
}

/// The text of a link attribute. Outer `None`: not there or not readable; inner `None`: there, and the kernel answers
/// EINVAL, which is how older ones say unknown.
fn attribute(text: Result<Option<String>, Fault>, faults: &mut Vec<Fault>) -> Option<Option<String>> {
    match text {
        Ok(text) => text.map(Some),
        Err(Fault::Io { errno, .. }) if Errno::from_raw(errno) == Errno::EINVAL => Some(None),
        Err(fault) => {
            faults.push(fault);
            None
        }
    }
}

/// Mega-transfers a second: the number before `GT/s` in any kernel's spelling; no other text is a speed.
fn speed(text: &str) -> Option<u32> {
    let number = text.trim().split_once("GT/s")?.0.trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return None;
    }
    let thousandths = format!("{fraction:0<3}").parse::<u32>().ok()?;
    let speed = whole.parse::<u32>().ok()?.checked_mul(1000)?.checked_add(thousandths)?;
    (speed > 0).then_some(speed)
}

/// Lanes. 0 and 255 are the kernel's unknown, 63 is an all-ones register of a function that does not answer.
fn width(text: &str) -> Option<u8> {
    let lanes = text.trim().trim_start_matches('x').parse().ok()?;
    (!matches!(lanes, 0 | 63 | 255)).then_some(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;
    use std::path::PathBuf;
    use storscope_model::sample::pcie::Link;

    const PORT: &str = "devices/pci0000:00/0000:00:02.1";
    const DRIVE: &str = "devices/pci0000:00/0000:00:02.1/0000:01:00.0";
    const LINK: [&str; 4] = ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"];

    fn root() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        for folder in [PORT, DRIVE] {
            std::fs::create_dir_all(root.sys(folder).join("power")).unwrap();
        }
        std::fs::create_dir_all(root.sys(DRIVE).join("nvme/nvme0")).unwrap();
        (dir, root)
    }

    fn write(folder: &Path, values: [&str; 4]) {
        for (name, value) in LINK.iter().zip(values) {
            std::fs::write(folder.join(name), format!("{value}\n")).unwrap();
        }
    }

    fn sample(outcome: Outcome) -> PcieLink {
        match outcome {
            Outcome::Value(sample) => match *sample {
                Sample::PcieLink(link) => link,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn link(mega_transfers: u32, width: u8) -> Link {
        Link { mega_transfers: Some(mega_transfers), width: Some(width) }
    }

    #[test]
    fn drive_first_root_port_last() {
        let (_dir, root) = root();
        write(&root.sys(DRIVE), ["8.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "4"]);
        write(&root.sys(PORT), ["8.0 GT/s PCIe", "4", "8.0 GT/s PCIe", "8"]);
        let expected = PcieLink {
            hops: vec![
                Hop {
                    address: "0000:01:00.0".to_owned(),
                    current: link(8000, 4),
                    maximum: link(16_000, 4),
                    suspended: false,
                },
                Hop {
                    address: "0000:00:02.1".to_owned(),
                    current: link(8000, 4),
                    maximum: link(8000, 8),
                    suspended: false,
                },
            ],
            faults: Vec::new(),
        };
        assert_eq!(sample(read(&root, &root.sys(DRIVE))), expected);
        assert_eq!(sample(read(&root, &root.sys(DRIVE).join("nvme/nvme0"))), expected);
    }

    #[test]
    fn speed_spellings() {
        for (text, expected) in [
            ("2.5 GT/s", Some(2500)),
            ("5 GT/s", Some(5000)),
            ("8 GT/s", Some(8000)),
            ("16.0 GT/s PCIe", Some(16_000)),
            ("64.0 GT/s PCIe\n", Some(64_000)),
            ("128 GT/s", Some(128_000)),
            ("128.0GT/s", Some(128_000)),
            ("Unknown", None),
            ("Unknown speed", None),
            ("66 MHz PCI-X 266", None),
            ("0 GT/s", None),
            ("-8 GT/s", None),
            ("8. GT/s", None),
            ("99999999999 GT/s", None),
            ("8e3 GT/s", None),
            ("", None),
        ] {
            assert_eq!(speed(text), expected, "{text}");
        }
    }

    #[test]
    fn width_spellings() {
        for (text, expected) in [
            ("4", Some(4)),
            ("x16", Some(16)),
            ("0", None),
            ("63", None),
            ("255", None),
            ("4294967295", None),
            ("", None),
            ("Unknown", None),
        ] {
            assert_eq!(width(text), expected, "{text}");
        }
    }

    #[test]
    fn addresses_with_any_domain() {
        for (name, sound) in [
            ("0000:01:00.0", true),
            ("052e:78:00.0", true),
            ("10000:e1:00.0", true),
            ("pci0000:00", false),
            ("0:0:0:0", false),
            ("0000:01:00", false),
            ("0000:01:00.g", false),
        ] {
            assert_eq!(address(Path::new(name)).is_some(), sound, "{name}");
        }
    }

    #[test]
    fn the_walk_ends_at_the_host_bridge_and_at_the_limit() {
        let root = Root::captured(Path::new("captured"));
        let vmd = root.sys("devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0/nvme/nvme0");
        let names: Vec<_> = functions(&root, &vmd).into_iter().filter_map(address).collect();
        assert_eq!(names, ["10000:e1:00.0", "10000:e0:06.0"]);
        let mut deep: PathBuf = root.sys("devices");
        for bus in 0..60 {
            deep.push(format!("0000:{bus:02x}:00.0"));
        }
        assert_eq!(functions(&root, &deep).len(), MAX_HOPS);
        assert!(functions(&root, &root.sys("devices/virtual/block/loop0")).is_empty());
    }

    #[test]
    fn a_sleeping_function_or_bridge_is_left_alone() {
        let (_dir, root) = root();
        write(&root.sys(DRIVE), ["8.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "4"]);
        write(&root.sys(PORT), ["8.0 GT/s PCIe", "4", "8.0 GT/s PCIe", "8"]);
        for (folder, word, asleep) in [
            (DRIVE, "suspended", [true, false]),
            (DRIVE, "suspending", [true, false]),
            (DRIVE, "resuming", [true, false]),
            (DRIVE, "active", [false, false]),
            (DRIVE, "unsupported", [false, false]),
            (PORT, "suspended", [true, true]),
            (PORT, "error", [false, false]),
        ] {
            let file = root.sys(folder).join("power/runtime_status");
            std::fs::write(&file, format!("{word}\n")).unwrap();
            let link = sample(read(&root, &root.sys(DRIVE)));
            let suspended: Vec<_> = link.hops.iter().map(|hop| hop.suspended).collect();
            assert_eq!(suspended, asleep, "{folder} {word}");
            for hop in &link.hops {
                assert_eq!(hop.current == Link::default(), hop.suspended, "{folder} {word}");
                assert_eq!(hop.maximum == Link::default(), hop.suspended, "{folder} {word}");
            }
        }
    }

    #[test]
    fn without_link_attributes_it_is_not_applicable() {
        let (_dir, root) = root();
        let unsupported = Outcome::Unsupported(NOT_PCIE.to_owned());
        assert_eq!(read(&root, &root.sys(DRIVE)), unsupported);
        assert_eq!(read(&root, &root.sys("devices/platform/soc/nvme0")), unsupported);
    }

    #[test]
    fn unknown_is_no_fault() {
        let (_dir, root) = root();
        write(&root.sys(DRIVE), ["Unknown", "0", "Unknown speed", "255"]);
        let link = sample(read(&root, &root.sys(DRIVE)));
        assert_eq!((link.hops[0].current, link.hops[0].maximum), (Link::default(), Link::default()));
        assert!(link.faults.is_empty());
    }

    #[test]
    fn einval_is_unknown_and_no_fault() {
        let io = |errno: Errno| Err(Fault::Io { path: "max_link_speed".to_owned(), errno: errno as i32 });
        let mut faults = Vec::new();
        assert_eq!(attribute(io(Errno::EINVAL), &mut faults), Some(None));
        assert_eq!((attribute(Ok(None), &mut faults), faults.len()), (None, 0));
        assert_eq!((attribute(io(Errno::EIO), &mut faults), faults.len()), (None, 1));
    }

    #[test]
    fn a_denied_file_costs_only_itself() {
        if !unprivileged::go_on("pcie::tests::a_denied_file_costs_only_itself") {
            return;
        }
        let (_dir, root) = root();
        write(&root.sys(DRIVE), ["8.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "4"]);
        unprivileged::deny(&root.sys(DRIVE).join("current_link_speed"));
        let found = sample(read(&root, &root.sys(DRIVE)));
        assert_eq!(found.hops[0].current, Link { mega_transfers: None, width: Some(4) });
        assert_eq!(found.hops[0].maximum, link(16_000, 4));
        assert!(matches!(found.faults.as_slice(), [Fault::Denied { .. }]));
        for name in LINK.iter().skip(1) {
            unprivileged::deny(&root.sys(DRIVE).join(name));
        }
        assert!(matches!(read(&root, &root.sys(DRIVE)), Outcome::Failed(Fault::Denied { .. })));
    }

    #[test]
    fn where_the_status_is_denied_the_link_is_left_alone() {
        if !unprivileged::go_on("pcie::tests::where_the_status_is_denied_the_link_is_left_alone") {
            return;
        }
        let (_dir, root) = root();
        write(&root.sys(DRIVE), ["8.0 GT/s PCIe", "4", "16.0 GT/s PCIe", "4"]);
        std::fs::write(root.sys(DRIVE).join("power/runtime_status"), "active\n").unwrap();
        unprivileged::deny(&root.sys(DRIVE).join("power/runtime_status"));
        assert!(matches!(
            read(&root, &root.sys(DRIVE)),
            Outcome::Failed(Fault::Denied { path, .. }) if path.ends_with("runtime_status")
        ));
    }

    proptest! {
        #[test]
        fn any_text_parses(text in any::<String>()) {
            let _ = (speed(&text), width(&text), address(Path::new(&text)));
        }

        #[test]
        fn near_speeds_parse(text in "[0-9]{0,12}[.]?[0-9]{0,6} ?(GT/s|MHz)?.{0,5}") {
            let _ = speed(&text);
        }
    }
}
