//! The two waits for a request head: from its first byte on it has to come soon, before that a connection may idle longer.
//!
//! hyper has one limit for both, measured by a timer that it is given: this one gives more time as long as nothing was
//! heard since the last answer.

use hyper::rt::{Sleep, Timer};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Whether a byte was read since the wait for the newest head began.
pub(super) type Heard = Arc<AtomicBool>;

/// The timer of one connection.
pub(super) struct HeadTimer {
    heard: Heard,
    /// Limit of a head from its first byte on, and of the first head from the beginning of the connection on.
    head: Duration,
    /// Limit of the wait for the first byte of any further head.
    idle: Duration,
    /// The first head was waited for.
    used: AtomicBool,
}

impl HeadTimer {
    pub(super) const fn new(heard: Heard, head: Duration, idle: Duration) -> Self {
        Self { heard, head, idle, used: AtomicBool::new(false) }
    }

    fn wait(&self, limit: Duration) -> Pin<Box<dyn Sleep>> {
        let idle = self.used.swap(true, Ordering::Relaxed);
        self.heard.store(false, Ordering::Relaxed);
        let timer = tokio::time::sleep(if idle { self.idle } else { limit });
        Box::pin(HeadSleep { timer: Box::pin(timer), idle, heard: Arc::clone(&self.heard), head: self.head })
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.wait(duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.wait(deadline.saturating_duration_since(self.now()))
    }
}

struct HeadSleep {
    timer: Pin<Box<tokio::time::Sleep>>,
    /// Nothing was heard yet.
    idle: bool,
    heard: Heard,
    head: Duration,
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.idle && self.heard.load(Ordering::Relaxed) {
            self.idle = false;
            let deadline = tokio::time::Instant::now() + self.head;
            self.timer.as_mut().reset(deadline);
        }
        self.timer.as_mut().poll(context)
    }
}
