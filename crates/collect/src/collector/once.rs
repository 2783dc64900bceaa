//! One round: every source of every subject once.

use super::{BootClock, CollectorSettings, Host};
use crate::lanes::pool::{EventSink, Pool, Reader};
use crate::root::Root;
use crate::schedule::Schedule;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use storscope_model::event::Event;
use storscope_model::outbox::Outbox;

/// A round is over after this time, whatever hangs. It ends sooner when nothing but stalled reads is left, so this is for
/// hosts with thousands of devices.
pub const ROUND_LIMIT: Duration = Duration::from_secs(60);

/// Finds what is there and reads every source once, through the same lanes as [`super::Collector`]: what hangs costs
/// its own data, and is told as stalled after [`ROUND_LIMIT`].
///
/// What appeared comes first, then the reads by subject and source.
///
/// # Errors
/// A thread could not be started.
pub fn collect_once(root: Root, settings: CollectorSettings) -> std::io::Result<Vec<Event>> {
    let outbox = Arc::new(Mutex::new(Outbox::default()));
    let host = Arc::new(Host::new(root, settings));
    let reader: Arc<dyn Reader> = Arc::clone(&host) as Arc<dyn Reader>;
    let sink: Arc<dyn EventSink> = Arc::clone(&outbox) as Arc<dyn EventSink>;
    let pool = Pool::start(Schedule::once(), reader, sink, Arc::new(BootClock))?;
    pool.change(host.first_plans());
    pool.finish_round(ROUND_LIMIT);
    let mut outbox = outbox.lock().unwrap_or_else(PoisonError::into_inner);
    let mut events: Vec<Event> = std::iter::from_fn(|| outbox.take()).collect();
    events.sort_by_cached_key(|event| {
        let slot = event.slot();
        // Stable: what appeared keeps the order of discovery.
        slot.source().map(|source| (slot.subject().cloned(), source))
    });
    Ok(events)
}
