//! How long a part that ended waits before it is started again.

use std::time::{Duration, Instant};

/// First pause.
const FIRST: Duration = Duration::from_millis(100);
/// A part that has run for this long is well: the next pause is the first again.
const WELL: Duration = Duration::from_secs(60);

/// The pauses of one part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// When a part that began at `began` and ended `now` is started again: after `longest` at most.
    pub(super) fn after(&mut self, began: Instant, now: Instant, longest: Duration) -> Instant {
        if now.saturating_duration_since(began) >= WELL {
            self.next = FIRST;
        }
        let pause = self.next.min(longest);
        self.next = (pause * 2).min(longest);
        now + pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_a_good_run() {
        let mut backoff = Backoff::default();
        let longest = Duration::from_secs(30);
        let begun = Instant::now();
        let mut pause = |ran: Duration| {
            let now = begun + ran;
            backoff.after(begun, now, longest) - now
        };
        let quick = Duration::from_secs(1);
        let pauses: Vec<Duration> = (0..12).map(|_| pause(quick)).collect();
        assert_eq!(pauses[..4], [100, 200, 400, 800].map(Duration::from_millis));
        assert_eq!(pauses[11], longest);
        assert_eq!(pause(WELL), FIRST);
        assert_eq!(pause(quick), FIRST * 2);
    }
}
