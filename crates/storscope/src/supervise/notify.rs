//! What the service manager is told (sd_notify(3)); nothing where there is none.

use sd_notify::NotifyState;

/// Tells the service manager.
#[derive(Debug)]
pub(super) struct Notify {
    manager: bool,
}

impl Notify {
    /// To the one that the environment names.
    pub(super) fn from_environment() -> Self {
        Self { manager: std::env::var_os("NOTIFY_SOCKET").is_some() }
    }

    fn send(&self, states: &[NotifyState<'_>]) {
        if self.manager
            && let Err(error) = sd_notify::notify(states)
        {
            tracing::debug!(%error, "service manager not told");
        }
    }

    /// The server answers.
    pub(super) fn ready(&self) {
        self.send(&[NotifyState::Ready]);
    }

    /// The configuration is read again.
    pub(super) fn reloading(&self) {
        self.send(&[NotifyState::Reloading]);
    }

    /// The agent ends.
    pub(super) fn stopping(&self) {
        self.send(&[NotifyState::Stopping]);
    }

    /// This process goes round, and what is to be shown of the agent.
    pub(super) fn alive(&self, sentence: &str) {
        self.send(&[NotifyState::Watchdog, NotifyState::Status(sentence)]);
    }
}
