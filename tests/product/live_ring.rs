//! An agent that the kernel refuses an io_uring, as a container's seccomp filter does: pread(2) takes over and says why.

use crate::agent::Agent;
use crate::loop_device::LoopDevice;
use nix::errno::Errno;
use nix::libc::SYS_io_uring_setup;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use std::io::Write;

/// The kernel's answer to who asks for a ring.
const REFUSAL: Errno = Errno::EPERM;

/// Runs `start` on a thread that is refused a ring: so is what it starts.
fn without_ring<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    let refuse = SeccompAction::Errno(REFUSAL as u32);
    let rules = [(SYS_io_uring_setup, Vec::new())].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into().unwrap());
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    let refused = || {
        apply_filter(&program).unwrap();
        start()
    };
    std::thread::scope(|scope| scope.spawn(refused).join().unwrap())
}

/// The words for it.
fn reason() -> String {
    format!("io_uring is refused: {}", std::io::Error::from(REFUSAL))
}

#[test]
fn a_refused_ring_is_named_and_devices_are_read_all_the_same() {
    let Some(device) = LoopDevice::add() else { return };
    device.attach();
    let name = device.name();
    let arguments = ["--listen", "127.0.0.1:0", "--only", &name];
    let agent = without_ring(|| Agent::serve(&arguments));
    let read = [("device", name.as_str()), ("op", "read")];
    let figures = agent
        .wait_figures("reads of a probe", |figures| figures.find("storscope_probe_reads_total", &read) >= Some(1.0));
    let labels = [("engine", "pread"), ("reason", &reason())];
    assert_eq!(figures.value("storscope_probe_engine_info", &labels), 1.0);
    assert_eq!(figures.series("storscope_probe_errors_total").len(), 0);
    let latency = [("device", name.as_str()), ("op", "read"), ("le", "+Inf")];
    assert!(figures.value("storscope_probe_latency_seconds_bucket", &latency) >= 1.0);
    let page = agent.text("/status");
    assert!(page.contains(&format!("probes    by pread: {}", reason())), "{page}");
    let status = &agent.json()["agent"];
    assert_eq!((&status["probe_engine"], &status["probe_engine_reason"]), (&"pread".into(), &reason().into()));
    agent.end();
}

#[test]
fn a_demanded_ring_that_is_refused_is_told_and_everything_else_goes_on() {
    let Some(device) = LoopDevice::add() else { return };
    device.attach();
    let name = device.name();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[probe]\nengine = \"io_uring\"\n").unwrap();
    let config = file.path().to_str().unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--only", &name, "--config", config];
    let agent = without_ring(|| Agent::serve(&arguments));
    let up = [("device", name.as_str()), ("source", "diskstats")];
    agent.wait_figures("counters and an end of the prober", |figures| {
        figures.find("storscope_source_up", &up) == Some(1.0)
            && figures.find("storscope_agent_process_restarts_total", &[("process", "prober")]) >= Some(1.0)
    });
    let why = format!("cannot start the prober: cannot set up an io_uring: {}", std::io::Error::from(REFUSAL));
    let processes = agent.json()["agent"]["processes"].as_array().unwrap().clone();
    let prober = processes.iter().find(|process| process["name"] == "prober").unwrap();
    assert_eq!(prober["last_end"], why.as_str());
    let page = agent.text("/status").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&why), "{page}");
    agent.end();
}
