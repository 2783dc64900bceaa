//! A made-up host with identities in every place, captured: none is left, and everything else is as it was.

mod made_up;
mod names;

use super::identity::{hexadecimal, swapped, uuid};
use super::*;
use made_up::{CARD, EUI, FABRIC_SERIAL, NUMBERS, NVME_SERIAL, TEXTS, WORDS, host, number};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use storscope_collect::discovery::{self, Scan};
use storscope_collect::{host_info, pcie, queue, stack};
use storscope_model::device::{Controller, Device};
use storscope_model::sample::stack::{Node, Stack};

fn args(host: &Path, dir: &Path, keep_serials: bool) -> CaptureArgs {
    let select = crate::cli::SelectArgs { root: Some(host.to_path_buf()), ..Default::default() };
    CaptureArgs { dir: dir.to_path_buf(), keep_serials, select }
}

/// Every file, with its path and what may be searched of it.
fn everything(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = item.file_name().to_str().unwrap().as_bytes().to_vec();
            let content = match item.file_type().unwrap() {
                kind if kind.is_dir() => {
                    folders.push(item.path());
                    Vec::new()
                }
                kind if kind.is_symlink() => fs::read_link(item.path()).unwrap().to_str().unwrap().as_bytes().to_vec(),
                _ => fs::read(item.path()).unwrap(),
            };
            found.push((item.path(), [name, b"\n".to_vec(), content].concat()));
        }
    }
    found
}

/// Places in which `wanted` stands, whatever the case.
fn places(all: &[(PathBuf, Vec<u8>)], wanted: &[u8]) -> Vec<PathBuf> {
    let wanted = wanted.to_ascii_lowercase();
    let holds = |bytes: &[u8]| bytes.to_ascii_lowercase().windows(wanted.len()).any(|window| window == wanted);
    all.iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path.clone()).collect()
}

/// All spellings that a search for leaks would try.
fn spellings() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = WORDS.iter().map(|word| word.as_bytes().to_vec()).collect();
    for text in TEXTS {
        all.extend([text.as_bytes().to_vec(), hexadecimal(text.as_bytes()).into_bytes()]);
        all.extend([swapped(text.as_bytes()), swapped(format!(" {text}").as_bytes())]);
        all.push(hexadecimal(text.to_ascii_uppercase().as_bytes()).into_bytes());
        all.push(text.replace(['-', '.'], "").into_bytes());
    }
    for digits in NUMBERS {
        let bytes = number(digits);
        let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        all.extend([digits.as_bytes().to_vec(), bytes.clone(), swapped(&bytes)]);
        all.extend([" ", ":", "-"].map(|separator| pairs.join(separator).into_bytes()));
        all.extend(uuid(digits).map(String::into_bytes));
        all.push(bytes.into_iter().rev().collect());
    }
    all.push(format!("0x{}", &CARD[18..26]).into_bytes());
    all
}

#[test]
fn no_identity_is_left() {
    let host = host();
    let before = everything(host.folder.path());
    for text in TEXTS.iter().chain(&WORDS) {
        assert!(!places(&before, text.as_bytes()).is_empty(), "{text} is not in the made-up host");
    }
    let out = tempfile::tempdir().unwrap();
    run(&args(host.folder.path(), out.path(), false)).unwrap();
    let after = everything(out.path());
    for spelling in spellings() {
        assert_eq!(places(&after, &spelling), Vec::<PathBuf>::new(), "{}", spelling.escape_ascii());
    }
    assert!(after.len() > 150, "{} entries", after.len());
}

/// What of a device a scrubbed capture must still tell.
fn told(device: &Device) -> String {
    let mut device = device.clone();
    let hidden = |text: &Option<String>| text.as_ref().map(|text| "x".repeat(text.len()));
    device.serial = hidden(&device.serial);
    device.wwid = hidden(&device.wwid);
    device.place.enclosure = hidden(&device.place.enclosure);
    device.place.bay = hidden(&device.place.bay);
    device.id.0 = if device.id.is_weak() { "weak".to_owned() } else { "x".repeat(device.id.0.len()) };
    if device.name.starts_with("md_") {
        device.name = "md_array".to_owned();
    }
    if let Some(nvme) = &mut device.nvme {
        nvme.subsystem_nqn = hidden(&nvme.subsystem_nqn);
        nvme.controllers.iter_mut().for_each(|id| id.0 = "x".repeat(id.0.len()));
        nvme.paths.iter_mut().for_each(|path| path.controller.0 = String::new());
    }
    format!("{device:?}")
}

