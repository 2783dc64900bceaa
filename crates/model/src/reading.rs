//! A value with its age, or the reason why there is none.

use crate::fault::Fault;
use crate::time::BootTime;
use std::sync::Arc;
use std::time::Duration;

/// One read section: the value, and when the read began and ended in boot time.
#[derive(Debug)]
pub struct Stamped<T> {
    /// What was read.
    pub value: Arc<T>,
    /// Just before the first system call of the read.
    pub began: BootTime,
    /// Just after the last one.
    pub ended: BootTime,
}

impl<T> Clone for Stamped<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), began: self.began, ended: self.ended }
    }
}

/// The newest state of one source of one subject.
///
/// Rates, rules and metrics use only [`Reading::fresh`]; text for people may use [`Reading::last`] with its age.
#[derive(Debug, Default)]
pub enum Reading<T> {
    /// Nothing was read yet.
    #[default]
    Never,
    /// The last read succeeded.
    Fresh(Stamped<T>),
    /// The last read failed.
    Failed {
        /// Why.
        fault: Fault,
        /// When the first of the consecutive failures ended.
        since: BootTime,
        /// Consecutive failures.
        count: u64,
        /// Last good value.
        last: Option<Stamped<T>>,
    },
    /// A read is outstanding past its deadline, or nothing came for too long.
    Stalled {
        /// When the outstanding read began, or when the last value ended.
        since: BootTime,
        /// Last good value.
        last: Option<Stamped<T>>,
    },
    /// Not asked on purpose for now: the device sleeps, is suspended, or is not live.
    Withheld {
        /// Why, for people.
        why: String,
        /// When asking stopped.
        since: BootTime,
        /// Last good value.
        last: Option<Stamped<T>>,
    },
    /// The device or kernel does not offer this; it is not asked again until it changes.
    Unsupported {
        /// Why, for people.
        why: String,
    },
}

impl<T> Clone for Reading<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Never => Self::Never,
            Self::Fresh(stamped) => Self::Fresh(stamped.clone()),
            Self::Failed { fault, since, count, last } => {
                Self::Failed { fault: fault.clone(), since: *since, count: *count, last: last.clone() }
            }
            Self::Stalled { since, last } => Self::Stalled { since: *since, last: last.clone() },
            Self::Withheld { why, since, last } => {
                Self::Withheld { why: why.clone(), since: *since, last: last.clone() }
            }
            Self::Unsupported { why } => Self::Unsupported { why: why.clone() },
        }
    }
}

impl<T> Reading<T> {
    /// The newest good value, fresh or not, to be changed.
    pub(crate) const fn last_mut(&mut self) -> Option<&mut Stamped<T>> {
        match self {
            Self::Fresh(last) => Some(last),
            Self::Failed { last, .. } | Self::Stalled { last, .. } | Self::Withheld { last, .. } => last.as_mut(),
            Self::Never | Self::Unsupported { .. } => None,
        }
    }

    /// The value, only if the last read succeeded.
    pub fn fresh(&self) -> Option<&T> {
        self.fresh_stamped().map(|stamped| stamped.value.as_ref())
    }

    /// The value with its time, only if the last read succeeded.
    pub const fn fresh_stamped(&self) -> Option<&Stamped<T>> {
        match self {
            Self::Fresh(stamped) => Some(stamped),
            _ => None,
        }
    }

    /// The last good value, however old: for people, always shown with its age.
    pub const fn last(&self) -> Option<&Stamped<T>> {
        match self {
            Self::Fresh(stamped) => Some(stamped),
            Self::Failed { last, .. } | Self::Stalled { last, .. } | Self::Withheld { last, .. } => last.as_ref(),
            Self::Never | Self::Unsupported { .. } => None,
        }
    }

    fn take_last(&mut self) -> Option<Stamped<T>> {
        match std::mem::take(self) {
            Self::Fresh(stamped) => Some(stamped),
            Self::Failed { last, .. } | Self::Stalled { last, .. } | Self::Withheld { last, .. } => last,
            Self::Never | Self::Unsupported { .. } => None,
        }
    }

    /// Takes in a successful read.
    pub fn succeed(&mut self, value: T, began: BootTime, ended: BootTime) {
        *self = Self::Fresh(Stamped { value: Arc::new(value), began, ended });
    }

    /// Takes in a failed read that ended at `ended`.
    pub fn fail(&mut self, new: Fault, ended: BootTime) {
        let (since, count) = match self {
            Self::Failed { since, count, .. } => (*since, count.saturating_add(1)),
            _ => (ended, 1),
        };
        let last = self.take_last();
        *self = Self::Failed { fault: new, since, count, last };
    }

    /// Takes in that the outstanding read, begun at `began`, passed its deadline.
    pub fn stall(&mut self, began: BootTime) {
        let since = match self {
            Self::Stalled { since, .. } => *since,
            _ => began,
        };
        let last = self.take_last();
        *self = Self::Stalled { since, last };
    }

    /// Takes in that the source is not asked for now.
    pub fn withhold(&mut self, reason: String, at: BootTime) {
        let since = match self {
            Self::Withheld { since, .. } => *since,
            _ => at,
        };
        let last = self.take_last();
        *self = Self::Withheld { why: reason, since, last };
    }

    /// Takes in that the source is not offered.
    pub fn unsupport(&mut self, reason: String) {
        *self = Self::Unsupported { why: reason };
    }

    /// Turns a fresh value older than `limit` into a stalled one: a value is fresh or it is unavailable.
    pub fn expire(&mut self, now: BootTime, limit: Duration) {
        if let Self::Fresh(stamped) = self
            && now.since(stamped.ended) > limit
        {
            let ended = stamped.ended;
            self.stall(ended);
        }
    }

    /// The state as one word, as shown in `/status` and JSON.
    pub const fn state(&self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Fresh(_) => "fresh",
            Self::Failed { .. } => "failed",
            Self::Stalled { .. } => "stalled",
            Self::Withheld { .. } => "withheld",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// `Some(true)` when fresh, `Some(false)` when asked in vain, `None` when not asked: the value of `storscope_source_up`.
    pub const fn up(&self) -> Option<bool> {
        match self {
            Self::Fresh(_) => Some(true),
            Self::Failed { .. } | Self::Stalled { .. } => Some(false),
            Self::Never | Self::Withheld { .. } | Self::Unsupported { .. } => None,
        }
    }
}
