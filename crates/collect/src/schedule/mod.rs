//! When each source is due: phases, jitter, back-off. No threads, no clock: every instant is an argument.

mod periods;

pub use periods::{COMMAND_BACKOFF, FILES_BACKOFF, MIN_PERIOD, Periods, deadline, longest_pause};

use crate::lanes::{Job, Lane};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use storscope_model::identity::Subject;
use storscope_model::time::BootTime;

/// Reads are due at multiples of this, so that one wake-up serves many.
pub const SLOT: Duration = MIN_PERIOD;
/// Shortest time between the end of a read and one that is wanted early: a storm of uevents is one rescan.
pub const HASTEN_GAP: Duration = Duration::from_millis(250);
/// A read that is wanted early starts no sooner than this many times its last duration after it: at most a fifth of
/// one lane's time goes to it.
const HASTEN_SHARE: u32 = 4;

/// A source that is to be read again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What to read.
    pub job: Job,
    /// Where it runs.
    pub lane: Lane,
    /// Time between two reads.
    pub period: Duration,
}

/// How a read ended, as far as the schedule cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It gave a value.
    Good,
    /// Not asked on purpose: looked at again after one period.
    Withheld,
    /// It failed: pauses double up to [`longest_pause`].
    Failed,
    /// It failed before the drive was asked (no permission): pauses double up to [`FILES_BACKOFF`].
    Refused,
    /// Not offered: a drive command is not sent again until it is planned anew, files are looked at again after
    /// [`FILES_BACKOFF`].
    Unsupported,
}

#[derive(Debug)]
struct Entry {
    lane: Lane,
    period: Duration,
    state: State,
    failures: u32,
    took: Duration,
    ended: Option<BootTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Due(BootTime),
    /// With the lanes. `again` when it was wanted early meanwhile.
    InHand {
        again: bool,
    },
    /// Not offered by the drive.
    Parked,
}

/// When everything is due.
#[derive(Debug, Default)]
pub struct Schedule {
    once: bool,
    entries: BTreeMap<Job, Entry>,
    queue: BTreeSet<(BootTime, Job)>,
}

impl Schedule {
    /// A schedule that forgets each read once it ended.
    pub fn once() -> Self {
        Self { once: true, ..Self::default() }
    }

    /// Takes up `plan`: due at once when it is new or was parked, else at its new period.
    pub fn plan(&mut self, plan: Plan, now: BootTime) {
        let Plan { job, lane, period } = plan;
        match self.entries.get_mut(&job) {
            None => {
                self.entries.insert(
                    job.clone(),
                    Entry {
                        lane,
                        period,
                        state: State::InHand { again: false },
                        failures: 0,
                        took: Duration::ZERO,
                        ended: None,
                    },
                );
                self.set_due(&job, now);
            }
            Some(entry) => {
                let changed = entry.period != period;
                entry.period = period;
                entry.lane = lane;
                match entry.state {
                    State::Parked => self.set_due(&job, now),
                    State::Due(_) if changed => {
                        let due = next_slot(&job, period, now);
                        self.set_due(&job, due);
                    }
                    State::Due(_) | State::InHand { .. } => {}
                }
            }
        }
    }

    fn set_due(&mut self, job: &Job, at: BootTime) {
        let Some(entry) = self.entries.get_mut(job) else {
            return;
        };
        if let State::Due(before) = entry.state {
            self.queue.remove(&(before, job.clone()));
        }
        entry.state = State::Due(at);
        self.queue.insert((at, job.clone()));
    }

    /// Forgets one job.
    pub fn retire(&mut self, job: &Job) {
        if let Some(entry) = self.entries.remove(job)
            && let State::Due(at) = entry.state
        {
            self.queue.remove(&(at, job.clone()));
        }
    }

    /// Forgets all jobs of `subject`.
    pub fn remove(&mut self, subject: &Subject) {
        let jobs: Vec<Job> = self.entries.keys().filter(|job| job.subject == *subject).cloned().collect();
        for job in jobs {
            self.retire(&job);
        }
    }

    /// Wants `job` as soon as is reasonable; nothing when it is not planned or not offered by the drive.
    pub fn hasten(&mut self, job: &Job, now: BootTime) {
        let Some(entry) = self.entries.get_mut(job) else {
            return;
        };
        match &mut entry.state {
            State::InHand { again } => *again = true,
            State::Due(at) => {
                let early = earliest(entry.ended, entry.took, now);
                if early < *at {
                    self.set_due(job, early);
                }
            }
            State::Parked => {}
        }
    }

