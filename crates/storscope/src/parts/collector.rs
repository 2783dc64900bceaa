//! The collector's process.

use super::channel::Channel;
use super::link::Outgoing;
use super::order::{Notice, Order, Setup};
use super::{Part, confine};
use crate::{logging, settings};
use anyhow::Context;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;
use storscope_collect::collector::{AgentCounts, Collector, EventSink};
use storscope_model::event::Event;
use storscope_model::refused::Refused;
use storscope_model::request::Request;

/// How long the first reads wait for what drives refused before the start; without it they are asked once more.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time between two looks at what drives refuse and at the counts that the agent keeps itself, and between two notices.
const LOOK: Duration = Duration::from_secs(5);

/// Refusals that wait to be taken in: one list a link.
const LISTS: usize = 4;

/// Runs until the supervisor ends it.
///
/// # Errors
/// A want of threads or descriptors.
pub(super) fn run(channel: Channel, setup: Setup) -> anyhow::Result<()> {
    let mut lacks = confine::privileges(Part::Collector);
    lacks.extend(confine::system_calls(Part::Collector));
    let log = logging::start(setup.config.log_level);
    confine::tell(Part::Collector, &lacks);
    let root = setup.host.root();
    let counts = Arc::new(AgentCounts::default());
    let outgoing = Arc::new(Outgoing::default());
    let (orders_in, orders) = mpsc::channel();
    let (refused_in, refused) = mpsc::sync_channel(LISTS);
    let listener = Arc::clone(&outgoing);
    let notices = channel.try_clone()?;
    thread::Builder::new()
        .name("orders".to_owned())
        .spawn(move || obey(&channel, &listener, &refused_in, &orders_in))
        .context("cannot start a thread")?;

    let known = refused.recv_timeout(PATIENCE).unwrap_or_default();
    let settings = settings::collector(&setup.config, &known, Arc::clone(&counts))?;
    let collector =
        Collector::start(root, settings, Arc::clone(&outgoing) as _).context("cannot start the collector")?;
    let mut told = Vec::new();
    loop {
        match orders.recv_timeout(LOOK) {
            Ok(Order::Use(config)) => {
                log.set(config.log_level);
                // The supervisor has checked the patterns.
                collector.reconfigure(settings::collector(&config, &[], Arc::clone(&counts))?);
            }
            Ok(Order::Parts { own, .. }) => {
                let ids = own.iter().filter_map(|part| part.pid);
                counts.processes.lock().unwrap_or_else(PoisonError::into_inner).set(ids);
            }
            Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
        }
        // One that cannot be sent is the same as none.
        let _ = notices.send(&Notice::Alive, None);
        counts.log_lines_dropped.store(logging::dropped(), Ordering::Relaxed);
        counts.events_superseded.store(outgoing.superseded(), Ordering::Relaxed);
        let now = settings::refused(&collector.refusals());
        if now != told {
            outgoing.put(Event::Refusals(now.clone()));
            told = now;
        }
    }
}

/// Takes orders until the supervisor is gone. Links are taken up here: they must not wait for anything.
fn obey(channel: &Channel, outgoing: &Arc<Outgoing>, refused: &SyncSender<Vec<Refused>>, orders: &mpsc::Sender<Order>) {
    while let Ok((order, passed)) = channel.receive::<Order>() {
        match (order, passed) {
            (Order::Link(Part::Server), Some(stream)) => {
                let refused = refused.clone();
                let attached = outgoing.attach(UnixStream::from(stream), move |request| {
                    if let Request::Refusals(list) = request {
                        // A list that finds no place is one of a restarted server: what it knows came from here.
                        let _ = refused.try_send(list);
                    }
                });
                if let Err(error) = attached {
                    tracing::error!(%error, "no link to the server");
                }
            }
            (order, _) => {
                if orders.send(order).is_err() {
                    return;
                }
            }
        }
    }
}
