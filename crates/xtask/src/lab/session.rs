//! A run of the lab: boots, cases, what they left behind.

use super::agent::Run;
use super::cases::{self, Case};
use super::qemu::Layout;
use super::rig::Rig;
use super::sysroot::Sysroot;
use crate::steps;
use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use std::{fs, io, thread};

/// New guests for emulators that ended by themselves, a layout: hot-unplug sometimes trips an assertion of QEMU 10.0's
/// own (`iotlb_to_section`).
const MOST_REBOOTS: u32 = 2;

/// Runs of a case that fails on a host that is busy with other things, each in a new guest. The last one counts.
const DELICATE_RUNS: u32 = 3;

/// Guests of each layout that share its cases. More at once answer too late on two processors.
const GUESTS: [(Layout, usize); 3] = [(Layout::Multipath, 2), (Layout::Classic, 1), (Layout::Systemd, 1)];

/// Cases that are worth another boot.
const LEAST_CASES: usize = 8;

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

/// Runs the cases. The guests run at the same time: most of a case is waiting for what the agent notices.
pub(super) fn run(sysroot: &Sysroot, initramfs: &Path, options: &Options<'_>) -> Vec<Outcome> {
    let outcomes = Mutex::new(Vec::new());
    let layouts = GUESTS.map(|(layout, guests)| {
        let mut chosen: VecDeque<&Case> = cases::ALL
            .iter()
            .filter(|case| case.layouts.contains(&layout))
            .filter(|case| options.names.is_empty() || options.names.iter().any(|name| name == case.name))
            .filter(|case| options.faults || case.fault)
            .collect();
        // What takes long comes first, so that the guests are done at about the same time.
        chosen.make_contiguous().sort_by_key(|case| !case.long);
        (layout, guests.min(chosen.len().div_ceil(LEAST_CASES)), Mutex::new(chosen))
    });
    thread::scope(|scope| {
        for (layout, guests, queue) in &layouts {
            for number in 0..*guests {
                let guest = Booting { sysroot, initramfs, layout: *layout, number, faults: options.faults };
                let outcomes = &outcomes;
                scope.spawn(move || work(&guest, queue, outcomes));
            }
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What every boot of one guest takes.
struct Booting<'a> {
    sysroot: &'a Sysroot,
    initramfs: &'a Path,
    layout: Layout,
    number: usize,
    faults: bool,
}

impl Booting<'_> {
    fn boot(&self, logs: &Path) -> Result<Rig> {
        let rig = Rig::start(self.sysroot, self.initramfs, self.layout, self.faults, logs)?;
        println!(
            "lab: {} guest: shell after {:.1} s, stacks after {:.1} s",
            self.layout.as_str(),
            rig.times.0.as_secs_f64(),
            rig.times.1.as_secs_f64()
        );
        Ok(rig)
    }
}

/// Runs cases of the queue in one guest until none is left. An emulator that ends by itself says nothing of the agent:
/// the case begins again in a new guest, at most [`MOST_REBOOTS`] times. So does a delicate case that fails.
fn work(guest: &Booting<'_>, queue: &Mutex<VecDeque<&Case>>, outcomes: &Mutex<Vec<Outcome>>) {
    let logs = fresh_logs(guest.layout, guest.number);
    let report = |outcome| outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let mut rig = None;
    let mut reboots = 0;
    let mut runs = 0;
    let mut next = take();
    while let Some(case) = next {
        let running = match rig.take().map_or_else(|| guest.boot(&logs), Ok) {
            Ok(running) => running,
            Err(error) => {
                let name = format!("{} ({})", case.name, guest.layout.as_str());
                println!("FAIL {name:<40} its guest did not boot: {error:#}");
                return report(Outcome { name, as_wanted: false });
            }
        };
        let outcome = run_case(&running, case, guest.faults);
        runs += 1;
        match running.emulator_ended() {
            Some(why) if reboots < MOST_REBOOTS => {
                println!("lab: the emulator ended by itself, {} begins again: {why}", case.name);
                reboots += 1;
                continue;
            }
            Some(_) => {}
            None if outcome.as_wanted => rig = Some(running),
            None if guest.faults && case.delicate && runs < DELICATE_RUNS => {
                println!("lab: {} needs an even host: run {} in a new guest", outcome.name, runs + 1);
                continue;
            }
            // What one case broke must not fail the next.
            None => match running.guest().sh("true") {
                Ok(_) => rig = Some(running),
                Err(error) => println!("lab: after {} a new guest: {error:#}", outcome.name),
            },
        }
        report(outcome);
        runs = 0;
        next = take();
    }
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
pub(super) fn shell(sysroot: &Sysroot, initramfs: &Path, layout: Layout) -> Result<()> {
    let rig = Rig::start(sysroot, initramfs, layout, true, &fresh_logs(layout, 0))?;
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

/// Folder of a guest's logs, emptied: those of a former run would be taken for this one's.
fn fresh_logs(layout: Layout, number: usize) -> PathBuf {
    let folder = steps::target().join("lab-logs").join(format!("{}-{number}", layout.as_str()));
    // There need not be any.
    let _ = fs::remove_dir_all(&folder);
    folder
}
