//! Processes of an agent that has ended: stuck in the kernel, they outlive it (proc_pid_stat(5)).

use crate::attribute::{MAX_ATTRIBUTE, read_bytes};
use crate::root::Root;

/// Most processes that are looked at, and most that are told.
const MAX_PROCESSES: usize = 100_000;
const MAX_FORMER: usize = 16;

/// Numbers of the `stat` line counted from the one after the command name, which is field 3 of the manual page.
const PARENT: usize = 1;
const THREADS: usize = 17;
const START: usize = 19;

/// A process whose agent is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    /// Process id.
    pub pid: u32,
    /// Name of its main thread.
    pub name: String,
    /// When it was started, in clock ticks since boot: another process with its id has another one.
    start: u64,
}

/// The processes named as one of `names` whose parent is not named `parent`.
pub fn look(root: &Root, names: &[&str], parent: &str) -> Vec<Former> {
    // Without procfs nothing is known of anybody.
    let Ok(entries) = std::fs::read_dir(root.proc("")) else { return Vec::new() };
    let ids = entries.take(MAX_PROCESSES).filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let named = ids.filter_map(|pid| Stat::of(root, pid)).filter(|stat| names.contains(&stat.former.name.as_str()));
    let orphans = named.filter(|stat| Stat::of(root, stat.parent).is_none_or(|above| above.former.name != parent));
    orphans.map(|stat| stat.former).take(MAX_FORMER).collect()
}

impl Former {
    /// True until it is gone.
    pub fn is_there(&self, root: &Root) -> bool {
        Stat::of(root, self.pid).is_some_and(|stat| stat.former == *self)
    }
}

pub(crate) struct Stat {
    former: Former,
    parent: u32,
}

impl Stat {
    fn of(root: &Root, pid: u32) -> Option<Self> {
        let bytes = read_bytes(&root.proc(&format!("{pid}/stat")), MAX_ATTRIBUTE).ok()??;
        Self::parse(pid, &bytes)
    }

    /// `None` also for a process that only waits to be reaped.
    pub(crate) fn parse(pid: u32, bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, rest) = text.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().take(START + 1).collect();
        let number = |index: usize| words.get(index)?.parse::<u64>().ok();
        // Of a killed process whose other threads are stuck, the main one is a zombie that nobody can reap yet.
        if *words.first()? == "Z" && number(THREADS)? < 2 {
            return None;
        }
        let former = Former { pid, name: name.to_owned(), start: number(START)? };
        Some(Self { former, parent: u32::try_from(number(PARENT)?).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn process(root: &Root, pid: u32, name: &str, state: &str, parent: u32, start: u64) {
        threads(root, pid, name, state, parent, start, 1);
    }

    fn threads(root: &Root, pid: u32, name: &str, state: &str, parent: u32, start: u64, threads: u64) {
        std::fs::create_dir_all(root.proc(&pid.to_string())).unwrap();
        let line = format!("{pid} ({name}) {state} {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 {start} 0 0\n");
        std::fs::write(root.proc(&format!("{pid}/stat")), line).unwrap();
    }

    #[test]
    fn only_orphans_of_these_names_are_former_ones_until_they_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::host(dir.path());
        process(&root, 1, "init", "S", 0, 1);
        process(&root, 700, "storscope", "S", 1, 500);
        process(&root, 701, "probe", "S", 700, 501);
        process(&root, 650, "probe", "D", 1, 400);
        process(&root, 651, "probe", "Z", 1, 400);
        process(&root, 652, "other", "D", 1, 400);
        threads(&root, 653, "probe", "Z", 1, 410, 2);
        let mut former = look(&root, &["probe"], "storscope");
        former.sort_by_key(|former| former.pid);
        let expected = |pid, start| Former { pid, name: "probe".to_owned(), start };
        assert_eq!(former, [expected(650, 400), expected(653, 410)]);
        assert!(former[0].is_there(&root));
        process(&root, 650, "probe", "S", 700, 900);
        assert!(!former[0].is_there(&root), "another process has the id");
        std::fs::remove_dir_all(root.proc("650")).unwrap();
        assert!(!former[0].is_there(&root));
    }

    #[test]
    fn a_host_without_procfs_has_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(look(&Root::host(dir.path()), &["probe"], "storscope").is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Stat::parse(1, &bytes);
        }

        #[test]
        fn near_lines_parse(text in "[0-9]{1,3} \\([()a-z ]{0,9}\\)( [0-9SDZ-]{1,20}){0,24}") {
            let _ = Stat::parse(1, text.as_bytes());
        }
    }
}
