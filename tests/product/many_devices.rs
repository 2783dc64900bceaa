//! Ten thousand devices, replayed: everything answers, and what is for people stays readable.

use crate::agent::{Agent, run};
use crate::fixture::Host;
use crate::made_up::folder;
use std::fmt::Write as _;
use std::path::Path;

const DEVICES: usize = 10_000;

/// A host with as many logical units behind one adapter.
fn host() -> Host {
    let host = Host::new();
    let root = &host.root;
    std::fs::create_dir_all(root.sys("class/block")).unwrap();
    let mut table = String::new();
    for number in 0..DEVICES {
        let unit =
            format!("devices/pci0000:00/0000:00:05.0/host0/rport-0:0-{number}/target0:0:{number}/0:0:{number}:0");
        let disk = root.sys(&format!("{unit}/block/sd{number}"));
        std::fs::create_dir_all(disk.join("queue")).unwrap();
        let device = format!("{}:{}", 8 + number / 256, number % 256);
        for (file, content) in
            [("size", "2048"), ("dev", device.as_str()), ("queue/logical_block_size", "512"), ("queue/rotational", "1")]
        {
            std::fs::write(disk.join(file), content).unwrap();
        }
        let serial = format!("S{number}");
        for (file, content) in [("vendor", "ACME"), ("model", "LUN"), ("rev", "1"), ("serial", serial.as_str())] {
            std::fs::write(root.sys(&unit).join(file), content).unwrap();
        }
        std::os::unix::fs::symlink(format!("../../../0:0:{number}:0"), disk.join("device")).unwrap();
        let link = root.sys(&format!("class/block/sd{number}"));
        std::os::unix::fs::symlink(format!("../../{unit}/block/sd{number}"), link).unwrap();
        writeln!(table, "{} {} sd{number} {number} 0 8 1 0 0 0 0 0 1 1", 8 + number / 256, number % 256).unwrap();
    }
    host.proc("diskstats", table);
    host
}

#[test]
fn ten_thousand_devices_are_served_and_the_page_stays_a_page() {
    let host = host();
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let read = |figures: &crate::figures::Figures| {
        figures.series("storscope_queue_rotational").len() == DEVICES
            && figures.series("storscope_disk_reads_completed_total").len() == DEVICES
    };
    let figures = agent.wait_figures("all of them", read);
    assert_eq!(figures.value("storscope_devices", &[]), 10_000.0);
    let of = |device: &str| figures.value("storscope_disk_reads_completed_total", &[("device", device)]);
    assert_eq!((of("sd0"), of("sd9999")), (0.0, 9999.0));
    let page = agent.text("/status");
    assert!(page.lines().count() < 200, "{}", page.lines().count());
    assert!(page.contains("drives more"), "{page}");
    assert!(agent.text("/status?all").lines().count() >= DEVICES);
    assert!(agent.text("/status?device=sd9999").lines().any(|line| line.starts_with("sd9999 ")));
    assert_eq!(agent.json()["devices"].as_array().unwrap().len(), DEVICES);
    assert_eq!(agent.get("/healthz").status, 200);
    let threads = figures.find("storscope_agent_threads", &[]).unwrap_or(0.0);
    assert!(threads < 64.0, "{threads}");
    agent.end();
    let output = run(&["status", "--root", folder(&host)]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.lines().count() < 200 && text.contains("10000 drives"), "{text}");
}
