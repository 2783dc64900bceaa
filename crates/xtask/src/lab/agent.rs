//! The agent: built static, run in the guest as in production.

use super::guest::{Guest, eventually};
use crate::steps;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// The guest's architecture.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Longest start until the agent is ready.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Longest orderly end.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Configuration of the cases, with periods shorter than the defaults so that what they wait for comes in test time.
const CONFIGURATION: &str = include_str!("../../../../tests/lab/agent.toml");
/// Where the guest keeps the agent: not on 9p, which must not decide how fast it answers.
const BINARY: &str = "/run/storscope/storscope";

/// Builds the agent without dynamic libraries, so that it runs in any guest; returns its path.
///
/// # Errors
/// When the build fails.
pub(super) fn build() -> Result<PathBuf> {
    let mut cargo = steps::cargo(&["build", "--release", "--quiet", "--package", "storscope", "--target", TARGET]);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static").stdin(Stdio::null());
    steps::run(&mut cargo)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| steps::repository().join("target"), PathBuf::from);
    let binary = target.join(TARGET).join("release").join("storscope");
    if !binary.is_file() {
        bail!("{}: not built", binary.display());
    }
    Ok(binary)
}

/// The agent in one guest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agent {
    guest: Guest,
}

/// How an agent is run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run<'a> {
    /// Put before the agent's own command: changes of user, of limits.
    pub(crate) prefix: &'a str,
    /// Added to the cases' configuration.
    pub(crate) configuration: &'a str,
}

impl Agent {
    pub(super) fn new(guest: Guest) -> Self {
        Self { guest }
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// When it is not ready in time; its log is in the message.
    pub(crate) fn start(&self, run: Run<'_>) -> Result<()> {
        let directory = "/run/storscope";
        let configuration = format!("{CONFIGURATION}\n{}", run.configuration);
        self.guest.sh(&format!(
            "mkdir -p {directory}/state && cp -u /host/storscope {BINARY} && chmod -R a+rwX {directory} && \
             cat >{directory}/agent.toml <<'TOML'\n{configuration}\nTOML"
        ))?;
        self.guest.background(
            &format!(
                "echo $$ >{directory}/pid; exec {} {BINARY} serve --listen 0.0.0.0:10210 --config {directory}/agent.toml \
                 --state-dir {directory}/state",
                run.prefix
            ),
            &format!("{directory}/log"),
        )?;
        eventually(READY_LIMIT, || self.guest.body("/readyz").map(drop))
            .with_context(|| format!("the agent is not ready: {}", self.log().unwrap_or_default()))
    }

    /// Ends it in an orderly way.
    ///
    /// # Errors
    /// When it is still there after the limit.
    pub(crate) fn stop(&self) -> Result<()> {
        self.guest.sh("kill $(cat /run/storscope/pid)")?;
        eventually(STOP_LIMIT, || self.guest.sh("! kill -0 $(cat /run/storscope/pid)").map(drop))
    }

    /// Its log, both streams.
    ///
    /// # Errors
    /// When the guest does not answer.
    pub(crate) fn log(&self) -> Result<String> {
        self.guest.sh("cat /run/storscope/log")
    }
}
