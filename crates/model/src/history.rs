//! What must be remembered between two looks at the snapshot, keyed by identity: a rename keeps it, and another device
//! under the old name does not inherit it.

use crate::finding::Finding;
use crate::identity::{ControllerId, DeviceId, Subject};
use crate::limits::Limits;
use crate::memory::{MAX_ENTRIES, MediaErrorMemory, Memory, VERSION};
use crate::probe_plan::ProbeState;
use crate::reading::Reading;
use crate::rules::{DEVICE_GONE, RULES};
use crate::sample::diskstats::DiskCounters;
use crate::snapshot::{ControllerState, DeviceState, Snapshot};
use crate::time::{BootTime, ClockSync};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub mod aer;
pub mod counters;
pub mod cpu;
pub mod episodes;
pub mod gone;
pub mod link;
pub mod media_errors;
pub mod rate;
pub mod windows;

/// Most devices, and most controllers, whose history is kept after they vanished.
pub const MAX_VANISHED: usize = 256;

/// What is remembered of one device.
#[derive(Debug, Clone, Default)]
pub struct DeviceHistory {
    /// Counters and rates.
    pub counters: rate::CounterHistory,
    /// Probes.
    pub probes: windows::ProbeHistory,
    /// What the newest probe plan says of it.
    pub plan: ProbeState,
    last: Option<gone::LastSeen>,
    vanished: Option<BootTime>,
}

/// What is remembered of one controller.
#[derive(Debug, Clone, Default)]
pub struct ControllerHistory {
    /// Its PCIe link.
    pub link: link::LinkHistory,
    /// Its PCIe errors.
    pub aer: aer::AerHistory,
    /// Its media errors.
    pub media_errors: media_errors::MediaErrorHistory,
    vanished: Option<BootTime>,
}

/// Everything that is remembered.
#[derive(Debug, Clone, Default)]
pub struct History {
    devices: BTreeMap<DeviceId, DeviceHistory>,
    controllers: BTreeMap<ControllerId, ControllerHistory>,
    restored_media: BTreeMap<ControllerId, MediaErrorMemory>,
    /// CPU shares.
    pub cpu: cpu::CpuHistory,
    /// Findings.
    pub episodes: episodes::Episodes,
    /// Devices whose absence is a finding.
    pub gone: gone::AllGone,
    /// The first readings were all there once.
    pub ready: bool,
}

impl History {
    /// A history that goes on where a former run of the agent left off.
    pub fn restore(memory: &Memory, clock: &ClockSync) -> Self {
        let baselines = memory.media_errors.iter().take(MAX_ENTRIES);
        Self {
            episodes: episodes::Episodes::restore(&memory.episodes, RULES, clock),
            gone: gone::AllGone::restore(&memory.gone, clock),
            restored_media: baselines.map(|media| (ControllerId(media.controller.clone()), media.clone())).collect(),
            ..Self::default()
        }
    }

    /// What the next run should remember. Baselines of drives that were not seen again since the last run are kept.
    pub fn memory(&self, clock: &ClockSync) -> Memory {
        let mut media_errors: BTreeMap<ControllerId, MediaErrorMemory> = self.restored_media.clone();
        for (id, controller) in &self.controllers {
            if let Some(media) = controller.media_errors.memory(clock) {
                media_errors.insert(id.clone(), MediaErrorMemory { controller: id.0.clone(), ..media });
            }
        }
        Memory {
            version: VERSION,
            episodes: self.episodes.memory(clock),
            media_errors: media_errors.into_values().take(MAX_ENTRIES).collect(),
            gone: self.gone.memory(clock),
        }
    }

    /// What is remembered of a device.
    pub fn device(&self, id: &DeviceId) -> Option<&DeviceHistory> {
        self.devices.get(id)
    }

    /// What is remembered of a controller.
    pub fn controller(&self, id: &ControllerId) -> Option<&ControllerHistory> {
        self.controllers.get(id)
    }

    /// Every device of `snapshot` with what is remembered of it, by identity.
    pub(crate) fn devices<'s, 'h>(
        &'h self,
        snapshot: &'s Snapshot,
    ) -> impl Iterator<Item = (&'s DeviceState, &'h DeviceHistory)> {
        side_by_side(&snapshot.devices, &self.devices)
    }

