//! Faults on command. Each ends when its guard is dropped, whatever the case did.

use super::guest::eventually;
use super::rig::Rig;
use super::topology::{ENDPOINT_LINK, LinkSpeed, Slot, image};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::time::Duration;

/// Limit of a command that undoes a fault in the guest.
const UNDO_LIMIT: Duration = Duration::from_secs(20);
/// Over-temperature threshold below what the emulated drive reports (323 K), and the emulator's own default, in kelvin.
const LOW_THRESHOLD: u16 = 300;
const DEFAULT_THRESHOLD: u16 = 343;
/// Size of the drive that hot-plug adds.
const HOT_BYTES: u64 = 64 << 20;

type Undo<'rig> = Box<dyn FnOnce() -> Result<()> + 'rig>;

/// A fault that is in force until it is released or dropped.
#[must_use = "a fault ends when its guard is dropped"]
pub(crate) struct Fault<'rig> {
    name: String,
    undo: Option<Undo<'rig>>,
}

impl Fault<'_> {
    /// Ends the fault.
    ///
    /// # Errors
    /// When it cannot be undone.
    pub(crate) fn release(mut self) -> Result<()> {
        match self.undo.take() {
            Some(undo) => undo().with_context(|| format!("undoing {}", self.name)),
            None => Ok(()),
        }
    }
}

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        if let Some(undo) = self.undo.take()
            && let Err(error) = undo()
        {
            eprintln!("lab: undoing {}: {error:#}", self.name);
        }
    }
}

