//! What a program takes, its children's part included: CPU time, memory, threads, descriptors.

use anyhow::{Context, bail};
use std::fs;
use storscope_collect::root::Root;

/// Clock ticks a second in what the kernel prints (USER_HZ, proc(5)).
const USER_HZ: f64 = 100.0;

/// CPU time of a process and its children up to now, all threads, ended ones too, in seconds.
///
/// # Errors
/// When one of them is gone.
pub(super) fn cpu_seconds(pid: u32) -> anyhow::Result<f64> {
    family(pid)?.into_iter().try_fold(0.0, |sum, pid| {
        let path = Root::live().proc(&format!("{pid}/stat"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(sum + cpu_of(&text).with_context(|| format!("{}: not as expected", path.display()))?)
    })
}

/// A process and its children (`/proc/PID/task/TID/children`, proc_tid_children(5)).
fn family(pid: u32) -> anyhow::Result<Vec<u32>> {
    let path = Root::live().proc(&format!("{pid}/task/{pid}/children"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(std::iter::once(pid).chain(text.split_whitespace().filter_map(|word| word.parse().ok())).collect())
}

fn cpu_of(stat: &str) -> Option<f64> {
    // The name, in parentheses, may hold anything: fields count from its end.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / USER_HZ)
}

/// Memory, threads and descriptors of a process and its children.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    /// Proportional share of the resident set in MB (10^6 bytes): what several processes map counts for each in part.
    pub(super) pss_mb: f64,
    /// Resident sets, added up, in MB.
    pub(super) rss_mb: f64,
    /// Their anonymous part in MB.
    pub(super) anonymous_mb: f64,
    /// Threads.
    pub(super) threads: u64,
    /// Open descriptors.
    pub(super) descriptors: usize,
    /// Most descriptors that each may open.
    pub(super) descriptor_limit: u64,
}

/// What a process and its children hold now.
///
/// # Errors
/// When one of them is gone.
pub(super) fn held(pid: u32) -> anyhow::Result<Held> {
    let all = family(pid)?.into_iter().map(held_by).collect::<anyhow::Result<Vec<Held>>>()?;
    let sum = |part: fn(&Held) -> f64| all.iter().map(part).sum();
    Ok(Held {
        pss_mb: sum(|held| held.pss_mb),
        rss_mb: sum(|held| held.rss_mb),
        anonymous_mb: sum(|held| held.anonymous_mb),
        threads: all.iter().map(|held| held.threads).sum(),
        descriptors: all.iter().map(|held| held.descriptors).sum(),
        descriptor_limit: all.iter().map(|held| held.descriptor_limit).min().unwrap_or(u64::MAX),
    })
}

#[allow(clippy::cast_precision_loss, reason = "kilobytes of a process fit")]
fn held_by(pid: u32) -> anyhow::Result<Held> {
    let root = Root::live();
    let read = |name: &str| {
        let path = root.proc(&format!("{pid}/{name}"));
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let status = read("status")?;
    let (limits, rollup) = (read("limits")?, read("smaps_rollup")?);
    let (Some(rss), Some(anonymous), Some(threads)) =
        (field(&status, "VmRSS:"), field(&status, "RssAnon:"), field(&status, "Threads:"))
    else {
        bail!("process {pid}: status without memory or threads")
    };
    let pss = field(&rollup, "Pss:").with_context(|| format!("process {pid}: no Pss"))?;
    Ok(Held {
        pss_mb: pss as f64 * 1024.0 / 1e6,
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
