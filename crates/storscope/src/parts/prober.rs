//! The prober's process.

use super::channel::Channel;
use super::link::Outgoing;
use super::order::{Order, Setup};
use super::{Part, confine};
use crate::logging;
use crate::prober::Adapter;
use anyhow::Context;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use storscope_collect::collector::EventSink;
use storscope_model::event::Event;

/// Runs until the supervisor ends it. A configuration that changes what a prober is started with comes with a new process.
///
/// # Errors
/// A demanded engine that cannot be had; a want of threads or descriptors.
pub(super) fn run(channel: Channel, setup: Setup) -> anyhow::Result<()> {
    let mut lacks = confine::privileges(Part::Prober);
    lacks.extend(confine::system_calls(Part::Prober));
    let log = logging::start(setup.config.log_level);
    confine::tell(Part::Prober, &lacks);
    let outgoing = Arc::new(Outgoing::default());
    let prober = Adapter::start(setup.host.root(), &setup.config, Arc::clone(&outgoing) as _)
        .context("cannot start the prober")?;
    let (engine, fallback) = prober.engine();
    outgoing.put(Event::Engine { engine, fallback });
    let prober = Arc::new(prober);
    while let Ok((order, passed)) = channel.receive::<Order>() {
        match (order, passed) {
            (Order::Link(Part::Server), Some(stream)) => {
                let prober = Arc::clone(&prober);
                outgoing.attach(UnixStream::from(stream), move |request| prober.request(request))?;
            }
            (Order::Use(config), _) => log.set(config.log_level),
            (Order::End, _) => break,
            _ => {}
        }
    }
    Ok(())
}
