//! The threads that run what [`Lanes`] starts: one that keeps the time, and workers that may get stuck.
//!
//! A worker whose job hangs in the kernel is lost until the job returns; it is never joined, and another takes its
//! place. Everything is decided under one lock by [`Schedule`] and [`Lanes`]; the lock is never held during a read.

use super::{Job, Lanes, MAX_RUNNING, Started};
use crate::schedule::{Ending, Plan, Schedule, deadline};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use storscope_model::event::{Event, Outcome};
use storscope_model::fault::Fault;
use storscope_model::identity::Subject;
use storscope_model::time::BootTime;

/// Workers that are not held by an operation.
pub const FREE_WORKERS: usize = 8;
/// An idle worker ends after this time, unless it is the last.
const IDLE_END: Duration = Duration::from_secs(20);
/// Shortest sleep of the time keeper while something ready waits for a worker.
const SHORTEST_SLEEP: Duration = Duration::from_millis(5);
/// Longest sleep of the time keeper: a suspended host wakes up to a clock that jumped.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// When nothing that is ready was begun for this long, more workers are put to work: most reads take microseconds, and
/// one worker does them all.
const FAN_OUT_AFTER: Duration = Duration::from_millis(20);
/// Stack of a worker in bytes: pages of a drive live on the heap.
const STACK_BYTES: usize = 256 << 10;

/// Where events go. `put` is called with a lock held: it must not block.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn put(&self, event: Event);
}

/// Boot time.
pub trait Clock: Send + Sync {
    /// Now, on `CLOCK_BOOTTIME`.
    fn now(&self) -> BootTime;
}

/// What reads.
pub trait Reader: Send + Sync {
    /// Reads one source; may take for ever.
    fn read(&self, job: &Job) -> Done;
}

/// The end of one read.
#[derive(Debug)]
pub struct Done {
    /// What it gave.
    pub outcome: Outcome,
    /// What follows from it, in order; before the event of the read itself.
    pub changes: Vec<Change>,
}

impl From<Outcome> for Done {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, changes: Vec::new() }
    }
}

/// What a read changes beside its own source.
#[derive(Debug)]
pub enum Change {
    /// Tell it.
    Announce(Event),
    /// Read this from now on.
    Plan(Plan),
    /// Read it early.
    Hasten(Job),
    /// No longer read this.
    Retire(Job),
    /// No longer read anything of this; results that are on their way are dropped.
    Remove(Subject),
}

#[derive(Debug)]
struct State {
    schedule: Schedule,
    lanes: Lanes,
    workers: usize,
    idle: usize,
    /// When an operation was last begun, by the clock of this process: what the fan-out goes by.
    last_start: Instant,
    /// When the time keeper wakes up by itself.
    wakes_at: Instant,
    stopping: bool,
}

impl State {
    /// Nothing is due, and nothing is awaited any more.
    fn is_round_over(&self) -> bool {
        self.schedule.next_due().is_none() && self.lanes.only_stalled()
    }
}

struct Shared {
    state: Mutex<State>,
    /// Wakes the time keeper.
    changed: Condvar,
    /// Wakes a worker.
    work: Condvar,
    /// Wakes whoever waits for a round to be over.
    settled: Condvar,
    reader: Arc<dyn Reader>,
    sink: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
}

/// A running schedule. Dropping it stops it; threads that are stuck in the kernel are left behind.
pub struct Pool {
    shared: Arc<Shared>,
}

