//! `cargo xtask fuzz`: every decoder and parser under libFuzzer, with coverage as feedback.
//!
//! The stable compiler instruments, with its own passes; neither a nightly one nor cargo-fuzz is needed.

use crate::steps::{self, Verdict, repository};
use anyhow::{Context, bail};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Executions of each target among the checks.
const RUNS: u64 = 20_000;

/// Longest input, in bytes: a log page and more.
const LONGEST: &str = "-max_len=8192";

/// Options of `fuzz`.
#[derive(Debug, Default, Args)]
pub(crate) struct FuzzArgs {
    /// Targets; all when none is named.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Seconds of each target, instead of a fixed number of executions.
    #[arg(long)]
    seconds: Option<u32>,
}

/// What the compiler is told, so that libFuzzer sees which edges an input reaches.
const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Clink-dead-code",
    "-Cforce-frame-pointers=yes",
];

/// Runs the targets, a line each. What makes one fail is left in its folder.
///
/// # Errors
/// When the fuzzer cannot be built, or a target fails.
pub(crate) fn run(arguments: &FuzzArgs) -> anyhow::Result<Verdict> {
    if Command::new("c++").arg("--version").output().is_err() {
        if std::env::var_os("CI").is_some() {
            bail!("no C++ compiler for libFuzzer");
        }
        println!("fuzz: DID NOT RUN: no C++ compiler for libFuzzer (Debian: g++)");
        return Ok(Verdict::NotRun);
    }
    let program = build()?;
    let known = targets(&program)?;
    let unknown: Vec<&String> = arguments.targets.iter().filter(|target| !known.contains(target)).collect();
    if !unknown.is_empty() {
        bail!("no such target: {unknown:?}; there are {}", known.join(" "));
    }
    let chosen = if arguments.targets.is_empty() { &known } else { &arguments.targets };
    let failed: Vec<&str> =
        chosen.iter().filter(|target| !fuzz(&program, target, arguments)).map(String::as_str).collect();
    if !failed.is_empty() {
        bail!("fuzz: failed: {}", failed.join(" "));
    }
    Ok(Verdict::Passed)
}

/// The host's own triple is named so that build scripts are not instrumented.
fn build() -> anyhow::Result<PathBuf> {
    let version = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let version = String::from_utf8(version.stdout)?;
    let triple = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let folder = steps::target().join("fuzz");
    let mut cargo = steps::cargo(&["build", "--release", "--locked", "--quiet", "--target", triple]);
    cargo.args(["--manifest-path", "fuzz/Cargo.toml", "--target-dir"]).arg(&folder);
    cargo.env("RUSTFLAGS", FLAGS.join(" ")).env_remove("CARGO_ENCODED_RUSTFLAGS");
    steps::run(&mut cargo)?;
    Ok(folder.join(triple).join("release/storscope-fuzz"))
}

/// The names that the program gives when it is asked for none of them. It takes that for a find, and writes it down.
fn targets(program: &Path) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new(program);
    command.arg("-runs=0").arg(format!("-artifact_prefix={}-", program.display()));
    let output = command.env_remove("STORSCOPE_FUZZ").output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let (_, names) = text.split_once("there are ").with_context(|| format!("no targets in {text}"))?;
    let names = names.lines().next().unwrap_or_default();
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// True when nothing was found.
fn fuzz(program: &Path, target: &str, arguments: &FuzzArgs) -> bool {
    match attempt(program, target, arguments) {
        Ok(line) => {
            println!("ok   {target:<20} {line}");
            true
        }
        Err(error) => {
            println!("FAIL {target:<20} {error:#}");
            false
        }
    }
}

fn attempt(program: &Path, target: &str, arguments: &FuzzArgs) -> anyhow::Result<String> {
    let found = steps::target().join("fuzz-corpus").join(target);
    fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
    let limit = match arguments.seconds {
        Some(seconds) => format!("-max_total_time={seconds}"),
        None => format!("-runs={RUNS}"),
    };
    let mut command = Command::new(program);
    command.args([&limit, LONGEST, "-seed=1", "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]);
    command.arg(format!("-artifact_prefix={}/failed-", found.display())).arg(&found);
    let seeds = repository().join("fuzz/seeds").join(target);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    let output = command.env("STORSCOPE_FUZZ", target).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let end: Vec<&str> = text.lines().rev().take(30).collect();
        bail!("{}\n{}", output.status, end.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    let coverage = text.lines().rev().find_map(|line| line.split_once(" cov: ")?.1.split_whitespace().next());
    let executions = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let (Some(coverage), Some(executions)) = (coverage, executions) else { bail!("no figures in {text}") };
    Ok(format!("{} executions, {coverage} edges", executions.trim()))
}