fn controller_told(controller: &Controller) -> String {
    let mut controller = controller.clone();
    let hidden = |text: &Option<String>| text.as_ref().map(|text| "x".repeat(text.len()));
    controller.serial = hidden(&controller.serial);
    controller.subsystem_nqn = hidden(&controller.subsystem_nqn);
    controller.id.0 = "x".repeat(controller.id.0.len());
    controller.address = controller.address.filter(|address| !address.starts_with("traddr"));
    format!("{controller:?}")
}

fn assert_same_host(before: &Scan, after: &Scan) {
    let devices = |scan: &Scan| -> BTreeSet<String> { scan.devices.iter().map(told).collect() };
    assert_eq!(devices(before), devices(after));
    let controllers = |scan: &Scan| -> Vec<String> { scan.controllers.iter().map(controller_told).collect() };
    assert_eq!(controllers(before), controllers(after));
    let distinct = |scan: &Scan| scan.devices.iter().map(|device| device.id.clone()).collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(before), distinct(after));
}

/// What lies on what, without names.
fn shape(stack: &Stack) -> BTreeSet<String> {
    let plain = |name: &str| if name.starts_with("md_") { "md_array".to_owned() } else { name.to_owned() };
    let node = |node: &Node| {
        let above: Vec<String> = node.above.iter().map(|name| plain(name)).collect();
        let mounts: Vec<_> = node.mounts.iter().map(|mount| (mount.fs_type.clone(), mount.point.len())).collect();
        let label = node.label.as_ref().map(|label| (label.len(), label.split_once(' ').map(|(kind, _)| plain(kind))));
        format!("{} {above:?} {mounts:?} {} {label:?}", plain(&node.name), node.swap)
    };
    stack.nodes.iter().map(node).collect()
}

#[test]
fn a_scrubbed_host_is_the_same_host_to_the_agent() {
    let host = host();
    let out = tempfile::tempdir().unwrap();
    run(&args(host.folder.path(), out.path(), false)).unwrap();
    let (root, captured) = (host.root(), Root::captured(out.path()));
    let (before, after) = (discovery::scan(&root), discovery::scan(&captured));
    assert!(before.devices.len() >= 12 && before.controllers.len() == 2, "{before:?}");
    assert_eq!((before.faults.len(), after.faults.len()), (0, 0));
    assert_same_host(&before, &after);
    // The same serial number in sysfs and in the drive's own answer is the same pseudonym in both.
    let sysfs = after.controllers[0].serial.clone().unwrap();
    let page = fs::read(out.path().join("drives/nvme0/identify.bin")).unwrap();
    assert_eq!(String::from_utf8_lossy(&page[4..24]).trim(), sysfs);
    assert!(after.devices.iter().any(|device| device.id.0.contains(&sysfs)));
    let stacks = [&root, &captured].map(|root| stack::read(root).unwrap());
    assert_eq!(shape(&stacks[0]), shape(&stacks[1]));
    let of = |root: &Root| {
        let folder = root.resolve(&root.block("nvme0n1")).unwrap();
        (queue::read(root, &folder).unwrap(), format!("{:?}", pcie::read(root, &folder)))
    };
    assert_eq!(of(&root), of(&captured));
}

#[test]
fn with_serials_everything_is_as_it_was() {
    let host = host();
    let out = tempfile::tempdir().unwrap();
    run(&args(host.folder.path(), out.path(), true)).unwrap();
    let (root, captured) = (host.root(), Root::captured(out.path()));
    assert_eq!(discovery::scan(&root), discovery::scan(&captured));
    assert_eq!(stack::read(&root), stack::read(&captured));
    assert_eq!(host_info::read(&root), host_info::read(&captured));
    let about = fs::read_to_string(out.path().join(write::ABOUT)).unwrap();
    assert!(about.contains("as they were on the host"), "{about}");
}

