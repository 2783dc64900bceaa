//! The lab's cases. Each is a function of a booted guest in which the agent is running; it returns an error that says
//! what was expected and what was found.

mod answers;
mod capture;
mod controller;
mod hang;
mod hotplug;
mod identity;
mod link;
mod load;
mod probe;
mod rights;
mod smart;
mod stacks;
mod units;

use super::agent::USUAL;
use super::qemu::Layout;
use super::rig::Rig;
use anyhow::{Result, bail};
use std::fmt::Debug;

/// As the usual one, with the device that delays its requests besides.
const DELAYED: &str = include_str!("../delayed-device.toml");
/// As the usual one, with few reads, so that slow ones are soon the most.
const SPARSE: &str = include_str!("../sparse-probes.toml");
const BOTH: &[Layout] = &[Layout::Multipath, Layout::Classic];
const DEFAULT: &[Layout] = &[Layout::Multipath];
/// For what does not look at namespaces, so that the guests are done at about the same time.
const CLASSIC: &[Layout] = &[Layout::Classic];

/// Where systemd runs the agent.
const SYSTEMD: &[Layout] = &[Layout::Systemd];

/// One case.
pub(crate) struct Case {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// What it shows, for `--list`.
    pub(crate) shows: &'static str,
    /// Layouts it runs in.
    pub(crate) layouts: &'static [Layout],
    /// Whether it needs a fault to pass.
    pub(crate) fault: bool,
    /// Whether it takes a minute or more.
    pub(crate) long: bool,
    /// Whether a busy emulating host can make it fail: it compares waiting times, limits those of answers, or plugs
    /// drives, at which the emulator sometimes ends. Such a case may run again.
    pub(crate) delicate: bool,
    /// The agent's configuration.
    pub(crate) configuration: &'static str,
    /// The case.
    pub(crate) run: fn(&Rig) -> Result<()>,
}

const fn healthy(
    name: &'static str,
    shows: &'static str,
    layouts: &'static [Layout],
    run: fn(&Rig) -> Result<()>,
) -> Case {
    Case { name, shows, layouts, fault: false, long: false, delicate: false, configuration: USUAL, run }
}

const fn faulty(name: &'static str, shows: &'static str, run: fn(&Rig) -> Result<()>) -> Case {
    Case { name, shows, layouts: DEFAULT, fault: true, long: false, delicate: false, configuration: USUAL, run }
}

/// Every case, in the order in which they run.
pub(crate) const ALL: &[Case] = &[
    healthy("answers", "every end point answers and nothing is wrong with healthy drives", BOTH, answers::run),
    healthy("identity", "devices, serials, models, firmware, sizes as lsblk and nvme id-ctrl say", BOTH, identity::run),
    healthy("fabrics", "over fabrics: no PCIe, and absent what the target does not say", BOTH, identity::fabrics),
    healthy("smart", "the SMART log as nvme smart-log says", BOTH, smart::equal_to_the_tool),
    healthy("link", "links as sysfs says; a slot-limited drive is no alarm", CLASSIC, link::equal_to_sysfs),
    Case {
        delicate: true,
        ..healthy("load", "rates under load as iostat says over the same interval", BOTH, load::equal_to_iostat)
    },
    Case {
        delicate: true,
        configuration: DELAYED,
        ..healthy("probe-p50", "the median of a delaying device as fio says", DEFAULT, probe::equal_to_fio)
    },
    healthy("probes", "every device is read, 4 KiB and zoned ones too, without an error", BOTH, probe::every_device),
    Case {
        layouts: CLASSIC,
        ..faulty("link-downgrade", "a downgraded link is a finding on that drive only, and ends", link::downgrade)
    },
    Case { layouts: CLASSIC, ..faulty("link-flapping", "a link that goes up and down is found to", link::flapping) },
    Case {
        layouts: CLASSIC,
        ..faulty("port-errors", "correctable errors of a port are counted", link::correctable_errors)
    },
    Case {
        layouts: CLASSIC,
        ..faulty("critical-warning", "each critical-warning bit is shown and found, and ends", smart::critical_warning)
    },
    Case {
        layouts: CLASSIC,
        ..faulty("over-temperature", "a temperature over the threshold sets its bit, and ends", smart::over_temperature)
    },
    faulty("carries", "a finding says what the drive carries", stacks::carries),
    Case {
        layouts: CLASSIC,
        delicate: true,
        configuration: SPARSE,
        ..faulty("latency", "a slowed drive shows in quantiles and histogram, others do not", probe::latency)
    },
    faulty("read-errors", "failed reads are counted and found; other sources go on", probe::read_errors),
    Case { long: true, delicate: true, ..faulty("hang", "one hanging drive costs its own data only", hang::free_tags) },
    Case {
        long: true,
        delicate: true,
        ..faulty("hang-full-queue", "a hang with every tag taken is seen without another read", hang::full_queue)
    },
    Case { long: true, delicate: true, ..faulty("hot-plug", "50 cycles leak nothing", hotplug::cycles) },
    Case {
        delicate: true,
        ..faulty(
            "hot-plug-in-flight",
            "a drive that goes with a read and a command outstanding leaves nothing",
            hotplug::in_flight,
        )
    },
    Case {
        delicate: true,
        ..faulty("hot-plug-identity", "identity follows the drive, not the name", hotplug::identity)
    },
    Case {
        layouts: CLASSIC,
        ..faulty("reset", "resets while the drive is asked leave it live and asked", controller::reset)
    },
    Case {
        layouts: CLASSIC,
        ..faulty(
            "not-live",
            "a controller that is not live gets no command, and is said not to be",
            controller::not_live,
        )
    },
    healthy(
        "observer",
        "only what the drive declares is asked; every command is counted",
        CLASSIC,
        controller::observed,
    ),
    healthy("polls", "1,000 rounds of questions leave the error log alone", CLASSIC, controller::thousand_polls),
    healthy(
        "unprivileged",
        "without rights what is readable is served, what is missing named",
        CLASSIC,
        rights::unprivileged,
    ),
    healthy("as-shipped", "with exactly the documented capabilities everything works", CLASSIC, rights::as_shipped),
    healthy(
        "capture",
        "a capture of the host shows the same drives, under other identities",
        BOTH,
        capture::round_trip,
    ),
    healthy("doctor", "doctor has nothing to say as root and names what lesser users lack", CLASSIC, capture::doctor),
    healthy(
        "no-io-uring",
        "where io_uring is forbidden pread takes over and says so",
        CLASSIC,
        probe::without_io_uring,
    ),
    healthy(
        "systemd-unit",
        "the shipped units: every source works, each process holds what is documented, a restart refuses nobody",
        SYSTEMD,
        units::shipped,
    ),
    healthy("systemd-lesser", "the documented lesser sets of rights, and what is said then", SYSTEMD, units::lesser),
    Case {
        layouts: SYSTEMD,
        ..faulty(
            "systemd-hang",
            "a restart while a disk hangs answers at once, and tells of the process that is stuck",
            units::restart_while_hanging,
        )
    },
];

/// Fails unless both are equal.
fn same<T: PartialEq + Debug>(what: &str, agent: &T, truth: &T) -> Result<()> {
    if agent != truth {
        bail!("{what}: the agent says {agent:?}, the guest {truth:?}");
    }
    Ok(())
}

/// Rules that cases look for.
mod rule {
    pub(super) const CRITICAL_WARNING: &str = "nvme_critical_warning";
    pub(super) const LINK_DOWNGRADED: &str = "pcie_link_downgraded";
}