    /// Every controller of `snapshot` with what is remembered of it, by identity.
    pub(crate) fn controllers<'s, 'h>(
        &'h self,
        snapshot: &'s Snapshot,
    ) -> impl Iterator<Item = (&'s ControllerState, &'h ControllerHistory)> {
        side_by_side(&snapshot.controllers, &self.controllers)
    }

    pub(crate) fn device_mut(&mut self, id: &DeviceId) -> Option<&mut DeviceHistory> {
        self.devices.get_mut(id)
    }

    /// Takes in whatever is new in the snapshot, and lets go of what is too old. With `deselected`, what vanished is still
    /// there and only no longer asked for.
    pub fn observe(&mut self, snapshot: &Snapshot, limits: &Limits, deselected: bool, now: BootTime) {
        self.cpu.take(&snapshot.host.cpu, &snapshot.host.agent);
        for (id, state) in &snapshot.devices {
            match self.devices.get_mut(id) {
                Some(history) => history.observe(state, now),
                None => self.devices.entry(id.clone()).or_default().observe(state, now),
            }
        }
        let work = self.work(snapshot);
        for (id, state) in &snapshot.controllers {
            let history = match self.controllers.get_mut(id) {
                Some(history) => history,
                None => {
                    let restored = self.restored_media.remove(id);
                    let history = self.controllers.entry(id.clone()).or_default();
                    if let Some(media) = restored {
                        history.media_errors = media_errors::MediaErrorHistory::restore(&media, &snapshot.clock);
                    }
                    history
                }
            };
            let work = work.get(id).copied().unwrap_or(0);
            history.observe(state, work, &snapshot.clock, limits, now);
        }
        let keep = limits.keep_vanished;
        let left = retire(&mut self.devices, snapshot.devices.keys(), |history| &mut history.vanished, keep, now);
        retire(&mut self.controllers, snapshot.controllers.keys(), |history| &mut history.vanished, keep, now);
        for id in left.iter().filter(|_| !deselected) {
            if let Some(last) = self.devices.get(id).and_then(|history| history.last.as_ref()) {
                self.gone.add(id, last, now);
            }
        }
        self.gone.forget(snapshot, keep, now);
        let gone = &self.gone;
        self.episodes.retain(now, |rule, subject| match subject {
            Subject::Host => true,
            Subject::Device(id) if rule == DEVICE_GONE => gone.contains(id),
            Subject::Device(id) => snapshot.devices.contains_key(id),
            Subject::Controller(id) => snapshot.controllers.contains_key(id),
        });
    }

    /// Notes what each device is, carries (by identity) and suffers from, in case it vanishes.
    pub(crate) fn remember<'a>(
        &mut self,
        snapshot: &Snapshot,
        carries: impl Iterator<Item = (&'a DeviceId, &'a [String])>,
        now: BootTime,
    ) {
        let troubles = self.episodes.troubles(now);
        for (id, carries) in carries {
            let (Some(state), Some(history)) = (snapshot.devices.get(id), self.devices.get_mut(id)) else {
                continue;
            };
            history.remember(state, carries, snapshot, &troubles);
        }
    }

    /// A count by controller that moves whenever one of its devices completes I/O.
    fn work<'a>(&self, snapshot: &'a Snapshot) -> BTreeMap<&'a ControllerId, u64> {
        let mut work: BTreeMap<&ControllerId, u64> = BTreeMap::new();
        for (state, history) in self.devices(snapshot) {
            let counted = history.counters.counters().map_or(0, rate::completions);
            let done = counted.saturating_add(history.probes.reads());
            for controller in state.device.nvme.iter().flat_map(|nvme| &nvme.controllers) {
                let sum = work.entry(controller).or_default();
                *sum = sum.saturating_add(done);
            }
        }
        work
    }
}

impl DeviceHistory {
    fn observe(&mut self, state: &DeviceState, now: BootTime) {
        self.vanished = None;
        if let Some(sample) = state.counters.fresh_stamped() {
            self.counters.take(&state.device.name, sample);
        }
        if let Some(sample) = state.probe.fresh_stamped() {
            self.probes.take(&sample.value, sample.ended);
        }
        self.probes.forget(now);
    }

