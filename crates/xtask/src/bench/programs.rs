//! What is measured, built before anything is measured: a build beside a measurement would be part of it.

use crate::expose;
use crate::steps::{self, cargo};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::Stdio;

/// A program of benchmarks: its package and its name.
pub(super) type Bench = (&'static str, &'static str);

/// The agent, built for release.
///
/// # Errors
/// When it cannot be built.
pub(super) fn agent() -> anyhow::Result<PathBuf> {
    expose::build(true)
}

/// The example that reads a device back to back and prints quantiles.
///
/// # Errors
/// When it cannot be built.
pub(super) fn probe() -> anyhow::Result<PathBuf> {
    let package = ["--package", "storscope-probe", "--example", "p50"];
    steps::run(cargo(&["build", "--quiet", "--locked", "--release"]).args(package))?;
    Ok(steps::target().join("release/examples/p50"))
}

/// A program of benchmarks.
///
/// # Errors
/// When it cannot be built.
pub(super) fn bench((package, name): Bench) -> anyhow::Result<PathBuf> {
    let mut command = cargo(&["bench", "--quiet", "--locked", "--no-run", "--message-format=json"]);
    command.args(["--package", package, "--bench", name]);
    let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !done.status.success() {
        bail!("benchmark {name} of {package} cannot be built");
    }
    let messages = String::from_utf8(done.stdout)?;
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let named = message.pointer("/target/name")?.as_str()? == name;
        message.get("executable")?.as_str().filter(|_| named).map(PathBuf::from)
    };
    messages.lines().find_map(executable).with_context(|| format!("cargo built no benchmark {name} of {package}"))
}
