//! The agent's own cost: `stat`, `statm`, `limits` and `fd` of its processes in procfs (proc_pid_stat(5),
//! proc_pid_statm(5), proc_pid_limits(5)).

use crate::attribute::{MAX_ATTRIBUTE, fault, read_bytes, read_required};
use crate::root::Root;
use std::collections::BTreeMap;
use storscope_model::fault::Fault;
use storscope_model::sample::host::Agent;

/// Numbers of the `stat` line counted from the one after the command name, which is field 3 of the manual page.
const UTIME: usize = 11;
const STIME: usize = 12;
const THREADS: usize = 17;

/// Numbers of the `statm` line.
const RESIDENT: usize = 1;
const SHARED: usize = 2;

/// Most processes that are looked at.
const MAX_PROCESSES: usize = 16;

/// This process, in procfs.
const OWN: &str = "self";

/// Beginning of the name of every process of the agent.
const NAME: &str = "storscope";

const NANOSECONDS: u64 = 1_000_000_000;

/// The processes of the agent beside this one, and what those cost that have ended.
#[derive(Debug, Default)]
pub struct Processes {
    others: Vec<u32>,
    cpu_ns: BTreeMap<u32, u64>,
    ended_cpu_ns: u64,
}

impl Processes {
    /// Looks at the processes `ids` from now on, and at this one.
    pub fn set(&mut self, ids: impl IntoIterator<Item = u32>) {
        let own = std::process::id();
        self.others = ids.into_iter().filter(|id| *id != own).take(MAX_PROCESSES).collect();
        let ended = self.cpu_ns.extract_if(.., |id, _| !self.others.contains(id));
        self.ended_cpu_ns = ended.fold(self.ended_cpu_ns, |sum, (_, spent)| sum.saturating_add(spent));
    }
}

/// What the agent has cost until now. Pages that its processes share are counted once, as those of the process that
/// shares most. One that ends just now is left out. The two counts are kept by the agent itself and passed on. A captured
/// host holds no agent: do not call it there.
///
/// # Errors
/// When a file of this very process cannot be read or is malformed.
pub fn read(
    root: &Root,
    processes: &mut Processes,
    log_lines_dropped: u64,
    events_superseded: u64,
) -> Result<Agent, Fault> {
    let own = Cost::of(root, OWN)?;
    let mut all = vec![own];
    for id in &processes.others {
        // Where procfs is of another PID namespace the number may be that of a stranger.
        let Ok(cost) = Cost::of(root, &id.to_string()) else { continue };
        processes.cpu_ns.insert(*id, cost.cpu_ns);
        all.push(cost);
    }
    let sum = |part: fn(&Cost) -> u64| all.iter().map(part).fold(0, u64::saturating_add);
    let others = processes.cpu_ns.values().fold(processes.ended_cpu_ns, |sum, spent| sum.saturating_add(*spent));
    let shared = all.iter().map(|cost| cost.shared_bytes).max().unwrap_or_default();
    Ok(Agent {
        cpu_ns: own.cpu_ns.saturating_add(others),
        resident_bytes: sum(|cost| cost.own_bytes).saturating_add(shared),
        threads: sum(|cost| cost.threads),
        open_fds: sum(|cost| cost.open_fds),
        max_fds: max_fds(root),
        log_lines_dropped,
        events_superseded,
    })
}

/// What one process has cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_ns: u64,
    threads: u64,
    own_bytes: u64,
    shared_bytes: u64,
    open_fds: u64,
}