    fn remember(
        &mut self,
        state: &DeviceState,
        carries: &[String],
        snapshot: &Snapshot,
        troubles: &BTreeMap<&Subject, &Finding>,
    ) {
        let last = self.last.get_or_insert_with(|| gone::LastSeen {
            device: Arc::clone(&state.device),
            appeared: state.appeared,
            carries: Vec::new(),
            trouble: None,
        });
        last.device = Arc::clone(&state.device);
        last.appeared = state.appeared;
        if !carries.is_empty() && last.carries != carries {
            last.carries = carries.to_vec();
        }
        let controllers = state.device.nvme.as_ref().map_or(&[][..], |nvme| &nvme.controllers);
        let cut_off =
            state.device.nvme.is_some() && !controllers.iter().any(|id| snapshot.controllers.contains_key(id));
        let of = |subject: &Subject| troubles.get(subject).copied();
        let own = of(&Subject::Device(state.device.id.clone()));
        let theirs = controllers.iter().filter_map(|id| of(&Subject::Controller(id.clone())));
        let worst = theirs.fold(own, |worst, finding| match worst {
            Some(known) if known.severity >= finding.severity => Some(known),
            _ => Some(finding),
        });
        // A controller leaves before its namespaces do, and takes its findings with it.
        if worst.is_some() || !cut_off {
            last.trouble = worst.map(|finding| finding.title.clone());
        }
    }

    /// The extended counters, while the reading is fresh and the kernel counts.
    pub fn fresh_counters(&self, state: &DeviceState) -> Option<&DiskCounters> {
        state.counters.fresh().filter(|_| !state.uncounted()).and(self.counters.counters())
    }
}

impl ControllerHistory {
    fn observe(&mut self, state: &ControllerState, work: u64, clock: &ClockSync, limits: &Limits, now: BootTime) {
        self.vanished = None;
        if let Some(sample) = state.link.fresh_stamped() {
            self.link.take(sample, work);
        }
        if let Some(sample) = state.aer.fresh_stamped() {
            self.aer.take(sample);
        }
        if let Reading::Fresh(sample) = &state.smart {
            self.media_errors.take(sample.value.media_errors, sample.ended);
        }
        self.media_errors.forget(now, clock, limits.media_errors_keep);
    }
}

/// What both maps hold under one key: both are sorted, so that one walk finds all.
fn side_by_side<'a, 'b, K: Ord, A, B>(
    some: &'a BTreeMap<K, A>,
    all: &'b BTreeMap<K, B>,
) -> impl Iterator<Item = (&'a A, &'b B)> {
    let mut all = all.iter().peekable();
    some.iter().filter_map(move |(key, a)| {
        while all.next_if(|(other, _)| *other < key).is_some() {}
        all.next_if(|(other, _)| *other == key).map(|(_, b)| (a, b))
    })
}

/// Lets go of histories of what vanished longer than `keep` ago, and of the oldest of those past [`MAX_VANISHED`].
/// Returns what vanished just now. `present` is sorted.
fn retire<'a, K: Ord + Clone + 'a, V>(
    all: &mut BTreeMap<K, V>,
    present: impl Iterator<Item = &'a K>,
    vanished: impl Fn(&mut V) -> &mut Option<BootTime>,
    keep: Duration,
    now: BootTime,
) -> Vec<K> {
    let mut gone: Vec<(BootTime, K)> = Vec::new();
    let mut left = Vec::new();
    let mut present = present.peekable();
    all.retain(|id, history| {
        while present.next_if(|next| *next < id).is_some() {}
        if present.peek() == Some(&id) {
            return true;
        }
        let vanished = vanished(history);
        if vanished.is_none() {
            left.push(id.clone());
        }
        let at = *vanished.get_or_insert(now);
        let kept = now.since(at) < keep;
        if kept {
            gone.push((at, id.clone()));
        }
        kept
    });
    if gone.len() > MAX_VANISHED {
        gone.sort();
        for (_, id) in gone.iter().take(gone.len() - MAX_VANISHED) {
            all.remove(id);
        }
    }
    left
}
