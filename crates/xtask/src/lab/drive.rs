//! Drives of the guest, found by serial number: the kernel's numbering changes from boot to boot.

use super::guest::Guest;
use anyhow::{Context, Result, anyhow, bail};

/// Prints, a line a controller: kernel name, serial, PCI address, block devices. Only the shell's own commands: a
/// process is slow under emulation. A controller on fabrics has no address here, or one with `=` in it.
const CONTROLLERS: &str = r#"
for controller in /sys/class/nvme/nvme*; do
    name=${controller##*/} address="" blocks=""
    read -r serial <"$controller/serial"
    read -r address <"$controller/address"
    case "$address" in *=*) address="" ;; esac
    for folder in "$controller" /sys/class/nvme-subsystem/*; do
        [ "$folder" = "$controller" ] || [ -e "$folder/$name" ] || continue
        for block in "$folder"/nvme*n[0-9]*; do
            block=${block##*/}
            case "$block" in *c*|*\**) ;; *) blocks="$blocks $block" ;; esac
        done
    done
    echo "$name $serial $address|$blocks"
done
"#;

/// Prints, a line a SCSI disk: kernel name and serial (vital product data page 80h, SPC: four bytes of header).
const DISKS: &str = r#"
for disk in /sys/block/sd*; do
    echo "$(basename "$disk") $(dd if="$disk/device/vpd_pg80" bs=1 skip=4 2>/dev/null | tr -d '\0 ')"
done
"#;

/// An NVMe drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nvme {
    /// Serial number.
    pub(crate) serial: String,
    /// Kernel name of the controller.
    pub(crate) controller: String,
    /// PCI address; empty on fabrics without one.
    pub(crate) address: String,
    /// Kernel names of its block devices (heads, in the multipath layout).
    pub(crate) blocks: Vec<String>,
}

impl Nvme {
    /// Kernel name of its only block device.
    ///
    /// # Errors
    /// When it has none or several.
    pub(crate) fn block(&self) -> Result<&str> {
        match self.blocks.as_slice() {
            [only] => Ok(only),
            blocks => bail!("{}: block devices {blocks:?}", self.controller),
        }
    }
}

/// All NVMe controllers of the guest.
///
/// # Errors
/// When the guest does not answer.
pub(crate) fn nvme_controllers(guest: &Guest) -> Result<Vec<Nvme>> {
    guest.sh(CONTROLLERS)?.lines().filter(|line| line.contains('|')).map(controller).collect()
}

fn controller(line: &str) -> Result<Nvme> {
    let (identity, blocks) = line.split_once('|').context("no blocks")?;
    let mut fields = identity.split_whitespace().map(str::to_owned);
    let (Some(controller), Some(serial)) = (fields.next(), fields.next()) else {
        bail!("a controller without a serial: {line:?}");
    };
    let address = fields.next().unwrap_or_default();
    Ok(Nvme { serial, controller, address, blocks: blocks.split_whitespace().map(str::to_owned).collect() })
}

/// The one NVMe controller with this serial.
///
/// # Errors
/// When there is none or several.
pub(crate) fn nvme(guest: &Guest, serial: &str) -> Result<Nvme> {
    let mut found = nvme_controllers(guest)?.into_iter().filter(|drive| drive.serial == serial);
    match (found.next(), found.next()) {
        (Some(drive), None) => Ok(drive),
        (None, _) => Err(anyhow!("no NVMe controller {serial}")),
        (Some(_), Some(_)) => Err(anyhow!("several NVMe controllers {serial}")),
    }
}

/// Kernel name of the SCSI or SATA disk with this serial.
///
/// # Errors
/// When there is none.
pub(crate) fn disk(guest: &Guest, serial: &str) -> Result<String> {
    let listing = guest.sh(DISKS)?;
    let mut disks = listing.lines().filter_map(|line| line.split_once(' '));
    let found = disks.find(|(_, found)| found.trim() == serial).map(|(name, _)| name.to_owned());
    found.ok_or_else(|| anyhow!("no disk {serial}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_line_is_read() {
        let drive = controller("nvme3 LABSS 0000:06:00.0| nvme3n1 nvme3n2").unwrap();
        assert_eq!(drive.blocks, ["nvme3n1", "nvme3n2"]);
        assert_eq!((drive.serial.as_str(), drive.address.as_str()), ("LABSS", "0000:06:00.0"));
        assert!(drive.block().is_err());
        assert_eq!(controller("nvme5 LABLOOP |").unwrap().address, "");
    }
}
