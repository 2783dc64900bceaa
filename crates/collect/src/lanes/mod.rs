//! At most one outstanding operation a lane: the book-keeping, without threads or a clock.
//!
//! [`pool`] runs what starts here. A job that never returns holds its own lane and nothing else.

mod lane;
pub mod pool;

pub use lane::{Job, Lane, is_command};

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use storscope_model::time::BootTime;

/// Most operations that may be outstanding at once, stuck ones included.
pub const MAX_RUNNING: usize = 256;
/// Of [`MAX_RUNNING`], kept free for host-wide lanes: hung devices never take the place of diskstats.
pub const HOST_RESERVE: usize = 3;
/// An operation outstanding for longer holds its worker: another worker takes over the other lanes.
pub const HELD_AFTER: Duration = Duration::from_millis(250);

#[derive(Debug)]
struct Running {
    job: Job,
    began: BootTime,
    deadline: BootTime,
    reported: bool,
    wanted: bool,
}

#[derive(Debug)]
struct Waiting {
    job: Job,
    deadline: Duration,
    reported: bool,
}

/// An operation that may run now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Where it runs.
    pub lane: Lane,
    /// What to read.
    pub job: Job,
    /// When it began.
    pub began: BootTime,
}

/// An operation that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// What was read.
    pub job: Job,
    /// When it began.
    pub began: BootTime,
    /// False when its subject went away meanwhile: the result is dropped.
    pub wanted: bool,
}

/// A job that is past its deadline, or waits behind one that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// What is not answered.
    pub job: Job,
    /// When the operation that holds the lane began.
    pub since: BootTime,
}

/// All lanes.
#[derive(Debug, Default)]
pub struct Lanes {
    running: BTreeMap<Lane, Running>,
    waiting: BTreeMap<Lane, VecDeque<Waiting>>,
    /// Idle lanes with waiting jobs, host-wide ones apart, in the order in which they became ready.
    ready_host: VecDeque<Lane>,
    ready: VecDeque<Lane>,
}

impl Lanes {
    /// Lets `job` wait for its turn in `lane`; it stalls when it takes longer than `deadline` once begun. False when the
    /// same job already waits there.
    pub fn offer(&mut self, lane: &Lane, job: Job, deadline: Duration) -> bool {
        let queue = self.waiting.entry(lane.clone()).or_default();
        if queue.iter().any(|waiting| waiting.job == job) {
            return false;
        }
        let first = queue.is_empty();
        queue.push_back(Waiting { job, deadline, reported: false });
        if first && !self.running.contains_key(lane) {
            self.make_ready(lane.clone());
        }
        true
    }

    fn make_ready(&mut self, lane: Lane) {
        if lane.is_host_wide() {
            self.ready_host.push_back(lane);
        } else {
            self.ready.push_back(lane);
        }
    }

    /// Begins the operation whose turn it is; `None` when every lane with waiting jobs is busy or too much is
    /// outstanding.
    pub fn start(&mut self, now: BootTime) -> Option<Started> {
        loop {
            let lane = match self.ready_host.pop_front() {
                Some(lane) => lane,
                None if self.device_room() => self.ready.pop_front()?,
                None => return None,
            };
            let Some(queue) = self.waiting.get_mut(&lane) else {
                continue;
            };
            let next = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&lane);
            }
            let Some(next) = next else { continue };
            self.running.insert(
                lane.clone(),
                Running {
                    job: next.job.clone(),
                    began: now,
                    deadline: now.plus(next.deadline),
                    reported: next.reported,
                    wanted: true,
                },
            );
            return Some(Started { lane, job: next.job, began: now });
        }
    }

    fn device_room(&self) -> bool {
        let host_wide = self.running.keys().filter(|lane| lane.is_host_wide()).count();
        self.running.len() - host_wide < MAX_RUNNING - HOST_RESERVE
    }

    /// Takes in that the operation of `lane` returned; the next one of the lane may begin. `None` when none was
    /// outstanding.
    pub fn finish(&mut self, lane: &Lane) -> Option<Ended> {
        let running = self.running.remove(lane)?;
        if self.waiting.contains_key(lane) {
            self.make_ready(lane.clone());
        }
        Some(Ended { job: running.job, began: running.began, wanted: running.wanted })
    }

    /// Forgets the jobs that `matches` names: waiting ones do not start, the result of an outstanding one is dropped.
    /// The lane stays busy until that one returns.
    pub fn withdraw(&mut self, matches: impl Fn(&Job) -> bool) {
        for queue in self.waiting.values_mut() {
            queue.retain(|waiting| !matches(&waiting.job));
        }
        self.waiting.retain(|_, queue| !queue.is_empty());
        let waiting = &self.waiting;
        self.ready_host.retain(|lane| waiting.contains_key(lane));
        self.ready.retain(|lane| waiting.contains_key(lane));
        for running in self.running.values_mut() {
            if matches(&running.job) {
                running.wanted = false;
            }
        }
    }

    /// What passed its deadline since the last call, each job once: the outstanding operation of a lane, and the jobs
    /// that wait behind it.
    pub fn newly_stalled(&mut self, now: BootTime) -> Vec<Stall> {
        let mut stalls = Vec::new();
        for (lane, running) in &mut self.running {
            if now <= running.deadline {
                continue;
            }
            let since = running.began;
            if !running.reported {
                running.reported = true;
                if running.wanted {
                    stalls.push(Stall { job: running.job.clone(), since });
                }
            }
            for waiting in self.waiting.get_mut(lane).into_iter().flatten() {
                if !waiting.reported {
                    waiting.reported = true;
                    stalls.push(Stall { job: waiting.job.clone(), since });
                }
            }
        }
        stalls
    }

    /// The next instant at which [`Lanes::newly_stalled`] may have something to say.
    pub fn next_deadline(&self) -> Option<BootTime> {
        self.running
            .values()
            .filter(|running| !running.reported)
            .map(|running| running.deadline.plus(Duration::from_nanos(1)))
            .min()
    }

    /// Lanes that could begin an operation now, if there were workers.
    pub fn ready(&self) -> usize {
        let room = if self.device_room() { self.ready.len() } else { 0 };
        self.ready_host.len() + room
    }

    /// Operations outstanding for longer than [`HELD_AFTER`]: their workers may never come back.
    pub fn held(&self, now: BootTime) -> usize {
        self.running.values().filter(|running| now.since(running.began) > HELD_AFTER).count()
    }

    /// The jobs that are outstanding or wait and were not told as stalled, with the instant at which what holds their
    /// lane began.
    pub fn unfinished(&self, now: BootTime) -> Vec<Stall> {
        let since = |lane: &Lane| self.running.get(lane).map_or(now, |running| running.began);
        let running = self
            .running
            .values()
            .filter(|running| running.wanted && !running.reported)
            .map(|running| Stall { job: running.job.clone(), since: running.began });
        let waiting = self.waiting.iter().flat_map(|(lane, queue)| {
            let untold = queue.iter().filter(|waiting| !waiting.reported);
            untold.map(move |waiting| Stall { job: waiting.job.clone(), since: since(lane) })
        });
        running.chain(waiting).collect()
    }

    /// True when all that is outstanding or waits was told as stalled; also when there is nothing.
    pub fn only_stalled(&self) -> bool {
        self.running.values().all(|running| running.reported)
            && self.waiting.values().flatten().all(|waiting| waiting.reported)
    }
}

#[cfg(test)]
mod tests;
