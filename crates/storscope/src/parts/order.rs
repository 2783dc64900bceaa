//! What the supervisor tells a part, and what a part tells the supervisor. Both sets are closed.

use super::Part;
use crate::cli::SelectArgs;
use crate::config::Config;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use storscope_collect::root::Root;
use storscope_model::time::BootTime;
use storscope_model::view::PartState;

/// An order. `with` says what descriptor comes along.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The first one.
    Begin(Box<Setup>),
    /// To the server, with a listening socket: answer there.
    Listen,
    /// With one end of a socket pair: the other end is held by this part from now on. A former pair is to be forgotten.
    Link(Part),
    /// The configuration was read again and is to be used.
    Use(Box<Config>),
    /// To the server: the configuration was read again and is not used, for these reasons.
    Refused(Vec<String>),
    /// To server and collector: how the processes fare, the supervisor among them, and which of a former agent are
    /// still there.
    Parts {
        /// Those of this agent.
        own: Vec<PartState>,
        /// Those of a former one, stuck in the kernel.
        former: Vec<(String, u32)>,
    },
    /// End in order.
    End,
}

/// What a part needs to begin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The configuration in use.
    pub(crate) config: Config,
    /// Where it came from; `None` when built-in defaults are used.
    pub(crate) config_file: Option<String>,
    /// The host to look at.
    pub(crate) host: Host,
    /// When the agent was started.
    pub(crate) started: BootTime,
    /// Descriptors that this process may open.
    pub(crate) descriptors: u64,
}

/// The host to look at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Host {
    /// This one.
    Live,
    /// One that is mounted under a prefix.
    Mounted(PathBuf),
    /// A captured one.
    Captured(PathBuf),
}

impl Host {
    /// The one that `select` names.
    pub(crate) fn of(select: &SelectArgs) -> Self {
        match (&select.root, &select.host_root) {
            (Some(dir), _) => Self::Captured(dir.clone()),
            (None, Some(prefix)) => Self::Mounted(prefix.clone()),
            (None, None) => Self::Live,
        }
    }

    /// Where its files are.
    pub(crate) fn root(&self) -> Root {
        match self {
            Self::Live => Root::live(),
            Self::Mounted(prefix) => Root::host(prefix),
            Self::Captured(dir) => Root::captured(dir),
        }
    }
}

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Notice {
    /// From the server: it answers on every socket that it was given.
    Ready,
    /// From server and collector: the loop goes round.
    Alive,
    /// Why it ends now, for people.
    Failing(String),
}