/// The faults of one guest. Without faults (`--no-fault`) every guard does nothing.
impl Rig {
    pub(super) fn fault<'rig>(
        &'rig self,
        name: String,
        apply: impl FnOnce() -> Result<()>,
        undo: impl FnOnce() -> Result<()> + 'rig,
    ) -> Result<Fault<'rig>> {
        if !self.faults {
            return Ok(Fault { name, undo: None });
        }
        // The guard comes first: what was applied in part is undone as well.
        let fault = Fault { undo: Some(Box::new(undo)), name };
        apply().with_context(|| fault.name.clone())?;
        Ok(fault)
    }

    /// Trains the link of an NVMe drive down, or to anything.
    ///
    /// # Errors
    /// When the drive is not there.
    pub(crate) fn link(&self, serial: &str, speed: LinkSpeed, width: u8) -> Result<Fault<'_>> {
        let drive = self.nvme(serial)?;
        let base = self.base_address(&drive.address)?;
        let before = self.links.get(serial).copied().unwrap_or(ENDPOINT_LINK);
        self.fault(
            format!("link {serial} {speed:?} x{width}"),
            || self.set_link(base, speed, width),
            move || self.set_link(base, before.0, before.1),
        )
    }

    /// Sets bits of the SMART log's critical warning.
    ///
    /// # Errors
    /// The emulator's refusal.
    pub(crate) fn critical_warning(&self, serial: &'static str, bits: u8) -> Result<Fault<'_>> {
        let set = move |bits: u8| {
            let path = format!("/machine/peripheral/{serial}");
            self.qmp("qom-set", json!({ "path": path, "property": "smart_critical_warning", "value": bits })).map(drop)
        };
        self.fault(format!("critical warning {serial} {bits:#x}"), move || set(bits), move || set(0))
    }

    /// Puts an NVMe drive's over-temperature threshold under its temperature.
    ///
    /// # Errors
    /// When the guest's nvme(1) fails.
    pub(crate) fn over_temperature(&self, serial: &str) -> Result<Fault<'_>> {
        let controller = self.nvme(serial)?.controller;
        let set = move |controller: &str, threshold: u16| {
            // Feature 04h: temperature threshold of the composite temperature.
            let command = format!("nvme set-feature -f 4 --value {threshold} /dev/{controller}");
            self.guest().sh_within(&command, UNDO_LIMIT).map(drop)
        };
        let undo = controller.clone();
        self.fault(
            format!("over-temperature {serial}"),
            move || set(&controller, LOW_THRESHOLD),
            move || set(&undo, DEFAULT_THRESHOLD),
        )
    }

    /// Limits a drive to so many I/Os a second.
    ///
    /// # Errors
    /// The emulator's refusal.
    pub(crate) fn latency(&self, serial: &'static str, iops: u32) -> Result<Fault<'_>> {
        self.throttle(format!("latency {serial} {iops} iops"), serial, 0, iops)
    }

    /// Stops a drive's data: one request more passes, all later ones hang.
    ///
    /// # Errors
    /// The emulator's refusal.
    pub(crate) fn hang(&self, serial: &'static str) -> Result<Fault<'_>> {
        self.throttle(format!("hang {serial}"), serial, 1, 0)
    }

    fn throttle(&self, name: String, serial: &'static str, bytes: u32, requests: u32) -> Result<Fault<'_>> {
        let set = move |bytes: u32, requests: u32| {
            let limits = json!({
                "id": serial, "bps": bytes, "bps_rd": 0, "bps_wr": 0, "iops": requests, "iops_rd": 0, "iops_wr": 0,
            });
            self.qmp("block_set_io_throttle", limits).map(drop)
        };
        self.fault(name, move || set(bytes, requests), move || set(0, 0))
    }

    /// Fails every read of a drive with an I/O error.
    ///
    /// # Errors
    /// The emulator's refusal.
    pub(crate) fn read_errors(&self, serial: &'static str) -> Result<Fault<'_>> {
        let reopen = move |file: &str| {
            let options = json!([{
                "driver": "throttle",
                "node-name": format!("top-{serial}"),
                "throttle-group": format!("group-{serial}"),
                "file": file,
            }]);
            self.qmp("blockdev-reopen", json!({ "options": options })).map(drop)
        };
        let failing = format!("failing-{serial}");
        let node = failing.clone();
        self.fault(
            format!("read errors {serial}"),
            move || {
                let inject =
                    json!([{ "event": "none", "iotype": "read", "errno": 5, "once": false, "immediately": true }]);
                let node = json!({
                    "driver": "blkdebug",
                    "node-name": failing,
                    "image": format!("plain-{serial}"),
                    "inject-error": inject,
                });
                self.qmp("blockdev-add", node)?;
                reopen(&failing)
            },
            move || {
                reopen(&format!("plain-{serial}"))?;
                self.qmp("blockdev-del", json!({ "node-name": node })).map(drop)
            },
        )
    }

    /// Adds a drive to an empty slot; it is unplugged when the guard goes.
    ///
    /// # Errors
    /// The emulator's refusal.
    pub(crate) fn plug(&self, slot: Slot, serial: &str) -> Result<Fault<'_>> {
        let port = slot.port();
        let (node, device) = (format!("hot-{port}"), format!("drive-{port}"));
        let path = self.scratch().join(format!("{node}.img"));
        let (undo_node, undo_device) = (node.clone(), device.clone());
        self.fault(
            format!("plug {serial}"),
            move || {
                image(&path, HOT_BYTES)?;
                self.qmp("blockdev-add", json!({ "driver": "file", "filename": path, "node-name": node }))?;
                let drive = json!({ "driver": "nvme", "id": device, "bus": port, "serial": serial, "drive": node });
                self.qmp("device_add", drive).map(drop)
            },
            move || {
                self.qmp("device_del", json!({ "id": undo_device }))?;
                // The guest's driver has to let go of the device before its image can go.
                eventually(UNDO_LIMIT, || self.qmp("blockdev-del", json!({ "node-name": undo_node })).map(drop))
            },
        )
    }

    /// Resets a controller by its driver.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn reset(&self, serial: &str) -> Result<()> {
        if !self.faults {
            return Ok(());
        }
        let controller = self.nvme(serial)?.controller;
        self.guest().sh(&format!("echo 1 >/sys/class/nvme/{controller}/reset_controller")).map(drop)
    }

    /// Reports a correctable error (receiver error, bit 0) on the port above a drive.
    ///
    /// # Errors
    /// The emulator's refusal.
    pub(crate) fn correctable_error(&self, serial: &str) -> Result<()> {
        if !self.faults {
            return Ok(());
        }
        let line = format!("pcie_aer_inject_error -c port-{serial} 0x1");
        let answer = self.qmp("human-monitor-command", json!({ "command-line": line }))?;
        match answer.as_str() {
            Some(text) if text.starts_with("OK") => Ok(()),
            _ => bail!("{line}: {answer}"),
        }
    }
}
