//! Names that are words of the kernel, of device-mapper, of mounts or of a capture itself: the capture is made, it is the
//! same host, and no name is left that tells one.

use super::made_up::Host;
use super::*;
use crate::capture::pseudonym::{is_structure, parts};
use crate::capture::vocabulary::is_common_folder;
use proptest::prelude::*;

/// Names that tell nobody and stand in many other places, and names that stand in them by chance.
const NASTY: [&str; 60] = [
    "a",
    "aa",
    "abc",
    "addresses",
    "admin",
    "ata3",
    "bcachefs",
    "block",
    "blocked",
    "btrfs",
    "cafe",
    "capture",
    "clean",
    "crypt",
    "data",
    "db",
    "dev",
    "discard",
    "disk1",
    "dm",
    "ext4",
    "files",
    "home",
    "host",
    "host2",
    "io",
    "lab",
    "left",
    "linear",
    "live",
    "loop",
    "luks2",
    "lvm",
    "master",
    "memory",
    "mirror",
    "mnt",
    "nas",
    "noatime",
    "none",
    "numbers",
    "nvme",
    "pcie",
    "plain",
    "pool",
    "port",
    "raid",
    "real",
    "relatime",
    "root",
    "running",
    "same",
    "share",
    "shared",
    "subvol",
    "swap",
    "total",
    "vendor",
    "write",
    "xfs",
];
/// Names that must not be left anywhere as words.
const TELLING: [&str; 4] = ["kestrel", "mariposa", "x86kestrel", "db-kestrel"];

/// What people named, and what a disk of a virtual machine was numbered with.
#[derive(Debug, Clone)]
struct Names {
    host: String,
    group: String,
    volume: String,
    crypt: String,
    array: String,
    folder: String,
    serial: String,
}

fn dm_escaped(name: &str) -> String {
    name.replace('-', "--")
}

