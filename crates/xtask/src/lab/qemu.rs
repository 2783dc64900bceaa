//! The emulator's process: started, booted, ended by its own process id.

use super::guest::{Guest, eventually};
use super::link::{self, LinkRegisters};
use super::process;
use super::qmp::Qmp;
use super::sysroot::Sysroot;
use super::systemd;
use super::topology::{self, ENDPOINT_LINK, SWITCH_LINK};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// Longest start of the emulator itself.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Longest boot, which takes about 10 s on an idle machine.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// Longest first answer of the guest's shell.
const SHELL_LIMIT: Duration = Duration::from_secs(30);
/// Guest memory; its root file system takes 150 MiB of it.
const MEMORY_MIB: u32 = 1024;
/// The agent's port in the guest.
const AGENT_PORT: u16 = 10210;
/// The shell's port in the guest.
const SHELL_PORT: u16 = 2222;

/// Name of the emulator's own log.
pub(super) const QEMU_LOG: &str = "qemu.log";

/// What a guest is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// NVMe namespaces are heads over paths, the kernel's default.
    Multipath,
    /// One disk a controller and namespace, `nvme_core.multipath=N`.
    Classic,
    /// Few drives, and systemd as the first process, which runs the agent by the shipped units.
    Systemd,
}

impl Layout {
    /// Its name, for people and for folders.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Multipath => "multipath",
            Self::Classic => "classic",
            Self::Systemd => "systemd",
        }
    }
}

/// A running emulator.
pub(super) struct Qemu {
    child: Child,
    /// Its control socket.
    pub(super) qmp: Qmp,
    /// Where the control socket is.
    pub(super) socket: PathBuf,
    /// The guest's ports.
    pub(super) guest: Guest,
    /// The guest's console.
    pub(super) console: PathBuf,
    /// How long the boot took.
    pub(super) boot: Duration,
}

/// The folders of one guest.
pub(super) struct Folders<'a> {
    /// Logs.
    pub(super) logs: &'a Path,
    /// Images and control socket, gone afterwards.
    pub(super) scratch: &'a Path,
}

impl Qemu {
    /// Boots the topology and waits for the guest's shell.
    ///
    /// # Errors
    /// When the emulator ends, or a limit passes; the ends of its log and of the console are in the message.
    pub(super) fn boot(sysroot: &Sysroot, initramfs: &Path, layout: Layout, folders: &Folders<'_>) -> Result<Self> {
        let began = Instant::now();
        let guest = Guest { shell_port: free_port()?, http_port: free_port()? };
        let socket = folders.scratch.join("qmp");
        let console = folders.logs.join("console.log");
        let log = folders.logs.join(QEMU_LOG);
        // Ends with this process, even when that is killed.
        let mut command = sysroot.program("usr/bin/setpriv")?;
        let mut emulator = sysroot.program("usr/bin/qemu-system-x86_64")?;
        emulator.args(machine(sysroot, initramfs, layout, guest, &socket, &console));
        emulator.args(match layout {
            Layout::Systemd => topology::few(folders.scratch)?,
            Layout::Multipath | Layout::Classic => topology::arguments(folders.scratch)?,
        });
        command.args(["--pdeathsig", "KILL", "--"]).arg(emulator.get_program()).args(emulator.get_args());
        let output = process::open_log(&log)?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("the emulator cannot be started")?;
        let connected = eventually(START_LIMIT, || {
            if let Some(status) = child.try_wait()? {
                return Ok(Err(anyhow!("the emulator ended: {status}\n{}", process::tail(&log))));
            }
            Qmp::connect(&socket).map(Ok)
        });
        let qmp = match connected.and_then(|result| result) {
            Ok(qmp) => qmp,
            Err(error) => {
                process::end(&mut child);
                return Err(error);
            }
        };
        let mut qemu = Self { child, qmp, socket, guest, console, boot: Duration::ZERO };
        let registers = qemu.registers()?;
        registers.set_capabilities(link::NVME_ENDPOINT, ENDPOINT_LINK.0, ENDPOINT_LINK.1)?;
        // Without this the emulator's switch says nothing of its speed, and nothing could be slot-limited by it.
        let switch: &[link::Kind] = match layout {
            Layout::Systemd => &[],
            Layout::Multipath | Layout::Classic => &[link::SWITCH_UPSTREAM, link::SWITCH_DOWNSTREAM],
        };
        for port in switch.iter().copied() {
            registers.set_capabilities(port, SWITCH_LINK.0, SWITCH_LINK.1)?;
        }
        qemu.qmp.call("cont", json!({}))?;
        qemu.wait_for_shell(&log)?;
        qemu.boot = began.elapsed();
        Ok(qemu)
    }

