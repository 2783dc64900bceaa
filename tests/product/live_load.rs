//! Load of a known size on a loop device: the counters are those of fio, the rates those of iostat.

use crate::agent::{Agent, wait};
use crate::figures::Figures;
use crate::loop_device::LoopDevice;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};
use storscope_collect::root::Root;

/// Seconds of load, of which iostat watches some in the middle.
const LOAD: &str = "32";
const WATCHED: &str = "20";

/// Times that the counters are looked at while iostat watches.
const LOOKS: usize = 4;

/// Most by which a rate may differ from that of iostat.
const TOLERANCE: f64 = 0.02;

fn there(program: &str, version: &str) -> bool {
    let found = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: no {program}");
    }
    found
}

/// What the counters of the device say, without what the agent's own probes read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Totals {
    reads: f64,
    read_bytes: f64,
    writes: f64,
    written_bytes: f64,
}

/// Bytes of one probe read.
const PROBE_BYTES: f64 = 4096.0;

fn totals(figures: &Figures, device: &str) -> Totals {
    let of = |name: &str| figures.value(&format!("storscope_disk_{name}_total"), &[("device", device)]);
    let probes: f64 = figures.series("storscope_probe_reads_total").iter().map(|one| one.value).sum();
    Totals {
        reads: of("reads_completed") + of("reads_merged") - probes,
        read_bytes: of("read_bytes") - probes * PROBE_BYTES,
        writes: of("writes_completed") + of("writes_merged"),
        written_bytes: of("written_bytes"),
    }
}

/// The same from the kernel, before there is an agent: fields of `stat` in Documentation/block/stat.rst.
fn from_the_kernel(device: &str) -> Totals {
    let text = std::fs::read_to_string(Root::live().block(device).join("stat")).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    Totals {
        reads: numbers[0] + numbers[1],
        read_bytes: numbers[2] * 512.0,
        writes: numbers[4] + numbers[5],
        written_bytes: numbers[6] * 512.0,
    }
}

/// Waits for two reads of the counters that began after the call, so that what was done before is in them.
fn after_now(agent: &Agent) -> Figures {
    let reads = |figures: &Figures| figures.exact("storscope_source_reads_total", &[("source", "diskstats")]);
    let now = reads(&agent.figures()).unwrap();
    agent.wait_figures("newer counters", |figures| reads(figures) >= Some(now + 2.0))
}

fn configure(file: &std::path::Path, probes: bool) {
    std::fs::write(file, format!("[periods]\ntick = \"5s\"\n[probe]\nenabled = {probes}\n")).unwrap();
}

/// Ends the probes, so that counters and probes are told of the same instant, and gives what was done until then.
fn quiet(agent: &Agent, file: &std::path::Path, device: &str) -> Totals {
    configure(file, false);
    agent.signal(Signal::SIGHUP);
    agent.wait_figures("no probes", |figures| figures.find("storscope_agent_probes_off", &[]) == Some(1.0));
    totals(&after_now(agent), device)
}

/// The rates of the device in the newest status, by the name that iostat gives them, and when they were worked out.
fn rates(agent: &Agent) -> (String, [f64; 4]) {
    let status = agent.json();
    let rates = &status["devices"][0]["rates"];
    let of = |name: &str| rates[name].as_f64().unwrap_or(f64::NAN);
    let kilo = |name: &str| of(name) / 1024.0;
    let at = rates["interval_seconds"].to_string()
        + &of("reads_per_second").to_string()
        + &of("read_await_seconds").to_string();
    (
        at,
        [
            of("reads_per_second"),
            of("writes_per_second"),
            kilo("read_bytes_per_second"),
            kilo("written_bytes_per_second"),
        ],
    )
}

#[test]
fn counters_are_those_of_fio_and_rates_those_of_iostat() {
    if !there("fio", "--version") || !there("iostat", "-V") {
        return;
    }
    let Some(device) = LoopDevice::add() else { return };
    device.attach();
    let name = device.name();
    let before = from_the_kernel(&name);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("storscope.toml");
    configure(&file, true);
    let agent = Agent::serve(&["--listen", "127.0.0.1:0", "--config", file.to_str().unwrap(), "--only", &name]);
    agent.wait_figures("probes", |figures| !figures.series("storscope_probe_latency_quantile_seconds").is_empty());
    let load = Command::new("fio")
        .args(["--name=load", "--rw=randrw", "--bs=4k", "--ioengine=psync", "--direct=1", "--time_based"])
        .args(["--rate_iops=1500,750", "--runtime", LOAD, "--output-format=json", "--eta=never"])
        .arg(format!("--filename={}", device.node().display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // From one look to the next, the load is even.
    let mut seen = rates(&agent).0;
    let mut next = || {
        wait("a look", || {
            let (at, rates) = rates(&agent);
            (at != seen).then(|| {
                seen = at;
                rates
            })
        })
    };
    while next()[1].total_cmp(&700.0).is_lt() {}
    let watch = Command::new("iostat")
        .args(["-d", "-x", "-y", "-o", "JSON", &name, WATCHED, "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let looks: Vec<[f64; 4]> = (0..LOOKS).map(|_| next()).collect();
    let told: Value = serde_json::from_slice(&watch.wait_with_output().unwrap().stdout).unwrap();
    let iostat = &told["sysstat"]["hosts"][0]["statistics"][0]["disk"][0];
    for (index, field) in ["r/s", "w/s", "rkB/s", "wkB/s"].into_iter().enumerate() {
        let ours = looks.iter().map(|look| look[index]).sum::<f64>() / f64::from(u32::try_from(LOOKS).unwrap());
        let theirs = iostat[field].as_f64().unwrap();
        assert!((ours - theirs).abs() <= TOLERANCE * theirs, "{field}: {ours} here, {theirs} in iostat; {looks:?}");
    }

    let report = load.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let job = &report["jobs"][0];
    let of = |kind: &str, field: &str| job[kind][field].as_f64().unwrap();
    let after = quiet(&agent, &file, &name);
    let gained = Totals {
        reads: after.reads - before.reads,
        read_bytes: after.read_bytes - before.read_bytes,
        writes: after.writes - before.writes,
        written_bytes: after.written_bytes - before.written_bytes,
    };
    let done = Totals {
        reads: of("read", "total_ios"),
        read_bytes: of("read", "io_bytes"),
        writes: of("write", "total_ios"),
        written_bytes: of("write", "io_bytes"),
    };
    assert_eq!(gained, done);
    assert!(done.writes > 10_000.0, "{done:?}");
    let p50 = [("device", name.as_str()), ("window", "5m"), ("q", "0.5")];
    let figures = agent.figures();
    let quantiles = figures.series("storscope_probe_latency_quantile_seconds");
    assert!(
        quantiles.iter().any(|one| p50.iter().all(|(label, value)| one.labels[*label] == *value) && one.value > 0.0),
        "{quantiles:#?}"
    );
    agent.end();
}
