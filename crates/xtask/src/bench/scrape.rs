//! Part b: a scrape over loopback against node_exporter, in alternating pairs by the same client.
//!
//! What counts is the first scrape of a new view, which is what a Prometheus sees: the agent encodes a view once, and
//! answers further scrapes of it from memory. So the tick is shortened and each pair waits for the next view.

use super::exporter::{self, Exporter};
use super::figure::{Figure, median};
use super::http::Client;
use super::loops::{self, Content, Loops};
use super::usage;
use crate::expose::Agent;
use anyhow::Context;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Devices.
const DEVICES: usize = 24;
/// Size of each.
const BYTES: usize = 4 << 20;
/// Pairs on new views, of each encoding.
const PAIRS: usize = 40;
/// A little more than the tick.
const PAUSE: Duration = Duration::from_millis(1050);
/// Pairs back to back, of each encoding.
const QUICK_PAIRS: usize = 400;
/// Not slower.
const LIMIT: f64 = 1.0;

struct Pair {
    agent: Client,
    peer: Client,
    agent_first: bool,
}

/// Times of scrapes in milliseconds.
#[derive(Default)]
struct Times {
    agent: Vec<f64>,
    peer: Vec<f64>,
}

/// Starts both, scrapes both.
///
/// # Errors
/// When one does not start or answer.
pub(super) fn measure(program: &Path) -> anyhow::Result<Vec<Figure>> {
    if let Some(why) = loops::missing().or_else(|| loops::lacks(exporter::PROGRAM, "--version")) {
        return Ok(vec![Figure::not_run(why)]);
    }
    let loops = Loops::in_memory(DEVICES, BYTES, Content::Written)?;
    let config = loops.folder().join("config.toml");
    fs::write(&config, "[periods]\ntick = \"1s\"\n")?;
    let config = config.to_str().context("a path that is not UTF-8")?;
    let agent = Agent::launch(Command::new(program), &["--config", config, "--only", &loops.pattern()])?;
    let peer = Exporter::start(&loops.pattern())?;
    let mut pair =
        Pair { agent: Client::connect(agent.address())?, peer: Client::connect(peer.address())?, agent_first: true };
    // Both answer as they do after a while: connections are up, buffers have their size.
    for gzip in [false, true].into_iter().cycle().take(10) {
        pair.scrape(gzip, &mut Times::default())?;
        thread::sleep(PAUSE);
    }
    let mut figures = sizes(&mut pair)?;
    let (plain, gzip) = pair.new_views()?;
    figures.extend(compared("plain", plain)?);
    figures.extend(compared("gzip", gzip)?);
    for (name, gzip) in [("plain", false), ("gzip", true)] {
        let mut times = Times::default();
        for _ in 0..QUICK_PAIRS {
            pair.scrape(gzip, &mut times)?;
        }
        let (agent, peer) = (middle(times.agent)?, middle(times.peer)?);
        let value = format!("{agent:.3} / {peer:.3} ms = {:.2}", agent / peer);
        figures.push(Figure::stated(format!("{name}, back to back (mostly one view)"), value));
    }
    let memory = format!("{:.1} / {:.1} MB", usage::held(agent.pid())?.pss_mb, usage::held(peer.pid())?.pss_mb);
    figures.push(Figure::stated("memory (PSS), agent / node_exporter", memory));
    Ok(figures)
}

impl Pair {
    fn scrape(&mut self, gzip: bool, times: &mut Times) -> anyhow::Result<()> {
        self.agent_first = !self.agent_first;
        for agent in [self.agent_first, !self.agent_first] {
            let (client, times) =
                if agent { (&mut self.agent, &mut times.agent) } else { (&mut self.peer, &mut times.peer) };
            times.push(client.scrape(gzip)?.as_secs_f64() * 1e3);
        }
        Ok(())
    }

    /// One pair a tick, plain and compressed by turns. A scrape that met the view of the former one does not count.
    fn new_views(&mut self) -> anyhow::Result<(Times, Times)> {
        let (mut plain, mut gzip) = (Times::default(), Times::default());
        let mut former: [Vec<u8>; 2] = [Vec::new(), Vec::new()];
        for round in 0..4 * PAIRS {
            if plain.agent.len() >= PAIRS && gzip.agent.len() >= PAIRS {
                break;
            }
            thread::sleep(PAUSE);
            let compressed = round % 2 == 1;
            let mut one = Times::default();
            self.scrape(compressed, &mut one)?;
            let [of_plain, of_gzip] = &mut former;
            let (times, former) = if compressed { (&mut gzip, of_gzip) } else { (&mut plain, of_plain) };
            if *former != self.agent.body() {
                former.clear();
                former.extend_from_slice(self.agent.body());
                times.agent.append(&mut one.agent);
                times.peer.append(&mut one.peer);
            }
        }
        Ok((plain, gzip))
    }
}

fn sizes(pair: &mut Pair) -> anyhow::Result<Vec<Figure>> {
    pair.scrape(false, &mut Times::default())?;
    let series = |body: &[u8]| {
        body.split(|byte| *byte == b'\n').filter(|line| line.first().is_some_and(|first| *first != b'#')).count()
    };
    let size = |body: &[u8]| format!("{} series, {} kB", series(body), body.len() / 1000);
    Ok(vec![
        Figure::stated("agent's exposition", size(pair.agent.body())),
        Figure::stated("node_exporter's exposition", size(pair.peer.body())),
    ])
}

fn compared(name: &str, times: Times) -> anyhow::Result<[Figure; 2]> {
    let pairs = times.agent.len();
    let (agent, peer) = (middle(times.agent)?, middle(times.peer)?);
    let what = format!("{name}, first scrape of a view, {pairs} pairs");
    Ok([
        Figure::stated(format!("{what}: agent / node_exporter"), format!("{agent:.3} / {peer:.3} ms")),
        Figure::at_most(format!("{what}: ratio of medians"), agent / peer, LIMIT, ""),
    ])
}

fn middle(times: Vec<f64>) -> anyhow::Result<f64> {
    median(times).context("no scrape was timed")
}
