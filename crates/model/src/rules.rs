//! The one table of rules: what is wrong, how it shows, and what to do about it.

use crate::finding::{Severity, Since};
use crate::history::gone::Gone;
use crate::history::{ControllerHistory, DeviceHistory};
use crate::identity::ControllerId;
use crate::limits::Limits;
use crate::sample::Source;
use crate::snapshot::{ControllerState, DeviceState, HostState};
use crate::time::BootTime;
use std::time::Duration;

mod controller;
mod gone;
mod health;
mod link;
mod probe;
mod sources;

pub use sources::Troubles;

/// What a rule says of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing is wrong.
    Clear,
    /// What it needs is not fresh: an open finding stays, none opens.
    Unknown,
    /// Something is wrong.
    Found(Symptom),
}

/// What is wrong with one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symptom {
    /// How bad.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// Numbers that prove it, a line each.
    pub evidence: Vec<String>,
    /// The next step.
    pub next: String,
    /// When it began, where that is known better than by when it was found.
    pub since: Option<Since>,
    /// Opens without waiting for [`Rule::opens_after`].
    pub at_once: bool,
}

impl Default for Symptom {
    fn default() -> Self {
        Self {
            severity: Severity::Warning,
            title: String::new(),
            evidence: Vec::new(),
            next: String::new(),
            since: None,
            at_once: false,
        }
    }
}

/// What every check may look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Thresholds.
    pub limits: &'a Limits,
    /// Sources in trouble, host-wide.
    pub troubles: &'a Troubles,
    /// True for a captured host: nothing more will come, so that nothing is waited for.
    pub captured: bool,
    /// Wall clock minus boot time in nanoseconds.
    pub wall_offset_ns: i128,
    /// Now.
    pub now: BootTime,
}

/// The host under judgement.
#[derive(Debug, Clone, Copy)]
pub struct HostScope<'a> {
    /// What every check may look at.
    pub facts: Facts<'a>,
    /// Its readings.
    pub state: &'a HostState,
}

/// A controller under judgement.
#[derive(Clone, Copy)]
pub struct ControllerScope<'a> {
    /// What every check may look at.
    pub facts: Facts<'a>,
    /// Its readings.
    pub state: &'a ControllerState,
    /// What is remembered of it.
    pub history: &'a ControllerHistory,
    /// Whole mirrors on its devices and where their other copy is.
    pub mirrors: &'a dyn Fn() -> Vec<String>,
    /// Severity of this rule's finding while it is open.
    pub open: Option<Severity>,
}

/// A device under judgement.
#[derive(Clone, Copy)]
pub struct DeviceScope<'a> {
    /// What every check may look at.
    pub facts: Facts<'a>,
    /// Its readings.
    pub state: &'a DeviceState,
    /// What is remembered of it.
    pub history: &'a DeviceHistory,
    /// The state of a controller.
    pub controller: &'a dyn Fn(&ControllerId) -> Option<&'a ControllerState>,
    /// Severity of this rule's finding while it is open.
    pub open: Option<Severity>,
}

