//! `cargo xtask test`: every check, one line each; the first failure ends it.

use crate::{docs, expose, licences, packages, tidy};
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

/// One check: its name and what runs it.
type Step = (&'static str, fn() -> anyhow::Result<()>);

const STEPS: [Step; 8] = [
    ("Debian packages", packages::install),
    ("format", || run(&mut cargo(&["fmt", "--all", "--check"]))),
    ("clippy", || {
        run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"]))
    }),
    ("tidy", tidy::run),
    ("licences and sources", licences::run),
    ("tests", || run(&mut cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]))),
    ("generated documents", || docs::run(true)),
    ("exposition", expose::run),
];

/// Runs every check.
///
/// # Errors
/// The first check that fails.
pub(crate) fn test() -> anyhow::Result<()> {
    let begun = Instant::now();
    for (name, check) in STEPS {
        println!("==> {name}");
        let started = Instant::now();
        check().with_context(|| format!("check failed: {name}"))?;
        println!("==> {name}: ok in {} s", started.elapsed().as_secs());
    }
    println!("==> all {} checks passed in {} s", STEPS.len(), begun.elapsed().as_secs());
    Ok(())
}
