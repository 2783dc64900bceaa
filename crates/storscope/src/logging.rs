//! The log: to standard error, never blocking; what cannot be written is dropped and counted.

use crate::config::LogLevel;
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

/// Lines that may wait to be written.
const LINES: usize = 1024;

static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Changes the level of the running log.
pub(crate) struct Log {
    level: reload::Handle<LevelFilter, tracing_subscriber::Registry>,
    _writer: WorkerGuard,
}

/// Starts logging. Lines go out on their own thread until the returned value is dropped.
pub(crate) fn start(level: LogLevel) -> Log {
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).finish(std::io::stderr());
    let _ = DROPPED.set(writer.error_counter());
    let (filter, handle) = reload::Layer::new(filter(level));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal());
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
    Log { level: handle, _writer: guard }
}

impl Log {
    /// Logs at `level` from now on.
    pub(crate) fn set(&self, level: LogLevel) {
        let _ = self.level.reload(filter(level));
    }
}

/// Lines dropped because writing them would have blocked.
pub(crate) fn dropped() -> u64 {
    DROPPED.get().map_or(0, |counter| u64::try_from(counter.dropped_lines()).unwrap_or(u64::MAX))
}

const fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}
