//! The processes of a running agent: what each may do, and that the agent outlives the end of any of them. Needs root:
//! an unprivileged agent has nothing to give up.

use crate::agent::{Agent, wait};
use crate::exchange;
use crate::figures::Figures;
use crate::loop_device::LoopDevice;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// CAP_SYS_RAWIO, CAP_SYS_ADMIN and CAP_SYSLOG as bits (capabilities(7)).
const COLLECTORS: u64 = 1 << 17 | 1 << 21 | 1 << 34;

/// The parts that the supervisor starts.
const PARTS: [&str; 3] = ["collector", "prober", "server"];

fn proc_file(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// Process ids by name.
fn processes(agent: &Agent) -> BTreeMap<String, u32> {
    let status = agent.json();
    let all = status["agent"]["processes"].as_array().unwrap();
    let id = |one: &serde_json::Value| u32::try_from(one["pid"].as_u64()?).ok();
    all.iter().filter_map(|one| Some((one["name"].as_str()?.to_owned(), id(one)?))).collect()
}

/// One line of `/proc/PID/status`.
fn line(pid: u32, key: &str) -> String {
    let text = fs::read_to_string(proc_file(pid, "status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).trim().to_owned()
}

fn capabilities(pid: u32, set: &str) -> u64 {
    u64::from_str_radix(&line(pid, set), 16).unwrap()
}

/// An agent that watches one loop device.
fn agent(more: &[&str]) -> Option<(Agent, LoopDevice)> {
    let device = LoopDevice::add()?;
    device.attach();
    let name = device.name();
    let agent = Agent::serve(&[&["--listen", "127.0.0.1:0", "--only", &name], more].concat());
    wait("all processes", || (processes(&agent).len() == 4).then_some(()));
    Some((agent, device))
}

#[test]
fn each_process_has_given_up_what_it_does_not_need() {
    let Some((agent, _device)) = agent(&[]) else { return };
    let all = processes(&agent);
    assert_eq!(all["supervisor"], agent.id());
    let network = |pid| fs::read_link(proc_file(pid, "ns/net")).unwrap();
    for part in PARTS {
        let pid = all[part];
        let keeps = if part == "collector" { COLLECTORS & capabilities(agent.id(), "CapPrm") } else { 0 };
        for set in ["CapPrm", "CapEff", "CapBnd"] {
            assert_eq!(capabilities(pid, set), keeps, "{part} {set}");
        }
        assert_eq!((capabilities(pid, "CapInh"), capabilities(pid, "CapAmb")), (0, 0), "{part}");
        assert_eq!(line(pid, "NoNewPrivs"), "1", "{part}");
        assert_eq!(line(pid, "Seccomp"), "2", "{part}");
        assert_eq!(line(pid, "PPid"), agent.id().to_string(), "{part}");
        let title = fs::read(proc_file(pid, "cmdline")).unwrap();
        assert_eq!(title, format!("storscope: {part}\0").into_bytes());
        let apart = network(pid) != network(agent.id());
        assert_eq!(apart, part != "server", "{part}: network namespace");
    }
    // Interfaces of the empty namespace: its own loopback, which is down.
    let interfaces = fs::read_to_string(proc_file(all["prober"], "net/dev")).unwrap();
    let names: Vec<&str> =
        interfaces.lines().skip(2).filter_map(|line| line.split_once(':')).map(|it| it.0.trim()).collect();
    assert_eq!(names, ["lo"]);
    let device = fs::read_dir(proc_file(all["server"], "fd")).unwrap();
    let open: Vec<PathBuf> = device.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok()).collect();
    assert!(!open.iter().any(|path| path.starts_with("/dev/loop") || path.starts_with("/sys")), "{open:?}");
    agent.end();
}

#[test]
fn a_process_that_is_killed_is_started_again_and_everything_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().to_str().unwrap();
    let Some((agent, device)) = agent(&["--state-dir", state]) else { return };
    let name = device.name();
    let probed = |now: &Figures| {
        let reads = now.series("storscope_probe_reads_total");
        reads.iter().filter(|one| one.labels.get("device") == Some(&name)).map(|one| one.value).sum::<f64>()
    };
    let sampled = |now: &Figures| now.find("storscope_source_up", &[("device", &name), ("source", "diskstats")]);
    agent.wait_figures("probes and counters", |now| probed(now) > 0.0 && sampled(now) == Some(1.0));
    for part in PARTS {
        let pid = processes(&agent)[part];
        kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
        let after = wait("its successor", || {
            // While the server is away connections wait in the queue of its socket, or end unanswered.
            let now = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| processes(&agent))).ok()?;
            now.get(part).copied().filter(|other| *other != pid)
        });
        assert_ne!(after, pid);
        let restarts = [("process", part)];
        agent.wait_figures("data again", |now| {
            now.find("storscope_agent_process_restarts_total", &restarts) == Some(1.0)
                && probed(now) > 0.0
                && sampled(now) == Some(1.0)
        });
        let page = agent.text("/status");
        assert!(page.contains(&format!("{part} was started again")), "{page}");
        assert_eq!(agent.json()["devices"].as_array().unwrap().len(), 1);
    }
    agent.end();
}