impl Cost {
    fn of(root: &Root, id: &str) -> Result<Self, Fault> {
        let parsed = |file: &str, parse: fn(&[u8]) -> Option<(u64, u64)>| {
            let path = root.proc(&format!("{id}/{file}"));
            let bytes = read_required(&path, MAX_ATTRIBUTE)?;
            parse(&bytes).ok_or_else(|| {
                let path = path.display().to_string();
                Fault::parse(path, 1, "not a line of process status", &bytes)
            })
        };
        let (ticks, threads) = parsed("stat", if id == OWN { parse_stat } else { parse_named_stat })?;
        let (resident, shared) = parsed("statm", parse_statm)?;
        Ok(Self {
            cpu_ns: nanoseconds(ticks, procfs::ticks_per_second()),
            threads,
            own_bytes: resident.saturating_sub(shared).saturating_mul(procfs::page_size()),
            shared_bytes: shared.saturating_mul(procfs::page_size()),
            open_fds: open_fds(root, id)?,
        })
    }
}

/// As [`parse_stat`], of a process that bears this program's name.
pub(crate) fn parse_named_stat(bytes: &[u8]) -> Option<(u64, u64)> {
    let text = String::from_utf8_lossy(bytes);
    text.split_once('(').filter(|(_, name)| name.starts_with(NAME)).and_then(|_| parse_stat(bytes))
}

/// Ticks of CPU and threads. The command name may hold spaces and brackets: what counts begins after the last closing
/// one.
fn parse_stat(bytes: &[u8]) -> Option<(u64, u64)> {
    let text = String::from_utf8_lossy(bytes);
    let (_, rest) = text.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_ascii_whitespace().take(THREADS + 1).collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    Some((number(UTIME)?.checked_add(number(STIME)?)?, number(THREADS)?))
}

/// Resident pages, and those of them that are of a file or shared.
pub(crate) fn parse_statm(bytes: &[u8]) -> Option<(u64, u64)> {
    let text = String::from_utf8_lossy(bytes);
    let words: Vec<&str> = text.split_ascii_whitespace().take(SHARED + 1).collect();
    let number = |index: usize| words.get(index)?.parse::<u64>().ok();
    Some((number(RESIDENT)?, number(SHARED)?))
}

fn nanoseconds(ticks: u64, ticks_per_second: u64) -> u64 {
    let tick = NANOSECONDS.checked_div(ticks_per_second);
    ticks.saturating_mul(tick.unwrap_or_default())
}

/// Descriptors that are open, without the one that counts them.
fn open_fds(root: &Root, id: &str) -> Result<u64, Fault> {
    let path = root.proc(&format!("{id}/fd"));
    let entries = std::fs::read_dir(&path).map_err(|error| fault(&path, &error).unwrap_or(Fault::Gone))?;
    let count = u64::try_from(entries.count()).unwrap_or(u64::MAX);
    Ok(count.saturating_sub(u64::from(id == OWN)))
}

/// The soft limit of open files; `None` when unlimited or not to be had.
fn max_fds(root: &Root) -> Option<u64> {
    let bytes = read_bytes(&root.proc("self/limits"), MAX_ATTRIBUTE).ok()??;
    parse_limits(&bytes)
}

