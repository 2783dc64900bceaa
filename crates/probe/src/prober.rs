//! The prober: the set of targets, the engine, and the watcher that hands out reports.

use crate::budget::Limits;
use crate::clock::Moment;
use crate::engine::{self, Engine, EngineChoice, EngineInUse};
use crate::lane::{DEADLINE, IDLE_AFTER, Lane, Rules};
use crate::target::Target;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use storscope_model::sample::probe::ProbeReport;
use storscope_model::time::BootTime;

/// Most devices probed at once; further targets are left out.
pub const MAX_TARGETS: usize = 4096;
/// How often the watcher looks for operations past their deadline.
const WATCH: Duration = Duration::from_secs(1);
/// Stack of the watcher's thread.
const STACK: usize = 512 << 10;

/// Settings of a prober.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Engine to use.
    pub engine: EngineChoice,
    /// Budget of each device.
    pub limits: Limits,
    /// Time after which an unanswered operation is reported as outstanding.
    pub deadline: Duration,
    /// Idle time after which the first read of a burst counts as one after idle.
    pub idle_after: Duration,
    /// Seed of offsets and jitter; a fixed one makes a run repeatable.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            engine: EngineChoice::Auto,
            limits: Limits::default(),
            deadline: DEADLINE,
            idle_after: IDLE_AFTER,
            seed: fastrand::Rng::with_seed(Moment::now().boot.0).u64(..),
        }
    }
}

/// All that is known of one target, after a burst, a skipped burst, a missed deadline or a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Key of the target.
    pub key: u64,
    /// When the newest burst began.
    pub began: BootTime,
    /// When it ended, or what it waits for was found to be outstanding.
    pub ended: BootTime,
    /// Counts since the target was first given.
    pub probe: ProbeReport,
}

/// Why a prober does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// io_uring was demanded and cannot be had.
    #[error("cannot set up an io_uring")]
    Ring(#[source] io::Error),
    /// The watcher's thread cannot be had.
    #[error("cannot start the probe watcher")]
    Watcher(#[source] io::Error),
}

/// Wakes the watcher: something to report, or the end.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<SignalState>,
    raised: Condvar,
}

#[derive(Default)]
struct SignalState {
    fresh: bool,
    stopped: bool,
}

impl Signal {
    pub(crate) fn raise(&self) {
        self.lock().fresh = true;
        self.raised.notify_one();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.raised.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a signal, at most [`WATCH`]. False at the end.
    fn wait(&self) -> bool {
        let (mut state, _) = self
            .raised
            .wait_timeout_while(self.lock(), WATCH, |state| !state.fresh && !state.stopped)
            .unwrap_or_else(PoisonError::into_inner);
        state.fresh = false;
        !state.stopped
    }
}

type Lanes = Mutex<BTreeMap<u64, Arc<Lane>>>;

/// A running prober. Dropped, it ends: no further read is begun, outstanding ones are left to themselves, no thread is
/// waited for, and one more report may still come.
pub struct Prober {
    engine: Box<dyn Engine>,
    in_use: EngineInUse,
    rules: Rules,
    seed: u64,
    lanes: Arc<Lanes>,
    signal: Arc<Signal>,
}

impl Prober {
    /// Starts a prober without targets. `sink` is called on the prober's own thread, and holds up reports, but no
    /// read, for as long as it takes.
    ///
    /// # Errors
    /// When a demanded ring is refused, or no thread can be had.
    pub fn start(config: Config, sink: impl FnMut(Report) + Send + 'static) -> Result<Self, StartError> {
        let (engine, in_use) = engine::start(config.engine).map_err(StartError::Ring)?;
        let lanes = Arc::new(Lanes::default());
        let signal = Arc::new(Signal::default());
        let watched = (Arc::clone(&lanes), Arc::clone(&signal));
        thread::Builder::new()
            .name("probe-watch".into())
            .stack_size(STACK)
            .spawn(move || watch(&watched.0, &watched.1, sink))
            .map_err(StartError::Watcher)?;
        Ok(Self {
            engine,
            in_use,
            rules: Rules {
                engine: in_use.kind,
                limits: config.limits,
                deadline: config.deadline,
                idle_after: config.idle_after,
            },
            seed: config.seed,
            lanes,
            signal,
        })
    }

    /// The engine in use, and why it is not io_uring.
    pub const fn engine(&self) -> EngineInUse {
        self.in_use
    }

    /// Probes these devices from now on and no others. Never waits for a device. A device that comes back while an
    /// operation on it is outstanding is taken up again, not read a second time.
    ///
    /// # Errors
    /// The first failure to start an engine's thread; the targets after it are still taken. The next call tries again.
    pub fn set_targets(&self, targets: &[Target]) -> io::Result<()> {
        let now = Moment::now();
        let mut outcome = Ok(());
        let mut lanes = lock(&self.lanes);
        let wanted: BTreeMap<u64, &Target> =
            targets.iter().take(MAX_TARGETS).map(|target| (target.key, target)).collect();
        for (key, lane) in lanes.iter() {
            if !wanted.contains_key(key) {
                lane.retire();
            }
        }
        for (key, target) in wanted {
            let entry = lanes.entry(key);
            if let Entry::Occupied(lane) = &entry
                && lane.get().retarget(target, now.instant)
            {
                continue;
            }
            let seed = self.seed ^ key.wrapping_mul(SEED_STEP);
            let signal = Arc::clone(&self.signal);
            let lane = Arc::new(Lane::new(target.clone(), self.rules, signal, seed, now));
            match self.engine.drive(Arc::clone(&lane)) {
                Ok(()) => {
                    entry.insert_entry(lane);
                }
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }
}

/// Odd, so that it spreads neighbouring keys over all seeds (2^64 divided by the golden ratio).
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Drop for Prober {
    fn drop(&mut self) {
        for lane in lock(&self.lanes).values() {
            lane.retire();
        }
        self.signal.stop();
    }
}

fn lock(lanes: &Lanes) -> MutexGuard<'_, BTreeMap<u64, Arc<Lane>>> {
    lanes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The watcher's thread: reports what is new, and what is past its deadline.
fn watch(lanes: &Lanes, signal: &Signal, mut sink: impl FnMut(Report)) {
    while signal.wait() {
        let now = Moment::now();
        let current: Vec<Arc<Lane>> = {
            let mut lanes = lock(lanes);
            lanes.retain(|_, lane| !lane.is_finished());
            lanes.values().map(Arc::clone).collect()
        };
        for lane in current {
            lane.watch(now);
            if let Some(told) = lane.take_report() {
                sink(Report { key: told.key, began: told.began, ended: told.ended, probe: told.report });
            }
        }
    }
}
