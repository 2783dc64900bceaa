//! What the host as a whole gives: the kernel's files, io_uring, descriptors, hot-plug events.

use super::report::Check;
use crate::deadline::{NoResult, within};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use std::path::Path;
use std::time::Duration;
use storscope_collect::root::Root;
use storscope_collect::uevent::Listener;
use storscope_collect::{attribute, diskstats, pressure};
use storscope_model::event::Outcome;
use storscope_model::fault::Fault;
use storscope_probe::{Config, EngineChoice, Prober, StartError};

/// Time for the kernel's files.
const FILES_LIMIT: Duration = Duration::from_secs(5);
/// Descriptors that a device may take, and those of the agent itself with its connections.
const PER_DEVICE: u64 = 4;
const OWN: u64 = 320;

/// Everything about the host of which `devices` devices are watched.
pub(super) fn checks(root: &Root, devices: usize) -> Vec<Check> {
    let files = root.clone();
    let mut checks = within(FILES_LIMIT, move || kernel_files(&files)).unwrap_or_else(|why| {
        let what = match why {
            NoResult::Late => format!("procfs or sysfs did not answer within {} s", FILES_LIMIT.as_secs()),
            NoResult::Failed(error) => format!("cannot be looked at: {error}"),
        };
        vec![Check::denied("kernel files", what)]
    });
    if root.live {
        checks.extend(container(root));
        checks.push(ring(root));
        checks.push(descriptors(devices));
        checks.push(events());
    }
    checks
}

fn kernel_files(root: &Root) -> Vec<Check> {
    vec![sysfs(root), counters(root), stall_information(root), mounts(root)]
}

fn sysfs(root: &Root) -> Check {
    let class = root.sys("class/block");
    let place = root.sys.display();
    let unlisted = |folder: &Path| attribute::names(folder, 0).1;
    match unlisted(&class).and_then(|error| unlisted(&root.sys("block")).map(|_| error)) {
        None => Check::fine("sysfs", format!("readable at {place}")),
        Some(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Check::denied("sysfs", format!("{} cannot be read: {error}", class.display()))
        }
        Some(_) => Check::lacks("sysfs", format!("not at {place}: no device can be found"))
            .mend(format!("mount -t sysfs sysfs {place}")),
    }
}

fn counters(root: &Root) -> Check {
    let path = root.proc("diskstats");
    let path = path.display();
    match diskstats::read(root) {
        Ok(table) if table.rows.is_empty() => Check::lacks(
            "diskstats",
            format!("{path} is empty: a container or a mount option (subset=pid) hides the counters of all disks"),
        )
        .mend("storscope serve --host-root /host   # with the host's folders mounted below /host"),
        Ok(table) => Check::fine("diskstats", format!("{} devices counted in {path}", table.rows.len())),
        Err(Fault::Denied { .. }) => Check::denied("diskstats", format!("{path}: permission denied")),
        Err(fault) => Check::lacks("diskstats", fault.to_string()),
    }
}

fn stall_information(root: &Root) -> Check {
    match pressure::read(root) {
        Outcome::Value(_) => Check::fine("pressure", "pressure stall information is there"),
        Outcome::Failed(fault @ Fault::Denied { .. }) => Check::denied("pressure", fault.to_string()),
        Outcome::Failed(fault) => Check::lacks("pressure", fault.to_string()),
        Outcome::Unsupported(_) | Outcome::Withheld(_) => Check::lacks(
            "pressure",
            "no pressure stall information: whether it is storage at all is told by iowait alone. \
             Needs a kernel with CONFIG_PSI, booted with psi=1",
        )
        .boot_with("psi=1"),
    }
}

/// Under hidepid, or in a service's own mount namespace, only this process's own mounts can be seen.
fn mounts(root: &Root) -> Check {
    let of_first = root.proc("1/mountinfo");
    match attribute::read_bytes(&of_first, 16 << 20) {
        Ok(Some(_)) => Check::fine("mounts", "those of the first process are readable"),
        _ if attribute::read_bytes(&root.proc("self/mountinfo"), 16 << 20).is_ok_and(|text| text.is_some()) => {
            Check::lacks(
                "mounts",
                format!("{} cannot be read: mount points are told as this process sees them", of_first.display()),
            )
        }
        _ => Check::lacks("mounts", "no mountinfo: what a disk carries is not told"),
    }
}

