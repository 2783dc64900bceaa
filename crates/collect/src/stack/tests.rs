use super::*;
use crate::discovery::fixture::Host;
use crate::unprivileged;
use storscope_model::sample::stack::Mount;

const VIRTUAL: &str = "devices/virtual/block";

fn node<'a>(stack: &'a Stack, name: &str) -> &'a Node {
    stack.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("no {name} in {stack:#?}"))
}

fn points<'a>(stack: &'a Stack, name: &str) -> Vec<&'a str> {
    node(stack, name).mounts.iter().map(|mount| mount.point.as_str()).collect()
}

fn label<'a>(stack: &'a Stack, name: &str) -> &'a str {
    node(stack, name).label.as_deref().unwrap_or("-")
}

/// Two disks with a partition each, in a mirror that holds LUKS that holds LVM.
fn mirror() -> Host {
    let host = Host::new();
    for (disk, minor) in [("sda", 0), ("sdb", 16)] {
        let folder = host.block("devices/pci0000:00/0000:00:17.0/block", disk, &[("dev", &format!("8:{minor}"))]);
        let partition = host.partition(&folder, &format!("{disk}1"), "1", &format!("8:{}", minor + 1));
        host.folder(&format!("{partition}/holders/md0"));
    }
    host.block(
        VIRTUAL,
        "md0",
        &[
            ("dev", "9:0"),
            ("md/level", "raid1"),
            ("md/raid_disks", "2"),
            ("md/degraded", "1"),
            ("md/array_state", "clean"),
        ],
    );
    host.folder(&format!("{VIRTUAL}/md0/slaves/sda1"));
    host.folder(&format!("{VIRTUAL}/md0/holders/dm-0"));
    host.block(VIRTUAL, "dm-0", &[("dev", "254:0"), ("dm/name", "crypt0"), ("dm/uuid", "CRYPT-LUKS2-0a-crypt0")]);
    for (number, volume) in [("1", "vg0-root"), ("2", "vg0-my--swap"), ("10", "vg0-srv")] {
        let name = format!("dm-{number}");
        host.block(
            VIRTUAL,
            &name,
            &[("dev", &format!("254:{number}")), ("dm/name", volume), ("dm/uuid", "LVM-0123456789")],
        );
        // This side only: the holders of dm-0 are not in the tree.
        host.folder(&format!("{VIRTUAL}/{name}/slaves/dm-0"));
    }
    host
}

const MOUNTS: &str = "\
21 0 254:1 / / rw shared:1 - ext4 /dev/mapper/vg0-root rw
22 21 0:4 / /proc rw - proc proc rw
23 21 0:99 / /srv\\040two rw - xfs /dev/mapper/vg0-srv rw
24 21 254:1 /var/lib/pods /var/lib/kubelet/pods rw - ext4 /dev/mapper/vg0-root rw
25 21 254:1 / / rw shared:1 - ext4 /dev/mapper/vg0-root rw
26 21 0:4 net:[4026533460] net:[4026533460] rw - nsfs nsfs rw
27 21 0:50 / /mnt rw - nfs4 server:/export rw
";

#[test]
fn a_mirror_under_luks_under_lvm() {
    let host = mirror();
    host.proc("self/mountinfo", MOUNTS);
    host.proc("swaps", "Filename Type Size Used Priority\n/dev/dm-2 partition 8 0 -2\n");
    let stack = read(&host.root).unwrap();
    assert_eq!(stack.faults, []);
    assert_eq!(node(&stack, "sda").above, ["sda1"]);
    assert_eq!(node(&stack, "sda1").above, ["md0"]);
    assert_eq!(node(&stack, "sdb1").above, ["md0"]);
    assert_eq!(node(&stack, "md0").above, ["dm-0"]);
    assert_eq!(node(&stack, "dm-0").above, ["dm-1", "dm-2", "dm-10"]);
    assert_eq!(label(&stack, "md0"), "md0 (raid1, 1 of 2)");
    assert_eq!(label(&stack, "dm-0"), "luks crypt0");
    assert_eq!(label(&stack, "dm-2"), "vg0/my-swap");
    assert_eq!(label(&stack, "sda1"), "-");
    assert_eq!(node(&stack, "dm-1").mounts, [Mount { point: "/".to_owned(), fs_type: "ext4".to_owned() }]);
    assert_eq!(points(&stack, "dm-10"), ["/srv two"]);
    assert!(node(&stack, "dm-2").swap && !node(&stack, "dm-1").swap);
}

