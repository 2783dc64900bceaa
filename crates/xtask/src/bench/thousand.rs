//! Part e: the live agent on a host with 1,000 loop devices.

use super::figure::Figure;
use super::http::Client;
use super::loops::{self, Content, Loops};
use super::trickle::Trickle;
use super::usage;
use crate::expose::Agent;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Devices.
const DEVICES: usize = 1000;
/// Size of each.
const BYTES: usize = 1 << 20;
/// Descriptors that the agent is started with, as systemd does; it may raise that.
const SOFT_LIMIT: &str = "--nofile=1024:";
/// From ready to the begin of the measurement.
const SETTLE: Duration = Duration::from_secs(60);
/// Length of the measurement of CPU time.
const TIME: Duration = Duration::from_secs(30);

/// Starts the agent on 1,000 devices and looks at it after a minute and a half.
///
/// # Errors
/// When it does not start, or ends.
pub(super) fn measure(program: &Path) -> anyhow::Result<Vec<Figure>> {
    if let Some(why) = loops::missing().or_else(|| loops::lacks("prlimit", "--version")) {
        return Ok(vec![Figure::not_run(why)]);
    }
    let loops = Loops::in_memory(DEVICES, BYTES, Content::Sparse)?;
    let trickle = Trickle::start(&loops.nodes())?;
    let mut command = Command::new("prlimit");
    command.arg(SOFT_LIMIT).arg(program);
    let begun = Instant::now();
    let agent = Agent::launch(command, &["--only", &loops.pattern()])?;
    let ready = begun.elapsed();
    thread::sleep(SETTLE);
    let (from, before) = (Instant::now(), usage::cpu_seconds(agent.pid())?);
    thread::sleep(TIME);
    let percent = 100.0 * (usage::cpu_seconds(agent.pid())? - before) / from.elapsed().as_secs_f64();
    let held = usage::held(agent.pid())?;
    let mut client = Client::connect(agent.address())?;
    let took = client.scrape(false)?;
    let text = str::from_utf8(client.body())?;
    let all = |what: &str, metric: &str| {
        let found = devices(text, metric);
        Figure::holds(what, found.to_string(), "1000", found == DEVICES)
    };
    let within = u64::try_from(held.descriptors)? < held.descriptor_limit;
    let figures = vec![
        Figure::stated("ready after", format!("{:.1} s", ready.as_secs_f64())),
        all("devices with fresh counters", "storscope_disk_reads_completed_total{"),
        all("devices that probes have read", "storscope_probe_reads_total{"),
        Figure::holds(
            "open descriptors; limit (started with 1024)",
            format!("{}; {}", held.descriptors, held.descriptor_limit),
            "within",
            within && !text.contains("reason=\"exhausted\""),
        ),
        Figure::stated("threads", held.threads.to_string()),
        Figure::stated("memory (PSS)", format!("{:.1} MB", held.pss_mb)),
        Figure::stated("with probes, of a core", format!("{percent:.2} %")),
        Figure::stated("one scrape", format!("{:.1} ms, {} kB", took.as_secs_f64() * 1e3, text.len() / 1000)),
    ];
    trickle.end()?;
    Ok(figures)
}

/// How many devices have a series that begins with `metric`.
fn devices(text: &str, metric: &str) -> usize {
    let labels = text.lines().filter_map(|line| line.strip_prefix(metric));
    let names = labels.filter_map(|labels| labels.split_once("device=\"")?.1.split('"').next());
    names.collect::<BTreeSet<_>>().len()
}