/// A container has mounts and device nodes of its own.
fn container(root: &Root) -> Option<Check> {
    const MARKS: [&str; 2] = ["/run/.containerenv", "/.dockerenv"];
    let marked = MARKS.iter().any(|mark| Path::new(mark).exists());
    let told = ["container", "KUBERNETES_SERVICE_HOST"].iter().any(|name| std::env::var_os(name).is_some());
    if *root != Root::live() || !(marked || told) {
        return None;
    }
    let what = "this runs in a container: mount points and device nodes are the container's, not the host's";
    Some(
        Check::lacks("container", what)
            .mend("-v /:/host:ro,rslave                     # for the container, and in it")
            .mend("storscope serve --host-root /host"),
    )
}

fn ring(root: &Root) -> Check {
    let switch = attribute::read_u64(&root.proc("sys/kernel/io_uring_disabled")).ok().flatten();
    let started = Prober::start(Config { engine: EngineChoice::IoUring, ..Config::default() }, |_| {});
    let error = match started {
        Ok(_) => return Check::fine("io_uring", "allowed: probes use it"),
        Err(StartError::Ring(error)) => error,
        Err(error) => return Check::denied("io_uring", error.to_string()),
    };
    let fallback = "probes use pread instead, at some more CPU time";
    match (switch, error.raw_os_error().map(Errno::from_raw)) {
        (Some(1 | 2), _) => {
            let value = switch.unwrap_or_default();
            Check::lacks("io_uring", format!("switched off (kernel.io_uring_disabled={value}): {fallback}"))
                .mend("sysctl -w kernel.io_uring_disabled=0")
        }
        (_, Some(Errno::ENOSYS)) => Check::lacks("io_uring", format!("the kernel has none: {fallback}")),
        (_, Some(Errno::EPERM | Errno::EACCES)) => {
            let what = format!(
                "refused ({error}), though not by sysctl: a seccomp filter of a service or container; {fallback}"
            );
            Check::lacks("io_uring", what)
                .mend("SystemCallFilter=@aio                    # in the service unit, or")
                .mend("--security-opt seccomp=PROFILE           # a profile that allows io_uring, for a container")
        }
        _ => Check::lacks("io_uring", format!("{error}: {fallback}")),
    }
}

fn descriptors(devices: usize) -> Check {
    let wanted = u64::try_from(devices).unwrap_or(u64::MAX).saturating_mul(PER_DEVICE).saturating_add(OWN);
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard >= wanted => {
            Check::fine("descriptors", format!("up to {hard}; {wanted} are enough here"))
        }
        Ok((_, hard)) => Check::lacks("descriptors", format!("at most {hard}; {devices} devices may need {wanted}"))
            .mend(format!("ulimit -Hn {wanted}                # or LimitNOFILE={wanted} in the service unit")),
        Err(error) => Check::lacks("descriptors", format!("their limit cannot be read: {error}")),
    }
}

fn events() -> Check {
    match Listener::open() {
        Ok(_) => Check::fine("uevents", "heard: a new disk shows at once"),
        Err(fault) => {
            Check::lacks("uevents", format!("not heard ({fault}): a new disk shows after the next rescan, within 60 s"))
                .mend("RestrictAddressFamilies=AF_NETLINK AF_INET AF_INET6 AF_UNIX   # in the service unit")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Verdict;
    use super::*;

    fn verdicts(root: &Root) -> Vec<(String, Verdict)> {
        checks(root, 1).into_iter().map(|check| (check.subject, check.verdict)).collect()
    }

    #[test]
    fn a_bare_root_lacks_everything() {
        let dir = tempfile::tempdir().unwrap();
        let found = verdicts(&Root::captured(dir.path()));
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|(_, verdict)| *verdict == Verdict::Lacks), "{found:?}");
    }

    #[test]
    fn a_captured_host_is_judged_by_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::captured(dir.path());
        for folder in [root.sys("class/block"), root.proc("pressure"), root.proc("1")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(root.proc("diskstats"), "8 0 sda 1 2 3 4 5 6 7 8 0 9 10\n").unwrap();
        std::fs::write(root.proc("1/mountinfo"), "").unwrap();
        std::fs::write(root.proc("pressure/io"), "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n").unwrap();
        let found = verdicts(&root);
        assert!(found.iter().all(|(_, verdict)| *verdict == Verdict::Fine), "{found:?}");
        std::fs::write(root.proc("diskstats"), "").unwrap();
        let counters = counters(&root);
        assert_eq!(counters.verdict, Verdict::Lacks);
        assert!(counters.mend[0].contains("--host-root"), "{counters:?}");
    }

    #[test]
    fn descriptors_grow_with_the_devices() {
        assert_eq!(descriptors(usize::MAX).verdict, Verdict::Lacks);
        assert_eq!(descriptors(1).verdict, Verdict::Fine);
    }
}
