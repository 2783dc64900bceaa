//! How busy the host was while figures were taken.

use std::fs;
use std::thread;
use std::time::Duration;
use storscope_collect::root::Root;

/// The load averages of 1, 5 and 15 minutes as the kernel prints them; says so when they cannot be read.
pub(super) fn read() -> String {
    let text = fs::read_to_string(Root::live().proc("loadavg"));
    let words = |text: String| text.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    text.map_or_else(|error| format!("unknown ({error})"), words)
}

/// One line on the host and the run.
pub(super) fn describe(before: &str, after: &str, took: Duration) -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string(Root::live().proc("sys/kernel/osrelease"));
    let kernel = kernel.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    format!(
        "{cores} cores, Linux {kernel}, {} s; load average {before} at the begin, {after} at the end",
        took.as_secs()
    )
}
