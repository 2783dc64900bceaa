//! Hot-plug on this host: a device that appears is served within a look, one that vanishes leaves at once.

use crate::agent::Agent;
use crate::figures::Figures;
use crate::loop_device::LoopDevice;

/// Longer than the test may take: only an event of the kernel makes the agent look for devices in time.
const NO_RESCAN: &str = "[periods]\ntick = \"1s\"\nqueue = \"1s\"\nrescan = \"1h\"\n";

fn named(figures: &Figures, device: &str) -> bool {
    figures.all().any(|one| one.labels.get("device").is_some_and(|name| name == device))
}

#[test]
fn a_device_that_comes_and_goes() {
    let Some(device) = LoopDevice::add() else { return };
    let name = device.name();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("storscope.toml");
    std::fs::write(&file, NO_RESCAN).unwrap();
    let config = file.to_str().unwrap();
    device.remove();
    let agent = Agent::serve(&["--listen", "127.0.0.1:0", "--config", config, "--only", &name]);
    let figures = agent.wait_figures("a first look", |figures| figures.find("storscope_devices", &[]) == Some(0.0));
    assert!(!named(&figures, &name));
    assert_eq!(agent.json()["verdict"], "unknown");

    let Some(device) = device.add_again() else { return };
    device.attach();
    let whole = |figures: &Figures| {
        figures.find("storscope_disk_reads_completed_total", &[("device", &name)]).is_some()
            && figures.find("storscope_queue_nr_requests", &[("device", &name)]).is_some()
    };
    agent.wait_figures("the device", whole);
    assert_eq!(agent.get(&format!("/status?device={name}")).status, 200);

    device.remove();
    let figures = agent.wait_figures("it to leave", |figures| figures.find("storscope_devices", &[]) == Some(0.0));
    assert!(!named(&figures, &name), "what vanished leaves at once");
    assert_eq!(agent.get(&format!("/status?device={name}")).status, 404);
    agent.end();
}

#[test]
fn a_device_that_is_taken_away_while_it_is_read() {
    let Some(device) = LoopDevice::add() else { return };
    device.attach();
    let name = device.name();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("storscope.toml");
    std::fs::write(&file, format!("{NO_RESCAN}[probe]\nburst = 64\nreads_per_second = 64\n")).unwrap();
    let agent = Agent::serve(&["--listen", "127.0.0.1:0", "--config", file.to_str().unwrap(), "--only", &name]);
    let read = |figures: &Figures| {
        figures.series("storscope_probe_reads_total").iter().map(|one| one.value).sum::<f64>() >= 64.0
    };
    agent.wait_figures("probes", read);
    device.remove();
    let figures = agent.wait_figures("it to leave", |figures| figures.find("storscope_devices", &[]) == Some(0.0));
    assert!(!named(&figures, &name));
    let log = agent.end();
    assert!(!log.iter().any(|line| line.contains("panicked") || line.contains("ERROR")), "{log:#?}");
}
