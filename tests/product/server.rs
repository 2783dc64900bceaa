//! The process: addresses, configuration, signals, closed descriptors.

use crate::agent::{Agent, run, storscope, told};
use crate::exchange;
use crate::figures::Figures;
use crate::made_up::{folder, sata, small};
use nix::sys::signal::Signal;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const LOOPBACK: &str = "127.0.0.1:0";

fn write(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("storscope.toml");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind(LOOPBACK).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let host = small();
    let output = run(&["serve", "--root", folder(&host), "--listen", &address]);
    let (code, out, error) = told(&output);
    assert_eq!((code, out), (Some(1), ""));
    assert!(error.contains(&address) && error.contains("in use") && error.contains("--listen"), "{error}");
    assert_eq!(error.lines().filter(|line| line.starts_with("storscope: ")).count(), 1, "{error}");
}

#[test]
fn bad_addresses_are_named() {
    let host = small();
    for bad in ["nonsense", "127.0.0.1", "127.0.0.1:99999", "[::1:80", ""] {
        let (code, error) = {
            let output = run(&["serve", "--root", folder(&host), "--listen", bad]);
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        assert_eq!(code, Some(2), "{bad}: {error}");
        assert!(error.contains("--listen") && error.contains(bad), "{error}");
    }
    // TEST-NET-1 (RFC 5737): an address of no host.
    let output = run(&["serve", "--root", folder(&host), "--listen", "192.0.2.1:10210"]);
    let (code, _, error) = told(&output);
    assert_eq!(code, Some(1));
    assert!(error.contains("192.0.2.1:10210") && error.contains("not an address of this host"), "{error}");
}

#[test]
fn it_listens_on_every_address_that_is_named() {
    let host = small();
    let mut addresses = vec!["--listen", LOOPBACK, "--listen", LOOPBACK];
    if TcpListener::bind("[::1]:0").is_ok() {
        addresses.extend(["--listen", "[::1]:0"]);
    } else {
        eprintln!("skipped: no IPv6 loopback");
    }
    let agent = Agent::serve(&[&addresses[..], &["--root", folder(&host)]].concat());
    assert_eq!(agent.addresses.len(), addresses.len() / 2);
    for address in &agent.addresses {
        assert_eq!(exchange::get(*address, "/healthz").status, 200, "{address}");
        agent.wait_settled();
        let output = run(&["status", "--url", &format!("http://{address}")]);
        assert_eq!(output.status.code(), Some(0), "{address}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let other = Agent::replay(Path::new(folder(&host)), &[]);
    assert!(!agent.addresses.contains(&other.address()));
    assert_eq!((agent.get("/healthz").status, other.get("/healthz").status), (200, 200));
}

#[test]
fn every_mistake_of_a_configuration_is_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(
        dir.path(),
        "listen = [\"nowhere\"]\nstate_dri = \"/x\"\n[periods]\ntick = \"0s\"\nsmart = 5\n[devices]\nonly = \"(\"\n[http]\nmax_connections = 0\n",
    );
    let path = file.to_str().unwrap();
    for command in [&["serve", "--config", path][..], &["check-config", path]] {
        let output = run(command);
        let (code, out, error) = told(&output);
        assert_eq!((code, out), (Some(1), ""), "{command:?}");
        for line in ["1: ", "2: ", "4: periods.tick", "5: periods.smart", "7: devices.only", "9: http.max_connections"]
        {
            assert!(error.contains(&format!("{path}:{line}")), "{line} in {error}");
        }
        assert!(error.contains("did you mean state_dir?"), "{error}");
    }
    write(dir.path(), "[periods]\ntick = \"1s\"\n");
    let output = run(&["check-config", path]);
    assert_eq!(told(&output), (Some(0), format!("{path}: ok\n").as_str(), ""));
    let output = run(&["serve", "--config", "/nowhere/storscope.toml"]);
    let (code, _, error) = told(&output);
    assert_eq!(code, Some(1));
    assert!(error.contains("/nowhere/storscope.toml"), "{error}");
}

#[test]
fn a_hangup_looks_for_drives_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "[periods]\ntick = \"1s\"\nrescan = \"1h\"\n");
    let host = small();
    let agent = Agent::replay(Path::new(folder(&host)), &["--config", file.to_str().unwrap()]);
    agent.wait_figures("two devices", |figures| figures.find("storscope_devices", &[]) == Some(2.0));
    sata(&host, 2, "sdb", "D2", true);
    agent.signal(Signal::SIGHUP);
    let figures = agent.wait_figures("the third", |figures| figures.find("storscope_devices", &[]) == Some(3.0));
    assert!(figures.labels("storscope_device_info", "device").contains(&"sdb"));
}

