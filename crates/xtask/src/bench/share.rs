//! Part d: what the agent takes on a host with 24 devices at work: share of a core without probes and with them, the
//! cost of a probe read, memory after as many ticks as an hour has.

use super::figure::Figure;
use super::http::Client;
use super::loops::{self, Content, Loops};
use super::trickle::Trickle;
use super::usage;
use crate::expose::Agent;
use anyhow::Context;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Devices.
const DEVICES: usize = 24;
/// Size of each.
const BYTES: usize = 4 << 20;
/// From ready to the begin of a measurement: the first scan and the first read of everything are over.
const SETTLE: Duration = Duration::from_secs(15);
/// Most percent of a core without probes.
const WITHOUT: f64 = 0.3;
/// Most percent of a core with probes.
const WITH: f64 = 0.7;
/// Most resident memory in MB.
const MEMORY: f64 = 15.0;
/// Time between two scrapes while memory is watched, as a Prometheus does.
const SCRAPES: Duration = Duration::from_secs(15);

/// What the agent took in a stretch of time.
struct Cost {
    percent: f64,
    cpu: f64,
    reads: f64,
    seconds: f64,
}

/// Runs the agent three times.
///
/// # Errors
/// When it does not start, or ends.
pub(super) fn measure(program: &Path, time: Duration, ticks: u16) -> anyhow::Result<Vec<Figure>> {
    if let Some(why) = loops::missing() {
        return Ok(vec![Figure::not_run(why)]);
    }
    let loops = Loops::in_memory(DEVICES, BYTES, Content::Written)?;
    let trickle = Trickle::start(&loops.nodes())?;
    let without = cost(program, &loops, "[probe]\nenabled = false\n", time)?;
    let with = cost(program, &loops, "", time)?;
    let over = format!("of a core over {:.0} s", with.seconds);
    let mut figures = vec![
        Figure::at_most(format!("without probes, {over}"), without.percent, WITHOUT, "%"),
        Figure::at_most(format!("with probes, {over}"), with.percent, WITH, "%"),
        Figure::stated("probe reads a second a device", format!("{:.2}", with.reads / with.seconds / 24.0)),
    ];
    if with.reads > 0.0 {
        let each = (with.cpu / with.seconds - without.cpu / without.seconds) * with.seconds / with.reads;
        figures.push(Figure::stated(
            "CPU of one probe read, bursts and reports included",
            format!("{:.1} us", each * 1e6),
        ));
    }
    figures.extend(memory(program, &loops, ticks)?);
    trickle.end()?;
    Ok(figures)
}

fn start(program: &Path, loops: &Loops, config: &str) -> anyhow::Result<Agent> {
    let file = loops.folder().join("config.toml");
    fs::write(&file, config)?;
    let file = file.to_str().context("a path that is not UTF-8")?;
    Agent::launch(Command::new(program), &["--config", file, "--only", &loops.pattern()])
}

fn cost(program: &Path, loops: &Loops, config: &str, time: Duration) -> anyhow::Result<Cost> {
    let agent = start(program, loops, config)?;
    thread::sleep(SETTLE);
    let mut client = Client::connect(agent.address())?;
    let reads_before = reads(&mut client)?;
    let (begun, before) = (Instant::now(), usage::cpu_seconds(agent.pid())?);
    thread::sleep(time);
    let cpu = usage::cpu_seconds(agent.pid())? - before;
    let seconds = begun.elapsed().as_secs_f64();
    let reads = reads(&mut Client::connect(agent.address())?)? - reads_before;
    Ok(Cost { percent: 100.0 * cpu / seconds, cpu, reads, seconds })
}

/// Probe reads of all devices up to now.
fn reads(client: &mut Client) -> anyhow::Result<f64> {
    client.scrape(false)?;
    let text = str::from_utf8(client.body())?;
    let samples = text.lines().filter(|line| line.starts_with("storscope_probe_reads_total{"));
    Ok(samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}

/// One tick a second instead of one in five, so that an hour's worth of ticks does not take an hour. Windows and the
/// budget of probes go by time: they see only that much of it.
fn memory(program: &Path, loops: &Loops, ticks: u16) -> anyhow::Result<[Figure; 4]> {
    let agent = start(program, loops, "[periods]\ntick = \"1s\"\n")?;
    let end = Instant::now() + Duration::from_secs(ticks.into());
    let early = Instant::now() + Duration::from_secs(u64::from(ticks) / 10);
    let mut first = None;
    while Instant::now() < end {
        thread::sleep(SCRAPES.min(end.saturating_duration_since(Instant::now())));
        // An idle connection does not live that long.
        let mut client = Client::connect(agent.address())?;
        for gzip in [false, true] {
            client.scrape(gzip)?;
        }
        if first.is_none() && Instant::now() >= early {
            first = Some(usage::held(agent.pid())?);
        }
    }
    let held = usage::held(agent.pid())?;
    let tenth = first.unwrap_or(held);
    Ok([
        Figure::at_most(format!("memory (PSS) after {ticks} ticks of 1 s"), held.pss_mb, MEMORY, "MB"),
        Figure::stated("resident sets added up", format!("{:.1} MB", held.rss_mb)),
        Figure::stated(
            "anonymous; after a tenth of the ticks",
            format!("{:.1}; {:.1} MB", held.anonymous_mb, tenth.anonymous_mb),
        ),
        Figure::stated("threads, descriptors", format!("{}, {}", held.threads, held.descriptors)),
    ])
}