/// A device that vanished, under judgement.
#[derive(Debug, Clone, Copy)]
pub struct GoneScope<'a> {
    /// What every check may look at.
    pub facts: Facts<'a>,
    /// What it was.
    pub gone: &'a Gone,
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the variants are the subjects")]
pub enum Check {
    Host(fn(&HostScope<'_>) -> Judgement),
    Controller(fn(&ControllerScope<'_>) -> Judgement),
    Device(fn(&DeviceScope<'_>) -> Judgement),
    Gone(fn(&GoneScope<'_>) -> Judgement),
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Id, as in the label `rule`.
    pub id: &'static str,
    /// What it finds, in a few words.
    pub title: &'static str,
    /// The worst that it says.
    pub severity: Severity,
    /// Sources that it needs.
    pub needs: &'static [Source],
    /// When it opens and when it ends, and what it does not mean.
    pub meaning: &'static str,
    /// What to do.
    pub next: &'static str,
    /// How long it must hold before it opens.
    pub opens_after: fn(&Limits) -> Duration,
    /// How long it must be clear before it ends.
    pub closes_after: Duration,
    /// The checks, at most one a kind of subject.
    pub checks: &'static [Check],
}

const AT_ONCE: fn(&Limits) -> Duration = |_| Duration::ZERO;

/// Id of the rule on devices that vanished: the only finding that outlives its subject.
pub const DEVICE_GONE: &str = "device_gone";

/// Every rule.
pub static RULES: &[Rule] = &[
    Rule {
        id: "device_stalled",
        title: "reads do not come back",
        severity: Severity::Critical,
        needs: &[Source::Probe, Source::Diskstats],
        meaning: "A timed read is outstanding past its deadline, or for more than 30 s every burst met a full queue \
                  while diskstats counted no completion. Ends when reads come back.",
        next: "Look for time-outs in the kernel log; take the drive out of its array or fail over before it is reset.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Device(probe::stalled)],
    },
    Rule {
        id: DEVICE_GONE,
        title: "drive is gone",
        severity: Severity::Critical,
        needs: &[Source::Discovery],
        meaning: "A watched device vanished: critical when a warning or worse was open about it at that moment, whatever \
                  its kind; else a warning for NVMe, SATA, SAS, SCSI, Fibre Channel, virtio and Xen devices that are \
                  not removable and had been there for 60 s. Ends when a device of that identity is back, or after \
                  24 h. No finding when it vanished because another configuration no longer selects it.",
        next: "Look at the kernel log for its bus or link, and whether it is still in lspci and in its slot; if it was \
               removed on purpose nothing is to be done.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Gone(gone::gone)],
    },
    Rule {
        id: "controller_not_live",
        title: "controller is not live",
        severity: Severity::Critical,
        needs: &[Source::ControllerState],
        meaning: "The kernel's state of the NVMe controller is another one than live for more than 10 s; dead counts \
                  at once. Ends when it is live again.",
        next: "Look for resets in the kernel log; power-cycle or reseat the drive, then replace it.",
        opens_after: |limits| limits.not_live,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(controller::not_live)],
    },
    Rule {
        id: "nvme_critical_warning",
        title: "the drive itself warns",
        severity: Severity::Critical,
        needs: &[Source::SmartHealth],
        meaning: "A bit of Critical Warning (NVMe log page 02h) is set. The temperature bit alone is a warning.",
        next: "Save what the drive carries and replace it; for the temperature bit, cool it.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(health::critical_warning)],
    },
    Rule {
        id: "media_errors_grown",
        title: "uncorrected media errors are growing",
        severity: Severity::Critical,
        needs: &[Source::SmartHealth],
        meaning: "Media and Data Integrity Errors (NVMe log page 02h) rose between two reads that were both seen. A \
                  total from before the drive was first seen is no finding, nor are error-log entries alone. Ends \
                  24 h after the newest growth.",
        next: "Replace the drive.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(health::media_errors)],
    },
    Rule {
        id: "nvme_spare_low",
        title: "spare blocks are below the drive's threshold",
        severity: Severity::Critical,
        needs: &[Source::SmartHealth],
        meaning: "Available Spare is below Available Spare Threshold (NVMe log page 02h), both of them plausible and \
                  the threshold not 0.",
        next: "Replace the drive.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(health::spare_low)],
    },
    Rule {
        id: "nvme_temperature",
        title: "drive is hotter than it allows",
        severity: Severity::Critical,
        needs: &[Source::SmartHealth, Source::Identify],
        meaning: "Composite Temperature has reached the drive's own WCTEMP (warning) or CCTEMP (critical). Ends 2 K \
                  below the threshold.",
        next: "Check air flow, fans and dust; a hot drive throttles itself.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(health::temperature)],
    },
    Rule {
        id: "nvme_wear",
        title: "rated endurance is used up",
        severity: Severity::Warning,
        needs: &[Source::SmartHealth],
        meaning: "Percentage Used (NVMe log page 02h) is 100 or more. By the specification that is no failure.",
        next: "Plan its replacement; watch spare and media errors, which are the failure.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(health::wear)],
    },
    Rule {
        id: "probe_errors",
        title: "reads fail",
        severity: Severity::Critical,
        needs: &[Source::Probe],
        meaning: "Timed reads failed within the last hour. Critical when at least eight failed in a row for 30 s, or \
                  at least three failed and none succeeded within the last 5 min.",
        next: "Look at the kernel log and the drive's error log before blaming the medium.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Device(probe::errors)],
    },
    Rule {
        id: "pcie_link_downgraded",
        title: "PCIe link is below what drive and slot can do",
        severity: Severity::Warning,
        needs: &[Source::PcieLink],
        meaning: "Two link samples in a row showed a narrower width than drive and port can both do, or two showed a \
                  lower speed while the drive did I/O: an idle link may slow down to save power. Ends after two \
                  samples at full speed and width.",
        next: "Reseat the drive, check riser and cable, then look here again.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(link::downgraded)],
    },
    Rule {
        id: "pcie_link_flapping",
        title: "PCIe link keeps changing",
        severity: Severity::Warning,
        needs: &[Source::PcieLink],
        meaning: "Speed or width changed at least three times within 10 min. Ends after 10 min without a change.",
        next: "Check slot, riser and cable; if only an idle link slows down, power saving is at work.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(link::flapping)],
    },
    Rule {
        id: "source_failing",
        title: "a source gives nothing",
        severity: Severity::Warning,
        needs: &[],
        meaning: "A source failed three times in a row, for more than three periods, or does not answer. One that \
                  fails on most subjects is one finding of the host. Ends when it gives a value again.",
        next: "See the reason; storscope doctor says what this host lacks.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[
            Check::Host(sources::host_failing),
            Check::Controller(sources::controller_failing),
            Check::Device(sources::device_failing),
        ],
    },
    Rule {
        id: "source_denied",
        title: "the agent may not read a source",
        severity: Severity::Warning,
        needs: &[],
        meaning: "The kernel refuses the agent access. One finding for the whole host, a line a source. When only \
                  timed reads are refused it is information.",
        next: "storscope doctor says why and what mends it.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Host(sources::denied)],
    },
    Rule {
        id: "firmware_pending",
        title: "firmware waits for a reset",
        severity: Severity::Info,
        needs: &[Source::FirmwareSlots],
        meaning: "Another firmware slot becomes active at the next controller reset (NVMe log page 03h).",
        next: "Expect the new firmware after the next reset or power cycle.",
        opens_after: AT_ONCE,
        closes_after: Duration::ZERO,
        checks: &[Check::Controller(controller::firmware_pending)],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::mem::discriminant;

    #[test]
    fn rules_are_told_apart_and_say_what_to_do() {
        let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), RULES.len());
        for rule in RULES {
            assert!(rule.id.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", rule.id);
            assert!(!rule.title.is_empty() && rule.meaning.ends_with('.') && rule.next.ends_with('.'), "{}", rule.id);
            assert!(!rule.checks.is_empty(), "{}", rule.id);
        }
    }

    #[test]
    fn a_rule_has_one_check_a_kind_of_subject() {
        for rule in RULES {
            for (n, check) in rule.checks.iter().enumerate() {
                assert!(rule.checks[..n].iter().all(|other| discriminant(other) != discriminant(check)), "{}", rule.id);
            }
        }
    }
}
