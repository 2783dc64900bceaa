//! An agent without privileges on this host: what is denied is named, what may be read is served.

use crate::agent::{Agent, storscope};
use crate::figures::Figures;
use crate::loop_device::LoopDevice;
use std::process::Command;

#[test]
fn without_privileges_the_rest_is_served() {
    let Some(device) = LoopDevice::add() else { return };
    device.attach();
    let name = device.name();
    let arguments = ["--listen", "127.0.0.1:0", "--only", &name];
    let binary = storscope().get_program().to_owned();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(binary).arg("serve").args(arguments);
    let agent = Agent::start(&mut command, &arguments);
    let denied = |figures: &Figures| {
        figures.find("storscope_probe_skipped_total", &[("device", &name), ("reason", "denied")]) >= Some(1.0)
            && figures.findings().contains(&"source_denied host".to_owned())
    };
    let figures = agent.wait_figures("the denial", denied);
    assert!(figures.find("storscope_disk_reads_completed_total", &[("device", &name)]).is_some());
    assert!(figures.find("storscope_queue_nr_requests", &[("device", &name)]).is_some());
    assert!(figures.series("storscope_probe_reads_total").iter().all(|one| one.value == 0.0));
    let page = agent.text("/status");
    assert!(page.contains(&name) && page.contains("denied"), "{page}");
    // Timed reads are not what health is judged by: their denial is information.
    assert_eq!(agent.json()["verdict"], "ok", "{page}");
    agent.end();
}
