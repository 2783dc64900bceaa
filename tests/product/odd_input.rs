//! Files that are missing, empty, too long, of the wrong kind, or full of nonsense: each costs only itself, and is
//! named.

use crate::agent::{Agent, run};
use crate::figures::Figures;
use crate::fixture::Host;
use crate::made_up::{Identify, PORT, SATA, Smart, folder, nvme, pages, sata, small};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn served(host: &Host) -> (Figures, Value, String) {
    let agent = Agent::replay(Path::new(folder(host)), &[]);
    let figures = agent.wait_settled();
    (figures, agent.json(), agent.text("/status"))
}

/// What is asked of a host whose `nvme0` and `sda` are damaged: that `nvme1` and `sdb` tell all that they have.
fn neighbours_are_well(figures: &Figures) {
    for device in ["nvme1n1", "sdb"] {
        assert_eq!(figures.value("storscope_disk_reads_completed_total", &[("device", device)]), 1000.0, "{device}");
        assert_eq!(figures.value("storscope_queue_nr_requests", &[("device", device)]), 1023.0, "{device}");
    }
    let nvme1 = [("controller", "nvme1")];
    assert_eq!(figures.value("storscope_nvme_percentage_used_ratio", &nvme1), 0.03);
    assert_eq!(figures.value("storscope_pcie_link_width_lanes", &nvme1), 4.0);
    assert_eq!(figures.value("storscope_nvme_firmware_active_slot", &nvme1), 1.0);
}

fn pair() -> Host {
    let host = small();
    nvme(&host, "0000:66:00.0", "nvme1", "S2", 5);
    pages(&host, "nvme1", &Identify::new("S2", "ACME FAST 1920G", "FW1"), &Smart::default());
    sata(&host, 2, "sdb", "D2", true);
    host.proc("diskstats", crate::made_up::diskstats(&["259 0 nvme0n1", "259 5 nvme1n1", "8 0 sda", "8 16 sdb"]));
    host
}

/// Every file that tells of `nvme0` or `sda`, apart from those whose loss is the loss of the device.
fn files_of_the_damaged(host: &Host) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let top = Path::new(folder(host));
    for start in [
        host.root.sys(&format!("{PORT}/0000:65:00.0")),
        host.root.sys(&format!("{SATA}/ata1")),
        top.join("drives/nvme0"),
    ] {
        files(&start, &mut all);
    }
    assert!(all.len() > 40, "{}", all.len());
    all
}

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = std::fs::symlink_metadata(&path).unwrap();
        match (meta.is_dir(), meta.is_file()) {
            (true, _) => files(&path, all),
            (_, true) => all.push(path),
            _ => {}
        }
    }
}

#[test]
fn whatever_the_files_of_a_drive_hold_its_neighbours_are_well() {
    let endless = "9".repeat(1000);
    let long = vec![b'x'; 1 << 20];
    for (what, content) in [
        ("empty", &b""[..]),
        ("NULs", &[0; 64]),
        ("no UTF-8", b"\xff\xfe\xc0\x80\n"),
        ("a number past u64", b"18446744073709551616\n"),
        ("an endless number", endless.as_bytes()),
        ("a negative number", b"-1\n"),
        ("words", b"what is this\nand this\n"),
        ("a megabyte", &long),
        ("half a line", b"0 0 0"),
    ] {
        let host = pair();
        for file in files_of_the_damaged(&host) {
            std::fs::write(file, content).unwrap();
        }
        let (figures, _, page) = served(&host);
        neighbours_are_well(&figures);
        assert!(page.lines().count() < 200 && page.lines().all(|line| line.chars().count() <= 100), "{what}: {page}");
        // Nothing is made up for what could not be read.
        for name in ["percentage_used_ratio", "available_spare_ratio", "media_errors_total"] {
            assert_eq!(figures.find(&format!("storscope_nvme_{name}"), &[("controller", "nvme0")]), None, "{what}");
        }
    }
}

