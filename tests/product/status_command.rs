//! `storscope status`: of a captured host and of a running agent, and what its exit status says.

use crate::agent::{Agent, run, told};
use crate::fixture::Host;
use crate::made_up::{Identify, Smart, folder, nvme, pages, small};
use std::net::TcpListener;
use std::path::Path;

/// A host with one more drive, which says `smart`.
fn with(smart: &Smart) -> Host {
    let host = small();
    nvme(&host, "0000:66:00.0", "nvme1", "S2", 5);
    pages(&host, "nvme1", &Identify::new("S2", "ACME FAST 1920G", "FW1"), smart);
    host.proc("diskstats", crate::made_up::diskstats(&["259 0 nvme0n1", "259 5 nvme1n1", "8 0 sda"]));
    host
}

fn worn() -> Smart {
    Smart { used: 133, ..Smart::default() }
}

fn degraded() -> Smart {
    Smart { warning: 4, ..worn() }
}

#[test]
fn the_exit_status_is_that_of_a_monitoring_plug_in() {
    for (host, code, verdict, word) in [
        (small(), 0, "ok", "OK"),
        (with(&worn()), 1, "degraded", "DEGRADED"),
        (with(&degraded()), 2, "critical", "CRITICAL"),
        (Host::new(), 3, "unknown", "UNKNOWN"),
    ] {
        let output = run(&["status", "--root", folder(&host)]);
        let (status, text, error) = told(&output);
        assert_eq!((status, error), (Some(code), ""), "{text}");
        assert!(text.lines().next().unwrap().contains(word), "{text}");
        let output = run(&["status", "--json", "--root", folder(&host)]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &json["verdict"], &json["schema"]), (Some(code), &verdict.into(), &1.into()));

        let agent = Agent::replay(Path::new(folder(&host)), &[]);
        agent.wait_settled();
        crate::agent::wait("the verdict", || (agent.json()["verdict"] == verdict).then_some(()));
        let output = run(&["status", "--url", &agent.url()]);
        let (status, text, error) = told(&output);
        assert_eq!((status, error), (Some(code), ""), "{text}");
        assert!(text.lines().next().unwrap().contains(word), "{text}");
        let output = run(&["status", "--json", "--url", &agent.url()]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &json["verdict"]), (Some(code), &verdict.into()));
    }
}

#[test]
fn nothing_to_ask_is_unknown_and_says_why() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = format!("http://{free}");
    // A server that says nothing that a storscope would.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let foreign = format!("http://{}", other.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in other.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
        }
    });
    let missing = tempfile::tempdir().unwrap();
    let missing = missing.path().join("not-there");
    for (arguments, part) in [
        (vec!["--url", &refused], "cannot connect"),
        (vec!["--url", &foreign], "no verdict"),
        (vec!["--url", "https://127.0.0.1:1"], "only http"),
        (vec!["--url", "http://"], "URL"),
        (vec!["--root", missing.to_str().unwrap()], "no captured host"),
    ] {
        let output = run(&[&["status"], &arguments[..]].concat());
        let (code, out, error) = told(&output);
        assert_eq!((code, out), (Some(3), ""), "{arguments:?}: {error}");
        assert!(error.contains(part) && error.contains(arguments[1]), "{arguments:?}: {error}");
    }
}

#[test]
fn one_device_can_be_asked_for() {
    let host = with(&degraded());
    let agent = Agent::replay(Path::new(folder(&host)), &[]);
    agent.wait_settled();
    let url = agent.url();
    for place in [["--root", folder(&host)], ["--url", &url]] {
        let ask = |more: &[&str]| {
            let output = run(&[&["status"], &place[..], more].concat());
            let (code, out, error) = told(&output);
            (code, out.to_owned(), error.to_owned())
        };
        // The verdict stays that of the host.
        let (code, sick, _) = ask(&["--device", "nvme1n1"]);
        assert_eq!(code, Some(2));
        assert!(sick.contains("reliability") && !sick.lines().any(|line| line.starts_with("sda ")), "{sick}");
        let (_, sound, _) = ask(&["--device", "sda"]);
        assert!(sound.lines().any(|line| line.starts_with("sda ")) && !sound.contains("reliability"), "{sound}");
        let (_, json, _) = ask(&["--json", "--device", "nvme1"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let names = |list: &str| {
            json[list]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["name"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!((names("devices"), names("controllers")), (vec!["nvme1n1".to_owned()], vec!["nvme1".to_owned()]));
        let (code, out, error) = ask(&["--device", "nvme7n1"]);
        assert_eq!((code, out.as_str()), (Some(3), ""));
        assert!(error.contains("nvme7n1"), "{error}");
    }
    for (selected, count) in [("--exclude=nvme.*", 1), ("--only=^sda$", 1), ("--include=loop.*", 3)] {
        let output = run(&["status", "--json", "--root", folder(&host), selected]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["devices"].as_array().unwrap().len(), count, "{selected}");
    }
}

#[test]
fn output_into_a_file_has_no_colour() {
    let host = with(&degraded());
    let output = run(&["status", "--root", folder(&host)]);
    let (_, text, _) = told(&output);
    assert!(!text.contains('\u{1b}'));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn the_command_line_explains_itself() {
    for arguments in [&["--help"][..], &["serve", "--help"], &["status", "--help"]] {
        let output = run(arguments);
        let (code, out, _) = told(&output);
        assert_eq!(code, Some(0));
        assert!(out.contains("Usage: storscope"), "{out}");
    }
    let output = run(&["--version"]);
    assert!(told(&output).1.starts_with("storscope 0."));
    for wrong in [&["nonsense"][..], &["serve", "--root", "a", "--host-root", "b"], &["--only", "a", "--include", "b"]]
    {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_command_line_that_is_no_use_is_unknown_to_a_plug_in_and_a_usage_error_elsewhere() {
    for arguments in
        [&["status", "--bogus"][..], &["status", "--include", "("], &["status", "--url", "x", "--root", "y"]]
    {
        assert_eq!(run(arguments).status.code(), Some(3), "{arguments:?}");
    }
    assert_eq!(run(&["serve", "--bogus"]).status.code(), Some(2));
    assert_eq!(run(&["status", "--help"]).status.code(), Some(0));
}

#[test]
fn a_root_that_holds_no_host_is_refused_by_name() {
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().to_str().unwrap();
    for option in ["--root", "--host-root"] {
        for command in ["status", "serve"] {
            let output = run(&[command, option, path]);
            let (status, _, error) = told(&output);
            assert_eq!(status, Some(if command == "status" { 3 } else { 1 }), "{command} {option}: {error}");
            assert!(error.contains(path) && error.contains("no "), "{command} {option}: {error}");
        }
    }
}

#[test]
fn a_full_or_closed_output_is_no_panic() {
    let host = small();
    let file = folder(&host);
    for (arguments, code) in [(&["status", "--root", file][..], 3), (&["document", "config"], 1)] {
        let full = std::fs::File::options().write(true).open(full_device()).unwrap();
        let output = crate::agent::storscope().args(arguments).stdout(full).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains("standard output"), "{error}");
    }
    let full = std::fs::File::options().write(true).open(full_device()).unwrap();
    let output = crate::agent::storscope().args(["check-config", "no-such.toml"]).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

/// The device that has no room for anything.
fn full_device() -> std::path::PathBuf {
    storscope_collect::root::Root::live().node("full")
}
