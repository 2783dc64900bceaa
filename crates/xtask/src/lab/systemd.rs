//! What a guest has for systemd as its first process, and the shipped units with what belongs to them, where a package
//! would put them.

use super::agent;
use super::guest_files::{GuestFile, GuestFiles, insert_program};
use super::sysroot::Sysroot;
use crate::steps::repository;
use anyhow::{Result, ensure};

/// Word of the kernel's command line that makes systemd the first process.
pub(super) const KERNEL_WORD: &str = "lab.systemd";

/// Programs beside those that every guest has.
const PROGRAMS: [&str; 4] =
    ["lib/systemd/systemd", "lib/systemd/systemd-journald", "bin/systemd-sysusers", "bin/systemd-tmpfiles"];
/// Folder of the manager's own units.
const UNITS: &str = "lib/systemd/system";
/// Those of them that lead to a running agent. All others are left out, as they would only take time.
const CHOSEN: [&str; 25] = [
    "basic.target",
    "emergency.target",
    "local-fs.target",
    "local-fs-pre.target",
    "modprobe@.service",
    "multi-user.target",
    "network.target",
    "paths.target",
    "shutdown.target",
    "slices.target",
    "sockets.target",
    "swap.target",
    "sysinit.target",
    "systemd-journald-dev-log.socket",
    "systemd-journald.service",
    "systemd-journald.socket",
    "systemd-sysusers.service",
    "systemd-tmpfiles-setup.service",
    "systemd-udev-trigger.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udevd.service",
    "timers.target",
    "umount.target",
    "final.target",
];
/// What starts at boot: target and unit.
const WANTED: [(&str, &str); 10] = [
    ("sockets.target", "systemd-journald-dev-log.socket"),
    ("sockets.target", "systemd-journald.socket"),
    ("sockets.target", "systemd-udevd-control.socket"),
    ("sockets.target", "systemd-udevd-kernel.socket"),
    ("sysinit.target", "systemd-journald.service"),
    ("sysinit.target", "systemd-sysusers.service"),
    ("sysinit.target", "systemd-tmpfiles-setup.service"),
    ("sysinit.target", "systemd-udev-trigger.service"),
    ("sysinit.target", "systemd-udevd.service"),
    ("multi-user.target", "lab.service"),
];
/// Settings of the packages that name the groups and the modes of device nodes, and load drivers.
const SETTINGS: [&str; 3] =
    ["lib/udev/rules.d/50-udev-default.rules", "lib/udev/rules.d/80-drivers.rules", "usr/lib/sysusers.d/basic.conf"];
/// Shipped files below `systemd`, and where their comments say that they belong.
const SHIPPED: [(&str, &str); 5] = [
    ("storscope.service", "lib/systemd/system/storscope.service"),
    ("storscope.socket", "lib/systemd/system/storscope.socket"),
    ("storscope.sysusers", "usr/lib/sysusers.d/storscope.conf"),
    ("storscope.tmpfiles", "usr/lib/tmpfiles.d/storscope.conf"),
    ("60-storscope.rules", "usr/lib/udev/rules.d/60-storscope.rules"),
];
/// The lab's own.
const OWN: [(&str, &str); 5] = [
    ("lib/systemd/system/lab.service", include_str!("../../../../tests/lab/guest/systemd/lab.service")),
    ("etc/systemd/system/storscope.socket.d/lab.conf", include_str!("../../../../tests/lab/guest/systemd/socket.conf")),
    // A shorter one than the shipped configuration, in its place.
    ("usr/share/storscope/storscope.toml", agent::USUAL),
    ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
    ("var/tmp/.keep", ""),
];

/// Adds it all.
///
/// # Errors
/// When something is not in the packages.
pub(super) fn add(sysroot: &Sysroot, files: &mut GuestFiles) -> Result<()> {
    let root = sysroot.root();
    for program in PROGRAMS {
        insert_program(sysroot, &root.join(program), files)?;
    }
    let units = CHOSEN.iter().map(|unit| format!("{UNITS}/{unit}"));
    for place in units.chain(SETTINGS.map(str::to_owned)) {
        let path = root.join(&place);
        ensure!(path.is_file(), "{}: not in the packages", path.display());
        files.insert(place, GuestFile::Copy(path, 0o644));
    }
    for (name, place) in SHIPPED {
        files.insert(place.to_owned(), GuestFile::Copy(repository().join("systemd").join(name), 0o644));
    }
    for (place, text) in OWN {
        files.insert(place.to_owned(), GuestFile::Text(text));
    }
    for (target, unit) in WANTED {
        files.insert(format!("{UNITS}/{target}.wants/{unit}"), GuestFile::Link(format!("../{unit}")));
    }
    let links = [
        // The unit names kill(1).
        ("usr/bin/kill", "/bin/busybox"),
        ("lib/systemd/systemd-udevd", "/bin/udevadm"),
        ("lib/systemd/system/default.target", "multi-user.target"),
        ("usr/bin/storscope", agent::BINARY),
    ];
    for (place, target) in links {
        files.insert(place.to_owned(), GuestFile::Link(target.to_owned()));
    }
    Ok(())
}
