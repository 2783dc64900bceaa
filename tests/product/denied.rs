//! What the kernel denied stays denied: in a capture as on the host, for one whom mode bits bind.

use crate::agent::{run, told};
use crate::fixture::Host;
use crate::made_up::{folder, nvme, small};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What `doctor` lists as denied: subjects, and what of each without the place of the host.
fn doctor(option: &str, root: &Path) -> (Option<i32>, Vec<String>) {
    let output = run(&["doctor", option, root.to_str().unwrap()]);
    let (status, text, errors) = told(&output);
    assert_eq!(errors, "");
    let denied = text.split("\nDENIED\n").nth(1).map_or("", |rest| rest.split("\n\n").next().unwrap());
    // The subject of each, whose lines that follow are indented further.
    let subjects = denied.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let subjects = subjects.map(|line| line.split_whitespace().next().unwrap().to_owned());
    (status, subjects.collect())
}

/// The evidence of the finding that something is denied, and every source that is.
fn status(option: &str, root: &Path) -> (Vec<String>, BTreeSet<String>) {
    let output = run(&["status", "--json", option, root.to_str().unwrap()]);
    let (_, text, errors) = told(&output);
    assert_eq!(errors, "");
    let status: Value = serde_json::from_str(text).unwrap();
    let findings = status["findings"].as_array().unwrap();
    let denied = findings.iter().find(|finding| finding["rule"] == "source_denied");
    let evidence = denied.map_or(Vec::new(), |finding| {
        let lines = finding["evidence"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
        // Names are in the order of identities, which a capture replaces.
        let words = |line: &str| {
            let line = line.replace(root.to_str().unwrap(), "").replace([',', ';'], "");
            let (source, names) = line.split_once(": denied on ").unwrap();
            let mut names: Vec<&str> = names.split(' ').collect();
            names.sort_unstable();
            format!("{source}: denied on {}", names.join(" "))
        };
        lines.map(words).collect()
    });
    let mut sources = BTreeSet::new();
    gather(&status, "", &mut sources);
    (evidence, sources)
}

/// Paths of readings whose fault is a denial.
fn gather(value: &Value, path: &str, denied: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                gather(field, &format!("{path}/{name}"), denied);
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let name = ["source", "name"].iter().find_map(|key| item.get(key)?.as_str().map(str::to_owned));
                gather(item, &format!("{path}/{}", name.unwrap_or_else(|| number.to_string())), denied);
            }
        }
        Value::String(text) if text.contains("permission denied") && !path.starts_with("/findings") => {
            denied.insert(path.to_owned());
        }
        _ => {}
    }
}

/// A mounted host that denies the nodes of disks and of a controller to this user.
fn host() -> Host {
    let host = small();
    nvme(&host, "0000:66:00.0", "nvme1", "S2", 5);
    let root = folder(&host).to_owned();
    let root = Path::new(&root);
    std::fs::create_dir_all(root.join("dev")).unwrap();
    for name in ["nvme1", "nvme1n1", "sda"] {
        let node = root.join("dev").join(name);
        std::fs::write(&node, vec![0; 8192]).unwrap();
        // The prober looks at a node before it opens it: a file in the place of a disk that it may read is never opened.
        if name != "nvme1n1" {
            crate::unprivileged::deny(&node);
        }
    }
    // The prober finds a device by its number, and looks at what is in flight before it opens it.
    for name in ["nvme0n1", "nvme1n1"] {
        let folder = root.join("sys/class/block").join(name);
        std::fs::write(folder.join("stat"), "1 0 8 1 1 0 8 1 0 2 2\n").unwrap();
        let number = std::fs::read_to_string(folder.join("dev")).unwrap();
        host.link(&format!("dev/block/{}", number.trim()), &format!("../../class/block/{name}"));
    }
    host
}

#[test]
fn a_capture_denies_what_the_host_denies() {
    if !crate::unprivileged::go_on("denied::a_capture_denies_what_the_host_denies") {
        return;
    }
    let host = host();
    agree(&host, &["sda", "nvme1"], &["ata_power", "identify"]);
    let nodes = Path::new(folder(&host)).join("dev");
    std::fs::set_permissions(&nodes, std::fs::Permissions::from_mode(0o000)).unwrap();
    agree(&host, &["nvme1n1", "sda", "nvme1"], &["probe", "ata_power", "identify"]);
    std::fs::set_permissions(&nodes, std::fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn denied_files_stay_denied_files() {
    if !crate::unprivileged::go_on("denied::denied_files_stay_denied_files") {
        return;
    }
    let more = [
        "sys/class/nvme/nvme1/state",
        "sys/class/nvme/nvme1/../../aer_dev_fatal",
        "sys/class/nvme/nvme1/../../current_link_speed",
        "sys/class/block/sda/queue/scheduler",
        "sys/class/block/sda/device/model",
        "sys/class/block/nvme1n1/size",
        "proc/diskstats",
        "proc/pressure/io",
        "proc/stat",
        "proc/1/mountinfo",
    ];
    let host = host();
    for path in more {
        let place = Path::new(folder(&host)).join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, "0\n").unwrap();
        crate::unprivileged::deny(&place);
    }
    agree(&host, &["pressure", "diskstats"], &["controller_state", "diskstats", "pressure", "cpu"]);
}

#[test]
fn folders_that_cannot_be_listed_or_entered_stay_so() {
    if !crate::unprivileged::go_on("denied::folders_that_cannot_be_listed_or_entered_stay_so") {
        return;
    }
    for (path, doctor, sources) in [
        ("sys/class/nvme", [].as_slice(), ["discovery"].as_slice()),
        ("sys/class/block", &["sysfs"], &["discovery"]),
        ("sys/devices", &[], &["discovery"]),
        ("sys", &["sysfs"], &["discovery"]),
    ] {
        let host = host();
        let place = Path::new(folder(&host)).join(path);
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o000)).unwrap();
        agree(&host, doctor, sources);
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
}

/// Asserts that the host and its captures, the second one of the first, deny the same: at least these to `doctor` and
/// these sources to `status`.
fn agree(host: &Host, subjects: &[&str], sources: &[&str]) {
    let root = Path::new(folder(host));
    let out = tempfile::tempdir().unwrap();
    let capture = out.path().join("one");
    let again = out.path().join("two");
    let output = run(&["capture", "--host-root", root.to_str().unwrap(), capture.to_str().unwrap()]);
    assert_eq!(told(&output).0, Some(0), "{output:?}");
    let output = run(&["capture", "--root", capture.to_str().unwrap(), again.to_str().unwrap()]);
    assert_eq!(told(&output).0, Some(0), "{output:?}");

    let live = doctor("--host-root", root);
    assert!(subjects.iter().all(|wanted| live.1.iter().any(|subject| subject == wanted)), "{live:?}");
    assert_eq!(doctor("--root", &capture), live);
    assert_eq!(doctor("--root", &again), live);
    let live = status("--host-root", root);
    let told = |source: &&str| live.0.iter().any(|line| line.starts_with(&format!("{source}: denied on")));
    assert!(sources.iter().all(told), "{live:?}");
    assert_eq!(status("--root", &capture), live);
    assert_eq!(status("--root", &again), live);
}

#[test]
fn a_capture_of_this_host_denies_what_it_denies() {
    if !crate::unprivileged::go_on("denied::a_capture_of_this_host_denies_what_it_denies") {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let output = run(&["capture", out.path().to_str().unwrap()]);
    assert_eq!(told(&output).0, Some(0), "{output:?}");
    assert_eq!(doctor("--root", out.path()), doctor("--host-root", Path::new("/")));
}
