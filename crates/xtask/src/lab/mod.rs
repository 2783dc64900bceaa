//! `cargo xtask lab`: the agent against a real kernel and drives that misbehave on command, in an emulated machine.

mod agent;
mod cache;
mod drive;
mod fabrics;
mod fault;
mod guest;
mod guest_files;
mod initramfs;
mod link;
mod packages;
mod process;
mod qemu;
mod qmp;
mod rig;
mod scrape;
mod scratch;
mod session;
mod sysroot;
mod systemd;
mod topology;

#[path = "../../../../tests/lab/cases/mod.rs"]
mod cases;

use crate::steps::Verdict;
use anyhow::{Result, bail};
use cache::Cache;
use clap::Args;
use qemu::Layout;
use scratch::Scratch;
use session::{Options, Outcome};
use std::time::Instant;

/// Options of `cargo xtask lab`.
#[derive(Debug, Default, Args)]
pub(crate) struct LabArgs {
    /// Cases to run; all when none is named.
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Run the fault cases without their faults: every one of them must fail.
    #[arg(long, conflicts_with = "shell")]
    no_fault: bool,
    /// Boot a guest with the agent running and wait: print how to reach its shell, its agent and the emulator.
    #[arg(long, conflicts_with = "cases")]
    shell: bool,
    /// With --shell: one disk a controller and namespace (`nvme_core.multipath=N`).
    #[arg(long, requires = "shell")]
    classic: bool,
    /// With --shell: a guest whose systemd runs the shipped units.
    #[arg(long, requires = "shell", conflicts_with = "classic")]
    systemd: bool,
    /// Print the names of all cases and what they show.
    #[arg(long)]
    list: bool,
}

impl LabArgs {
    /// All fault cases without their faults.
    pub(crate) fn without_faults() -> Self {
        Self { no_fault: true, ..Self::default() }
    }
}

/// Runs the lab.
///
/// # Errors
/// When a case fails, a name is unknown, or the emulator cannot be had where it must be (in CI).
pub(crate) fn run(arguments: &LabArgs) -> Result<Verdict> {
    if arguments.list {
        for case in cases::ALL {
            println!("{:<28} {}", case.name, case.shows);
        }
        return Ok(Verdict::Passed);
    }
    let unknown: Vec<&str> = arguments
        .cases
        .iter()
        .map(String::as_str)
        .filter(|name| !cases::ALL.iter().any(|case| case.name == *name))
        .collect();
    if !unknown.is_empty() {
        bail!("no such case: {} (see --list)", unknown.join(", "));
    }
    let sysroot = match Cache::open().and_then(|cache| packages::sysroot(&cache)) {
        Ok(sysroot) => sysroot,
        // Where the checks must mean something, a lab that did not run is a failure.
        Err(error) if std::env::var_os("CI").is_some() => return Err(error.context("the lab cannot run")),
        Err(error) => {
            println!("lab: DID NOT RUN: {error:#}");
            return Ok(Verdict::NotRun);
        }
    };
    let programs = agent::build()?;
    let scratch = Scratch::new()?;
    let initramfs = scratch.path().join("initramfs");
    initramfs::build(&sysroot, &programs, &initramfs)?;
    if arguments.shell {
        let layout = match (arguments.classic, arguments.systemd) {
            (true, _) => Layout::Classic,
            (_, true) => Layout::Systemd,
            _ => Layout::Multipath,
        };
        return session::shell(&sysroot, &initramfs, layout).map(|()| Verdict::Passed);
    }
    let options = Options { names: &arguments.cases, faults: !arguments.no_fault };
    let began = Instant::now();
    let outcomes = session::run(&sysroot, &initramfs, &options);
    let wrong: Vec<&str> = outcomes.iter().filter(|outcome| !outcome.as_wanted).map(Outcome::name).collect();
    let (count, seconds) = (outcomes.len(), began.elapsed().as_secs());
    match (wrong.as_slice(), arguments.no_fault) {
        ([], false) => println!("lab: {count} cases pass in {seconds} s"),
        ([], true) => println!("lab: {count} fault cases fail without their faults, as they must, in {seconds} s"),
        (wrong, false) => bail!("lab: failed: {}", wrong.join(", ")),
        (wrong, true) => bail!("lab: these pass without their fault, so they test nothing: {}", wrong.join(", ")),
    }
    Ok(Verdict::Passed)
}