#[test]
fn bind_mounts_count_where_nothing_else_is_mounted() {
    let host = mirror();
    host.proc(
        "self/mountinfo",
        "1 0 8:1 /a /etc/hosts rw - ext4 /dev/sda1 rw\n2 0 8:1 /b /etc/resolv.conf rw - ext4 /dev/sda1 rw\n",
    );
    let stack = read(&host.root).unwrap();
    assert_eq!(points(&stack, "sda1"), ["/etc/hosts", "/etc/resolv.conf"]);
}

#[test]
fn filesystems_over_several_devices() {
    let host = mirror();
    for device in ["sda1", "sdb1"] {
        host.link(&format!("fs/btrfs/0abb/devices/{device}"), "../nowhere");
    }
    host.proc(
        "1/mountinfo",
        "1 0 0:31 /@ / rw - btrfs /dev/sda1 rw,subvolid=256,subvol=/@\n\
         2 0 0:31 /@/var/lib/x /var/lib/y rw - btrfs /dev/sda1 rw,subvolid=256,subvol=/@\n\
         3 0 0:31 /@home /home rw - btrfs /dev/sda1 rw,subvolid=257,subvol=/@home\n\
         4 0 254:1 / /pool rw - bcachefs /dev/dm-1:/dev/dm-2 rw\n",
    );
    let stack = read(&host.root).unwrap();
    for device in ["sda1", "sdb1"] {
        assert_eq!(points(&stack, device), ["/", "/home"], "{device}");
    }
    assert_eq!((points(&stack, "dm-1"), points(&stack, "dm-2")), (vec!["/pool"], vec!["/pool"]));
}

#[test]
fn links_of_udev_are_understood() {
    let host = mirror();
    host.top("dev/disk/by-uuid/placeholder", b"");
    std::os::unix::fs::symlink("../../sdb1", host.root.node("disk/by-uuid/77")).unwrap();
    host.proc(
        "self/mountinfo",
        "1 0 0:31 / /a rw - btrfs /dev/disk/by-uuid/77 rw\n2 0 0:32 / /b rw - btrfs /dev/vg0/srv rw\n",
    );
    let stack = read(&host.root).unwrap();
    assert_eq!((points(&stack, "sdb1"), points(&stack, "dm-10")), (vec!["/a"], vec!["/b"]));
}

#[test]
fn more_labels() {
    let host = Host::new();
    host.block(VIRTUAL, "loop0", &[("loop/backing_file", "/var/lib/images/a b.img")]);
    host.block(VIRTUAL, "md5", &[("md/level", "raid5"), ("md/raid_disks", "11 (10)"), ("md/degraded", "0")]);
    host.block(VIRTUAL, "md7", &[("md/level", "container"), ("md/array_state", "inactive"), ("md/raid_disks", "0")]);
    host.block(VIRTUAL, "md9", &[("md/level", "raid0"), ("md/raid_disks", "3")]);
    host.block(VIRTUAL, "bcache0", &[("bcache/state", "dirty")]);
    host.block(VIRTUAL, "dm-3", &[("dm/name", "mpathA"), ("dm/uuid", "mpath-36000")]);
    let stack = read(&host.root).unwrap();
    assert_eq!(label(&stack, "loop0"), "loop0 (/var/lib/images/a b.img)");
    assert_eq!(label(&stack, "md5"), "md5 (raid5, 11 of 11)");
    assert_eq!(label(&stack, "md7"), "md7 (container, inactive)");
    assert_eq!(label(&stack, "md9"), "md9 (raid0, 3 disks)");
    assert_eq!(label(&stack, "bcache0"), "bcache0 (dirty)");
    assert_eq!(label(&stack, "dm-3"), "multipath mpathA");
}