/// Kills at random, of which each process gets its share.
const KILLS: usize = 200;

#[test]
fn two_hundred_kills_under_load_and_during_reloads_leave_a_whole_agent() {
    let dir = tempfile::tempdir().unwrap();
    let (state, config) = (dir.path().join("state"), dir.path().join("storscope.toml"));
    fs::write(&config, "[periods]\ntick = \"1s\"\n[processes]\nlongest_pause = \"100ms\"\n").unwrap();
    let more = ["--state-dir", state.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let Some((agent, device)) = agent(&more) else { return };
    let address = agent.address();
    let over = Arc::new(AtomicBool::new(false));
    let scrapers: Vec<_> = (0..4)
        .map(|_| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let mut answers = 0_u32;
                while !over.load(Ordering::Relaxed) {
                    // Between two servers a connection may end unanswered; what is answered is whole.
                    if let Some(body) = try_get(address, "/metrics") {
                        assert!(body.ends_with(b"\n"), "a torn answer");
                        answers += 1;
                    }
                }
                answers
            })
        })
        .collect();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut killed = 0;
    while killed < KILLS {
        let part = PARTS[random.next() % PARTS.len()];
        if let Some(pid) = child(agent.id(), part) {
            kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
            killed += 1;
        }
        if killed % 10 == 0 {
            agent.signal(Signal::SIGHUP);
        }
        thread::sleep(Duration::from_millis(u64::try_from(random.next() % 300).unwrap()));
    }
    over.store(true, Ordering::Relaxed);
    let answers: u32 = scrapers.into_iter().map(|scraper| scraper.join().unwrap()).sum();
    assert!(answers > 0, "nobody was answered meanwhile");
    let name = device.name();
    agent.wait_figures("a whole agent", |now| {
        let fresh =
            |source| now.find("storscope_source_up", &[("device", name.as_str()), ("source", source)]) == Some(1.0);
        PARTS.iter().all(|part| now.find("storscope_agent_process_up", &[("process", *part)]) == Some(1.0))
            && fresh("diskstats")
            && fresh("probe")
    });
    assert_eq!(processes(&agent).len(), 4);
    let children = fs::read_to_string(proc_file(agent.id(), &format!("task/{}/children", agent.id()))).unwrap();
    assert_eq!(children.split_whitespace().count(), PARTS.len(), "no process is left over");
    let open = fs::read_dir(proc_file(agent.id(), "fd")).unwrap().count();
    assert!(open < 40, "{open} descriptors of the supervisor");
    let threads = fs::read_dir(proc_file(agent.id(), "task")).unwrap().count();
    assert!(threads < 16, "{threads} threads of the supervisor");
    assert!(agent.json()["agent"]["state_error"].is_null());
    agent.end();
    let files: Vec<_> = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(files.iter().all(|name| name != "state.json.bad"), "{files:?}");
    let text = fs::read_to_string(state.join("state.json")).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "a torn state");
}

/// The body of `GET path`; `None` when the answer ends early, as that of a server that is killed.
fn try_get(address: SocketAddr, path: &str) -> Option<Vec<u8>> {
    let bytes =
        exchange::raw(address, format!("GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n").as_bytes());
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?.trim().parse::<usize>().unwrap();
    let body = bytes.get(end + 4..)?;
    (body.len() == length).then(|| body.to_vec())
}

/// Process id of the child of `supervisor` that is `part`.
fn child(supervisor: u32, part: &str) -> Option<u32> {
    let children = fs::read_to_string(proc_file(supervisor, &format!("task/{supervisor}/children"))).ok()?;
    let title = format!("storscope: {part}\0");
    let is_part = |pid: &u32| fs::read(proc_file(*pid, "cmdline")).is_ok_and(|line| line == title.as_bytes());
    children.split_whitespace().filter_map(|word| word.parse().ok()).find(is_part)
}

/// Numbers that are the same in every run (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap()
    }
}

#[test]
fn all_processes_end_with_the_supervisor_however_it_ends() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let Some((agent, _device)) = agent(&[]) else { return };
        let all = processes(&agent);
        agent.signal(signal);
        drop(agent);
        wait("the end of all", || all.values().all(|pid| gone(*pid)).then_some(()));
    }
}

/// True when there is no such process, or one that only waits to be reaped.
fn gone(pid: u32) -> bool {
    fs::read_to_string(proc_file(pid, "stat"))
        .map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}
