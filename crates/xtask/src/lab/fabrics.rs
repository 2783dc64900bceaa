//! A drive over fabrics by TCP, to a target in the guest itself: the one whose transport can be cut or held up.

use super::fault::Fault;
use super::guest::eventually;
use super::rig::Rig;
use super::topology::serial;
use anyhow::{Result, ensure};
use std::time::Duration;

/// Connection, and its end.
const CONNECTED_WITHIN: Duration = Duration::from_secs(20);
/// Longest end of a connection: what is held up has to arrive first, and TCP repeats ever more rarely.
const DISCONNECT_LIMIT: Duration = Duration::from_secs(90);

/// Makes the target and connects to it, with a keep-alive so rare that a transport that is held up does not end the
/// connection.
const CONNECT: &str = r#"
set -e
modprobe -a nvmet-tcp nvme-tcp sch_netem
target=/sys/kernel/config/nvmet host=11111111-2222-3333-4444-666666666666
[ -e /tmp/tcp.img ] || { truncate -s 32M /tmp/tcp.img; losetup /dev/loop1 /tmp/tcp.img; }
subsystem=$target/subsystems/labtcp port=$target/ports/2
if [ ! -e "$port" ]; then
    mkdir -p "$subsystem/namespaces/1" "$port"
    echo 1 >"$subsystem/attr_allow_any_host"
    echo LABTCP >"$subsystem/attr_serial"
    echo /dev/loop1 >"$subsystem/namespaces/1/device_path"
    echo 1 >"$subsystem/namespaces/1/enable"
    echo tcp >"$port/addr_trtype"
    echo ipv4 >"$port/addr_adrfam"
    echo 127.0.0.1 >"$port/addr_traddr"
    echo 4420 >"$port/addr_trsvcid"
fi
[ -e "$port/subsystems/labtcp" ] || ln -s "$subsystem" "$port/subsystems/labtcp"
echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=labtcp,reconnect_delay=1,keep_alive_tmo=300,\
hostnqn=nqn.2014-08.org.nvmexpress:uuid:$host,hostid=$host" >/dev/nvme-fabrics
"#;

/// A connected drive; the connection ends with it.
pub(crate) struct Remote<'rig> {
    rig: &'rig Rig,
    /// Kernel name of the controller.
    pub(crate) controller: String,
    /// Kernel name of the block device.
    pub(crate) device: String,
}

impl Rig {
    /// Connects the drive.
    ///
    /// # Errors
    /// When the guest's kernel refuses, or it does not come.
    pub(crate) fn connect(&self) -> Result<Remote<'_>> {
        self.guest().sh(CONNECT)?;
        eventually(CONNECTED_WITHIN, || {
            let drive = self.nvme(serial::NVME_TCP)?;
            Ok(Remote { rig: self, device: drive.block()?.to_owned(), controller: drive.controller })
        })
    }
}

impl Remote<'_> {
    /// Cuts the transport: the driver tries to connect again until the guard goes.
    ///
    /// # Errors
    /// When the guest's kernel refuses.
    pub(crate) fn cut(&self) -> Result<Fault<'_>> {
        let link = "/sys/kernel/config/nvmet/ports/2/subsystems/labtcp";
        self.rig.fault(
            "cut transport".to_owned(),
            move || self.rig.guest().sh(&format!("rm {link}")).map(drop),
            move || self.rig.guest().sh(&format!("ln -s /sys/kernel/config/nvmet/subsystems/labtcp {link}")).map(drop),
        )
    }

    /// Holds the transport up: whatever is sent stays outstanding until the guard goes.
    ///
    /// # Errors
    /// When the guest's kernel refuses.
    pub(crate) fn hold_up(&self) -> Result<Fault<'_>> {
        self.rig.fault(
            "hold up transport".to_owned(),
            || self.rig.guest().sh("tc qdisc add dev lo root netem loss 100%").map(drop),
            || self.rig.guest().sh("tc qdisc del dev lo root").map(drop),
        )
    }

    /// Begins to remove the drive, without waiting for the removal's end.
    ///
    /// # Errors
    /// When the guest does not answer.
    pub(crate) fn begin_removal(&self) -> Result<()> {
        let script = format!("echo 1 >/sys/class/nvme/{}/delete_controller", self.controller);
        self.rig.guest().background(&script, "/run/removal.log")
    }

    /// Ends the connection and waits until the drive is gone.
    ///
    /// # Errors
    /// When it stays.
    pub(crate) fn disconnect(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if self.controller.is_empty() {
            return Ok(());
        }
        let controller = std::mem::take(&mut self.controller);
        let file = format!("/sys/class/nvme/{controller}/delete_controller");
        self.rig.guest().sh_within(&format!("[ ! -e {file} ] || echo 1 >{file}"), DISCONNECT_LIMIT)?;
        eventually(DISCONNECT_LIMIT, || {
            ensure!(self.rig.nvme(serial::NVME_TCP).is_err(), "{controller} is still there");
            Ok(())
        })
    }
}

impl Drop for Remote<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("lab: disconnecting: {error:#}");
        }
    }
}
