//! What a running agent exposes, checked by Prometheus' own tools.

use crate::steps::{self, cargo};
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the agent may take until it is ready.
const READY: Duration = Duration::from_secs(60);

/// Parses OpenMetrics with the reference parser; prints how many families and samples there were.
const PARSE: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
samples = sum(len(family.samples) for family in families)
if not samples: sys.exit('no samples')
print(f'{len(families)} families, {samples} samples')
";

/// A running agent, ended when dropped.
pub(crate) struct Agent {
    child: Child,
    address: String,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    /// Builds the agent and starts it on a free port of loopback.
    ///
    /// # Errors
    /// When it cannot be built or does not get ready.
    pub(crate) fn start(release: bool, arguments: &[&str]) -> anyhow::Result<Self> {
        Self::launch(Command::new(build(release)?), arguments)
    }

    /// Starts `command`, which is the agent or becomes it, on a free port of loopback and waits until it is ready.
    ///
    /// # Errors
    /// When it does not get ready.
    pub(crate) fn launch(mut command: Command, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().context("no standard error")?).lines();
        let mut address = None;
        let mut said = Vec::new();
        for line in lines.by_ref() {
            let line = line?;
            let found = line.split_once("http://").and_then(|(_, rest)| rest.split_once('/'));
            said.push(line.clone());
            if let Some((host, _)) = found {
                address = Some(host.to_owned());
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.with_context(|| format!("the agent did not say where it listens: {said:?}"))?;
        let agent = Self { child, address };
        let until = Instant::now() + READY;
        while !agent.get("/readyz", "").is_ok_and(|body| body.starts_with("ready")) {
            if Instant::now() > until {
                bail!("the agent was not ready within {} s", READY.as_secs());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(agent)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The body of the answer to `GET path` with `headers` (each ending in a line break).
    ///
    /// # Errors
    /// When there is no answer.
    pub(crate) fn get(&self, path: &str, headers: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET {path} HTTP/1.0\r\n{headers}\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no end of the answer's head")?;
        Ok(body.to_owned())
    }
}

/// Builds the agent; gives the path of the program.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn build(release: bool) -> anyhow::Result<PathBuf> {
    let mut build = cargo(&["build", "--quiet", "--locked", "--package", "storscope"]);
    if release {
        build.arg("--release");
    }
    steps::run(&mut build)?;
    Ok(steps::target().join(if release { "release" } else { "debug" }).join("storscope"))
}

/// Starts the agent and checks both exposition formats.
///
/// # Errors
/// What the tools object to.
pub(crate) fn run() -> anyhow::Result<()> {
    let agent = Agent::start(false, &[])?;
    let text = agent.get("/metrics", "")?;
    let said = filter(Command::new("promtool").args(["check", "metrics"]), &text)?;
    if !said.trim().is_empty() {
        bail!("promtool check metrics:\n{said}");
    }
    let open = agent.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n")?;
    if !open.ends_with("# EOF\n") {
        bail!("OpenMetrics does not end in # EOF");
    }
    print!("OpenMetrics: {}", filter(Command::new("/usr/bin/python3").args(["-c", PARSE]), &open)?);
    Ok(())
}

/// What `command` prints, on either stream, when it reads `input`.
fn filter(command: &mut Command, input: &str) -> anyhow::Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let input = input.to_owned();
    let feeder = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    let _ = feeder.join();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("{:?} ended with {}: {said}", command.get_program(), output.status);
    }
    Ok(said)
}
