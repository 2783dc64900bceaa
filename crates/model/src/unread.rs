//! Drives of which not everything was read once: whether they are well is not known yet.
//!
//! Counters, settings, and of an NVMe controller Identify and the SMART page. A refusal or a failure is an answer; rules
//! judge it. Probes are not waited for.

use crate::phrase;
use crate::reading::Reading;
use crate::snapshot::{ControllerState, DeviceState, Snapshot};
use crate::time::BootTime;
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest wait for the first readings of a drive. They come, fail, or count as stalled long before; an event that went
/// astray must not keep the host from being judged.
pub const LONGEST: Duration = Duration::from_secs(60);

/// What is not known of the drives, by kernel name in natural order. A drive is a block device, or a controller that has
/// none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unread {
    /// Something was asked for and neither came nor counts as outstanding for too long.
    pub waiting: Vec<String>,
    /// Something does not answer, and never did.
    pub silent: Vec<String>,
}

impl Unread {
    /// What is not known at `now`.
    pub fn of(snapshot: &Snapshot, now: BootTime) -> Self {
        let mut unread = Self::default();
        let mut with_device = BTreeSet::new();
        for state in snapshot.devices.values() {
            let ids = state.device.nvme.iter().flat_map(|nvme| &nvme.controllers);
            let controllers = ids.filter_map(|id| snapshot.controllers.get_key_value(id));
            let mut stages = vec![of_device(state, now)];
            for (id, controller) in controllers {
                with_device.insert(id);
                stages.push(of_controller(controller, now));
            }
            unread.note(&state.device.name, &stages);
        }
        for (id, state) in &snapshot.controllers {
            if !with_device.contains(id) {
                unread.note(&state.controller.name, &[of_controller(state, now)]);
            }
        }
        unread.waiting.sort_by(|a, b| phrase::natural_order(a, b));
        unread.silent.sort_by(|a, b| phrase::natural_order(a, b));
        unread
    }

    fn note(&mut self, name: &str, stages: &[Stage]) {
        if stages.contains(&Stage::Waiting) {
            self.waiting.push(name.to_owned());
        } else if stages.contains(&Stage::Silent) {
            self.silent.push(name.to_owned());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Silent,
    Answered,
}

fn of<T>(reading: &Reading<T>) -> Stage {
    match reading {
        Reading::Never => Stage::Waiting,
        Reading::Stalled { last: None, .. } => Stage::Silent,
        _ => Stage::Answered,
    }
}

/// The stage of what has all of `stages`, `appeared` so long ago.
fn together(stages: &[Stage], appeared: BootTime, now: BootTime) -> Stage {
    if stages.contains(&Stage::Waiting) && now.since(appeared) <= LONGEST {
        Stage::Waiting
    } else if stages.contains(&Stage::Silent) {
        Stage::Silent
    } else {
        Stage::Answered
    }
}

fn of_device(state: &DeviceState, now: BootTime) -> Stage {
    // A partition has no settings of its own.
    let settings = if state.device.partition_of.is_some() { Stage::Answered } else { of(&state.queue) };
    together(&[of(&state.counters), settings], state.appeared, now)
}

fn of_controller(state: &ControllerState, now: BootTime) -> Stage {
    // Only what Identify says exists is asked for: without it no page comes.
    let page = match of(&state.identify) {
        Stage::Answered if state.identify.fresh().is_none() => Stage::Answered,
        Stage::Silent => Stage::Silent,
        Stage::Answered | Stage::Waiting => of(&state.smart),
    };
    together(&[of(&state.identify), page], state.appeared, now)
}
