//! The collector: finds what is there, reads every source in its lane when it is due, and tells what it found.
//!
//! ```text
//! discovery ──► Inventory ──► Schedule ──due──► Lanes ──► workers ──► Context::read ──► EventSink
//!     ▲  uevents, every rescan period                       (one outstanding operation a lane)
//! ```

mod inventory;
mod known;
#[cfg(test)]
pub(crate) mod made_up;
mod once;
mod reads;

pub use inventory::Inventory;
pub use once::{ROUND_LIMIT, collect_once};

pub use crate::lanes::pool::EventSink;

use crate::agent::Processes;
use crate::lanes::pool::{Change, Clock, Done, Pool, Reader};
use crate::lanes::{Job, Lane};
use crate::nvme::Drives;
use crate::root::Root;
use crate::schedule::{Periods, Plan, Schedule};
use crate::select::Selection;
use crate::uevent::{Listener, Signal};
use crate::{clock, discovery};
use reads::Context;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use storscope_drive::Refusals;
use storscope_model::event::{Event, Outcome};
use storscope_model::identity::Subject;
use storscope_model::sample::host::Discovery;
use storscope_model::sample::{Sample, Source};
use storscope_model::time::BootTime;

/// The uevent thread looks this often whether it should end.
const UEVENT_WAIT: Duration = Duration::from_secs(5);
/// A uevent socket that could not be opened, or failed, is tried again after this time.
const UEVENT_RETRY: Duration = Duration::from_secs(60);
/// Stack of the uevent thread in bytes.
const UEVENT_STACK_BYTES: usize = 128 << 10;

/// What is collected, and how often.
#[derive(Debug, Clone, Default)]
pub struct CollectorSettings {
    /// Time between two reads of each source.
    pub periods: Periods,
    /// Which devices are watched.
    pub selection: Selection,
    /// What drives refused before, so that they are not asked again. Taken up at the start only.
    pub refusals: Refusals,
    /// Counts that the agent keeps itself. Taken up at the start only.
    pub agent: Arc<AgentCounts>,
}

/// Counts that the agent keeps itself, told with its own cost.
#[derive(Debug, Default)]
pub struct AgentCounts {
    /// Log lines that were dropped because writing them would have blocked.
    pub log_lines_dropped: AtomicU64,
    /// Events that a newer one of the same source replaced before they were sent.
    pub events_superseded: AtomicU64,
    /// Processes of the agent.
    pub processes: Mutex<Processes>,
}

impl AgentCounts {
    fn get(&self) -> (u64, u64) {
        (self.log_lines_dropped.load(Ordering::Relaxed), self.events_superseded.load(Ordering::Relaxed))
    }
}

struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> BootTime {
        clock::now()
    }
}

#[derive(Debug, Clone, Default)]
struct Current {
    inventory: Arc<Inventory>,
    periods: Arc<Periods>,
    selection: Selection,
    /// The periods are new: what is watched already is to be planned anew.
    replan: bool,
}

/// The host as the workers read it.
struct Host {
    root: Root,
    current: Mutex<Current>,
    drives: Drives,
    agent: Arc<AgentCounts>,
    clock: BootClock,
}