#[test]
fn two_captures_do_not_share_pseudonyms() {
    let host = host();
    let serial = || {
        let out = tempfile::tempdir().unwrap();
        run(&args(host.folder.path(), out.path(), false)).unwrap();
        discovery::scan(&Root::captured(out.path())).controllers[0].serial.clone().unwrap()
    };
    assert_ne!(serial(), serial());
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let host = host();
    let out = tempfile::tempdir().unwrap();
    fs::write(out.path().join("mine"), "x").unwrap();
    let error = run(&args(host.folder.path(), out.path(), false)).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
    let file = out.path().join("mine");
    let error = run(&args(host.folder.path(), &file, false)).unwrap_err();
    assert!(error.to_string().contains("no directory"), "{error}");
}

#[test]
fn what_cannot_be_read_is_told_with_its_reason() {
    let host = host();
    host.link("sys/class/block/sdz", "/etc");
    let big = vec![b'x'; 65 << 10];
    host.file("sys/devices/virtual/block/loop0/size", big);
    let out = tempfile::tempdir().unwrap();
    run(&args(host.folder.path(), out.path(), false)).unwrap();
    let about = fs::read_to_string(out.path().join(write::ABOUT)).unwrap();
    assert!(about.contains("sys/class/block/sdz: the link leads out of the tree"), "{about}");
    assert!(about.contains("loop0/size: longer than"), "{about}");
}

#[test]
fn the_verification_finds_what_is_left() {
    let host = host();
    let gathered = gather::gather(&host.root(), &Selection::default());
    let scrubbed = scrub::scrub(&gathered.tree, &gathered.notes).unwrap();
    let out = tempfile::tempdir().unwrap();
    write::write(out.path(), &scrubbed.tree, "nothing").unwrap();
    write::verify(out.path(), &scrubbed.dictionary, "nothing").unwrap();
    for (name, content) in [
        ("a", NVME_SERIAL.as_bytes().to_vec()),
        ("b", hexadecimal(NVME_SERIAL.as_bytes()).into_bytes()),
        ("c.bin", number(EUI)),
        (FABRIC_SERIAL, Vec::new()),
        ("d", b"of kestrel.".to_vec()),
    ] {
        let place = out.path().join("sys").join(name);
        fs::write(&place, content).unwrap();
        let error = write::verify(out.path(), &scrubbed.dictionary, "nothing").unwrap_err().to_string();
        assert!(error.contains("is left in") && !error.contains(NVME_SERIAL), "{error}");
        fs::remove_file(place).unwrap();
    }
}

/// Trees of real machines, where they are at hand.
#[test]
fn real_machines_stay_what_they_are() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let real = std::env::var_os("STORSCOPE_REALDATA")
        .map_or_else(|| here.join("../../../shared/realdata"), PathBuf::from)
        .join("sysfs");
    for (archive, folder) in
        [("simple-nvme", "simple-nvme"), ("multi-devs-bcachefs", "multi-devs-bcachefs"), ("tree-pcie", ".")]
    {
        let packed = real.join(format!("{archive}.tar.xz"));
        let unpacked = tempfile::tempdir().unwrap();
        let tar = Command::new("tar").arg("-xJf").arg(&packed).arg("-C").arg(unpacked.path()).output();
        if !packed.exists() || !tar.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {} cannot be unpacked", packed.display());
            continue;
        }
        let host = unpacked.path().join(folder);
        let before = discovery::scan(&Root::captured(&host));
        assert!(!before.devices.is_empty());
        let plain = tempfile::tempdir().unwrap();
        run(&args(&host, plain.path(), true)).unwrap();
        let kept = discovery::scan(&Root::captured(plain.path()));
        assert_eq!((&before.devices, &before.controllers), (&kept.devices, &kept.controllers), "{archive}");
        let stack_of = |root: &Path| stack::read(&Root::captured(root)).map(|stack| stack.nodes);
        assert_eq!(stack_of(&host), stack_of(plain.path()), "{archive}");
        let scrubbed = tempfile::tempdir().unwrap();
        run(&args(&host, scrubbed.path(), false)).unwrap();
        assert_same_host(&before, &discovery::scan(&Root::captured(scrubbed.path())));
        let mounts = |root: &Path| -> Vec<(String, usize)> {
            stack_of(root).unwrap().into_iter().map(|node| (node.name, node.mounts.len())).collect()
        };
        assert_eq!(mounts(&host), mounts(scrubbed.path()), "{archive}");
        let after = everything(scrubbed.path());
        for serial in before.devices.iter().filter_map(|device| device.serial.as_deref()) {
            assert_eq!(places(&after, serial.as_bytes()), Vec::<PathBuf>::new(), "{archive}");
        }
    }
}
