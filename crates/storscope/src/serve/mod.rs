//! `storscope serve`: collector and prober behind socket pairs, one state, HTTP.

mod agent;
mod collector;
mod holder;
mod memory;
mod pipe;
mod reload;

use crate::cli::ServeArgs;
use crate::config::Config;
use crate::http::{self, Requests, Shared};
use crate::{limits, logging};
use agent::Agent;
use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use storscope_collect::clock;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior};

/// How long after a read of the counters the analysis waits for what was read in the same tick.
const SETTLE: Duration = Duration::from_millis(200);

/// How often the state is handed to the thread that writes it.
const SAVE: Duration = Duration::from_secs(60);

/// Runs until a signal ends it.
///
/// # Errors
/// A configuration that cannot be used, an address that cannot be listened on, or a want of threads or descriptors.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let config = reload::read(args)?;
    let log = logging::start(config.log_level);
    let descriptors = limits::raise_descriptors()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let result = runtime.block_on(serve(args, config, &log, descriptors));
    // Tasks and threads that wait for a device are not waited for.
    runtime.shutdown_background();
    result
}

async fn serve(args: &ServeArgs, config: Config, log: &logging::Log, descriptors: u64) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let listeners = config.listen.iter().map(|address| http::listen(*address)).collect::<anyhow::Result<Vec<_>>>()?;

    let requests = Arc::new(Requests::default());
    let mut agent = Agent::start(args, config, Arc::clone(&requests))?;

    let shared = Arc::new(Shared::new(agent.views.subscribe(), requests, clock::now));
    let permits = Arc::new(Semaphore::new(limits::connections(agent.config.http.max_connections, descriptors)));
    for listener in listeners {
        let address = listener.local_addr()?;
        tracing::info!("listening on http://{address}/status");
        let router = http::router(Arc::clone(&shared));
        tokio::spawn(http::serve(listener, router, agent.config.http, Arc::clone(&permits)));
    }

    let mut tick = tokio::time::interval(agent.config.periods.tick);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut save = tokio::time::interval_at(Instant::now() + SAVE, SAVE);
    let mut due: Option<Instant> = None;
    loop {
        let settled = tokio::time::sleep_until(due.unwrap_or_else(|| Instant::now() + SAVE));
        tokio::select! {
            Some(event) = agent.collected.events.recv() => {
                if agent.apply(event) {
                    due.get_or_insert_with(|| Instant::now() + SETTLE);
                }
            }
            Some(event) = agent.probed.events.recv() => {
                agent.apply(event);
            }
            () = settled, if due.is_some() => {
                due = None;
                agent.turn();
                tick.reset();
            }
            // A whole period after each analysis, however long it took, is for events and requests.
            _ = tick.tick() => {
                agent.turn();
                tick.reset();
            }
            _ = save.tick() => agent.save(),
            _ = hangup.recv() => {
                agent.reload(args, log);
                tick = tokio::time::interval(agent.config.periods.tick);
                tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            }
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    tracing::info!("ending");
    agent.end();
    Ok(())
}