pub(crate) fn parse_limits(bytes: &[u8]) -> Option<u64> {
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
    const STATM: &str = "3014 1500 900 600 0 400 0\n";
    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                          Max cpu time              unlimited            unlimited            seconds   \n\
                          Max open files            1024                 524288               files     \n";

    fn process(root: &Root, id: &str, stat: &str, statm: &str) {
        std::fs::create_dir_all(root.proc(&format!("{id}/fd"))).unwrap();
        std::fs::write(root.proc(&format!("{id}/stat")), stat).unwrap();
        std::fs::write(root.proc(&format!("{id}/statm")), statm).unwrap();
        for name in ["0", "1", "2", "3"] {
            std::fs::write(root.proc(&format!("{id}/fd/{name}")), "").unwrap();
        }
    }

    fn root(stat: &str, limits: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::host(dir.path());
        process(&root, "self", stat, STATM);
        std::fs::write(root.proc("self/limits"), limits).unwrap();
        (dir, root)
    }

    fn alone(root: &Root) -> Result<Agent, Fault> {
        read(root, &mut Processes::default(), 5, 6)
    }

    #[test]
    fn all_figures() {
        let (_dir, root) = root(STAT, LIMITS);
        let agent = alone(&root).unwrap();
        assert_eq!(agent.cpu_ns, nanoseconds(42, procfs::ticks_per_second()));
        assert_eq!(agent.resident_bytes, 1500 * procfs::page_size());
        assert_eq!((agent.threads, agent.open_fds, agent.max_fds), (6, 3, Some(1024)));
        assert_eq!((agent.log_lines_dropped, agent.events_superseded), (5, 6));
        assert_eq!(nanoseconds(42, 100), 420_000_000);
    }

    #[test]
    fn the_other_processes_count_and_what_one_cost_that_ended() {
        let (_dir, root) = root(STAT, LIMITS);
        let other = STAT.replace("(a) b (c)", "(storscope-probe)").replace(" 31 11 ", " 50 50 ");
        process(&root, "900", &other, "3014 1000 700 600 0 400 0\n");
        process(&root, "901", &STAT.replace("(a) b (c)", "(sh)"), STATM);
        let mut processes = Processes::default();
        processes.set([900, 901, 902]);
        let agent = read(&root, &mut processes, 0, 0).unwrap();
        let ticks = |ticks| nanoseconds(ticks, procfs::ticks_per_second());
        assert_eq!(agent.cpu_ns, ticks(42) + ticks(100));
        // 600 and 300 pages of their own, and the 900 of which the other one has a part.
        assert_eq!(agent.resident_bytes, (600 + 300 + 900) * procfs::page_size());
        assert_eq!((agent.threads, agent.open_fds), (12, 3 + 4));
        processes.set([]);
        assert_eq!(read(&root, &mut processes, 0, 0).unwrap().cpu_ns, ticks(42) + ticks(100));
    }

    #[test]
    fn this_process_has_a_cost() {
        let agent = alone(&Root::live()).unwrap();
        assert!(agent.resident_bytes > 100_000, "{agent:?}");
        assert!(agent.threads >= 1 && agent.open_fds >= 3, "{agent:?}");
        assert!(agent.max_fds.is_none_or(|limit| limit >= agent.open_fds), "{agent:?}");
    }

    #[test]
    fn absent_and_malformed() {
        for stat in ["", "77 (a", ")", ") (", "77 (a) S 1 2 3\n", "7 (a) S 1 1 1 1 1 1 1 1 1 1 x 1 1 1 1 1 6 1 1 1 1\n"]
        {
            let (_dir, root) = root(stat, LIMITS);
            assert_eq!(alone(&root).unwrap_err().class(), "parse", "{stat:?}");
        }
        for limits in ["", "Max open files unlimited unlimited files\n", "Max open files\n"] {
            let (_dir, root) = root(STAT, limits);
            assert_eq!(alone(&root).unwrap().max_fds, None, "{limits:?}");
        }
        let (_dir, root) = root(STAT, LIMITS);
        std::fs::remove_file(root.proc("self/stat")).unwrap();
        assert_eq!(alone(&root).unwrap_err().class(), "io");
    }

    #[test]
    fn a_denied_file_is_named() {
        if !unprivileged::go_on("agent::tests::a_denied_file_is_named") {
            return;
        }
        let (_dir, root) = root(STAT, LIMITS);
        unprivileged::deny(&root.proc("self/stat"));
        assert!(matches!(alone(&root), Err(Fault::Denied { path, .. }) if path.ends_with("stat")));
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = (parse_stat(&bytes), parse_statm(&bytes), parse_limits(&bytes));
        }

        #[test]
        fn near_lines_parse(text in "[()a 0-9]{0,12}\\)( [0-9S-]{1,21}){0,30}", limits in "Max open files[ 0-9a-z]{0,40}") {
            let _ = (parse_stat(text.as_bytes()), parse_limits(limits.as_bytes()));
        }
    }
}
