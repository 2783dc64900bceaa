//! Host name, kernel, boot time, CPUs and memory: by sysinfo on this host, from the same kernel files elsewhere.

use crate::attribute::{MAX_PROC_FILE, read_bytes};
use crate::root::Root;
use std::path::Path;
use storscope_model::fault::Fault;
use storscope_model::sample::host::HostInfo;
use sysinfo::{CpuRefreshKind, System};

/// What is known of the host. What the host does not have is `None`; what cannot be read is a fault within the sample.
///
/// # Errors
/// The first fault when nothing at all could be read.
pub fn read(root: &Root) -> Result<HostInfo, Fault> {
    if *root == Root::live() {
        return Ok(this_host());
    }
    let mut info = HostInfo::default();
    let mut faults = Vec::new();
    info.hostname = text(&root.proc("sys/kernel/hostname"), &mut faults, word);
    info.kernel = text(&root.proc("sys/kernel/osrelease"), &mut faults, word)
        .or_else(|| text(&root.proc("version"), &mut faults, release));
    if let Some(stat) = text(&root.proc("stat"), &mut faults, |stat| Some(stat.to_owned())) {
        info.boot_time_unix = value(&stat, "btime");
        info.cpus = cpus(&stat);
    }
    if let Some(memory) = text(&root.proc("meminfo"), &mut faults, |memory| Some(memory.to_owned())) {
        info.memory_bytes = kibibytes(&memory, "MemTotal:");
        info.memory_available_bytes = kibibytes(&memory, "MemAvailable:");
    }
    if info == HostInfo::default() && !faults.is_empty() {
        return Err(faults.swap_remove(0));
    }
    info.faults = faults;
    Ok(info)
}

fn this_host() -> HostInfo {
    let known = |number: u64| (number > 0).then_some(number);
    let mut info = HostInfo {
        hostname: System::host_name().ok(),
        kernel: System::kernel_version().ok(),
        boot_time_unix: System::boot_time().ok().and_then(known),
        ..HostInfo::default()
    };
    if let Ok(mut system) = System::new() {
        system.refresh_memory();
        system.refresh_cpu_list(CpuRefreshKind::nothing());
        info.cpus = u64::try_from(system.cpus().len()).ok().and_then(known);
        // sysinfo gives 0 for what the kernel does not say.
        info.memory_bytes = known(system.total_memory());
        info.memory_available_bytes = known(system.available_memory());
    }
    info
}

/// What `parse` makes of the file; `None` when there is none.
fn text(path: &Path, faults: &mut Vec<Fault>, parse: impl Fn(&str) -> Option<String>) -> Option<String> {
    match read_bytes(path, MAX_PROC_FILE) {
        Ok(bytes) => parse(&String::from_utf8_lossy(&bytes?)),
        Err(fault) => {
            faults.push(fault);
            None
        }
    }
}

/// The first word.
fn word(text: &str) -> Option<String> {
    text.split_whitespace().next().map(str::to_owned)
}

/// The release in `Linux version RELEASE (…`.
fn release(text: &str) -> Option<String> {
    word(text.strip_prefix("Linux version ")?)
}

/// The number after the word `key` that begins a line.
fn value(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// The number of `key` in bytes; the kernel prints kilobytes of 1024.
fn kibibytes(text: &str, key: &str) -> Option<u64> {
    value(text, key)?.checked_mul(1024)
}

/// Lines `cpu0`, `cpu1`, …; none is unknown.
fn cpus(stat: &str) -> Option<u64> {
    let numbered = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let count = stat.lines().filter(numbered).count();
    u64::try_from(count).ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unprivileged;
    use proptest::prelude::*;

    fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        std::fs::create_dir_all(root.proc("sys/kernel")).unwrap();
        for (name, text) in files {
            std::fs::write(root.proc(name), text).unwrap();
        }
        (dir, root)
    }

    const STAT: &str = "cpu  1 2 3 4 5\ncpu0 1 2 3 4 5\ncpu1 1 2 3 4 5\nintr 1\nbtime 1700000000\n";

    #[test]
    fn a_captured_host() {
        let (_dir, root) = root(&[
            ("sys/kernel/hostname", "db-17\n"),
            ("sys/kernel/osrelease", "6.12.1-amd64\n"),
            ("version", "Linux version 5.0 (x)\n"),
            ("stat", STAT),
            ("meminfo", "MemTotal:       16042172 kB\nMemFree: 1 kB\nMemAvailable:    563248 kB\n"),
        ]);
        let expected = HostInfo {
            hostname: Some("db-17".to_owned()),
            kernel: Some("6.12.1-amd64".to_owned()),
            boot_time_unix: Some(1_700_000_000),
            cpus: Some(2),
            memory_bytes: Some(16_042_172 * 1024),
            memory_available_bytes: Some(563_248 * 1024),
            faults: Vec::new(),
        };
        assert_eq!(read(&root), Ok(expected));
    }

    #[test]
    fn this_host_by_sysinfo() {
        let info = read(&Root::live()).unwrap();
        let kernel = read_bytes(&Root::live().proc("sys/kernel/osrelease"), MAX_PROC_FILE).unwrap().unwrap();
        assert_eq!(info.kernel.unwrap(), String::from_utf8(kernel).unwrap().trim_end());
        assert!(info.cpus.is_some() && info.memory_bytes.is_some() && info.boot_time_unix.is_some());
        assert!(info.memory_available_bytes <= info.memory_bytes);
    }

    #[test]
    fn absent_files_are_unknown() {
        let (_dir, root) = root(&[("version", "Linux version 4.16.15-300.fc27.x86_64 (builder) #1 SMP\n")]);
        let expected = HostInfo { kernel: Some("4.16.15-300.fc27.x86_64".to_owned()), ..HostInfo::default() };
        assert_eq!(read(&root), Ok(expected));
        std::fs::remove_file(root.proc("version")).unwrap();
        assert_eq!(read(&root), Ok(HostInfo::default()));
    }

    #[test]
    fn malformed_files_are_unknown() {
        let (_dir, root) = root(&[
            ("sys/kernel/hostname", "\n"),
            ("version", "Linux"),
            ("stat", "btime x\ncpu\0"),
            ("meminfo", "MemTotal: 18446744073709551615 kB\nMemAvailable:\n"),
        ]);
        assert_eq!(read(&root), Ok(HostInfo::default()));
    }

    #[test]
    fn a_denied_file_costs_only_itself() {
        if !unprivileged::go_on("host_info::tests::a_denied_file_costs_only_itself") {
            return;
        }
        let (_dir, root) = root(&[("sys/kernel/hostname", "db-17\n"), ("stat", STAT)]);
        unprivileged::deny(&root.proc("stat"));
        let info = read(&root).unwrap();
        assert_eq!((info.hostname.as_deref(), info.cpus), (Some("db-17"), None));
        assert!(matches!(info.faults.as_slice(), [Fault::Denied { .. }]));
        unprivileged::deny(&root.proc("sys/kernel/hostname"));
        assert_eq!(read(&root).unwrap_err().class(), "denied");
    }

    proptest! {
        #[test]
        fn any_text_parses(text in any::<String>()) {
            let _ = (word(&text), release(&text), value(&text, "btime"), kibibytes(&text, "M"), cpus(&text));
        }

        #[test]
        fn near_lines_parse(text in "((btime|cpu|MemTotal:)[ 0-9]{0,24}\n?){0,6}") {
            let _ = (value(&text, "btime"), kibibytes(&text, "MemTotal:"), cpus(&text));
        }
    }
}
