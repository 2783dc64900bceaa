//! The agent: built static, run in the guest as in production.

use super::guest::{Guest, eventually};
use crate::steps;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// The guest's architecture.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Longest start until the agent is ready.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Longest orderly end.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// The usual configuration, with periods shorter than the defaults so that what a case waits for comes in test time.
pub(crate) const USUAL: &str = include_str!("../../../../tests/lab/agent.toml");
/// The agent in the guest.
pub(crate) const BINARY: &str = "/lab/storscope";

/// Programs for the guest.
pub(super) struct Programs {
    /// The agent.
    pub(super) agent: PathBuf,
    /// Asks a drive as the agent does, as often as told.
    pub(super) ask: PathBuf,
}

/// Builds the programs without dynamic libraries, so that they run in any guest.
///
/// # Errors
/// When the build fails.
pub(super) fn build() -> Result<Programs> {
    let folder = steps::target().join(TARGET).join("lab");
    for what in [["--package", "storscope", "--bin", "storscope"], ["--package", "storscope-drive", "--example", "ask"]]
    {
        let mut cargo = steps::cargo(&["build", "--profile", "lab", "--quiet", "--target", TARGET]);
        cargo.args(what).env("RUSTFLAGS", "-C target-feature=+crt-static").stdin(Stdio::null());
        steps::run(&mut cargo)?;
    }
    Ok(Programs { agent: folder.join("storscope"), ask: folder.join("examples").join("ask") })
}

/// The shipped unit.
const UNIT: &str = "storscope.service";

/// The agent in one guest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agent {
    guest: Guest,
    /// Whether systemd runs it, by the shipped units and with the configuration that they name.
    managed: bool,
}

/// How an agent is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    /// Put before the agent's own command: changes of user, of limits.
    pub(crate) prefix: &'a str,
    /// Its configuration file.
    pub(crate) configuration: &'a str,
}

impl Agent {
    pub(super) fn new(guest: Guest, managed: bool) -> Self {
        Self { guest, managed }
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// When it is not ready in time; its log is in the message.
    pub(crate) fn start(&self, run: Run<'_>) -> Result<()> {
        if self.managed {
            self.guest.sh(&format!("systemctl enable --now {UNIT}"))?;
        } else {
            self.start_by_hand(run)?;
        }
        eventually(READY_LIMIT, || match self.guest.body("/readyz") {
            Ok(_) => Ok(Ok(())),
            // An agent that has ended is not waited for.
            Err(_) if !self.runs() => Ok(Err(anyhow!("the agent ended: {}", self.log().unwrap_or_default()))),
            Err(error) => Err(error),
        })
        .with_context(|| format!("the agent is not ready: {}", self.log().unwrap_or_default()))?
    }

    fn start_by_hand(&self, run: Run<'_>) -> Result<()> {
        let directory = "/run/storscope";
        self.guest.sh(&format!(
            "mkdir -p {directory}/state && rm -f {directory}/pid && chmod -R a+rwX {directory} && \
             cat >{directory}/agent.toml <<\"TOML\"\n{}\nTOML",
            run.configuration
        ))?;
        self.guest.background(
            &format!(
                "echo $$ >{directory}/pid; exec {} {BINARY} serve --listen 0.0.0.0:10210 --config {directory}/agent.toml \
                 --state-dir {directory}/state",
                run.prefix
            ),
            &format!("{directory}/log"),
        )
    }

    /// Ends it in an orderly way.
    ///
    /// # Errors
    /// When it is still there after the limit.
    pub(crate) fn stop(&self) -> Result<()> {
        if self.managed {
            // Both at once: a request that comes meanwhile would start it again.
            return self.guest.sh(&format!("systemctl stop storscope.socket {UNIT}")).map(drop);
        }
        self.guest.sh("kill $(cat /run/storscope/pid)")?;
        eventually(STOP_LIMIT, || if self.runs() { bail!("the agent does not end") } else { Ok(()) })
    }

    /// Process id of one of its processes.
    ///
    /// # Errors
    /// When it does not say.
    pub(crate) fn process(&self, name: &str) -> Result<u64> {
        let status: Value = serde_json::from_str(&self.guest.body("/status.json")?)?;
        let processes = status["agent"]["processes"].as_array().context("no processes")?;
        let found = processes.iter().find(|process| process["name"] == name).and_then(|it| it["pid"].as_u64());
        found.with_context(|| format!("no process {name} in {processes:?}"))
    }

    /// Whether it is there, or about to be.
    fn runs(&self) -> bool {
        if self.managed {
            return self.guest.sh(&format!("systemctl is-active {UNIT}")).is_ok();
        }
        self.guest.sh("[ ! -e /run/storscope/pid ] || kill -0 $(cat /run/storscope/pid)").is_ok()
    }

    /// Its log, both streams.
    ///
    /// # Errors
    /// When the guest does not answer.
    pub(crate) fn log(&self) -> Result<String> {
        self.guest.sh(&if self.managed {
            format!("journalctl --no-pager -b -o short-monotonic -u {UNIT}")
        } else {
            "cat /run/storscope/log".to_owned()
        })
    }
}

impl Default for Run<'_> {
    fn default() -> Self {
        Self { prefix: "", configuration: USUAL }
    }
}
