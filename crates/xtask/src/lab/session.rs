//! A run of the lab: boots, cases, what they left behind.

use super::agent::Run;
use super::cases::{self, Case};
use super::qemu::Layout;
use super::rig::Rig;
use super::sysroot::Sysroot;
use crate::steps;
use anyhow::{Context, Result};
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// New guests for emulators that ended by themselves, a layout: hot-unplug sometimes trips an assertion of QEMU 10.0's
/// own (`iotlb_to_section`).
const MOST_REBOOTS: u32 = 2;

/// What to run.
pub(super) struct Options<'a> {
    /// Names of the cases; all when empty.
    pub(super) names: &'a [String],
    /// Whether faults do anything. Without them only fault cases run, and must fail.
    pub(super) faults: bool,
}

/// How one case went.
pub(super) struct Outcome {
    name: String,
    /// Whether it ended as it must.
    pub(super) as_wanted: bool,
}

impl Outcome {
    /// Name of the case, with its layout.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Runs the cases, one boot a layout.
pub(super) fn run(sysroot: &Sysroot, agent: &Path, options: &Options<'_>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for layout in [Layout::Multipath, Layout::Classic] {
        let chosen: Vec<&Case> = cases::ALL
            .iter()
            .filter(|case| case.layouts.contains(&layout))
            .filter(|case| options.names.is_empty() || options.names.iter().any(|name| name == case.name))
            .filter(|case| options.faults || case.fault)
            .collect();
        if chosen.is_empty() {
            continue;
        }
        fresh_logs(layout);
        let guest = Booting { sysroot, agent, layout, faults: options.faults };
        outcomes.extend(run_layout(&guest, &chosen));
    }
    outcomes
}

/// What every boot of one layout takes.
struct Booting<'a> {
    sysroot: &'a Sysroot,
    agent: &'a Path,
    layout: Layout,
    faults: bool,
}

impl Booting<'_> {
    fn boot(&self) -> Result<Rig> {
        let rig = Rig::start(self.sysroot, self.agent, self.layout, self.faults, &logs(self.layout))?;
        println!(
            "lab: {} guest: shell after {:.1} s, stacks after {:.1} s",
            self.layout.as_str(),
            rig.times.0.as_secs_f64(),
            rig.times.1.as_secs_f64()
        );
        Ok(rig)
    }
}

/// Runs cases in one guest. An emulator that ends by itself says nothing of the agent: the case begins again in a new
/// guest, at most [`MOST_REBOOTS`] times.
fn run_layout(guest: &Booting<'_>, cases: &[&Case]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut rig = None;
    let mut reboots = 0;
    let mut next = cases.iter().peekable();
    while let Some(case) = next.peek() {
        let running = match rig.take().map_or_else(|| guest.boot(), Ok) {
            Ok(running) => running,
            Err(error) => {
                let name = format!("boot ({})", guest.layout.as_str());
                println!("FAIL {name:<40} {error:#}");
                outcomes.push(Outcome { name, as_wanted: false });
                return outcomes;
            }
        };
        let outcome = run_case(&running, case, guest.faults);
        match running.emulator_ended() {
            Some(why) if reboots < MOST_REBOOTS => {
                println!("lab: the emulator ended by itself, {} begins again: {why}", case.name);
                reboots += 1;
                continue;
            }
            Some(_) => {}
            None => rig = Some(running),
        }
        outcomes.push(outcome);
        next.next();
    }
    outcomes
}

fn run_case(rig: &Rig, case: &Case, faults: bool) -> Outcome {
    let name = format!("{} ({})", case.name, rig.layout.as_str());
    let began = Instant::now();
    let result = rig.agent.start(Run { prefix: "", configuration: case.configuration }).and_then(|()| {
        panic::catch_unwind(AssertUnwindSafe(|| (case.run)(rig)))
            .unwrap_or_else(|_| Err(anyhow::anyhow!("the case panicked")))
    });
    let seconds = began.elapsed().as_secs_f64();
    let as_wanted = result.is_ok() == faults;
    match &result {
        Ok(()) => println!("{} {name:<40} {seconds:5.1} s", if as_wanted { "ok  " } else { "FAIL" }),
        Err(error) if as_wanted => {
            let reason = format!("{error:#}");
            println!("ok   {name:<40} {seconds:5.1} s  fails: {}", reason.lines().next().unwrap_or_default());
        }
        Err(error) => {
            println!("FAIL {name:<40} {seconds:5.1} s\n     {error:#}");
            match leave_logs(rig, case) {
                Ok(folder) => println!("     logs: {}", folder.display()),
                Err(error) => println!("     no logs: {error:#}"),
            }
        }
    }
    if let Err(error) = rig.agent.stop() {
        println!("lab: after {name}: {error:#}");
    }
    Outcome { name, as_wanted }
}

/// Writes the agent's log, what it serves and the guest's kernel log beside the console's.
fn leave_logs(rig: &Rig, case: &Case) -> Result<PathBuf> {
    let folder = rig.logs().join(case.name);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let guest = rig.guest();
    let sources = [
        ("agent.log", rig.agent.log()),
        ("metrics", guest.body("/metrics")),
        ("status", guest.body("/status")),
        ("status.json", guest.body("/status.json")),
        ("dmesg", guest.sh("dmesg")),
    ];
    for (file, content) in sources {
        let content = content.unwrap_or_else(|error| format!("{error:#}"));
        fs::write(folder.join(file), content).with_context(|| folder.display().to_string())?;
    }
    Ok(folder)
}

/// Boots a guest with the agent running and keeps it until the person presses Enter.
///
/// # Errors
/// When the boot or the agent's start fails.
pub(super) fn shell(sysroot: &Sysroot, agent: &Path, layout: Layout) -> Result<()> {
    let rig = Rig::start(sysroot, agent, layout, true, &fresh_logs(layout))?;
    rig.agent.start(Run::default())?;
    let guest = rig.guest();
    println!(
        "agent   http://127.0.0.1:{http}/status\n\
         shell   socat READLINE TCP:127.0.0.1:{shell}     (one script: socat - TCP:127.0.0.1:{shell} < script)\n\
         QMP     socat READLINE UNIX-CONNECT:{socket}\n\
         console {console}\n\
         Press Enter to end the guest.",
        http = guest.http_port,
        shell = guest.shell_port,
        socket = rig.socket()?.display(),
        console = rig.logs().join("console.log").display(),
    );
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// Folder of a layout's logs, emptied: those of a former run would be taken for this one's.
fn fresh_logs(layout: Layout) -> PathBuf {
    let folder = logs(layout);
    // There need not be any.
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn logs(layout: Layout) -> PathBuf {
    steps::repository().join("target").join("lab").join(layout.as_str())
}
