//! What this process may do: its effective capabilities (capabilities(7), proc_pid_status(5)).

use super::report::{Check, Verdict};
use storscope_collect::attribute::{MAX_ATTRIBUTE, read_bytes};
use storscope_collect::root::Root;

/// Numbers of capabilities (linux/capability.h).
const DAC_OVERRIDE: u8 = 1;
const SYS_RAWIO: u8 = 17;
const SYS_ADMIN: u8 = 21;
const SYSLOG: u8 = 34;

/// The effective set of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Privileges(u64);

/// What of this host needs a capability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// NVMe controllers that are watched.
    pub(super) nvme_controllers: usize,
    /// Rotating ATA disks that are watched.
    pub(super) ata_disks: usize,
}

impl Privileges {
    /// Of this process, or of the one that captured `root`; `None` when that is not known.
    pub(super) fn of(root: &Root) -> Option<Self> {
        let status = if root.live { Root::live().proc("self/status") } else { root.proc("self/status") };
        Self::parse(&read_bytes(&status, MAX_ATTRIBUTE).ok()??)
    }

    fn parse(status: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(status);
        let set = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(set.trim(), 16).ok().map(Self)
    }

    const fn has(self, capability: u8) -> bool {
        self.0 >> capability & 1 == 1
    }

    /// None at all.
    pub(super) const fn none() -> Self {
        Self(0)
    }

    #[cfg(test)]
    pub(super) const fn all() -> Self {
        Self(u64::MAX)
    }

    /// The mode bits of a device node do not bind this process.
    pub(super) const fn ignore_modes(self) -> bool {
        self.has(DAC_OVERRIDE)
    }
}

/// The three capabilities that the agent can use.
pub(super) fn checks(own: Privileges, needs: Needs) -> Vec<Check> {
    let uses = [
        (SYS_ADMIN, "CAP_SYS_ADMIN", "reading SMART and other log pages of NVMe drives", needs.nvme_controllers),
        (SYS_RAWIO, "CAP_SYS_RAWIO", "asking rotating ATA disks whether they sleep", needs.ata_disks),
        (SYSLOG, "CAP_SYSLOG", "reading the kernel log where dmesg is restricted", 0),
    ];
    let mut checks = Vec::new();
    let mut missing = Vec::new();
    for (number, name, allows, count) in uses {
        if own.has(number) {
            checks.push(Check::fine(name, format!("held; allows {allows}")));
            continue;
        }
        if count == 0 {
            checks.push(Check::fine(name, format!("not held, and not needed here; would allow {allows}")));
        } else {
            missing.push(name.to_lowercase());
            checks.push(Check::denied(name, format!("not held: no {allows} ({count} here)")));
        }
    }
    let program = std::env::current_exe().map_or_else(|_| "storscope".to_owned(), |path| path.display().to_string());
    if let Some(check) = checks.iter_mut().find(|check| check.verdict == Verdict::Denied) {
        check.what.push_str(
            ". Run as root or as the service; a container needs --cap-add. A capability on the program itself gives \
             it to every user who may execute the file: only where others may not",
        );
        check.mend.push(format!("chmod o-rwx {program}   # only if it cannot run as the service; first this, then"));
        check.mend.push(format!("setcap {}+ep {program}", missing.join(",")));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &[u8] = b"Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000220002\n";

    #[test]
    fn the_effective_set_counts() {
        let own = Privileges::parse(STATUS).unwrap();
        assert!(own.has(SYS_ADMIN) && own.has(SYS_RAWIO) && own.ignore_modes() && !own.has(SYSLOG));
        for bad in [&b""[..], b"CapEff:\tx\n", b"CapEff:\n"] {
            assert_eq!(Privileges::parse(bad), None);
        }
    }

    #[test]
    fn only_what_a_device_here_needs_is_denied() {
        let verdicts = |needs| checks(Privileges(0), needs).iter().map(|check| check.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(Needs::default()), [Verdict::Fine; 3]);
        let nvme = Needs { nvme_controllers: 1, ata_disks: 0 };
        assert_eq!(verdicts(nvme), [Verdict::Denied, Verdict::Fine, Verdict::Fine]);
        let found = checks(Privileges(0), nvme);
        assert!(found[0].mend[1].starts_with("setcap cap_sys_admin+ep "), "{found:?}");
        assert!(found[0].what.contains("every user") && found[0].mend[0].starts_with("chmod o-rwx "), "{found:?}");
        assert!(found[1].what.contains("not needed here") && found[1].mend.is_empty(), "{found:?}");
        assert!(found[0].what.contains("(1 here)"), "{found:?}");
        let all = checks(Privileges::parse(STATUS).unwrap(), nvme);
        assert_eq!(all.iter().filter(|check| check.verdict == Verdict::Fine).count(), 3);
        assert!(all[2].what.contains("not needed here"), "{all:?}");
    }
}
