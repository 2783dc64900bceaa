//! Waiting for work that may never return: a system call on a sick device cannot be cancelled.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Why work gave no result.
#[derive(Debug)]
pub(crate) enum NoResult {
    /// It had not ended after the time that it was given. Its thread is left behind.
    Late,
    /// Its thread could not be started, or panicked.
    Failed(io::Error),
}

/// Runs `work` on a thread of its own and waits at most `limit` for it.
///
/// # Errors
/// [`NoResult`].
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoResult> {
    let (tell, told) = channel();
    let worker = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
        // Nobody listens any more after the deadline.
        let _ = tell.send(work());
    });
    if let Err(error) = worker {
        return Err(NoResult::Failed(error));
    }
    told.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => NoResult::Late,
        RecvTimeoutError::Disconnected => NoResult::Failed(io::ErrorKind::BrokenPipe.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn work_that_ends_gives_its_result() {
        assert!(matches!(within(Duration::from_secs(60), || 7), Ok(7)));
    }

    #[test]
    fn work_that_hangs_is_left_behind() {
        let (release, held) = channel::<()>();
        assert!(matches!(within(Duration::ZERO, move || held.recv()), Err(NoResult::Late)));
        drop(release);
    }
}