impl Pool {
    /// Starts the time keeper; workers start as they are needed.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(
        schedule: Schedule,
        reader: Arc<dyn Reader>,
        sink: Arc<dyn EventSink>,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let started = Instant::now();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                schedule,
                lanes: Lanes::default(),
                workers: 0,
                idle: 0,
                last_start: started,
                wakes_at: started,
                stopping: false,
            }),
            changed: Condvar::new(),
            work: Condvar::new(),
            settled: Condvar::new(),
            reader,
            sink,
            clock,
        });
        let keeper = Arc::clone(&shared);
        thread::Builder::new()
            .name("collect-time".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || keep_time(&keeper))?;
        Ok(Self { shared })
    }

    /// Applies changes that come from outside a read.
    pub fn change(&self, changes: Vec<Change>) {
        let mut state = self.shared.lock();
        let now = self.shared.clock.now();
        for change in changes {
            self.shared.apply(&mut state, change, now);
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Looks at the clock again, which a test has set.
    #[cfg(test)]
    fn wake(&self) {
        let guard = self.shared.lock();
        drop(guard);
        self.shared.changed.notify_one();
    }

    /// Waits until nothing is planned, outstanding or waiting but what is told as stalled, at most for `limit`; what is
    /// unfinished then is told as stalled, too. For a schedule of one round.
    pub fn finish_round(&self, limit: Duration) {
        let state = self.shared.lock();
        let (mut state, _) = self
            .shared
            .settled
            .wait_timeout_while(state, limit, |state| !state.is_round_over())
            .unwrap_or_else(PoisonError::into_inner);
        state.stopping = true;
        for stall in state.lanes.unfinished(self.shared.clock.now()) {
            self.shared.sink.put(Event::Stalled {
                subject: stall.job.subject,
                source: stall.job.source,
                since: stall.since,
            });
        }
        drop(state);
        self.stop();
    }

    /// Ends at once: nothing is told any more, idle threads end, stuck ones are left behind.
    pub fn stop(&self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        self.shared.work.notify_all();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, state: &mut State, change: Change, now: BootTime) {
        if state.stopping {
            return;
        }
        match change {
            Change::Announce(event) => self.sink.put(event),
            Change::Plan(plan) => state.schedule.plan(plan, now),
            Change::Hasten(job) => state.schedule.hasten(&job, now),
            Change::Retire(job) => {
                state.schedule.retire(&job);
                state.lanes.withdraw(|other| *other == job);
            }
            Change::Remove(subject) => {
                state.schedule.remove(&subject);
                state.lanes.withdraw(|job| job.subject == subject);
            }
        }
    }

    /// Moves what is due to its lane, tells what stalled, and sees that a worker is there for what may start.
    fn turn(self: &Arc<Self>, state: &mut State, now: BootTime) {
        while let Some((lane, job)) = state.schedule.take_due(now) {
            let limit = deadline(job.source);
            state.lanes.offer(&lane, job, limit);
        }
        for stall in state.lanes.newly_stalled(now) {
            tracing::warn!(
                subject = ?stall.job.subject,
                source = stall.job.source.as_str(),
                "no answer within the deadline"
            );
            self.sink.put(Event::Stalled { subject: stall.job.subject, source: stall.job.source, since: stall.since });
        }
        self.put_to_work(state, now);
    }

    /// One worker where none is busy; as many again as are busy where they have begun nothing for a while.
    fn put_to_work(self: &Arc<Self>, state: &mut State, now: BootTime) {
        let ready = state.lanes.ready();
        let busy = state.workers - state.idle;
        if ready == 0 || (busy > 0 && state.last_start.elapsed() < FAN_OUT_AFTER) {
            return;
        }
        let wanted = ready.min(busy.max(1));
        for _ in 0..wanted.min(state.idle) {
            self.work.notify_one();
        }
        let most = (FREE_WORKERS + state.lanes.held(now)).min(MAX_RUNNING);
        let room = most.saturating_sub(state.workers);
        for _ in 0..wanted.saturating_sub(state.idle).min(room) {
            let worker = Arc::clone(self);
            let spawned = thread::Builder::new()
                .name("collect-read".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || work(&worker));
            match spawned {
                Ok(_) => state.workers += 1,
                Err(error) => {
                    tracing::warn!(%error, "no thread for reads; those that are there go on");
                    break;
                }
            }
        }
    }

    /// How long the time keeper may sleep.
    fn sleep(state: &State, now: BootTime) -> Duration {
        let starving = (state.lanes.ready() > 0)
            .then(|| FAN_OUT_AFTER.saturating_sub(state.last_start.elapsed()).max(SHORTEST_SLEEP));
        [state.schedule.next_due(), state.lanes.next_deadline()]
            .into_iter()
            .flatten()
            .map(|at| at.since(now))
            .chain(starving)
            .min()
            .map_or(LONGEST_SLEEP, |next| next.min(LONGEST_SLEEP))
    }

    fn tell_settled(&self, state: &State) {
        if state.is_round_over() {
            self.settled.notify_all();
        }
    }

    /// Wakes the time keeper if it would sleep too long; it is not woken for every read.
    fn wake_keeper(&self, state: &mut State) {
        let needed = Instant::now() + Self::sleep(state, self.clock.now());
        if needed < state.wakes_at {
            state.wakes_at = needed;
            self.changed.notify_one();
        }
    }

    fn settle(&self, state: &mut State, started: &Started, done: Done) {
        let now = self.clock.now();
        let Some(ended) = state.lanes.finish(&started.lane) else {
            return;
        };
        if !ended.wanted || state.stopping {
            return;
        }
        for change in done.changes {
            self.apply(state, change, now);
        }
        let ending = ending(&done.outcome);
        self.sink.put(Event::Read {
            subject: ended.job.subject.clone(),
            source: ended.job.source,
            began: ended.began,
            ended: now,
            outcome: done.outcome,
        });
        state.schedule.ended(&ended.job, ending, ended.began, now);
    }
}

const fn ending(outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Value(_) => Ending::Good,
        Outcome::Withheld(_) => Ending::Withheld,
        Outcome::Unsupported(_) => Ending::Unsupported,
        Outcome::Failed(Fault::Denied { .. } | Fault::Gone) => Ending::Refused,
        Outcome::Failed(_) => Ending::Failed,
    }
}

fn keep_time(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    while !state.stopping {
        let now = shared.clock.now();
        shared.turn(&mut state, now);
        shared.tell_settled(&state);
        let sleep = Shared::sleep(&state, now);
        state.wakes_at = Instant::now() + sleep;
        state = shared.changed.wait_timeout(state, sleep).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn work(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    loop {
        if state.stopping {
            state.workers -= 1;
            return;
        }
        if let Some(started) = state.lanes.start(shared.clock.now()) {
            state.last_start = Instant::now();
            shared.wake_keeper(&mut state);
            drop(state);
            let done = read(shared.reader.as_ref(), &started.job);
            state = shared.lock();
            shared.settle(&mut state, &started, done);
            shared.wake_keeper(&mut state);
            shared.tell_settled(&state);
            continue;
        }
        state.idle += 1;
        let (guard, timeout) = shared.work.wait_timeout(state, IDLE_END).unwrap_or_else(PoisonError::into_inner);
        state = guard;
        state.idle -= 1;
        if timeout.timed_out() && state.workers > 1 && state.lanes.ready() == 0 {
            state.workers -= 1;
            return;
        }
    }
}

/// A panic in one source is that source's failure: the worker, its lane and everything else go on.
fn read(reader: &dyn Reader, job: &Job) -> Done {
    catch_unwind(AssertUnwindSafe(|| reader.read(job))).unwrap_or_else(|_| {
        Done::from(Outcome::Failed(Fault::Parse {
            path: job.source.as_str().to_owned(),
            line: 0,
            what: "reading it panicked; this is a bug".to_owned(),
        }))
    })
}

#[cfg(test)]
mod tests;