#[test]
fn a_hangup_takes_up_a_good_configuration_and_keeps_out_a_bad_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "[periods]\ntick = \"60s\"\nrescan = \"1h\"\n");
    let host = small();
    let agent = Agent::replay(Path::new(folder(&host)), &["--config", file.to_str().unwrap()]);
    let figures = agent.wait_figures("two devices", |figures| figures.find("storscope_devices", &[]) == Some(2.0));
    assert_eq!(figures.value("storscope_agent_config_last_reload_successful", &[]), 1.0);
    assert_eq!(figures.value("storscope_agent_config_reloads_total", &[("outcome", "taken")]), 1.0);

    write(dir.path(), "[periods]\ntick = \"1s\"\n[devices]\nexclude = \"sd.*\"\n");
    agent.signal(Signal::SIGHUP);
    let figures = agent.wait_figures("the selection", |figures| figures.find("storscope_devices", &[]) == Some(1.0));
    assert_eq!(figures.labels("storscope_device_info", "device"), ["nvme0n1"]);
    assert_eq!(figures.value("storscope_agent_config_reloads_total", &[("outcome", "taken")]), 2.0);
    // With the old period of a minute the counters would not be read again in time.
    let reads =
        |figures: &Figures| figures.exact("storscope_source_reads_total", &[("source", "diskstats")]).expect("a count");
    let before = reads(&figures);
    agent.wait_figures("the period", |figures| reads(figures) >= before + 2.0);

    write(dir.path(), "[periods]\ntick = \"yesterday\"\n[devices]\nonly = \"sda\"\nwhatever = 1\n");
    agent.signal(Signal::SIGHUP);
    let failed = |figures: &Figures| figures.find("storscope_agent_config_last_reload_successful", &[]) == Some(0.0);
    let figures = agent.wait_figures("the refusal", failed);
    assert_eq!(figures.value("storscope_agent_config_reloads_total", &[("outcome", "refused")]), 1.0);
    assert_eq!(figures.labels("storscope_device_info", "device"), ["nvme0n1"]);
    agent.wait_log("configuration is kept as it was", 1);
    let status = agent.text("/status");
    let lines: Vec<&str> = status.lines().map(str::trim).collect();
    let of = |mistake: &str| lines.iter().position(|line| line.contains(mistake)).unwrap_or_else(|| panic!("{status}"));
    assert!(of("storscope.toml:2: periods.tick") < of("storscope.toml:5: unknown key"), "{status}");
    assert!(!status.contains("\\n"), "{status}");
    assert!(agent.log().iter().any(|line| line.contains("kept as it was: ") && line.contains(":5: unknown key")));
    let told = agent.json()["agent"]["config_error"].as_str().unwrap().to_owned();
    assert!(!told.contains('\n') && told.contains("; "), "{told}");
    assert!(told.contains(":2: periods.tick") && told.contains(":5: unknown key devices.whatever"), "{told}");
    let before = reads(&figures);
    agent.wait_figures("the period kept", |figures| reads(figures) >= before + 2.0);

    write(dir.path(), "[periods]\ntick = \"1s\"\n");
    agent.signal(Signal::SIGHUP);
    let mended = agent.wait_figures("both devices", |figures| figures.find("storscope_devices", &[]) == Some(2.0));
    assert_eq!(mended.value("storscope_agent_config_last_reload_successful", &[]), 1.0);
    assert!(!agent.text("/status").contains("storscope.toml:2"));
}

#[test]
fn a_period_of_the_command_line_stays_over_a_hangup() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "");
    let host = small();
    let arguments = ["--config", file.to_str().unwrap(), "--only", "^sda$"];
    let agent = Agent::replay(Path::new(folder(&host)), &arguments);
    agent.wait_figures("the disk", |figures| figures.labels("storscope_device_info", "device") == ["sda"]);
    write(dir.path(), "[devices]\nonly = \"nvme.*\"\n");
    agent.signal(Signal::SIGHUP);
    agent.wait_log("configuration read again", 1);
    let reloaded =
        |figures: &Figures| figures.find("storscope_agent_config_reloads_total", &[("outcome", "taken")]) == Some(2.0);
    let figures = agent.wait_figures("the reload", reloaded);
    assert_eq!(figures.labels("storscope_device_info", "device"), ["sda"]);
}

#[test]
fn both_signals_end_it_well_while_clients_are_connected() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let host = small();
        let agent = Agent::replay(Path::new(folder(&host)), &[]);
        let _idle = exchange::connect(agent.address());
        agent.signal(signal);
        let log = agent.end();
        assert!(log.iter().any(|line| line.contains("ending")), "{log:#?}");
    }
}

#[test]
fn closed_standard_descriptors_do_no_harm() {
    let host = small();
    let free = TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let script = format!(
        "exec '{}' serve --root '{}' --listen {free} <&- >&- 2>&-",
        env!("CARGO_BIN_EXE_storscope"),
        folder(&host)
    );
    let mut child = std::process::Command::new("sh").arg("-c").arg(script).stdin(Stdio::null()).spawn().unwrap();
    let settled = crate::agent::wait("an answer", || {
        let stream = std::net::TcpStream::connect(free).ok()?;
        drop(stream);
        let answer = exchange::get(free, "/status");
        (answer.status == 200).then(|| answer.text().contains("db-17") || answer.text().contains("this host"))
    });
    assert!(settled);
    // The first descriptors that it opened must not have been taken for its standard ones: nothing of the log is sent.
    let metrics = exchange::get(free, "/metrics");
    assert!(metrics.text().starts_with("# HELP "));
    child.kill().unwrap();
    child.wait().unwrap();

    for (out, error) in [(true, false), (false, true)] {
        let script = format!(
            "exec '{}' status --root '{}' {} {}",
            env!("CARGO_BIN_EXE_storscope"),
            folder(&host),
            if out { ">&-" } else { "" },
            if error { "2>&-" } else { "" }
        );
        let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!text.contains("panicked"), "{text}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let host = small();
    let mut child = storscope()
        .args(["status", "--root", folder(&host)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
