//! The two waits for a request head: from its first byte on it has to come soon, before that a connection may idle longer.
//!
//! hyper has one limit for both, measured by a timer that it is given: this one gives more time as long as nothing was
//! heard since the last answer.

use hyper::rt::{Sleep, Timer};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What a connection is at, shared by those that see a part of it.
#[derive(Debug, Clone)]
pub(super) struct Heard(Arc<Mutex<State>>);

#[derive(Debug, Clone, Copy)]
struct State {
    at: At,
    since: Instant,
    /// The client has yet to take what was written. The wait for the next head may have begun.
    untaken: bool,
}

/// What it is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    /// Between two requests: nothing was read since the last answer.
    Idle,
    /// At a request head, the first one also before its first byte.
    Head,
    /// At an answer.
    Answer,
}

impl Default for Heard {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { at: At::Head, since: Instant::now(), untaken: false })))
    }
}

impl Heard {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, at: At) {
        let mut state = self.state();
        (state.at, state.since) = (at, Instant::now());
    }

    /// The wait for a further request begins.
    pub(super) fn idle(&self) {
        self.set(At::Idle);
    }

    /// Something was read.
    pub(super) fn read(&self) {
        if self.is_idle() {
            self.set(At::Head);
        }
    }

    /// A request is there and is being answered.
    pub(super) fn answering(&self) {
        self.set(At::Answer);
    }

    /// A write waits for the client, or no longer.
    pub(super) fn writing(&self, waits: bool) {
        self.state().untaken = waits;
    }

    /// True from a whole request on until its answer was taken.
    pub(super) fn is_answering(&self) -> bool {
        let state = self.state();
        state.untaken || state.at == At::Answer
    }

    fn is_idle(&self) -> bool {
        self.state().at == At::Idle
    }

    /// How soon the connection should make way: the smaller the sooner. `None` for one that is being answered, or that
    /// has been at a head for less than `grace`.
    pub(super) fn rank(&self, now: Instant, grace: Duration) -> Option<impl Ord + use<>> {
        let State { at, since, untaken } = *self.state();
        let may_stay = untaken
            || match at {
                At::Idle => false,
                At::Head => now.saturating_duration_since(since) < grace,
                At::Answer => true,
            };
        (!may_stay).then_some((at, since))
    }
}

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
        if idle {
            self.heard.idle();
        }
        let timer = tokio::time::sleep(if idle { self.idle } else { limit });
        Box::pin(HeadSleep { timer: Box::pin(timer), idle, heard: self.heard.clone(), head: self.head })
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
        if self.idle && !self.heard.is_idle() {
            self.idle = false;
            let deadline = tokio::time::Instant::now() + self.head;
            self.timer.as_mut().reset(deadline);
        }
        self.timer.as_mut().poll(context)
    }
}
