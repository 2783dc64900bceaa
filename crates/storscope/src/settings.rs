//! The configuration in the words of the crates that it concerns.

use crate::config::{Config, Devices, Pattern, Periods};
use crate::version;
use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use storscope_collect::clock;
use storscope_collect::collector::{AgentCounts, CollectorSettings};
use storscope_collect::select::Selection;
use storscope_drive::{DriveKind, Refusal, Refusals, Status};
use storscope_model::limits::Limits;
use storscope_model::probe_plan::ProbePolicy;
use storscope_model::refused::Refused;
use storscope_model::sample::Source;
use storscope_model::time::BootTime;
use storscope_model::view::AgentStatus;

/// What the collector does.
///
/// # Errors
/// A pattern that the selection refuses.
pub(crate) fn collector(
    config: &Config,
    refused: &[Refused],
    agent: Arc<AgentCounts>,
) -> anyhow::Result<CollectorSettings> {
    let (selection, refusals) = (selection(&config.devices)?, refusals(refused));
    Ok(CollectorSettings { periods: periods(&config.periods), selection, refusals, agent })
}

/// What drives refuse, as their side keeps it.
fn refusals(refused: &[Refused]) -> Refusals {
    let mut out = Refusals::default();
    for refused in refused {
        let kind = DriveKind { model: refused.model.clone(), firmware: refused.firmware.clone() };
        let refusal = refused.status.map_or(Refusal::Foreign, |code| Refusal::Status(Status::from_ioctl(code)));
        out.restore(kind, &refused.command, refusal);
    }
    out
}

/// What drives refuse, as it is told and remembered.
pub(crate) fn refused(refusals: &Refusals) -> Vec<Refused> {
    let told = refusals.iter().map(|(kind, command, refusal)| Refused {
        model: kind.model.clone(),
        firmware: kind.firmware.clone(),
        command: command.to_owned(),
        status: match refusal {
            Refusal::Status(status) => Some(status.code()),
            Refusal::Foreign => None,
        },
    });
    told.collect()
}

/// Which devices are watched.
///
/// # Errors
/// A pattern that the selection refuses.
pub(crate) fn selection(devices: &Devices) -> anyhow::Result<Selection> {
    let text = |pattern: &Option<Pattern>| pattern.as_ref().map(|pattern| pattern.0.as_str().to_owned());
    let (include, exclude, only) = (text(&devices.include), text(&devices.exclude), text(&devices.only));
    Selection::new(include.as_deref(), exclude.as_deref(), only.as_deref()).context("selection of devices")
}

fn periods(given: &Periods) -> storscope_collect::schedule::Periods {
    storscope_collect::schedule::Periods {
        tick: given.tick,
        controller_state: given.tick,
        power: given.link,
        link: given.link,
        aer: given.link,
        queue: given.queue,
        smart: given.smart,
        ocp: given.ocp,
        error_log: given.slow,
        rare: given.slow,
        ata_power: given.smart,
        stack: given.rescan,
        host_info: given.rescan,
        rescan: given.rescan,
    }
}

/// Thresholds and periods of the analysis.
pub(crate) fn limits(config: &Config) -> Limits {
    let periods = periods(&config.periods);
    let periods = Source::ALL.into_iter().filter_map(|source| periods.of(source).map(|period| (source, period)));
    Limits { periods: periods.collect(), ..Limits::default() }
}

/// What is probed, and how often.
pub(crate) fn probes(config: &Config, live: bool) -> ProbePolicy {
    let interval = f64::from(config.probe.burst) / f64::from(config.probe.reads_per_second.max(1));
    let default = ProbePolicy::default();
    ProbePolicy {
        off: probes_off(config, live).map(str::to_owned),
        interval: Duration::from_secs_f64(interval),
        burst: config.probe.burst,
        burst_rotational: default.burst_rotational.min(config.probe.burst),
        ..default
    }
}

/// Why nothing is probed at all.
pub(crate) const fn probes_off(config: &Config, live: bool) -> Option<&'static str> {
    match (live, config.probe.enabled) {
        (false, _) => Some("a captured host has no devices to read"),
        (true, false) => Some("probe.enabled is false"),
        (true, true) => None,
    }
}

/// What the binary says of itself at the start.
pub(crate) fn agent(config: &Config, live: bool, started: BootTime) -> AgentStatus {
    AgentStatus {
        version: version::VERSION.to_owned(),
        revision: version::REVISION.map(str::to_owned),
        started,
        captured: !live,
        probes_off: probes_off(config, live).map(str::to_owned),
        config_loaded: clock::now(),
        ..AgentStatus::default()
    }
}