    /// The emulated drives' link registers.
    ///
    /// # Errors
    /// When the kernel does not let this process read the emulator's memory.
    pub(super) fn registers(&self) -> Result<LinkRegisters> {
        LinkRegisters::open(self.child.id())
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn wait_for_shell(&mut self, log: &Path) -> Result<()> {
        let deadline = Instant::now() + BOOT_LIMIT;
        loop {
            let console = fs::read(&self.console).unwrap_or_default();
            let console = String::from_utf8_lossy(&console);
            if let Some(failure) = console.lines().find(|line| line.contains("LAB FAILED")) {
                bail!("guest: {failure}");
            }
            if console.contains("LAB ready") {
                break;
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the emulator ended: {status}\n{}\n{}", process::tail(log), process::tail(&self.console));
            }
            if Instant::now() > deadline {
                bail!("no boot within {BOOT_LIMIT:?}\n{}", process::tail(&self.console));
            }
            thread::sleep(Duration::from_millis(50));
        }
        eventually(SHELL_LIMIT, || self.guest.sh("true").map(drop))
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        process::end(&mut self.child);
    }
}

fn machine(
    sysroot: &Sysroot,
    initramfs: &Path,
    layout: Layout,
    guest: Guest,
    socket: &Path,
    console: &Path,
) -> Vec<String> {
    // A drive that hangs must not be reset by the driver meanwhile: the emulator does not survive the second time-out.
    let mut line = "console=ttyS0 quiet panic=-1 nvme_core.io_timeout=600".to_owned();
    match layout {
        Layout::Multipath => {}
        Layout::Classic => line.push_str(" nvme_core.multipath=N"),
        Layout::Systemd => {
            line.push(' ');
            line.push_str(systemd::KERNEL_WORD);
        }
    }
    let forwards = format!(
        "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{}-:{SHELL_PORT},hostfwd=tcp:127.0.0.1:{}-:{AGENT_PORT}",
        guest.shell_port, guest.http_port
    );
    let root = sysroot.root();
    [
        ("-machine", "q35".to_owned()),
        ("-accel", "tcg,thread=multi".to_owned()),
        ("-cpu", "max".to_owned()),
        ("-smp", "2".to_owned()),
        ("-m", MEMORY_MIB.to_string()),
        ("-display", "none".to_owned()),
        ("-L", root.join("usr/share/qemu").display().to_string()),
        ("-L", root.join("usr/share/seabios").display().to_string()),
        ("-kernel", sysroot.kernel().display().to_string()),
        ("-initrd", initramfs.display().to_string()),
        ("-append", line),
        ("-serial", format!("file:{}", console.display())),
        ("-qmp", format!("unix:{},server=on,wait=off", socket.display())),
        ("-netdev", forwards),
        ("-device", "virtio-net-pci,netdev=net,romfile=".to_owned()),
    ]
    .into_iter()
    .flat_map(|(option, value)| [option.to_owned(), value])
    .chain(["-nodefaults", "-no-reboot", "-S"].map(str::to_owned))
    .collect()
}

/// A port that was free a moment ago and that no other guest of this run was given: the emulator takes no descriptor for
/// a forwarded port.
fn free_port() -> Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().map_err(|_| anyhow!("a guest panicked"))?;
    // Those listened on meanwhile are not offered again.
    let mut taken = Vec::new();
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if given.insert(port) {
            return Ok(port);
        }
        taken.push(listener);
    }
}