#[test]
fn whatever_kind_the_files_of_a_drive_are_its_neighbours_are_well() {
    for kind in ["gone", "a loop of links", "a dangling link", "a folder", "a pipe", "a socket"] {
        let host = pair();
        for file in files_of_the_damaged(&host) {
            std::fs::remove_file(&file).unwrap();
            match kind {
                "a loop of links" => std::os::unix::fs::symlink(file.file_name().unwrap(), &file).unwrap(),
                "a dangling link" => std::os::unix::fs::symlink("nowhere/at/all", &file).unwrap(),
                "a folder" => std::fs::create_dir(&file).unwrap(),
                "a pipe" => nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap(),
                "a socket" => {
                    // A path of a socket has 108 bytes at most.
                    let place = tempfile::tempdir().unwrap();
                    std::os::unix::net::UnixListener::bind(place.path().join("s")).unwrap();
                    std::fs::rename(place.path().join("s"), &file).unwrap();
                }
                _ => {}
            }
        }
        let (figures, ..) = served(&host);
        neighbours_are_well(&figures);
        assert_eq!(figures.find("storscope_nvme_percentage_used_ratio", &[("controller", "nvme0")]), None, "{kind}");
    }
}

#[test]
fn whatever_the_files_of_the_host_hold_the_drives_are_well() {
    for content in [&b""[..], &[0; 4096], b"\xff\xff\n", b"99999999999999999999999 a b c\n", b"half a li"] {
        let host = pair();
        for file in
            ["stat", "loadavg", "meminfo", "self/mountinfo", "swaps", "pressure/io", "sys/kernel/hostname", "version"]
        {
            host.proc(file, content);
        }
        let (figures, ..) = served(&host);
        neighbours_are_well(&figures);
        host.proc("diskstats", content);
        let agent = Agent::replay(Path::new(folder(&host)), &[]);
        let figures = agent.wait_settled();
        assert_eq!(figures.find("storscope_disk_reads_completed_total", &[("device", "sda")]), None);
        assert_eq!(figures.value("storscope_nvme_percentage_used_ratio", &[("controller", "nvme1")]), 0.03);
        // A host whose counters stay away is not called well.
        crate::agent::wait("a verdict", || (agent.json()["verdict"] == "degraded").then_some(()));
    }
}

#[test]
fn numbers_up_to_the_largest_are_kept() {
    let host = small();
    let most = u64::MAX;
    host.proc(
        "diskstats",
        format!(
            "8 0 sda {most} 0 0 0 0 0 0 0 0 0 0\n259 0 nvme0n1 18446744073709551616 0 0 0 0 0 0 0 0 0 0\n\
             8 16 sdb -1 0 0 0 0 0 0 0 0 0 0\n"
        ),
    );
    let (figures, status, page) = served(&host);
    let reads = |device: &str| figures.find("storscope_disk_reads_completed_total", &[("device", device)]);
    assert_eq!((reads("sda"), reads("nvme0n1")), (Some(18_446_744_073_709_551_615.0), None));
    assert_eq!(figures.exact("storscope_source_partial_faults", &[("source", "diskstats")]), Some(2.0));
    let disk = status["devices"].as_array().unwrap().iter().find(|one| one["name"] == "sda").unwrap();
    assert_eq!(disk["counters"]["reads"]["completed"], most);
    assert!(page.contains("nvme0n1"), "{page}");
}

#[test]
fn a_short_page_is_unavailable_and_the_others_are_there() {
    for (page, metric) in [
        ("logpage-0x02.bin", "storscope_nvme_percentage_used_ratio"),
        ("logpage-0x03.bin", "storscope_nvme_firmware_active_slot"),
    ] {
        let host = small();
        host.top(&format!("drives/nvme0/{page}"), [1, 2, 3]);
        let (figures, status, _) = served(&host);
        assert_eq!(figures.find(metric, &[("controller", "nvme0")]), None, "{page}");
        let text = status["controllers"].to_string();
        assert!(text.contains("3 bytes"), "{text}");
        let shown = ["storscope_nvme_percentage_used_ratio", "storscope_nvme_firmware_active_slot"]
            .map(|name| figures.find(name, &[("controller", "nvme0")]).is_some());
        assert_eq!(shown.iter().filter(|shown| **shown).count(), 1, "{page}");
    }
}

