//! The lane of one device: when to read, what came of it, and what is outstanding.
//!
//! An engine drives a lane: it asks for the next step, carries it out and tells the outcome. No lock is held while the
//! device is asked for anything, so that the watcher can always report a lane whose engine waits.

use crate::budget::{Budget, Limits};
use crate::buffer::AlignedBuffer;
use crate::burst::{Burst, Current};
use crate::clock::Moment;
use crate::device::{Opened, Refusal, errno_of, named};
use crate::load::Load;
use crate::offsets::Offsets;
use crate::prober::Signal;
use crate::tally::Tally;
use crate::target::Target;
use fastrand::Rng;
use nix::errno::Errno;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use storscope_model::sample::probe::{Engine, ProbeReport, SkipReason};
use storscope_model::time::BootTime;
use tokio::sync::Notify;

/// Default time after which an operation counts as outstanding.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// Default idle time after which a first read is taken to measure a power-state exit.
pub const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Bursts come late by up to one part in this many of their interval, so that devices do not fall into step.
const JITTER: u32 = 16;
/// The kernel accounts a request after it has told the reader: an own read may still be counted once.
const OWN_UNACCOUNTED: u64 = 1;

/// What all lanes of a prober share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) engine: Engine,
    pub(crate) limits: Limits,
    pub(crate) deadline: Duration,
    pub(crate) idle_after: Duration,
}

/// What an engine does next for a lane.
pub(crate) enum Step {
    /// Nothing until then, or until nudged.
    Wait(Instant),
    /// Open the device and read a burst.
    Open(Box<Plan>),
    /// Never ask again: the device is no longer a target.
    Finish,
}

/// What is needed to open a device.
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) before: Option<Load>,
}

/// Ends the wait of a lane's engine early.
pub(crate) enum Nudge {
    Thread(std::thread::Thread),
    Task(Arc<Notify>),
}

/// An operation that the device has not answered.
#[derive(Debug, Clone, Copy)]
struct Outstanding {
    since: Moment,
    /// Past its deadline and told so.
    told: bool,
    /// When the next burst would have been due.
    missed: Instant,
}

struct State {
    target: Target,
    retired: bool,
    finished: bool,
    due: Instant,
    rng: Rng,
    budget: Budget,
    offsets: Offsets,
    tally: Tally,
    outstanding: Option<Outstanding>,
    /// Load when the newest burst began or was refused.
    before: Option<Load>,
    /// End of the newest burst and the requests completed by then.
    last_end: Option<(Instant, u64)>,
    began: BootTime,
    ended: BootTime,
    /// Something to report.
    fresh: bool,
    nudge: Option<Nudge>,
}

/// One device.
pub(crate) struct Lane {
    rules: Rules,
    signal: Arc<Signal>,
    state: Mutex<State>,
}

/// A report with the times of the burst that it ends with.
pub(crate) struct Told {
    pub(crate) key: u64,
    pub(crate) began: BootTime,
    pub(crate) ended: BootTime,
    pub(crate) report: ProbeReport,
}

