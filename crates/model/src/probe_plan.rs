//! Which devices are probed, and how often.
//!
//! A device is left alone when a read could wake it, is sure to fail or to wait for ever, or cannot be told to be
//! harmless. One with a read outstanding stays in the plan: the prober never issues a second one, and takes the
//! device up again by itself. Bursts of several devices are spread by the prober, by a random phase of each.

use crate::device::{Device, NvmeNamespace, Transport, Zoned};
use crate::history::rate::completions;
use crate::history::{DeviceHistory, History};
use crate::identity::DeviceId;
use crate::limits::LONGEST_PROBE_PAUSE;
use crate::reading::Reading;
use crate::request::ProbeTarget;
use crate::snapshot::{DeviceState, Snapshot};
use crate::time::BootTime;
use std::collections::BTreeSet;
use std::time::Duration;

/// Most reads a burst.
pub const MAX_BURST: u16 = 64;
/// Shortest time between two bursts.
pub const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// How devices are probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePolicy {
    /// Why nothing is probed at all; `None` when probes run.
    pub off: Option<String>,
    /// Time between two bursts on a device at work.
    pub interval: Duration,
    /// Reads a burst, at most [`MAX_BURST`].
    pub burst: u16,
    /// Reads a burst on a rotating medium.
    pub burst_rotational: u16,
    /// Time without any I/O but ours after which the interval grows.
    pub idle_after: Duration,
    /// Longest interval.
    pub longest: Duration,
}

impl Default for ProbePolicy {
    fn default() -> Self {
        Self {
            off: None,
            interval: Duration::from_secs(4),
            burst: 16,
            burst_rotational: 2,
            idle_after: Duration::from_secs(60),
            longest: LONGEST_PROBE_PAUSE,
        }
    }
}

/// The devices to probe, and why the others are not. Equal plans need not be sent again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// What to probe, by identity.
    pub targets: Vec<ProbeTarget>,
    /// What not, and why, for people.
    pub not_probed: Vec<(DeviceId, String)>,
}

/// What the plan remembers of one device.
#[derive(Debug, Clone, Default)]
pub struct ProbeState {
    interval: Option<Duration>,
    why_not: Option<String>,
    foreign: Option<u64>,
    worked: Option<BootTime>,
}

impl ProbeState {
    /// Time between bursts in the newest plan; `None` when the device is not in it.
    pub const fn interval(&self) -> Option<Duration> {
        self.interval
    }

    /// Why the device is not in the newest plan.
    pub fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }
}

/// Works out the plan, and remembers it in `history`, which must have observed `snapshot` before.
pub fn plan(snapshot: &Snapshot, history: &mut History, policy: &ProbePolicy, now: BootTime) -> Plan {
    let paths: BTreeSet<&str> = snapshot
        .devices
        .values()
        .filter_map(|state| state.device.nvme.as_ref())
        .flat_map(|nvme| &nvme.paths)
        .map(|path| path.name.as_str())
        .collect();
    let mut plan = Plan::default();
    for (id, state) in &snapshot.devices {
        let Some(remembered) = history.device_mut(id) else {
            continue;
        };
        let target = if paths.contains(state.device.name.as_str()) {
            Err("it is a path of a multipath device".to_owned())
        } else {
            target(snapshot, state, remembered, policy, now)
        };
        match target {
            Ok(target) => {
                remembered.plan.interval = Some(Duration::from_millis(target.interval_ms));
                remembered.plan.why_not = None;
                plan.targets.push(target);
            }
            Err(why) => {
                remembered.plan.interval = None;
                remembered.plan.why_not = Some(why.clone());
                plan.not_probed.push((id.clone(), why));
            }
        }
    }
    plan
}

fn target(
    snapshot: &Snapshot,
    state: &DeviceState,
    history: &mut DeviceHistory,
    policy: &ProbePolicy,
    now: BootTime,
) -> Result<ProbeTarget, String> {
    let device = &state.device;
    if let Some(off) = &policy.off {
        return Err(off.clone());
    }
    suitable(device)?;
    awake(state)?;
    reachable(snapshot, state)?;
    let devnum = device.devnum.ok_or("its device number is not known")?;
    let size_bytes = device.size_bytes.filter(|size| *size > 0).ok_or("it has no size")?;
    let logical_block_bytes = device.logical_block_bytes.ok_or("its block size is not known")?;
    // Unknown counts as rotating: the smaller burst does no harm.
    let rotational = device.rotational.unwrap_or(true);
    let burst = if rotational { policy.burst_rotational } else { policy.burst }.clamp(1, MAX_BURST);
    let interval = pace(state, history, burst, policy, now);
    Ok(ProbeTarget {
        id: device.id.clone(),
        devnum,
        size_bytes,
        logical_block_bytes,
        rotational,
        queue_depth: state.queue.fresh().and_then(|queue| queue.nr_requests),
        burst,
        interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
    })
}