#[test]
fn a_device_that_vanishes_leaves_metrics_and_comes_back() {
    let host = pair();
    let worn = Smart { used: 133, ..Smart::default() };
    pages(&host, "nvme1", &Identify::new("S2", "ACME FAST 1920G", "FW1"), &worn);
    // Its pages are not asked while it leaves bit by bit: then they would be missing before it does.
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("storscope.toml");
    std::fs::write(&config, "[periods]\ntick = \"1s\"\nrescan = \"5s\"\nsmart = \"1h\"\n").unwrap();
    let agent = Agent::replay(Path::new(folder(&host)), &["--config", config.to_str().unwrap()]);
    let wear = [("rule", "nvme_wear"), ("severity", "warning"), ("device", "nvme1n1"), ("controller", "nvme1")];
    agent.wait_figures("its wear", |figures| figures.find("storscope_finding", &wear) == Some(1.0));
    let function = host.root.sys(&format!("{PORT}/0000:66:00.0"));
    let aside = function.with_extension("gone");
    std::fs::rename(&function, &aside).unwrap();
    let drives = Path::new(folder(&host)).join("drives/nvme1");
    std::fs::rename(&drives, drives.with_file_name("../nvme1.gone")).unwrap();
    let there = |figures: &Figures| {
        figures.all().any(|one| {
            let named = |label: &str, name: &str| one.labels.get(label).is_some_and(|value| value == name);
            // That it is gone is told under its name.
            !named("rule", "device_gone") && (named("device", "nvme1n1") || named("controller", "nvme1"))
        })
    };
    let figures = agent.wait_figures("it to leave", |figures| figures.find("storscope_devices", &[]) == Some(3.0));
    assert!(!there(&figures));
    let gone = [("rule", "device_gone"), ("severity", "critical"), ("device", "nvme1n1")];
    assert_eq!(figures.find("storscope_finding", &gone), Some(1.0), "it was worn out as it vanished");
    assert_eq!(agent.get("/status?device=nvme1n1").status, 404);
    std::fs::rename(&aside, &function).unwrap();
    agent.wait_figures("it to come back", there);
    agent.wait_log("vanished", 1);
}

#[test]
fn an_empty_folder_is_an_empty_host() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["status", "--root", dir.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8(output.stderr).unwrap().contains(dir.path().to_str().unwrap()));
    std::fs::create_dir(dir.path().join("sys")).unwrap();
    let agent = Agent::replay(dir.path(), &[]);
    let figures = agent.wait_settled();
    assert_eq!(figures.value("storscope_devices", &[]), 0.0);
    assert_eq!(agent.json()["verdict"], "unknown");
}

#[test]
fn what_is_denied_is_told_and_the_rest_is_served() {
    if !crate::unprivileged::go_on("odd_input::what_is_denied_is_told_and_the_rest_is_served") {
        return;
    }
    let host = pair();
    let drives = Path::new(folder(&host)).join("drives/nvme0/logpage-0x02.bin");
    for file in [
        host.root.proc("stat"),
        drives,
        host.root.sys(&format!("{SATA}/ata1/host0/target0:0:0/0:0:0:0/block/sda/queue/nr_requests")),
    ] {
        crate::unprivileged::deny(&file);
    }
    let (figures, status, page) = served(&host);
    neighbours_are_well(&figures);
    assert_eq!(figures.exact("storscope_source_up", &[("source", "cpu")]), Some(0.0));
    let smart = [("controller", "nvme0"), ("source", "smart_health")];
    assert_eq!(figures.value("storscope_source_up", &smart), 0.0);
    assert_eq!(figures.value("storscope_source_failures_total", &[smart[0], smart[1], ("reason", "denied")]), 1.0);
    assert_eq!(figures.find("storscope_queue_nr_requests", &[("device", "sda")]), None);
    assert_eq!(figures.value("storscope_queue_read_ahead_bytes", &[("device", "sda")]), 131_072.0);
    assert!(
        page.contains("denied") && page.contains("logpage-0x02.bin") || status.to_string().contains("denied"),
        "{page}"
    );
}