impl Lane {
    pub(crate) fn new(target: Target, rules: Rules, signal: Arc<Signal>, seed: u64, now: Moment) -> Self {
        let mut rng = Rng::with_seed(seed);
        let spread = target.pace.interval.mul_f64(rng.f64());
        Self {
            rules,
            signal,
            state: Mutex::new(State {
                retired: false,
                finished: false,
                due: now.instant + spread.min(rules.limits.spacing(target.pace.burst)),
                offsets: Offsets::new(rng.u64(..)),
                rng,
                budget: Budget::new(rules.limits, now.instant),
                tally: Tally::default(),
                outstanding: None,
                before: None,
                last_end: None,
                began: now.boot,
                ended: now.boot,
                fresh: false,
                nudge: None,
                target,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_nudge(&self, nudge: Nudge) {
        self.state().nudge = Some(nudge);
    }

    /// Takes over a changed target, or takes a retired lane back. False when the lane has finished and a new one must
    /// be made.
    pub(crate) fn retarget(&self, target: &Target, now: Instant) -> bool {
        let mut state = self.state();
        if state.finished {
            return false;
        }
        state.retired = false;
        if state.target != *target {
            if state.target.pace.interval > target.pace.interval {
                let soon = now + self.rules.limits.spacing(target.pace.burst);
                state.due = state.due.min(soon);
            }
            state.target = target.clone();
            state.nudge();
        }
        true
    }

    /// Ends the lane as soon as nothing is outstanding.
    pub(crate) fn retire(&self) {
        let mut state = self.state();
        state.retired = true;
        state.nudge();
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.state().finished
    }

    /// What to do now.
    pub(crate) fn step(&self, now: Moment) -> Step {
        let mut state = self.state();
        if state.retired {
            state.finished = true;
            return Step::Finish;
        }
        if now.instant < state.due {
            return Step::Wait(state.due);
        }
        let interval = self.interval(&state.target);
        let late = interval.mul_f64(state.rng.f64()) / JITTER;
        state.due = now.instant + interval + late;
        state.began = now.boot;
        state.ended = now.boot;
        if !state.budget.affords(now.instant) {
            state.tally.skipped(SkipReason::Budget);
            state.tell(&self.signal);
            return Step::Wait(state.due);
        }
        state.start(now, interval);
        Step::Open(Box::new(Plan { target: state.target.clone(), before: state.before }))
    }

    fn interval(&self, target: &Target) -> Duration {
        let spacing = self.rules.limits.spacing(target.pace.burst.max(1));
        target.pace.interval.max(spacing)
    }

    /// Takes the outcome of opening; a burst when there is something to read.
    pub(crate) fn opened(&self, plan: &Plan, outcome: Result<Opened, Refusal>, now: Moment) -> Option<Burst> {
        let mut state = self.state();
        state.finish();
        let opened = match outcome {
            Ok(opened) => opened,
            Err(refusal) => {
                let load = match refusal {
                    Refusal::Skip(reason, load) => {
                        state.tally.skipped(reason);
                        load
                    }
                    Refusal::Failed(errno) => {
                        state.tally.burst_began();
                        state.tally.failed(errno, now.boot);
                        None
                    }
                };
                state.tally.in_flight_before(load.map(|load| load.in_flight));
                state.before = load;
                state.ended = now.boot;
                state.tell(&self.signal);
                return None;
            }
        };
        let load = opened.load;
        state.tally.burst_began();
        state.tally.in_flight_before(Some(load.in_flight));
        state.before = Some(load);
        state.offsets.resize(opened.size, opened.block);
        let idle = state.last_end.is_none_or(|(end, completed)| {
            now.instant.saturating_duration_since(end) >= self.rules.idle_after
                && load.completed.wrapping_sub(completed) <= OWN_UNACCOUNTED
        });
        Some(Burst {
            after_idle: idle && load.in_flight == 0,
            left: plan.target.pace.burst.max(1),
            queue: plan.target.queue,
            before: plan.before,
            current: None,
            opened,
        })
    }

    /// The offset of the next read, which is outstanding from now on; `None` when the burst is over.
    ///
    /// The load is looked at before every read: a queue may fill up within a burst, and one pread(2) of an open
    /// attribute costs a few microseconds.
    pub(crate) fn next_read(&self, burst: &mut Burst, now: Moment) -> Option<u64> {
        if burst.left == 0 {
            return None;
        }
        let load = Load::read(&burst.opened.stat);
        let mut state = self.state();
        if state.retired {
            return None;
        }
        let load = match load {
            Ok(load) => load,
            Err(error) => {
                state.refused(errno_of(&error), now);
                return None;
            }
        };
        if burst.queue.is_some_and(|queue| load.is_full(burst.before, queue)) {
            state.tally.skipped(SkipReason::QueueFull);
            return None;
        }
        if !state.budget.affords(now.instant) {
            return None;
        }
        let choice = state.offsets.choose()?;
        burst.left -= 1;
        burst.current =
            Some(Current { choice, after_idle: std::mem::take(&mut burst.after_idle), busy: load.in_flight > 0 });
        let interval = self.interval(&state.target);
        state.start(now, interval);
        Some(choice.offset)
    }

    /// Takes the outcome of a read. The first failure ends the burst.
    pub(crate) fn read_done(
        &self,
        burst: &mut Burst,
        outcome: &io::Result<usize>,
        buffer: &AlignedBuffer,
        took: Duration,
        now: Moment,
    ) {
        let Some(current) = burst.current.take() else {
            return;
        };
        let data = buffer.bytes().iter().any(|byte| *byte != 0);
        let mut state = self.state();
        state.budget.charge(took, now.instant);
        if state.finish() {
            state.tell(&self.signal);
        }
        match outcome {
            Ok(length) if *length == buffer.bytes().len() => {
                state.tally.read(current.op(data), current.busy, took);
                state.offsets.learn(current.choice, data);
            }
            Ok(_) => {
                // Nothing but the end of the device cuts a direct read short: its end has moved.
                state.tally.skipped(SkipReason::Gone);
                burst.left = 0;
            }
            Err(error) => {
                let errno = errno_of(error);
                state.tally.failed_read(errno, took, now.boot);
                if named(errno) == Some(SkipReason::Gone) {
                    state.tally.skipped(SkipReason::Gone);
                }
                burst.left = 0;
            }
        }
    }

    /// The agent lacked what it needs to read; the device has no part in it.
    pub(crate) fn exhausted(&self, now: Moment) {
        let mut state = self.state();
        state.finish();
        state.tally.skipped(SkipReason::Exhausted);
        state.ended = now.boot;
        state.tell(&self.signal);
    }

    /// The burst is over; the close that follows is outstanding from now on.
    pub(crate) fn closing(&self, burst: &Burst, now: Moment) {
        let completed = Load::read(&burst.opened.stat).map(|load| load.completed);
        let mut state = self.state();
        state.last_end = completed.ok().map(|completed| (now.instant, completed));
        state.ended = now.boot;
        state.tell(&self.signal);
        let interval = self.interval(&state.target);
        state.start(now, interval);
    }

    pub(crate) fn closed(&self) {
        let mut state = self.state();
        if state.finish() {
            state.tell(&self.signal);
        }
    }

    /// Looks for an operation past its deadline, and counts the bursts that it holds up.
    pub(crate) fn watch(&self, now: Moment) {
        let mut state = self.state();
        let interval = self.interval(&state.target);
        let Some(mut outstanding) = state.outstanding else {
            return;
        };
        let age = now.instant.saturating_duration_since(outstanding.since.instant);
        let due = if outstanding.told { now.instant >= outstanding.missed } else { age >= self.rules.deadline };
        if due {
            outstanding.told = true;
            outstanding.missed = now.instant + interval;
            state.outstanding = Some(outstanding);
            state.tally.skipped(SkipReason::Outstanding);
            state.ended = now.boot;
            state.fresh = true;
        }
    }

    /// The newest report, if anything happened since the last one.
    pub(crate) fn take_report(&self) -> Option<Told> {
        let mut state = self.state();
        if !std::mem::take(&mut state.fresh) || state.retired {
            return None;
        }
        let since = state.outstanding.filter(|outstanding| outstanding.told).map(|outstanding| outstanding.since.boot);
        Some(Told {
            key: state.target.key,
            began: state.began,
            ended: state.ended,
            report: state.tally.report(self.rules.engine, since),
        })
    }
}

impl State {
    /// An operation begins that the device may not answer.
    fn start(&mut self, now: Moment, interval: Duration) {
        self.outstanding = Some(Outstanding { since: now, told: false, missed: now.instant + interval });
    }

    /// The operation is answered. True when it had been told to be outstanding.
    fn finish(&mut self) -> bool {
        self.outstanding.take().is_some_and(|outstanding| outstanding.told)
    }

    /// A look at the device failed: one more burst that did not run, or an error.
    fn refused(&mut self, errno: Errno, now: Moment) {
        match named(errno) {
            Some(reason) => self.tally.skipped(reason),
            None => self.tally.failed(errno, now.boot),
        }
    }

    fn tell(&mut self, signal: &Signal) {
        self.fresh = true;
        signal.raise();
    }

    fn nudge(&self) {
        match &self.nudge {
            Some(Nudge::Thread(thread)) => thread.unpark(),
            Some(Nudge::Task(task)) => task.notify_one(),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
