//! Ten thousand devices, replayed: everything answers, and what is for people stays readable.

use crate::agent::{self, Agent, run};
use crate::figures::Figures;
use crate::root::Root;
use std::fmt::Write as _;
use std::time::Duration;

const DEVICES: usize = 10_000;

/// Pause between two scrapes.
const PAUSE: Duration = Duration::from_secs(1);

/// A host with as many logical units behind one adapter. A hundred thousand files: in memory, where there is such a
/// place.
fn host() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(Root::live().node("shm")).or_else(|_| tempfile::tempdir()).unwrap();
    let root = Root::captured(dir.path());
    std::fs::create_dir_all(&root.proc).unwrap();
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
    std::fs::write(root.proc("diskstats"), table).unwrap();
    dir
}

#[test]
fn ten_thousand_devices_are_served_and_the_page_stays_a_page() {
    let host = host();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("storscope.toml");
    std::fs::write(&file, "").unwrap();
    let agent = Agent::replay(host.path(), &["--config", file.to_str().unwrap()]);
    let metrics = agent::wait("all of them", || {
        // Twenty megabytes are not encoded again and again without leaving time for anything else.
        std::thread::sleep(PAUSE);
        let text = agent.text("/metrics");
        let of = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        let all =
            of("storscope_queue_rotational{") == DEVICES && of("storscope_disk_reads_completed_total{") == DEVICES;
        all.then_some(text)
    });
    let figures = Figures::parse(&metrics);
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
    assert_eq!(figures.value("storscope_agent_process_up", &[("process", "collector")]), 1.0);
    for process in agent.json()["agent"]["processes"].as_array().unwrap() {
        let threads = std::fs::read_dir(Root::live().proc(&format!("{}/task", process["pid"]))).unwrap().count();
        assert!(threads < 64, "{process}: {threads}");
    }
    agent.end();
    let output = run(&["status", "--root", host.path().to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.lines().count() < 200 && text.contains("10000 drives"), "{text}");
}