#[test]
fn a_head_is_in_the_stack_and_its_paths_are_not() {
    let host = Host::new();
    host.block("devices/virtual/nvme-subsystem/nvme-subsys0", "nvme0n1", &[("hidden", "0")]);
    host.block("devices/pci0000:00/0000:00:01.0/nvme/nvme0", "nvme0c0n1", &[("hidden", "1")]);
    let stack = read(&host.root).unwrap();
    assert_eq!(stack.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["nvme0n1"]);
}

#[test]
fn absent_mounts_are_told_and_the_rest_is_there() {
    let stack = read(&mirror().root).unwrap();
    assert_eq!(node(&stack, "sda1").above, ["md0"]);
    assert!(matches!(stack.faults.as_slice(), [Fault::Io { path, .. }] if path.ends_with("self/mountinfo")));
    assert_eq!(read(&Host::new().root), Ok(Stack::default()));
}

#[test]
fn malformed_files_cost_only_themselves() {
    let host = mirror();
    host.proc("self/mountinfo", b"\0\0\0\n1 0 254:1 / / rw - ext4 x rw\n2 0 254:2 / \xff");
    host.proc("swaps", b"\xff\xfe\n\0 partition\nhalf");
    host.file(&format!("{VIRTUAL}/md0/md/raid_disks"), b"many\n");
    host.file(&format!("{VIRTUAL}/md0/md/degraded"), b"-1\n");
    let stack = read(&host.root).unwrap();
    assert_eq!(points(&stack, "dm-1"), ["/"]);
    assert_eq!(label(&stack, "md0"), "md0 (raid1)");
    assert_eq!(stack.faults.len(), 3, "{:?}", stack.faults);
}

#[test]
fn loops_of_holders_end() {
    let host = Host::new();
    for (name, other) in [("dm-0", "dm-1"), ("dm-1", "dm-0")] {
        host.block(VIRTUAL, name, &[]);
        host.folder(&format!("{VIRTUAL}/{name}/holders/{other}"));
        host.link(&format!("{VIRTUAL}/{name}/holders/{name}"), "..");
    }
    let stack = read(&host.root).unwrap();
    assert_eq!(node(&stack, "dm-0").above, ["dm-1"]);
    assert_eq!(node(&stack, "dm-1").above, ["dm-0"]);
}

#[test]
fn mounts_are_bounded() {
    let host = mirror();
    let lines: String =
        (0..MAX_MOUNTS + 5).map(|number| format!("1 0 8:1 / /m{number} rw - ext4 /dev/sda1 rw\n")).collect();
    host.proc("self/mountinfo", lines);
    let stack = read(&host.root).unwrap();
    assert_eq!(node(&stack, "sda1").mounts.len(), MAX_MOUNTS);
    assert_eq!(stack.faults.len(), 1);
}

#[test]
fn denied_mounts_of_the_first_process_give_way_to_ones_own() {
    if !unprivileged::go_on("stack::tests::denied_mounts_of_the_first_process_give_way_to_ones_own") {
        return;
    }
    let host = mirror();
    unprivileged::deny(&host.proc("1/mountinfo", MOUNTS));
    host.proc("self/mountinfo", "1 0 8:1 / /boot rw - ext4 /dev/sda1 rw\n");
    assert_eq!(points(&read(&host.root).unwrap(), "sda1"), ["/boot"]);
    unprivileged::deny(&host.root.proc("self/mountinfo"));
    let stack = read(&host.root).unwrap();
    assert!(matches!(stack.faults.as_slice(), [Fault::Denied { .. }]), "{:?}", stack.faults);
}
