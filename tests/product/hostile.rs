//! Strings that would break a label, a line or a terminal (C5, C6), from the host into every output.

use crate::agent::{Agent, run};
use crate::figures::Figures;
use crate::fixture::Host;
use crate::made_up::{Identify, Smart, VIRTUAL, folder, nvme, pages, small};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the strings hold: quotes, a backslash, a line break, colours, a bell, a byte that is no UTF-8, direction marks.
const NASTY: &[u8] = b"2.5\" HDD\\n {a=\"b\"} \x1b[31mred\x07 \xc0\x1c[\x87 \xe2\x80\xaeflip";

fn host() -> Host {
    let host = small();
    let controller = nvme(&host, "0000:66:00.0", "nvme1", "S2", 5);
    for name in ["model", "serial", "firmware_rev", "subsysnqn"] {
        host.file(&format!("{controller}/{name}"), NASTY);
    }
    host.file(&format!("{controller}/nvme1n1/queue/scheduler"), [b"[", NASTY, b"] none"].concat());
    let mut page = Identify::new("S2", "x", "FW1").page().to_vec();
    page[4..4 + 20].copy_from_slice(&NASTY[..20]);
    page[24..24 + 40].copy_from_slice(&NASTY[..40]);
    page[64..72].copy_from_slice(b"\"\\\n\x1b\xff\x00fw");
    pages(&host, "nvme1", &Identify::new("S2", "x", "FW1"), &Smart { warning: 4, used: 130, ..Smart::default() });
    host.top("drives/nvme1/identify.bin", page);
    let mut slots = vec![0; 512];
    slots[0] = 1;
    slots[8..16].copy_from_slice(b"\"\\\n\x1b\xff\x00fw");
    host.top("drives/nvme1/logpage-0x03.bin", slots);
    host.file("devices/pci0000:00/0000:00:01.1/aer_dev_correctable", b"Rx\"Err\\ 1\nBad\x1b[1m 2\n\xff\xfe 3\n");
    let volume = host.block(VIRTUAL, "dm-0", &[("dev", "254:0"), ("size", "8"), ("dm/uuid", "LVM-x")]);
    host.file(&format!("{volume}/dm/name"), NASTY);
    host.folder(&format!("{volume}/slaves/nvme1n1"));
    let mut mounts = b"1 0 254:0 / /srv/".to_vec();
    mounts.extend(b"q\"\\134\\012\\033[31m\xff\xe2\x80\xae rw - ext4 /dev/dm-0 rw\n");
    host.proc("self/mountinfo", mounts);
    host.proc("sys/kernel/hostname", b"db\"17\x1b[2J\xff\n");
    host.proc("sys/kernel/osrelease", b"6.1\"\\\x1b\n");
    host
}

fn is_calm(text: &str) {
    let moves = |letter: char| letter.is_control() && letter != '\n' || ('\u{202a}'..='\u{202e}').contains(&letter);
    let found = text.chars().find(|letter| moves(*letter));
    assert_eq!(found, None, "{}", text.escape_debug());
}

#[test]
fn c5_c6_nothing_leaves_its_label_its_string_or_its_line() {
    let host = host();
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let figures = agent.wait_settled();
    let labels = &figures.series("storscope_controller_info").iter().find(|one| one.labels["controller"] == "nvme1");
    let model = &labels.unwrap().labels["model"];
    assert!(model.contains("2.5\" HDD\\n {a=\"b\"}"), "{model}");
    assert_eq!(figures.findings(), ["nvme_critical_warning nvme1n1", "nvme_wear nvme1n1"]);
    let page = agent.text("/status");
    is_calm(&page);
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    assert!(page.contains("2.5\" HDD"), "{page}");
    let status = agent.json();
    let found = status["controllers"].as_array().unwrap().iter().find(|one| one["name"] == "nvme1").unwrap();
    assert_eq!(found["model"].as_str().unwrap(), model);
    let open = crate::exchange::request(agent.address(), "GET", "/metrics", "Accept: application/openmetrics-text\r\n");
    assert!(open.text().ends_with("# EOF\n"));
    let raw = agent.text("/metrics");
    assert!(!raw.contains('\u{1b}') && !raw.contains('\u{7}'), "a terminal would take it");
    let log = agent.end().join("\n");
    assert!(log.chars().all(|letter| letter == '\n' || !letter.is_control()), "{}", log.escape_debug());
    let output = run(&["status", "--root", folder(&host)]);
    assert_eq!(output.status.code(), Some(2));
    is_calm(std::str::from_utf8(&output.stdout).unwrap());
}

#[test]
fn names_of_folders_that_are_no_text() {
    let host = small();
    let odd = std::ffi::OsStr::from_bytes(b"vd\xff\"\x1b\n");
    for place in ["class/block", "class/nvme", "bus/pci/slots"] {
        std::fs::create_dir_all(host.root.sys(place).join(odd)).unwrap();
    }
    std::fs::create_dir_all(Path::new(folder(&host)).join("drives").join(odd)).unwrap();
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let figures: Figures = agent.wait_settled();
    for device in ["nvme0n1", "sda"] {
        assert_eq!(figures.value("storscope_disk_reads_completed_total", &[("device", device)]), 1000.0);
    }
    is_calm(&agent.text("/status"));
    is_calm(&agent.end().join("\n"));
}