impl Host {
    fn new(root: Root, settings: CollectorSettings) -> Self {
        let CollectorSettings { periods, selection, refusals, agent } = settings;
        Self {
            root,
            current: Mutex::new(Current { periods: Arc::new(periods), selection, ..Current::default() }),
            drives: Drives::new(refusals),
            agent,
            clock: BootClock,
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Discovery and the host-wide sources.
    fn first_plans(&self) -> Vec<Change> {
        let periods = Arc::clone(&self.current().periods);
        let job = Job::host(Source::Discovery);
        let period = periods.of(Source::Discovery).unwrap_or(periods.rescan);
        let discovery = Plan { lane: Lane::of(&job, None), job, period };
        std::iter::once(discovery).chain(reads::of_host(&self.root, &periods)).map(Change::Plan).collect()
    }

    fn discover(&self) -> Done {
        let scan = discovery::scan(&self.root);
        let outcome = match &scan.incomplete {
            Some(fault) => Outcome::Failed(fault.clone()),
            None => {
                let found = Discovery { seen: scan.seen, faults: scan.faults.clone() };
                Outcome::Value(Box::new(Sample::Discovery(found)))
            }
        };
        let mut current = self.current();
        let next = current.inventory.next(scan, &current.selection);
        let replan = std::mem::take(&mut current.replan);
        let mut changes = current.inventory.changes(&next, &self.root, &current.periods, replan);
        for id in current.inventory.controllers.keys() {
            if !next.controllers.contains_key(id) {
                self.drives.forget(id);
            }
        }
        if *current.inventory != next {
            let (devices, controllers) = (next.devices.len(), next.controllers.len());
            tracing::info!(devices, controllers, "watched devices changed");
            // The counters of a new device stand in a table that may have been read just before.
            changes.push(Change::Hasten(Job::host(Source::Diskstats)));
            current.inventory = Arc::new(next);
        }
        Done { outcome, changes }
    }
}

impl Reader for Host {
    fn read(&self, job: &Job) -> Done {
        if *job == Job::host(Source::Discovery) {
            return self.discover();
        }
        let (inventory, periods) = {
            let current = self.current();
            (Arc::clone(&current.inventory), Arc::clone(&current.periods))
        };
        Context {
            root: &self.root,
            inventory: &inventory,
            periods: &periods,
            drives: &self.drives,
            agent: &self.agent,
            clock: &self.clock,
        }
        .read(job)
    }
}

/// A running collector. Dropping it stops it.
pub struct Collector {
    host: Arc<Host>,
    pool: Arc<Pool>,
    stopping: Arc<AtomicBool>,
}

impl Collector {
    /// Starts to watch `root`. Events go to `sink` from several threads, one at a time. A captured host is read again
    /// each period like a live one, so that a capture that is changed shows; it gets no command and hears no uevent.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(root: Root, settings: CollectorSettings, sink: Arc<dyn EventSink>) -> std::io::Result<Self> {
        let live = root.live;
        let host = Arc::new(Host::new(root, settings));
        let reader: Arc<dyn Reader> = Arc::clone(&host) as Arc<dyn Reader>;
        let pool = Arc::new(Pool::start(Schedule::default(), reader, sink, Arc::new(BootClock))?);
        pool.change(host.first_plans());
        let collector = Self { host, pool, stopping: Arc::new(AtomicBool::new(false)) };
        if live {
            collector.listen()?;
        }
        Ok(collector)
    }

    fn listen(&self) -> std::io::Result<()> {
        let (host, pool) = (Arc::clone(&self.host), Arc::downgrade(&self.pool));
        let stopping = Arc::clone(&self.stopping);
        std::thread::Builder::new().name("collect-uevent".to_owned()).stack_size(UEVENT_STACK_BYTES).spawn(
            move || {
                hear(&stopping, || {
                    if let Some(pool) = pool.upgrade() {
                        pool.change(after_uevent(&host));
                    }
                });
            },
        )?;
        Ok(())
    }

    /// Takes up new periods and another selection, and scans for devices soon; what drives refused and the agent's counts
    /// stay.
    pub fn reconfigure(&self, settings: CollectorSettings) {
        let mut current = self.host.current();
        current.periods = Arc::new(settings.periods);
        current.selection = settings.selection;
        current.replan = true;
        drop(current);
        let mut changes = self.host.first_plans();
        changes.push(Change::Hasten(Job::host(Source::Discovery)));
        self.pool.change(changes);
    }

    /// What drives refused up to now, to be kept for the next start.
    pub fn refusals(&self) -> Refusals {
        self.host.drives.refusals()
    }

    /// Ends at once: nothing is told any more. Threads that are stuck in the kernel are left behind.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.pool.stop();
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What a uevent may have changed: the devices, what they carry, their queue settings.
fn after_uevent(host: &Host) -> Vec<Change> {
    let inventory = Arc::clone(&host.current().inventory);
    let queues = inventory.devices.keys().map(|id| Job::new(Subject::Device(id.clone()), Source::Queue));
    [Job::host(Source::Discovery), Job::host(Source::Stack)].into_iter().chain(queues).map(Change::Hasten).collect()
}

/// Listens until `stopping`. Without a socket the periodic rescan has to do.
fn hear(stopping: &AtomicBool, changed: impl Fn()) {
    let stopped = || stopping.load(Ordering::Relaxed);
    let mut told = false;
    while !stopped() {
        let fault = match Listener::open() {
            Ok(mut listener) => loop {
                match listener.wait(UEVENT_WAIT) {
                    _ if stopped() => return,
                    Ok(Signal::Rescan) => changed(),
                    Ok(Signal::Nothing) => {}
                    Err(fault) => break fault,
                }
            },
            Err(fault) => fault,
        };
        if !std::mem::replace(&mut told, true) {
            tracing::warn!(%fault, "no hot-plug events; devices are found by the periodic rescan");
        }
        let mut waited = Duration::ZERO;
        while waited < UEVENT_RETRY && !stopped() {
            std::thread::sleep(UEVENT_WAIT);
            waited += UEVENT_WAIT;
        }
    }
}

/// A place for events in which nothing waits: what was not taken yet is replaced by what is newer.
impl EventSink for Mutex<storscope_model::outbox::Outbox> {
    fn put(&self, event: Event) {
        self.lock().unwrap_or_else(PoisonError::into_inner).put(event);
    }
}

#[cfg(test)]
mod tests;
