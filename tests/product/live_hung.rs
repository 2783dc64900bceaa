//! A disk that hangs on this host: the agent says so, goes on, and takes it up again; one look without an agent sees it too.

use crate::agent::{Agent, run, told};
use crate::loop_device::LoopDevice;
use crate::slow_file::SlowFile;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::Value;
use std::os::fd::AsRawFd;
use storscope_collect::root::Root;

/// A hung read is called so soon, so that the test need not wait long.
const QUICK: &str = "[periods]\ntick = \"1s\"\n[probe]\nburst = 4\nreads_per_second = 64\ndeadline = \"1s\"\n";

/// A loop device whose reads can be held.
fn slow_disk() -> Option<(LoopDevice, SlowFile, tempfile::TempDir)> {
    let device = LoopDevice::add()?;
    let mountpoint = tempfile::tempdir().unwrap();
    match SlowFile::mount(&Root::live().node("fuse"), mountpoint.path()) {
        Ok(file) => {
            device.attach_to(&file.path());
            Some((device, file, mountpoint))
        }
        Err(error) => {
            eprintln!("skipped: no FUSE here: {error}");
            None
        }
    }
}

fn rules(status: &Value, device: &str) -> Vec<String> {
    let findings = status["findings"].as_array().unwrap();
    let of_device = findings.iter().filter(|found| found["device"] == device);
    of_device.map(|found| found["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_hung_disk_is_found_costs_nothing_else_and_is_taken_up_again() {
    let (Some((hung, file, _mountpoint)), Some(sound)) = (slow_disk(), LoopDevice::add()) else { return };
    sound.attach();
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("storscope.toml");
    std::fs::write(&config, QUICK).unwrap();
    let only = format!("{}|{}", hung.name(), sound.name());
    let agent = Agent::serve(&["--listen", "127.0.0.1:0", "--config", config.to_str().unwrap(), "--only", &only]);
    let reads = |name: &str| {
        let name = name.to_owned();
        move |figures: &crate::figures::Figures| {
            let of = figures.series("storscope_probe_reads_total");
            of.iter().filter(|one| one.labels.get("device") == Some(&name)).map(|one| one.value).sum::<f64>()
        }
    };
    let (of_hung, of_sound) = (reads(&hung.name()), reads(&sound.name()));
    let before = agent.wait_figures("probes of both", |now| of_hung(now) > 0.0 && of_sound(now) > 0.0);

    file.hold();
    file.wait_for_held(1);
    crate::agent::wait("the stall to be found", || {
        let found = rules(&agent.json(), &hung.name());
        found.contains(&"device_stalled".to_owned()).then_some(())
    });
    let later = agent.wait_figures("the other disk to go on", |now| of_sound(now) > of_sound(&before) + 8.0);
    assert_eq!(file.held(), 1, "exactly one read is outstanding");
    assert_eq!(later.find("storscope_source_up", &[("device", &sound.name()), ("source", "probe")]), Some(1.0));
    assert!(rules(&agent.json(), &sound.name()).is_empty());

    file.release();
    // Not until it is read again: the long read has used up the share of time that probes may take.
    let name = hung.name();
    let up = [("device", name.as_str()), ("source", "probe")];
    agent.wait_figures("the outstanding read to count", |now| {
        now.find("storscope_source_up", &up) == Some(1.0) && of_hung(now) > of_hung(&later)
    });
    crate::agent::wait("the finding to end", || rules(&agent.json(), &hung.name()).is_empty().then_some(()));
    agent.end();
}

#[test]
fn one_look_without_an_agent_sees_a_hung_disk() {
    let Some((hung, file, _mountpoint)) = slow_disk() else { return };
    file.hold();
    let output = run(&["status", "--only", &hung.name()]);
    let (status, text, error) = told(&output);
    file.release();
    assert!(matches!(status, Some(1 | 2)), "{status:?} {text} {error}");
    assert!(text.contains("a read has not come back"), "{text}");
}

#[test]
fn a_restart_while_a_disk_hangs_serves_on_the_same_port_and_tells_of_the_stuck_process() {
    let Some((hung, file, _mountpoint)) = slow_disk() else { return };
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("storscope.toml");
    // A pread that hangs cannot be killed; a ring's read could.
    std::fs::write(&config, QUICK.replace("[probe]", "[probe]\nengine = \"pread\"")).unwrap();
    let start = |listen: &str| {
        Agent::serve(&["--listen", listen, "--config", config.to_str().unwrap(), "--only", &hung.name()])
    };
    let first = start("127.0.0.1:0");
    let address = first.address().to_string();
    first.wait_figures("no former process", |now| now.find("storscope_agent_former_processes", &[]) == Some(0.0));
    file.hold();
    file.wait_for_held(1);
    first.end();

    let second = start(&address);
    let former = |figures: &crate::figures::Figures| figures.find("storscope_agent_former_processes", &[]);
    second.wait_figures("the former prober", |now| former(now) == Some(1.0));
    let page = second.text("/status");
    assert!(page.contains("storscope-probe of a former agent") && page.contains("stuck in the kernel"), "{page}");
    file.release();
    second.wait_figures("the end of the former prober", |now| former(now) == Some(0.0));
    second.end();
}

/// A directory that answers nobody: a FUSE file system whose server is silent.
struct SilentDirectory {
    mountpoint: tempfile::TempDir,
    /// Its end ends the file system, and every wait for it.
    server: Option<std::fs::File>,
}

impl SilentDirectory {
    fn mount() -> Option<Self> {
        let server = std::fs::File::options().read(true).write(true).open(Root::live().node("fuse"));
        let mountpoint = tempfile::tempdir().unwrap();
        let mounted = server.and_then(|server| {
            let options = format!("fd={},rootmode=40755,user_id=0,group_id=0", server.as_raw_fd());
            mount(Some("silent"), mountpoint.path(), Some("fuse"), MsFlags::MS_NOSUID, Some(options.as_str()))?;
            Ok(server)
        });
        match mounted {
            Ok(server) => Some(Self { mountpoint, server: Some(server) }),
            Err(error) => {
                eprintln!("skipped: no FUSE here: {error}");
                None
            }
        }
    }
}

impl Drop for SilentDirectory {
    fn drop(&mut self) {
        drop(self.server.take());
        let _ = umount2(self.mountpoint.path(), MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_state_directory_that_does_not_answer_holds_up_neither_start_nor_end() {
    let (Some(silent), Some(device)) = (SilentDirectory::mount(), LoopDevice::add()) else { return };
    device.attach();
    let state = silent.mountpoint.path().join("state");
    let name = device.name();
    let agent = Agent::serve(&["--listen", "127.0.0.1:0", "--only", &name, "--state-dir", state.to_str().unwrap()]);
    let up = [("device", name.as_str()), ("source", "diskstats")];
    let figures = agent.wait_figures("counters", |now| now.find("storscope_source_up", &up) == Some(1.0));
    assert_eq!(figures.value("storscope_agent_state_usable", &[]), 0.0);
    let why = agent.json()["agent"]["state_error"].as_str().unwrap().to_owned();
    assert!(why.contains("did not answer within 2s"), "{why}");
    agent.end();
}
