//! The processes of a running agent, and what they say to each other.
//!
//! ```text
//!               supervisor            reads files, opens sockets, starts the others
//!      orders │     │      │ orders
//!  ┌──────────┘     │      └─────────┐
//! collector      server           prober
//!     └─ events ──► │ ◄── events ────┘      (and requests the other way)
//! ```
//!
//! Each is this binary again, started with one end of a socket pair as its standard input, and knows by the name that it
//! was started under which one it is.

pub(crate) mod channel;
pub(crate) mod collector;
pub(crate) mod confine;
#[cfg(test)]
mod escapes;
pub(crate) mod filter;
pub(crate) mod link;
pub(crate) mod order;
pub(crate) mod prober;
pub(crate) mod syscalls;

use anyhow::{Context, bail};
use channel::Channel;
use order::{Notice, Order, Setup};
use serde::{Deserialize, Serialize};

/// Name of the supervisor's main thread.
pub(crate) const SUPERVISOR: &str = "storscope";

/// One process that the supervisor starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Reads what the kernel and the drives say. The only one with capabilities.
    Collector,
    /// Reads block devices and times it. The only one with io_uring.
    Prober,
    /// Keeps the state, judges, answers. The only one that the network reaches.
    Server,
}

impl Part {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Collector, Self::Prober, Self::Server];

    /// Name in metrics, log and status.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Collector => "collector",
            Self::Prober => "prober",
            Self::Server => "server",
        }
    }

    /// What the process is started as, and what ps(1) shows.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Collector => "storscope: collector",
            Self::Prober => "storscope: prober",
            Self::Server => "storscope: server",
        }
    }

    /// Name of the main thread, of at most 15 bytes (PR_SET_NAME(2const)), which top(1) and the kernel's log show.
    pub(crate) const fn comm(self) -> &'static str {
        match self {
            Self::Collector => "storscope-coll",
            Self::Prober => "storscope-probe",
            Self::Server => "storscope-serve",
        }
    }

    /// Which one this process was started as; `None` for a command of a person.
    pub(crate) fn of_this_process() -> Option<Self> {
        let started_as = std::env::args_os().next()?;
        Self::ALL.into_iter().find(|part| started_as == part.title())
    }
}

/// Runs this process as `part` until the supervisor ends it or is gone.
///
/// # Errors
/// When it was not started by a supervisor, or cannot do its work.
pub(crate) fn run(part: Part) -> anyhow::Result<()> {
    let channel = Channel::inherited().context("no supervisor: this process is started by `storscope serve`")?;
    let first = channel.receive::<Order>().context("no supervisor: this process is started by `storscope serve`")?;
    let (Order::Begin(setup), None) = first else {
        bail!("the supervisor's first order is not to begin");
    };
    confine::name(part);
    let notices = channel.try_clone()?;
    let setup: Setup = *setup;
    let result = match part {
        Part::Collector => collector::run(channel, setup),
        Part::Prober => prober::run(channel, setup),
        Part::Server => crate::serve::run(channel, setup),
    };
    if let Err(error) = &result {
        // Who is gone need not know.
        let _ = notices.send(&Notice::Failing(format!("{error:#}")), None);
    }
    result
}
