//! The supervisor's process: what a person or systemd starts. It reads the configuration, opens the listening sockets,
//! starts collector, prober and server, starts again what ended, and ends them all. It touches no device and parses no
//! request.

mod backoff;
mod child;
mod family;
mod notify;
mod reload;
mod sockets;

use crate::cli::ServeArgs;
use crate::parts::order::{Host, Notice, Setup};
use crate::parts::{Part, confine};
use crate::{limits, logging, settings};
use anyhow::Context;
use child::News;
use family::Family;
use notify::Notify;
use std::time::{Duration, Instant};
use storscope_collect::clock;
use tokio::signal::unix::{SignalKind, signal};

/// How long the parts may take to end in order.
const GRACE: Duration = Duration::from_millis(900);

/// How long server and collector may say nothing before they count as stuck.
const SILENCE: Duration = Duration::from_secs(60);

/// Time between two looks at what is due.
const LOOK: Duration = Duration::from_secs(1);

/// Runs until a signal ends it.
///
/// # Errors
/// A configuration that cannot be used, an address that cannot be listened on, or a want of descriptors or processes.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    confine::name_supervisor();
    let config = reload::read(args)?;
    let root = args.select.checked_host()?;
    let descriptors = limits::raise_descriptors()?;
    let log = logging::start(config.log_level);
    let setup = Setup {
        config_file: args.config.as_ref().map(|file| file.display().to_string()),
        host: Host::of(&args.select),
        started: clock::now(),
        descriptors,
        config,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(supervise(args, setup, root.live, &log))
}

async fn supervise(args: &ServeArgs, setup: Setup, live: bool, log: &logging::Log) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let notify = Notify::from_environment();
    let listeners = sockets::open(&setup.config.listen)?;
    let wanted = |part| part != Part::Prober || settings::probes_off(&setup.config, live).is_none();
    let mut family = Family::new(setup.clone(), listeners);
    for part in Part::ALL.into_iter().filter(|part| wanted(*part)) {
        family.start(part).with_context(|| format!("cannot start the {}", part.as_str()))?;
    }
    let mut look = tokio::time::interval(LOOK);
    loop {
        let due = family.next_due();
        let pause = tokio::time::sleep_until(due.unwrap_or_else(|| Instant::now() + LOOK).into());
        tokio::select! {
            Some(news) = family.next() => match news {
                News::Ended(ended) => family.ended(ended),
                News::Said(part, notice) => {
                    family.heard(part);
                    match notice {
                        Notice::Ready => notify.ready(),
                        Notice::Alive => {}
                        Notice::Failing(why) => family.failing(part, why),
                    }
                }
            },
            _ = look.tick() => {
                family.end_stuck(&[Part::Server, Part::Collector], SILENCE);
                family.look_for_former();
                notify.alive(&family.sentence());
            }
            () = pause, if due.is_some() => family.start_due(),
            _ = hangup.recv() => {
                notify.reloading();
                reload(args, live, &mut family, log);
                notify.ready();
            }
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    tracing::info!("ending");
    notify.stopping();
    family.end(GRACE).await;
    Ok(())
}

/// Reads the configuration again. A bad one changes nothing and is told in log, metric and status.
fn reload(args: &ServeArgs, live: bool, family: &mut Family, log: &logging::Log) {
    let new = match reload::read(args) {
        Ok(new) => new,
        Err(error) => {
            let mistakes = reload::mistakes(&error);
            for mistake in &mistakes {
                tracing::error!("configuration is kept as it was: {mistake}");
            }
            family.refuse(mistakes);
            return;
        }
    };
    for key in reload::needs_restart(family.config(), &new) {
        tracing::warn!(key, "takes effect at the next start");
    }
    log.set(new.log_level);
    let probes = settings::probes_off(&new, live).is_none();
    let anew = reload::needs_new_prober(family.config(), &new);
    family.configure(&new);
    match (probes, family.runs(Part::Prober)) {
        (true, false) => family.start_soon(Part::Prober),
        (true, true) if anew => family.replace(Part::Prober),
        _ => {}
    }
}