/// What the device is.
fn suitable(device: &Device) -> Result<(), String> {
    match device.transport {
        Transport::Optical | Transport::Floppy => return Err("its medium is removable".to_owned()),
        Transport::Zram | Transport::Ram => return Err("it is memory".to_owned()),
        _ => {}
    }
    if device.removable == Some(true) {
        return Err("its medium is removable".to_owned());
    }
    match device.zoned {
        Some(Zoned::HostManaged) => Err("it is zoned, host-managed".to_owned()),
        _ => Ok(()),
    }
}

/// True for what has no power management of its own to be asked for.
const fn never_sleeps(transport: Transport) -> bool {
    matches!(
        transport,
        Transport::Loop
            | Transport::DeviceMapper
            | Transport::Md
            | Transport::Nbd
            | Transport::Rbd
            | Transport::Virtio
            | Transport::Xen
            | Transport::Iscsi
            | Transport::NvmeFabrics
    )
}

/// Whether a read could wake it.
fn awake(state: &DeviceState) -> Result<(), String> {
    let device = &state.device;
    match &state.power {
        Reading::Fresh(power) if power.value.suspended => return Err("it is suspended".to_owned()),
        Reading::Fresh(_) | Reading::Unsupported { .. } => {}
        _ if never_sleeps(device.transport) => {}
        Reading::Never => return Err("its power status is not known yet".to_owned()),
        _ => return Err("its power status is not known".to_owned()),
    }
    if !matches!(device.transport, Transport::Sata | Transport::Usb) {
        return Ok(());
    }
    match (&state.ata_power, device.rotational) {
        (Reading::Fresh(power), _) if power.value.asleep() => Err("it sleeps".to_owned()),
        (Reading::Fresh(_), _) | (_, Some(false)) => Ok(()),
        _ => Err("a rotating disk whose power mode is not known is not woken".to_owned()),
    }
}

/// Whether a read can come back.
fn reachable(snapshot: &Snapshot, state: &DeviceState) -> Result<(), String> {
    if let Some(queue) = state.queue.fresh() {
        if let Some(word) = queue.device_state.as_deref().filter(|word| !matches!(*word, "running" | "live")) {
            return Err(format!("its state is {word}"));
        }
        if queue.zoned.as_deref() == Some("host-managed") {
            return Err("it is zoned, host-managed".to_owned());
        }
    }
    let Some(nvme) = &state.device.nvme else {
        return Ok(());
    };
    if nvme.paths.is_empty() { single(snapshot, nvme) } else { multipath(snapshot, nvme) }
}

fn single(snapshot: &Snapshot, nvme: &NvmeNamespace) -> Result<(), String> {
    if nvme.controllers.is_empty() {
        return Err("its controller is not known".to_owned());
    }
    for id in &nvme.controllers {
        let Some(controller) = snapshot.controllers.get(id) else {
            return Err("its controller is not known".to_owned());
        };
        match controller.state.fresh() {
            Some(sample) if sample.is_live() => {}
            Some(sample) => return Err(format!("{} is {}, not live", controller.controller.name, sample.state)),
            None => return Err(format!("the state of {} is not known", controller.controller.name)),
        }
        if controller.power.fresh().is_some_and(|power| power.suspended) {
            return Err(format!("{} is suspended", controller.controller.name));
        }
    }
    Ok(())
}

/// With no usable path the kernel queues reads without limit.
fn multipath(snapshot: &Snapshot, nvme: &NvmeNamespace) -> Result<(), String> {
    let usable = nvme.paths.iter().any(|path| {
        let controller = snapshot.controllers.get(&path.controller);
        let live = controller.and_then(|known| known.state.fresh()).is_some_and(|sample| sample.is_live());
        let asleep = controller.and_then(|known| known.power.fresh()).is_some_and(|power| power.suspended);
        live && !asleep && matches!(path.ana_state.as_deref(), None | Some("optimized" | "non-optimized"))
    });
    if usable { Ok(()) } else { Err("no path to it is usable".to_owned()) }
}

/// The interval. It doubles after `idle_after` and whenever the idle time has doubled
/// since, so that an idle drive finds time to sleep; it is the base again as soon as the device works.
fn pace(state: &DeviceState, history: &mut DeviceHistory, burst: u16, policy: &ProbePolicy, now: BootTime) -> Duration {
    let base = policy.interval.max(MIN_INTERVAL);
    let own = history.probes.reads();
    let foreign = history.fresh_counters(state).map(|counters| completions(counters).saturating_sub(own));
    let plan = &mut history.plan;
    let Some(foreign) = foreign else {
        // What is not counted cannot be called idle.
        (plan.foreign, plan.worked) = (None, None);
        return base;
    };
    // A burst may be counted by the kernel before it is reported by the prober.
    let worked = plan.foreign.is_none_or(|before| foreign < before || foreign - before > u64::from(burst));
    if worked {
        (plan.foreign, plan.worked) = (Some(foreign), Some(now));
    }
    let idle = plan.worked.map_or(Duration::ZERO, |worked| now.since(worked));
    if idle < policy.idle_after || policy.idle_after.is_zero() {
        return base;
    }
    let mut interval = base.saturating_mul(2);
    let mut reached = policy.idle_after.saturating_mul(2);
    while reached <= idle && interval < policy.longest {
        interval = interval.saturating_mul(2);
        reached = reached.saturating_mul(2);
    }
    interval.min(policy.longest.max(base))
}
