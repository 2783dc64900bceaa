//! What outlives the agent, and a state directory that cannot be used.

use crate::agent::{Agent, wait};
use crate::made_up::{Identify, Smart, folder, nvme, pages, small};
use nix::sys::signal::Signal;
use std::path::Path;

const WORN: &str = "nvme_wear";

/// A host whose drive is past its rated endurance: one finding.
fn worn() -> crate::fixture::Host {
    let host = small();
    nvme(&host, "0000:66:00.0", "nvme1", "S2", 5);
    let smart = Smart { used: 133, ..Smart::default() };
    pages(&host, "nvme1", &Identify::new("S2", "ACME FAST 1920G", "FW1"), &smart);
    host.proc("sys/kernel/random/boot_id", "1d8f4c1e-0000-4000-8000-0123456789ab\n");
    host
}

fn since(agent: &Agent) -> f64 {
    let name = "storscope_finding_since_timestamp_seconds";
    let labels = [("rule", WORN)];
    agent.wait_figures("the finding", |figures| figures.find(name, &labels).is_some()).value(name, &labels)
}

fn replay(host: &crate::fixture::Host, state: &Path) -> Agent {
    Agent::replay(Path::new(folder(host)), &["--state-dir", state.to_str().unwrap()])
}

#[test]
fn since_outlives_a_restart() {
    let host = worn();
    let state = tempfile::tempdir().unwrap();
    let directory = state.path().join("made/by/the/agent");
    let agent = replay(&host, &directory);
    let first = since(&agent);
    assert_eq!(agent.figures().value("storscope_agent_state_usable", &[]), 1.0);
    agent.end();
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(directory.join("state.json")).unwrap()).unwrap();
    assert_eq!(kept["version"], 1);
    // A boot later: the boot clock began anew, the time of day went on.
    for boot in ["1d8f4c1e-0000-4000-8000-0123456789ab", "2e8f4c1e-0000-4000-8000-0123456789ab"] {
        host.proc("sys/kernel/random/boot_id", format!("{boot}\n"));
        let agent = replay(&host, &directory);
        let again = since(&agent);
        assert!((again - first).abs() < 1.0, "{first} {again}");
        agent.end();
    }
}

#[test]
fn without_a_state_directory_a_finding_begins_anew() {
    let host = worn();
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    let first = since(&agent);
    agent.end();
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    assert!(since(&agent) > first);
}

#[test]
fn what_a_drive_refuses_is_remembered() {
    let host = worn();
    let state = tempfile::tempdir().unwrap();
    let agent = replay(&host, state.path());
    agent.wait_settled();
    agent.end();
    let text = std::fs::read_to_string(state.path().join("state.json")).unwrap();
    // A page that a capture lacks is not one that the drive refused.
    let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["refusals"].as_array().map(Vec::len), Some(0), "{text}");
}

#[test]
fn a_torn_state_is_set_aside_and_told() {
    for content in [&b"{\"version\":1,\"memo"[..], b"", b"\0\0\0\0", b"{\"version\":77}", b"[]"] {
        let host = worn();
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join("state.json"), content).unwrap();
        let agent = replay(&host, state.path());
        agent.wait_log("state.json.bad", 1);
        agent.wait_figures("a new state", |figures| figures.find("storscope_agent_state_usable", &[]) == Some(1.0));
        since(&agent);
        agent.end();
        assert_eq!(std::fs::read(state.path().join("state.json.bad")).unwrap(), content);
        assert!(std::fs::metadata(state.path().join("state.json")).unwrap().len() > 0);
    }
}

#[test]
fn a_state_directory_that_cannot_be_is_told_and_all_else_goes_on() {
    let host = worn();
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink("loop", place.path().join("loop")).unwrap();
    for name in ["file", "file/below", "loop"] {
        let directory = place.path().join(name);
        let agent = replay(&host, &directory);
        let usable = |figures: &crate::figures::Figures| figures.find("storscope_agent_state_usable", &[]) == Some(0.0);
        agent.wait_figures("the trouble", usable);
        let why = agent.json()["agent"]["state_error"].as_str().unwrap().to_owned();
        assert!(why.contains(directory.to_str().unwrap()), "{name}: {why}");
        let status = agent.text("/status");
        assert!(status.contains("state") && status.contains("nvme1"), "{name}: {status}");
        since(&agent);
        agent.end();
    }
}

#[test]
fn a_state_directory_that_is_denied_is_told() {
    if !crate::unprivileged::go_on("restart::a_state_directory_that_is_denied_is_told") {
        return;
    }
    let host = worn();
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("state");
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("state.json");
    std::fs::write(&file, "{}").unwrap();
    crate::unprivileged::deny(&file);
    let agent = replay(&host, &directory);
    agent.wait_log("denied", 1);
    agent.wait_figures("a new state", |figures| figures.find("storscope_agent_state_usable", &[]) == Some(1.0));
    since(&agent);
    assert_eq!(std::fs::metadata(directory.join("state.json.bad")).unwrap().len(), 2, "what could not be read is kept");
}

#[test]
fn the_state_is_never_half_written() {
    let host = worn();
    let state = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let agent = replay(&host, state.path());
        since(&agent);
        agent.end();
        let mut names: Vec<_> =
            std::fs::read_dir(state.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["agent.lock", "state.json"]);
        let text = std::fs::read_to_string(state.path().join("state.json")).unwrap();
        assert!(text.contains(WORN), "{text}");
    }
    wait("no file left", || (!state.path().join("state.json.new").exists()).then_some(()));
}

#[test]
fn the_second_agent_on_a_state_directory_is_told_of_the_first() {
    let host = worn();
    let state = tempfile::tempdir().unwrap();
    let usable = |agent: &Agent, wanted: f64| {
        let usable = |figures: &crate::figures::Figures| figures.find("storscope_agent_state_usable", &[]);
        agent.wait_figures("word of the state", |figures| usable(figures) == Some(wanted));
    };
    for end in [Signal::SIGTERM, Signal::SIGKILL] {
        let first = replay(&host, state.path());
        since(&first);
        usable(&first, 1.0);
        let second = replay(&host, state.path());
        usable(&second, 0.0);
        let why = second.json()["agent"]["state_error"].as_str().unwrap().to_owned();
        assert!(why.contains(state.path().to_str().unwrap()), "{why}");
        assert!(why.contains(&format!("process {}", first.id())), "{why}");
        assert!(second.text("/status").contains("in use by another agent"));
        since(&second);
        let log = second.end();
        assert_eq!(log.iter().filter(|line| line.contains("in use by another agent")).count(), 1, "{log:?}");
        usable(&first, 1.0);
        first.signal(end);
        drop(first);
        let third = replay(&host, state.path());
        usable(&third, 1.0);
        assert_eq!(third.json()["agent"]["state_error"], serde_json::Value::Null);
        third.end();
    }
}