    /// The next job that is due; it is in hand until [`Schedule::ended`].
    pub fn take_due(&mut self, now: BootTime) -> Option<(Lane, Job)> {
        if self.queue.first()?.0 > now {
            return None;
        }
        let (_, job) = self.queue.pop_first()?;
        let entry = self.entries.get_mut(&job)?;
        entry.state = State::InHand { again: false };
        Some((entry.lane.clone(), job))
    }

    /// Takes in how the read of `job`, begun at `began`, ended at `now`, and sets when it is due again.
    pub fn ended(&mut self, job: &Job, ending: Ending, began: BootTime, now: BootTime) {
        if self.once {
            self.retire(job);
            return;
        }
        let Some(entry) = self.entries.get_mut(job) else {
            return;
        };
        entry.took = now.since(began);
        entry.ended = Some(now);
        let again = entry.state == State::InHand { again: true };
        let pause = match ending {
            Ending::Good => {
                entry.failures = 0;
                None
            }
            Ending::Withheld => None,
            Ending::Unsupported if crate::lanes::is_command(job.source) => {
                entry.state = State::Parked;
                return;
            }
            Ending::Unsupported => Some(FILES_BACKOFF.max(entry.period)),
            Ending::Failed | Ending::Refused => {
                entry.failures = entry.failures.saturating_add(1);
                let longest = longest_pause(job.source);
                let cap = if ending == Ending::Refused { longest.min(FILES_BACKOFF) } else { longest };
                Some(backoff(job, entry.period, entry.failures, cap))
            }
        };
        let mut due = match pause {
            Some(pause) => now.plus(pause),
            None => next_slot(job, entry.period, now),
        };
        if again {
            due = due.min(earliest(entry.ended, entry.took, now));
        }
        self.set_due(job, due);
    }

    /// When the next job is due.
    pub fn next_due(&self) -> Option<BootTime> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// True when `job` is planned, parked ones included.
    pub fn knows(&self, job: &Job) -> bool {
        self.entries.contains_key(job)
    }
}

fn earliest(ended: Option<BootTime>, took: Duration, now: BootTime) -> BootTime {
    let gap = HASTEN_GAP.max(took.saturating_mul(HASTEN_SHARE));
    ended.map_or(now, |ended| now.max(ended.plus(gap)))
}

/// FNV-1a over the job: the same on every host and in every release, so that phases do not move.
fn hash(job: &Job) -> u64 {
    let (kind, id) = match &job.subject {
        Subject::Host => ("host", ""),
        Subject::Controller(id) => ("controller", id.0.as_str()),
        Subject::Device(id) => ("device", id.0.as_str()),
    };
    let bytes = [kind, "/", id, "/", job.source.as_str()];
    let sum = bytes
        .iter()
        .flat_map(|part| part.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // The low bits of FNV-1a of similar names are similar.
    sum ^ (sum >> 33)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// The next instant of the job's own phase that is more than half a period away. Host-wide sources share one phase, so
/// that a tick is one wake-up.
fn next_slot(job: &Job, period: Duration, now: BootTime) -> BootTime {
    let period = nanos(period);
    let slots = (period / nanos(SLOT)).max(1);
    let phase = match job.subject {
        Subject::Host => 0,
        _ => hash(job) % slots * nanos(SLOT),
    };
    let after = now.0.saturating_add(period / 2);
    let behind = after.saturating_sub(phase) / period;
    BootTime(behind.saturating_add(1).saturating_mul(period).saturating_add(phase))
}

/// The pause after `failures` consecutive failures: the period, doubled each time up to `cap`, less up to an eighth that
/// differs by job and failure, so that what failed together is not asked together.
fn backoff(job: &Job, period: Duration, failures: u32, cap: Duration) -> Duration {
    let doubled = period.saturating_mul(1 << failures.saturating_sub(1).min(20));
    let pause = nanos(doubled.min(cap.max(period)));
    let mixed = hash(job).wrapping_add(u64::from(failures).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let less = (mixed >> 32) % (pause / 8).max(1);
    Duration::from_nanos(pause - less)
}

#[cfg(test)]
mod tests;
