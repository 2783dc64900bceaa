//! `cargo xtask test`: every check, one line each; the first failure ends it.

use crate::fuzz::{self, FuzzArgs};
use crate::lab::{self, LabArgs};
use crate::{docs, expose, licences, packages, tidy, units};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

/// A cargo command in the repository.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(repository());
    command
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// Runs `command` to its end.
///
/// # Errors
/// When it cannot be started or fails; the error names it.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{:?} ended with {status}", command);
    }
    Ok(())
}

/// How a check ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It ran and found nothing.
    Passed,
    /// It lacks something that this machine does not have; it has said what.
    NotRun,
}

/// One check: its name and what runs it.
type Step = (&'static str, fn() -> anyhow::Result<Verdict>);

const STEPS: [Step; 12] = [
    ("Debian packages", || passed(packages::install())),
    ("format", || passed(run(&mut cargo(&["fmt", "--all", "--check"])))),
    ("clippy", || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"];
        passed(run(&mut cargo(&arguments)))
    }),
    ("tidy", || passed(tidy::run())),
    ("licences and sources", || passed(licences::run())),
    ("tests", || passed(run(&mut cargo(&["test", "--workspace", "--locked", "--no-fail-fast"])))),
    ("generated documents", || passed(docs::run(true))),
    ("units", units::run),
    ("exposition", || passed(expose::run())),
    ("fuzz", || fuzz::run(&FuzzArgs::default())),
    ("virtual lab", || lab::run(&LabArgs::default())),
    ("virtual lab without its faults", || lab::run(&LabArgs::without_faults())),
];

fn passed(outcome: anyhow::Result<()>) -> anyhow::Result<Verdict> {
    outcome.map(|()| Verdict::Passed)
}

/// Runs every check.
///
/// # Errors
/// The first check that fails.
pub(crate) fn test() -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut missing = Vec::new();
    for (name, check) in STEPS {
        println!("==> {name}");
        let started = Instant::now();
        let verdict = check().with_context(|| format!("check failed: {name}"))?;
        let seconds = started.elapsed().as_secs();
        match verdict {
            Verdict::Passed => println!("==> {name}: ok in {seconds} s"),
            Verdict::NotRun => {
                println!("==> {name}: NOT RUN");
                missing.push(name);
            }
        }
    }
    let (ran, seconds) = (STEPS.len() - missing.len(), begun.elapsed().as_secs());
    println!("==> {ran} checks passed in {seconds} s");
    if !missing.is_empty() {
        println!("==> NOT RUN: {}", missing.join(", "));
    }
    Ok(())
}
