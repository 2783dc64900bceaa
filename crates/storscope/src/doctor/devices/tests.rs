//! Devices of made-up hosts, and nodes that are ordinary files.

use super::super::report::Verdict;
use super::*;
use storscope_collect::discovery;

fn host(live: bool, files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let root = if live { Root::host(dir.path()) } else { Root::captured(dir.path()) };
    let folder = root.sys("devices/pci0000:00/0000:00:05.0/virtio1/block/vda");
    std::fs::create_dir_all(folder.join("queue")).unwrap();
    std::fs::create_dir_all(root.sys("class/block")).unwrap();
    std::fs::create_dir_all(&root.dev).unwrap();
    for (name, text) in
        [("dev", "254:0"), ("size", "2048"), ("removable", "0"), ("queue/iostats", "1")].iter().chain(files)
    {
        std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
    }
    let target = "../../devices/pci0000:00/0000:00:05.0/virtio1/block/vda";
    std::os::unix::fs::symlink(target, root.sys("class/block/vda")).unwrap();
    (dir, root)
}

fn found(root: &Root) -> Vec<Check> {
    checks(root, &discovery::scan(root).devices[0], Privileges::none())
}

#[test]
fn counting_that_is_off_is_mended_by_one_command() {
    let (_dir, root) = host(false, &[("queue/iostats", "0")]);
    let found = found(&root);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].verdict, Verdict::Lacks);
    let switch = root.sys("class/block/vda");
    assert!(
        found[0].mend[0].starts_with("echo 1 > ") && found[0].mend[0].ends_with("queue/iostats"),
        "{found:?} {switch:?}"
    );
}

#[test]
fn a_sleeping_disk_is_not_opened() {
    let (_dir, root) = host(true, &[("power/runtime_status", "suspended")]);
    assert_eq!(found(&root), [Check::fine("vda", "asleep: not opened, which would wake it")]);
    let (_dir, root) = host(true, &[("power/runtime_status", "dozing")]);
    let found = found(&root);
    assert!(found[0].what.contains("left alone"), "{found:?}");
    assert!(!found.iter().any(|check| check.what.contains("opens")), "{found:?}");
}

#[test]
fn a_missing_node_is_made_with_its_number() {
    let (_dir, root) = host(true, &[]);
    let found = found(&root);
    assert_eq!(found[0].verdict, Verdict::Lacks);
    let node = root.node("vda");
    assert_eq!(found[0].mend, [format!("mknod -m 0600 {} b 254 0", node.display())]);
    std::fs::write(&node, vec![0; 8192]).unwrap();
    let opened = opens(&root, &discovery::scan(&root).devices[0], Privileges::none());
    assert_ne!(opened.verdict, Verdict::Denied, "{opened:?}");
}

#[test]
fn a_device_without_a_size_is_told_once() {
    let (_dir, root) = host(true, &[("size", "0"), ("removable", "0")]);
    std::fs::write(root.node("vda"), "").unwrap();
    let found = found(&root);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].verdict == Verdict::Lacks && found[0].what.contains("it has no size"), "{found:?}");
}

#[test]
fn denial_by_mode_and_by_cgroup_differ() {
    let (_dir, root) = host(true, &[]);
    let device = &discovery::scan(&root).devices[0];
    let node = root.node("vda");
    let of = |errno, own| not_opened(&root, device, &node, errno, own);
    let mode = of(Errno::EACCES, Privileges::none());
    assert_eq!(mode.verdict, Verdict::Denied);
    assert!(mode.mend[0].starts_with("setfacl -m u:"), "{mode:?}");
    let cgroup = of(Errno::EPERM, Privileges::all());
    assert_eq!(cgroup.verdict, Verdict::Denied);
    assert!(cgroup.what.contains("to root too") && cgroup.what.contains("Not probed"), "{cgroup:?}");
    assert_eq!(of(Errno::ENXIO, Privileges::all()).verdict, Verdict::Lacks);
    assert_eq!(of(Errno::EIO, Privileges::all()).verdict, Verdict::Denied);
}

#[test]
fn what_is_left_out_is_grouped_by_reason() {
    let (_dir, root) = host(false, &[]);
    for (name, size) in [("loop0", 0), ("loop1", 0), ("loop2", 8), ("dm-0", 8)] {
        let folder = root.sys("devices/virtual/block").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("size"), format!("{size}\n")).unwrap();
        std::os::unix::fs::symlink(format!("../../devices/virtual/block/{name}"), root.sys("class/block").join(name))
            .unwrap();
    }
    let devices = discovery::scan(&root).devices;
    let groups = left_out(&devices, &Selection::default(), false);
    let of = |names: &[&str], why| LeftOut { names: names.iter().map(|name| (*name).to_owned()).collect(), why };
    let expected =
        [of(&["dm-0"], "made of other disks"), of(&["loop0", "loop1"], FREE), of(&["loop2"], "made of files")];
    assert_eq!(groups, expected);
    let all = Selection::new(Some(".*"), None, None).unwrap();
    assert_eq!(left_out(&devices, &all, true), [of(&["loop0", "loop1"], FREE)], "no option makes a drive of these");
    let none = Selection::new(None, Some("vda"), None).unwrap();
    assert!(left_out(&devices, &none, true).contains(&of(&["vda"], "left out by --exclude or --only")));
}
