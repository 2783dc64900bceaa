//! What a process takes: CPU time, memory, threads, descriptors.

use anyhow::{Context, bail};
use std::fs;
use storscope_collect::root::Root;

/// Clock ticks a second in what the kernel prints (USER_HZ, proc(5)).
const USER_HZ: f64 = 100.0;

/// CPU time of a process up to now, all threads, ended ones too, in seconds.
///
/// # Errors
/// When the process is gone.
pub(super) fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    let path = Root::live().proc(&format!("{pid}/stat"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    cpu_of(&text).with_context(|| format!("{}: not as expected", path.display()))
}

fn cpu_of(stat: &str) -> Option<f64> {
    // The name, in parentheses, may hold anything: fields count from its end.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / USER_HZ)
}

/// Memory, threads and descriptors of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Resident set in MB (10^6 bytes).
    pub(super) rss_mb: f64,
    /// Its anonymous part in MB.
    pub(super) anonymous_mb: f64,
    /// Threads.
    pub(super) threads: u64,
    /// Open descriptors.
    pub(super) descriptors: usize,
    /// Most descriptors that it may open.
    pub(super) descriptor_limit: u64,
}

/// What a process holds now.
///
/// # Errors
/// When the process is gone.
#[allow(clippy::cast_precision_loss, reason = "kilobytes of a process fit")]
pub(super) fn held(pid: u32) -> anyhow::Result<Held> {
    let root = Root::live();
    let read = |name: &str| {
        let path = root.proc(&format!("{pid}/{name}"));
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let status = read("status")?;
    let limits = read("limits")?;
    let (Some(rss), Some(anonymous), Some(threads)) =
        (field(&status, "VmRSS:"), field(&status, "RssAnon:"), field(&status, "Threads:"))
    else {
        bail!("process {pid}: status without memory or threads")
    };
    Ok(Held {
        rss_mb: rss as f64 * 1024.0 / 1e6,
        anonymous_mb: anonymous as f64 * 1024.0 / 1e6,
        threads,
        descriptors: fs::read_dir(root.proc(&format!("{pid}/fd")))?.count(),
        descriptor_limit: field(&limits, "Max open files").unwrap_or(u64::MAX),
    })
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 900 0 3 0 150 50 0 0 20 0 9 0 100 0 0";
        assert_eq!(cpu_of(stat), Some(2.0));
        assert_eq!(cpu_of("7 (a) S 1"), None);
    }

    #[test]
    fn fields_are_found_by_name() {
        let status = "Name:\tx\nVmRSS:\t    9800 kB\nThreads:\t19\n";
        assert_eq!(field(status, "VmRSS:"), Some(9800));
        assert_eq!(
            field("Max open files            1024                 524288               files\n", "Max open files"),
            Some(1024)
        );
        assert_eq!(field(status, "RssAnon:"), None);
    }
}
