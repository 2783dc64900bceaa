//! One booted guest with the agent in it: what a case works with.

use super::agent::Agent;
use super::drive::{self, Nvme};
use super::guest::{Guest, eventually};
use super::process;
use super::qemu::{Folders, Layout, QEMU_LOG, Qemu};
use super::scrape::Scrape;
use super::scratch::Scratch;
use super::sysroot::Sysroot;
use super::topology::{LinkSpeed, SWITCH_LINK, serial};
use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Longest build of the stacks in the guest.
const STACKS_LIMIT: Duration = Duration::from_secs(90);
/// Longest wait of `--no-fault` for what must not come.
const NO_FAULT_LIMIT: Duration = Duration::from_secs(8);

/// A guest, its emulator and its agent.
pub(crate) struct Rig {
    qemu: Mutex<Qemu>,
    guest: Guest,
    scratch: Scratch,
    logs: PathBuf,
    /// The agent in the guest.
    pub(crate) agent: Agent,
    /// How the guest presents NVMe namespaces.
    pub(crate) layout: Layout,
    /// Whether faults do anything.
    pub(super) faults: bool,
    /// Links that differ from the topology's default.
    pub(super) links: BTreeMap<&'static str, (LinkSpeed, u8)>,
    /// Time to the guest's shell, and to its stacks.
    pub(super) times: (Duration, Duration),
}

impl Rig {
    /// Boots a guest; where the topology is whole, builds its stacks and trains the switched drive's link to what its port
    /// can do.
    ///
    /// # Errors
    /// When one of these fails.
    pub(super) fn start(
        sysroot: &Sysroot,
        initramfs: &Path,
        layout: Layout,
        faults: bool,
        logs: &Path,
    ) -> Result<Self> {
        let began = std::time::Instant::now();
        fs::create_dir_all(logs).with_context(|| logs.display().to_string())?;
        let scratch = Scratch::new()?;
        let folders = Folders { logs, scratch: scratch.path() };
        let qemu = Qemu::boot(sysroot, initramfs, layout, &folders)?;
        let (guest, boot) = (qemu.guest, qemu.boot);
        let mut links = BTreeMap::new();
        if layout != Layout::Systemd {
            guest.sh_within("sh /lab/stacks.sh", STACKS_LIMIT)?;
            links.insert(serial::NVME_SWITCHED, SWITCH_LINK);
        }
        let mut rig = Self {
            qemu: Mutex::new(qemu),
            guest,
            scratch,
            logs: logs.to_owned(),
            agent: Agent::new(guest, layout == Layout::Systemd),
            layout,
            faults,
            links,
            times: (boot, Duration::ZERO),
        };
        for (serial, (speed, width)) in rig.links.clone() {
            let address = rig.nvme(serial)?.address;
            rig.set_link(rig.base_address(&address)?, speed, width)?;
        }
        rig.times.1 = began.elapsed();
        Ok(rig)
    }

    /// The guest.
    pub(crate) fn guest(&self) -> Guest {
        self.guest
    }

    /// Whether faults do anything.
    pub(crate) fn faults_on(&self) -> bool {
        self.faults
    }

    /// Folder of this guest's images.
    pub(super) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Folder of this guest's logs.
    pub(super) fn logs(&self) -> &Path {
        &self.logs
    }

    /// Where the emulator's control socket is.
    pub(super) fn socket(&self) -> Result<PathBuf> {
        Ok(self.qemu.lock().map_err(|_| anyhow!("a case panicked"))?.socket.clone())
    }

    /// Why the emulator is gone, if it is.
    pub(super) fn emulator_ended(&self) -> Option<String> {
        self.qemu.lock().ok()?.ended().map(|status| format!("{status}: {}", process::tail(&self.logs.join(QEMU_LOG))))
    }

    /// Runs a QMP command.
    ///
    /// # Errors
    /// The emulator's refusal, or no answer within the limit.
    pub(super) fn qmp(&self, command: &str, arguments: Value) -> Result<Value> {
        self.qemu.lock().map_err(|_| anyhow!("a case panicked"))?.qmp.call(command, arguments)
    }

    /// Sets the link of the NVMe endpoint at this base address.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn set_link(&self, base: u64, speed: LinkSpeed, width: u8) -> Result<()> {
        let qemu = self.qemu.lock().map_err(|_| anyhow!("a case panicked"))?;
        qemu.registers()?.set_status(base, speed, width)
    }

    /// Guest-physical address of a PCI device's first base address register.
    ///
    /// # Errors
    /// When the guest has no such device.
    pub(super) fn base_address(&self, address: &str) -> Result<u64> {
        let line = self.guest.sh(&format!("head -n 1 /sys/bus/pci/devices/{address}/resource"))?;
        let start = line.split_whitespace().next().and_then(|field| field.strip_prefix("0x"));
        let start = start.with_context(|| format!("{address}: resource {line:?}"))?;
        u64::from_str_radix(start, 16).with_context(|| format!("{address}: resource {line:?}"))
    }

    /// The NVMe drive with this serial, as the guest's kernel names it now.
    ///
    /// # Errors
    /// When there is not exactly one.
    pub(crate) fn nvme(&self, serial: &str) -> Result<Nvme> {
        drive::nvme(&self.guest, serial)
    }

    /// The SCSI or SATA disk with this serial, as the guest's kernel names it now.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn disk(&self, serial: &str) -> Result<String> {
        drive::disk(&self.guest, serial)
    }

    /// One scrape of the agent.
    ///
    /// # Errors
    /// When it does not answer or its answer is out of format.
    pub(crate) fn scrape(&self) -> Result<Scrape> {
        Scrape::parse(&self.guest.body("/metrics")?)
    }

    /// What the agent serves at `path`, as JSON.
    ///
    /// # Errors
    /// When it does not answer or its answer is no JSON.
    pub(crate) fn json(&self, path: &str) -> Result<Value> {
        serde_json::from_str(&self.guest.body(path)?).with_context(|| path.to_owned())
    }

    /// Tries `check` against fresh scrapes until it holds, for at most `within`; without faults, for a short time.
    ///
    /// # Errors
    /// The last failure of `check`, once the time is up.
    pub(crate) fn eventually<T>(&self, within: Duration, mut check: impl FnMut(&Scrape) -> Result<T>) -> Result<T> {
        let within = if self.faults { within } else { within.min(NO_FAULT_LIMIT) };
        eventually(within, || check(&self.scrape()?))
    }
}
