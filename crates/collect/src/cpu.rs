//! CPU time and task counts, `/proc/stat` and `/proc/loadavg` (proc_stat(5), proc_loadavg(5)).

use crate::attribute::{MAX_ATTRIBUTE, MAX_PROC_FILE, read_bytes, read_required};
use crate::root::Root;
use storscope_model::fault::Fault;
use storscope_model::sample::host::Cpu;

/// user, nice, system, idle, iowait, irq, softirq, steal: guest and guest_nice follow, and are part of user and nice.
const TIMES: usize = 8;
/// Times up to iowait, which every kernel prints.
const MIN_TIMES: usize = 5;
const IDLE: usize = 3;
const IOWAIT: usize = 4;

/// CPU time, runnable and blocked tasks, load.
///
/// # Errors
/// When `/proc/stat` cannot be read or has no line of CPU time; all else that fails is a fault within the sample.
pub fn read(root: &Root) -> Result<Cpu, Fault> {
    let path = root.proc("stat");
    let bytes = read_required(&path, MAX_PROC_FILE)?;
    let mut cpu = parse(&path.display().to_string(), &bytes)?;
    let path = root.proc("loadavg");
    let load = read_bytes(&path, MAX_ATTRIBUTE).and_then(|bytes| match bytes {
        None => Ok(None),
        Some(bytes) => load1(&bytes).map(Some).ok_or_else(|| {
            let path = path.display().to_string();
            Fault::parse(path, 1, "no load average", &bytes)
        }),
    });
    match load {
        Ok(load) => cpu.load1 = load,
        Err(fault) => cpu.faults.push(fault),
    }
    Ok(cpu)
}

/// What `/proc/stat` holds, without the load.
pub(crate) fn parse(path: &str, bytes: &[u8]) -> Result<Cpu, Fault> {
    let mut cpu = Cpu::default();
    let mut found = false;
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        match words.next() {
            Some(b"cpu") => {
                let bad = || Fault::parse(path, number, "not a line of CPU time", line);
                let times = times(words).ok_or_else(bad)?;
                cpu.total_ticks = times.iter().fold(0, |sum, time| time.saturating_add(sum));
                cpu.idle_ticks = times[IDLE];
                cpu.iowait_ticks = times[IOWAIT];
                found = true;
            }
            Some(word @ (b"procs_running" | b"procs_blocked")) => {
                let count = words.next().and_then(count);
                if count.is_none() {
                    cpu.faults.push(Fault::parse(path, number, "not a count of tasks", line));
                }
                match word {
                    b"procs_running" => cpu.running = count,
                    _ => cpu.blocked = count,
                }
            }
            _ => {}
        }
    }
    if found { Ok(cpu) } else { Err(Fault::parse(path, 1, "no line of CPU time", bytes)) }
}

/// The times that are there, the others zero: an older kernel does not account them.
fn times<'a>(words: impl Iterator<Item = &'a [u8]>) -> Option<[u64; TIMES]> {
    let mut times = [0; TIMES];
    let mut found = 0;
    for (place, word) in times.iter_mut().zip(words) {
        *place = count(word)?;
        found += 1;
    }
    (found >= MIN_TIMES).then_some(times)
}

fn count(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The load average over 1 min.
pub(crate) fn load1(bytes: &[u8]) -> Option<f64> {
    let word = bytes.split(u8::is_ascii_whitespace).next()?;
    let decimal = word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let load: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (decimal && load.is_finite()).then_some(load)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;

    const STAT: &str = "cpu  100 20 30 4000 50 6 7 8 90 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5 0 0\nctxt 9\n\
                        btime 1700000000\nprocesses 77\nprocs_running 3\nprocs_blocked 2\nsoftirq 1 2\n";

    fn root(stat: &str, load: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir(root.proc("")).unwrap();
        std::fs::write(root.proc("stat"), stat).unwrap();
        std::fs::write(root.proc("loadavg"), load).unwrap();
        (dir, root)
    }

    #[test]
    fn guest_time_is_not_counted_twice() {
        let (_dir, root) = root(STAT, "0.42 0.30 0.20 3/214 999\n");
        let expected = Cpu {
            total_ticks: 4221,
            idle_ticks: 4000,
            iowait_ticks: 50,
            running: Some(3),
            blocked: Some(2),
            load1: Some(0.42),
            faults: Vec::new(),
        };
        assert_eq!(read(&root), Ok(expected));
    }

    #[test]
    fn fewer_times_and_no_task_counts() {
        let (_dir, root) = root("cpu 1 2 3 4 5\n", "1.00\n");
        let cpu = read(&root).unwrap();
        assert_eq!((cpu.total_ticks, cpu.running, cpu.blocked), (15, None, None));
        assert!(cpu.faults.is_empty());
    }

    #[test]
    fn absent_files() {
        let (_dir, root) = root(STAT, "");
        std::fs::remove_file(root.proc("loadavg")).unwrap();
        let cpu = read(&root).unwrap();
        assert_eq!((cpu.load1, cpu.faults.len()), (None, 0));
        std::fs::remove_file(root.proc("stat")).unwrap();
        assert_eq!(read(&root).unwrap_err().class(), "io");
    }

    #[test]
    fn malformed_files() {
        for stat in [
            "",
            "cpu0 1 2 3 4 5 6 7 8\n",
            "cpu 1 2 3 4\n",
            "cpu 1 2 3 4 x\n",
            "cpu 1 2 3 4 18446744073709551616\n",
            "c\0pu 1 2 3 4 5\n",
        ] {
            let (_dir, root) = root(stat, "1.0\n");
            assert_eq!(read(&root).unwrap_err().class(), "parse", "{stat:?}");
        }
        let max = u64::MAX;
        let text = format!("cpu {max} {max} 3 4 5\nprocs_running x\nprocs_blocked 4\n");
        for load in ["", "x", "-1 2 3\n", "nan\n", "inf\n"] {
            let (_dir, root) = root(&text, load);
            let cpu = read(&root).unwrap();
            assert_eq!((cpu.total_ticks, cpu.running, cpu.blocked, cpu.load1), (max, None, Some(4), None));
            assert_eq!(cpu.faults.len(), 2, "{load:?}");
        }
    }

    #[test]
    fn a_denied_load_costs_only_itself() {
        if !unprivileged::go_on("cpu::tests::a_denied_load_costs_only_itself") {
            return;
        }
        let (_dir, root) = root(STAT, "1.0\n");
        unprivileged::deny(&root.proc("loadavg"));
        let cpu = read(&root).unwrap();
        assert_eq!(cpu.running, Some(3));
        assert!(matches!(cpu.faults.as_slice(), [Fault::Denied { .. }]));
        unprivileged::deny(&root.proc("stat"));
        assert_eq!(read(&root).unwrap_err().class(), "denied");
    }

    proptest! {
        #[test]
        fn any_bytes_parse(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            let _ = (parse("stat", &bytes), load1(&bytes));
        }

        #[test]
        fn near_lines_parse(text in "(cpu|procs_running|procs_blocked)( [0-9]{0,21}){0,11}\n(cpu|ctxt)? ?[0-9 ]{0,40}\n?") {
            let _ = parse("stat", text.as_bytes());
        }
    }
}
