//! `storscope doctor`: what this host denies or lacks, device by device, and the command that mends it.

mod controllers;
mod devices;
mod host;
mod nodes;
mod privileges;
mod report;

use crate::cli::SelectArgs;
use crate::deadline::{NoResult, within};
use crate::settings;
use anyhow::bail;
use privileges::{Needs, Privileges};
use report::{Check, Report, Verdict};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use storscope_collect::collector::Inventory;
use storscope_collect::discovery::{self, Scan};
use storscope_collect::root::Root;
use storscope_collect::select::Selection;
use storscope_collect::{ata_power, host_info};
use storscope_model::device::{Device, Transport};

/// Time to find the devices.
const SCAN_LIMIT: Duration = Duration::from_secs(15);
/// Devices that are looked at together.
const AT_ONCE: usize = 32;

/// Prints the report. Exit status 0 when nothing is denied, 1 otherwise.
///
/// # Errors
/// When there is no such host, its devices cannot be found within [`SCAN_LIMIT`], or a pattern cannot be used.
pub(crate) fn run(args: &SelectArgs) -> anyhow::Result<ExitCode> {
    let devices = args.devices();
    let selection = settings::selection(&devices)?;
    let asked = devices.exclude.is_some() || devices.only.is_some();
    let root = args.checked_host()?;
    let scanned = root.clone();
    let scan = match within(SCAN_LIMIT, move || discovery::scan(&scanned)) {
        Ok(scan) => scan,
        Err(NoResult::Late) => {
            bail!("sysfs did not list the devices within {} s: one hangs; see the kernel log", SCAN_LIMIT.as_secs())
        }
        Err(NoResult::Failed(error)) => bail!("the devices cannot be looked for: {error}"),
    };
    let report = examine(&root, scan, &selection, asked, Privileges::of(&root));
    crate::output::print(&report.render())?;
    Ok(if report.count(Verdict::Denied) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn examine(root: &Root, scan: Scan, selection: &Selection, asked: bool, known: Option<Privileges>) -> Report {
    let own = known.unwrap_or(Privileges::none());
    let all = scan.devices.clone();
    let named: Vec<String> = scan.controllers.iter().map(|controller| controller.name.clone()).collect();
    let faults: Vec<Check> =
        scan.faults.iter().take(AT_ONCE).map(|fault| Check::lacks("discovery", fault.to_string())).collect();
    let inventory = Inventory::select(scan, selection);
    let mut watched: Vec<&Device> = inventory.devices.values().collect();
    // As discovery sorted them.
    watched.sort_by_key(|device| all.iter().position(|other| other.name == device.name));
    let rotating = |device: &&&Device| device.transport == Transport::Sata && ata_power::why_not(device).is_none();
    let needs =
        Needs { nvme_controllers: inventory.controllers.len(), ata_disks: watched.iter().filter(rotating).count() };
    let mut report = Report {
        heading: heading(root, watched.len(), inventory.controllers.len()),
        left_out: devices::left_out(&all, selection, asked),
        checks: Vec::new(),
    };
    let of_devices = together(&watched, |device| devices::checks(root, device, own));
    let mut controllers: Vec<_> = inventory.controllers.values().collect();
    controllers.sort_by_key(|controller| named.iter().position(|name| *name == controller.name));
    let of_controllers = together(&controllers, |controller| controllers::checks(root, controller, own));
    let probes =
        of_devices.iter().any(|check| check.verdict == Verdict::Fine && check.what.contains("probes are possible"));
    report.checks.extend(of_devices);
    report.checks.extend(of_controllers);
    if root.live && !probes {
        report.checks.push(nothing_to_probe(watched.is_empty()));
    }
    report.checks.extend(faults);
    if root.live || known.is_some() {
        report.checks.extend(privileges::checks(own, needs));
    }
    report.checks.extend(host::checks(root, watched.len()));
    report
}

fn heading(root: &Root, devices: usize, controllers: usize) -> String {
    let info = host_info::read(root).unwrap_or_default();
    let name = info.hostname.unwrap_or_else(|| "this host".to_owned());
    let kernel = info.kernel.map_or_else(String::new, |kernel| format!(" (Linux {kernel})"));
    let captured = if root.live { "" } else { ", captured: nothing is opened or asked" };
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "storscope doctor on {name}{kernel}: {devices} device{} watched, {controllers} NVMe controller{}{captured}",
        plural(devices),
        plural(controllers)
    )
}

/// How to see the agent at work where no disk can be read.
fn nothing_to_probe(none_watched: bool) -> Check {
    let why = if none_watched { "no disk is watched" } else { "no watched disk can be read" };
    Check::lacks("probes", format!("{why}: latency cannot be measured. To try it on a loop device (as root):"))
        .mend("openssl rand -out disk.img 268435456")
        .mend("losetup --find --show --direct-io=on disk.img        # prints the device that it took")
        .mend("storscope serve --include 'loop[0-9]+'               # those with a file behind them")
}

/// Looks at several at once: one that hangs holds up no other. Each has deadlines of its own.
fn together<T: Sync>(items: &[T], check: impl Fn(&T) -> Vec<Check> + Sync) -> Vec<Check> {
    let mut checks = Vec::new();
    for chunk in items.chunks(AT_ONCE) {
        let found: Vec<Vec<Check>> = thread::scope(|scope| {
            let running: Vec<_> = chunk.iter().map(|item| scope.spawn(|| check(item))).collect();
            running.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        checks.extend(found.into_iter().flatten());
    }
    checks
}
