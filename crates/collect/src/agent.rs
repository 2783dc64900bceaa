//! The agent's own cost: `self/stat`, `self/limits` and `self/fd` of procfs (proc_pid_stat(5), proc_pid_limits(5)).

use crate::attribute::{MAX_ATTRIBUTE, fault, read_bytes, read_required};
use crate::root::Root;
use storscope_model::fault::Fault;
use storscope_model::sample::host::Agent;

/// Numbers of the `stat` line counted from the one after the command name, which is field 3 of the manual page.
const UTIME: usize = 11;
const STIME: usize = 12;
const THREADS: usize = 17;
const RESIDENT: usize = 21;

const NANOSECONDS: u64 = 1_000_000_000;

/// What this process has cost until now. The two counts are kept by the agent itself and passed on. A captured host
/// holds no agent: do not call it there.
///
/// # Errors
/// When `stat` or `fd` cannot be read, or `stat` is malformed.
pub fn read(root: &Root, log_lines_dropped: u64, events_superseded: u64) -> Result<Agent, Fault> {
    let path = root.proc("self/stat");
    let bytes = read_required(&path, MAX_ATTRIBUTE)?;
    let stat = parse_stat(&bytes).ok_or_else(|| {
        let path = path.display().to_string();
        Fault::parse(path, 1, "not a line of process status", &bytes)
    })?;
    Ok(Agent {
        cpu_ns: nanoseconds(stat.cpu_ticks, procfs::ticks_per_second()),
        resident_bytes: stat.resident_pages.saturating_mul(procfs::page_size()),
        threads: stat.threads,
        open_fds: open_fds(root)?,
        max_fds: max_fds(root),
        log_lines_dropped,
        events_superseded,
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    resident_pages: u64,
}

/// The command name may hold spaces and brackets: what counts begins after the last closing one.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let text = String::from_utf8_lossy(bytes);
    let (_, rest) = text.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_ascii_whitespace().take(RESIDENT + 1).collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    Some(Stat {
        cpu_ticks: number(UTIME)?.checked_add(number(STIME)?)?,
        threads: number(THREADS)?,
        resident_pages: number(RESIDENT)?,
    })
}

fn nanoseconds(ticks: u64, ticks_per_second: u64) -> u64 {
    let tick = NANOSECONDS.checked_div(ticks_per_second);
    ticks.saturating_mul(tick.unwrap_or_default())
}

/// Descriptors that are open, without the one that counts them.
fn open_fds(root: &Root) -> Result<u64, Fault> {
    let path = root.proc("self/fd");
    let entries = std::fs::read_dir(&path).map_err(|error| fault(&path, &error).unwrap_or(Fault::Gone))?;
    let count = u64::try_from(entries.count()).unwrap_or(u64::MAX);
    Ok(count.saturating_sub(1))
}

/// The soft limit of open files; `None` when unlimited or not to be had.
fn max_fds(root: &Root) -> Option<u64> {
    let bytes = read_bytes(&root.proc("self/limits"), MAX_ATTRIBUTE).ok()??;
    parse_limits(&bytes)
}

fn parse_limits(bytes: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(bytes);
    let limits = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    limits.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;

    const STAT: &str = "77 (a) b (c) S 1 77 77 0 -1 4194560 500 0 3 0 31 11 0 0 20 0 6 0 900 12345678 1500 \
                        18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0\n";
    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                          Max cpu time              unlimited            unlimited            seconds   \n\
                          Max open files            1024                 524288               files     \n";

    fn root(stat: &str, limits: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::host(dir.path());
        std::fs::create_dir_all(root.proc("self/fd")).unwrap();
        std::fs::write(root.proc("self/stat"), stat).unwrap();
        std::fs::write(root.proc("self/limits"), limits).unwrap();
        for name in ["0", "1", "2", "3"] {
            std::fs::write(root.proc("self/fd").join(name), "").unwrap();
        }
        (dir, root)
    }

    #[test]
    fn all_figures() {
        let (_dir, root) = root(STAT, LIMITS);
        let agent = read(&root, 5, 6).unwrap();
        assert_eq!(agent.cpu_ns, nanoseconds(42, procfs::ticks_per_second()));
        assert_eq!(agent.resident_bytes, 1500 * procfs::page_size());
        assert_eq!((agent.threads, agent.open_fds, agent.max_fds), (6, 3, Some(1024)));
        assert_eq!((agent.log_lines_dropped, agent.events_superseded), (5, 6));
        assert_eq!(nanoseconds(42, 100), 420_000_000);
    }

    #[test]
    fn this_process_has_a_cost() {
        let agent = read(&Root::live(), 0, 0).unwrap();
        assert!(agent.resident_bytes > 100_000, "{agent:?}");
        assert!(agent.threads >= 1 && agent.open_fds >= 3, "{agent:?}");
        assert!(agent.max_fds.is_none_or(|limit| limit >= agent.open_fds), "{agent:?}");
    }

    #[test]
    fn absent_and_malformed() {
        for stat in ["", "77 (a", ")", ") (", "77 (a) S 1 2 3\n", "7 (a) S 1 1 1 1 1 1 1 1 1 1 x 1 1 1 1 1 6 1 1 1 1\n"]
        {
            let (_dir, root) = root(stat, LIMITS);
            assert_eq!(read(&root, 0, 0).unwrap_err().class(), "parse", "{stat:?}");
        }
        for limits in ["", "Max open files unlimited unlimited files\n", "Max open files\n"] {
            let (_dir, root) = root(STAT, limits);
            assert_eq!(read(&root, 0, 0).unwrap().max_fds, None, "{limits:?}");
        }
        let (_dir, root) = root(STAT, LIMITS);
        std::fs::remove_file(root.proc("self/stat")).unwrap();
        assert_eq!(read(&root, 0, 0).unwrap_err().class(), "io");
    }

    #[test]
    fn a_denied_file_is_named() {
        if !unprivileged::go_on("agent::tests::a_denied_file_is_named") {
            return;
        }
        let (_dir, root) = root(STAT, LIMITS);
        unprivileged::deny(&root.proc("self/stat"));
        assert!(matches!(read(&root, 0, 0), Err(Fault::Denied { path, .. }) if path.ends_with("stat")));
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = (parse_stat(&bytes), parse_limits(&bytes));
        }

        #[test]
        fn near_lines_parse(text in "[()a 0-9]{0,12}\\)( [0-9S-]{1,21}){0,30}", limits in "Max open files[ 0-9a-z]{0,40}") {
            let _ = (parse_stat(text.as_bytes()), parse_limits(limits.as_bytes()));
        }
    }
}