/// A disk of a virtual machine that carries an array, a volume, an encrypted device, a loop device and a swap area.
fn host(names: &Names) -> Host {
    let host = Host { folder: tempfile::tempdir().unwrap() };
    let Names { host: own, group, volume, crypt, array, folder, serial } = names;
    let (group, volume) = (dm_escaped(group), dm_escaped(volume));
    host.file("proc/sys/kernel/hostname", format!("{own}\n"));
    host.file("proc/sys/kernel/osrelease", "6.12.0\n");
    host.file("proc/stat", "cpu 1 2 3 4 5 6 7 8\nbtime 1700000000\nprocs_running 3\nprocs_blocked 1\n");
    host.file("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\nCached: 1 kB\n");
    host.file(
        "proc/pressure/io",
        "some avg10=1.00 avg60=1.00 avg300=1.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    );
    host.file("proc/diskstats", format!("254 0 vda 1 2 3 4 5 6 7 8 0 9 10\n9 127 md_{array} 1 2 3 4 5 6 7 8 0 9 10\n"));
    host.file(
        "proc/1/mountinfo",
        format!(
            "22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/{group}-{volume} rw,discard,errors=remount-ro\n\
             23 22 253:1 / /mnt/{folder} rw,noatime master:2 - xfs /dev/mapper/{crypt} rw,attr2\n\
             24 22 0:40 /{volume} /srv/{folder}/{host} rw - btrfs /dev/md_{array} rw,subvolid=257,subvol=/{volume}\n\
             25 22 0:41 / /mnt/far rw - nfs4 {host}.example:/{folder} rw,clientaddr=10.0.0.1\n",
            host = names.host
        ),
    );
    host.file("proc/swaps", "Filename Type Size Used Priority\n/dev/dm-2 partition 1 0 -2\n");
    let virtio = "sys/devices/pci0000:00/0000:00:05.0/virtio2";
    host.file("sys/devices/pci0000:00/0000:00:05.0/power/runtime_status", "active\n");
    host.block(
        &format!("{virtio}/block/vda"),
        "254:0",
        &[("serial", serial), ("queue/scheduler", "[none] mq-deadline")],
    );
    host.link(&format!("{virtio}/block/vda/device"), "../../../virtio2");
    let scsi = "sys/devices/pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0";
    host.block(&format!("{scsi}/block/sda"), "8:0", &[]);
    host.link(&format!("{scsi}/block/sda/device"), "../../../2:0:0:0");
    host.file(&format!("{scsi}/state"), "running\n");
    host.file(&format!("{scsi}/model"), "MADEUP 4T\n");
    let of = |name: &str| format!("sys/devices/virtual/block/{name}");
    let id = "Qm7XwLk2RtZp9sVb4NcYh8FgDj3KaUe1";
    let (lvm, volume) = (format!("LVM-{id}{id}"), format!("{group}-{volume}"));
    host.block(&of("dm-0"), "253:0", &[("dm/name", volume.as_str()), ("dm/uuid", &lvm), ("dm/suspended", "0")]);
    let luks = format!("CRYPT-LUKS2-5be80d1f7a6349c2905ed7c1b08a64f3-{crypt}");
    host.block(&of("dm-1"), "253:1", &[("dm/name", crypt), ("dm/uuid", &luks)]);
    host.block(&of("dm-2"), "253:2", &[("dm/name", "swap_crypt"), ("dm/uuid", "CRYPT-PLAIN-swap_crypt")]);
    let array = format!("md_{array}");
    let members = [("md/level", "raid1"), ("md/raid_disks", "2"), ("md/degraded", "1"), ("md/array_state", "clean")];
    host.block(&of(&array), "9:127", &members);
    host.block(&of("loop0"), "7:0", &[("loop/backing_file", &format!("/home/{folder}/{}.img", names.host))]);
    host.link(&format!("{}/slaves/vda", of(&array)), "../../../../pci0000:00/0000:00:05.0/virtio2/block/vda");
    for above in ["dm-0", "dm-1", "dm-2"] {
        host.link(&format!("{}/slaves/{array}", of(above)), &format!("../../{array}"));
    }
    host
}

/// What the agent tells of a host beside the names, which are replaced by their lengths.
fn told_of(root: &Root) -> Vec<String> {
    let scan = discovery::scan(root);
    assert!(scan.faults.is_empty(), "{:?}", scan.faults);
    let mut all: Vec<String> = scan.devices.iter().map(told).collect();
    all.extend(shape(&stack::read(root).unwrap()));
    all.extend(scan.devices.iter().map(|device| {
        let folder = root.resolve(&root.block(&device.name)).unwrap();
        format!("{:?}", queue::read(root, &folder))
    }));
    all.sort_unstable();
    all
}

/// Every word of a name that people gave is another one, but for those that tell nothing.
fn assert_changed(before: &str, after: &str, is_path: bool) {
    let (all, words) = (is_structure(before), parts(before));
    assert_eq!(words.len(), parts(after.trim_end()).len());
    for ((is_word, word), (_, now)) in words.into_iter().zip(parts(after.trim_end())) {
        let kept = if is_path { is_common_folder(word) } else { is_structure(word) && !all };
        let stays = !is_word || kept || identity::says_nothing(word);
        assert!(stays || word != now, "{word} of {before} is left in {after}");
    }
}

/// Captures the host of `names` and looks at what became of it.
fn check(names: &Names) {
    let host = host(names);
    let out = tempfile::tempdir().unwrap();
    capture(&host.root(), &Selection::default(), out.path(), false)
        .unwrap_or_else(|error| panic!("{names:?}: {error:#}"));
    let captured = Root::captured(out.path());
    for (before, after) in told_of(&host.root()).into_iter().zip(told_of(&captured)) {
        assert_eq!(before, after, "{names:?}");
    }
    let read = |root: &Root, place: &str| fs::read_to_string(root.proc(place)).unwrap();
    for place in ["stat", "meminfo", "pressure/io"] {
        assert_eq!(read(&host.root(), place), read(&captured, place), "{names:?}");
    }
    // What stands in the places of names.
    assert_changed(&names.host, &read(&captured, "sys/kernel/hostname"), false);
    let block = |file: &str| fs::read_to_string(captured.sys("class/block").join(file)).unwrap();
    assert_changed(
        &format!("{}-{}", dm_escaped(&names.group), dm_escaped(&names.volume)),
        &block("dm-0/dm/name"),
        false,
    );
    assert_changed(&names.crypt, &block("dm-1/dm/name"), false);
    assert_changed(&format!("/home/{}/{}.img", names.folder, names.host), &block("loop0/loop/backing_file"), true);
    let mounts = read(&captured, "1/mountinfo");
    let points: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(4)).collect();
    assert_changed(&format!("/mnt/{}", names.folder), points[1], true);
    assert_changed(&format!("/srv/{}/{}", names.folder, names.host), points[2], true);
    // And anywhere else.
    let after = everything(out.path());
    let all = [&names.host, &names.group, &names.volume, &names.crypt, &names.array, &names.folder];
    for name in all.into_iter().filter(|name| TELLING.contains(&name.as_str())) {
        assert_eq!(places(&after, name.as_bytes()), Vec::<PathBuf>::new(), "{names:?}");
    }
}

fn name() -> impl Strategy<Value = String> {
    let plain = proptest::sample::select([&NASTY[..], &TELLING].concat());
    let two = (plain.clone(), plain.clone(), proptest::sample::select(vec!['-', '_', '.']));
    prop_oneof![
        4 => plain.prop_map(str::to_owned),
        2 => two.prop_map(|(a, b, between)| format!("{a}{between}{b}")),
        1 => "[a-f0-9]{3,6}",
        1 => "[a-z]{1,4}[0-9]{0,2}",
    ]
}

prop_compose! {
    fn any_names()(
        host in name(), group in name(), volume in name(), crypt in name(), array in name(), folder in name(),
        serial in prop_oneof![name(), "[0-9]{1,9}", Just("254".to_owned()), Just("virtio2".to_owned())],
    ) -> Names {
        Names { host, group, volume, crypt, array, folder, serial }
    }
}

#[test]
fn every_nasty_name_in_every_place() {
    for name in NASTY.into_iter().chain(TELLING) {
        let name = || name.to_owned();
        let serial = format!("{}-0001", name());
        check(&Names {
            host: name(),
            group: name(),
            volume: name(),
            crypt: name(),
            array: name(),
            folder: name(),
            serial,
        });
    }
}

#[test]
fn a_short_host_name_within_longer_names() {
    let [host, group, volume, crypt, array, folder, serial] =
        ["lab", "labvg", "data", "labcrypt", "lab", "crypt", "LABVIRT1"].map(str::to_owned);
    check(&Names { host, group, volume, crypt, array, folder, serial });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_names_keep_a_host_from_being_captured(names in any_names()) {
        check(&names);
    }
}
