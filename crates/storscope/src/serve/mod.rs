//! The server's process: the state, the analysis and HTTP. It reaches no device; collector and prober tell it what they
//! found.

mod agent;
pub(crate) mod confine;
mod holder;
mod link;
mod memory;

use crate::http::{self, Crowd, Shared};
use crate::parts::channel::Channel;
use crate::parts::order::{Notice, Order, Setup};
use crate::parts::{Part, confine as confinement};
use crate::{limits, logging};
use agent::Agent;
use anyhow::Context;
use memory::Opening;
use std::io;
use std::net::TcpListener as StdListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use storscope_collect::clock;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// How long after a read of the counters the analysis waits for what was read in the same tick.
const SETTLE: Duration = Duration::from_millis(200);

/// How often the state is handed to the thread that writes it.
const SAVE: Duration = Duration::from_secs(60);

/// How often the supervisor is told that the loop goes round.
const ALIVE: Duration = Duration::from_secs(5);

/// How long the end waits for answers that have begun.
const LAST_ANSWERS: Duration = Duration::from_millis(100);

/// Orders that wait to be carried out.
const ORDERS: usize = 64;

/// Runs until the supervisor ends it.
///
/// # Errors
/// A want of threads or descriptors.
pub(crate) fn run(channel: Channel, setup: Setup) -> anyhow::Result<()> {
    let mut lacks = confinement::privileges(Part::Server);
    // The boot id has to be read while files can be.
    let boot_id = clock::boot_id(&setup.host.root());
    let opening = setup.config.state_dir.as_deref().map(memory::open);
    lacks.extend(confine::no_files());
    lacks.extend(confinement::system_calls(Part::Server));
    let log = logging::start(setup.config.log_level);
    confinement::tell(Part::Server, &lacks);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let agent = || Agent::new(&setup, boot_id, opening.map(Opening::wait));
    let result = runtime.block_on(serve(channel, &setup, agent, &log));
    // A thread that waits for the state directory is not waited for.
    runtime.shutdown_background();
    result
}

async fn serve(
    channel: Channel,
    setup: &Setup,
    agent: impl FnOnce() -> Agent,
    log: &logging::Log,
) -> anyhow::Result<()> {
    let mut agent = agent();
    let notices = channel.try_clone()?;
    let mut orders = listen_for_orders(channel)?;
    let shared = Arc::new(Shared::new(agent.views.subscribe(), Arc::clone(&agent.requests), clock::now));
    let crowd = Crowd::new(limits::connections(setup.config.http.max_connections, setup.descriptors));
    let mut tick = ticking(agent.config.periods.tick);
    let mut save = tokio::time::interval_at(Instant::now() + SAVE, SAVE);
    let mut alive = tokio::time::interval(ALIVE);
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
            _ = alive.tick() => tell(&notices, Notice::Alive),
            order = orders.recv() => match order {
                Some((Order::Listen, Some(socket))) => {
                    answer(socket, &shared, &crowd, &agent)?;
                    tell(&notices, Notice::Ready);
                }
                Some((Order::Use(config), _)) => {
                    log.set(config.log_level);
                    agent.reconfigure(*config);
                    tick = ticking(agent.config.periods.tick);
                }
                Some((Order::End, _)) | None => break,
                Some((order, passed)) => agent.obey(order, passed),
            },
        }
    }
    tracing::info!("ending");
    agent.end();
    crowd.answered(LAST_ANSWERS).await;
    Ok(())
}

fn ticking(period: Duration) -> Interval {
    let mut tick = tokio::time::interval(period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}

/// The supervisor looks at the time between two notices; one that cannot be sent is the same as none.
fn tell(notices: &Channel, notice: Notice) {
    if let Err(error) = notices.send(&notice, None) {
        tracing::debug!(%error, "notice not sent");
    }
}

fn answer(socket: OwnedFd, shared: &Arc<Shared>, crowd: &Arc<Crowd>, agent: &Agent) -> io::Result<()> {
    let listener = StdListener::from(socket);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    tracing::info!("listening on http://{}/status", listener.local_addr()?);
    let router = http::router(Arc::clone(shared));
    tokio::spawn(http::serve(listener, router, agent.config.http, Arc::clone(crowd)));
    Ok(())
}

/// Receives orders on a thread of its own, so that the supervisor never waits for the loop.
fn listen_for_orders(channel: Channel) -> io::Result<mpsc::Receiver<(Order, Option<OwnedFd>)>> {
    let (out, orders) = mpsc::channel(ORDERS);
    thread::Builder::new().name("orders".to_owned()).spawn(move || {
        while let Ok(order) = channel.receive::<Order>() {
            if out.blocking_send(order).is_err() {
                return;
            }
        }
    })?;
    Ok(orders)
}
