//! The lab's cases. Each is a function of a booted guest in which the agent is running; it returns an error that says
//! what was expected and what was found.

mod answers;
mod identity;
mod link;
mod smart;

use super::qemu::Layout;
use super::rig::Rig;
use anyhow::{Result, bail};
use std::fmt::Debug;

/// The usual configuration of the agent.
const USUAL: &str = include_str!("../agent.toml");
const BOTH: &[Layout] = &[Layout::Multipath, Layout::Classic];
const DEFAULT: &[Layout] = &[Layout::Multipath];

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
    Case { name, shows, layouts, fault: false, configuration: USUAL, run }
}

const fn faulty(name: &'static str, shows: &'static str, run: fn(&Rig) -> Result<()>) -> Case {
    Case { name, shows, layouts: DEFAULT, fault: true, configuration: USUAL, run }
}

/// Every case, in the order in which they run.
pub(crate) const ALL: &[Case] = &[
    healthy("answers", "every end point answers and nothing is wrong with healthy drives", BOTH, answers::run),
    healthy(
        "identity",
        "devices, serials, models, firmware and sizes as lsblk and nvme id-ctrl say",
        BOTH,
        identity::run,
    ),
    healthy("smart", "the SMART log as nvme smart-log says", DEFAULT, smart::equal_to_the_tool),
    healthy("link", "links as sysfs says; the slot-limited drive is no alarm", DEFAULT, link::equal_to_sysfs),
    faulty("link-downgrade", "a downgraded link is a finding on that drive only, and ends", link::downgrade),
    faulty("critical-warning", "each critical-warning bit is shown and found, and ends", smart::critical_warning),
    faulty(
        "over-temperature",
        "a temperature over the drive's threshold sets its bit, and ends",
        smart::over_temperature,
    ),
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
