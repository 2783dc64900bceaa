//! What a SCSI disk says of itself: INQUIRY and VPD pages as the kernel cached them (drivers/scsi/scsi_sysfs.c).

use super::attributes::Attributes;
use super::block::Identity;
use super::id;
use super::inquiry;
use super::vpd;
use crate::attribute::is_there;
use std::path::Path;
use storscope_model::device::Transport;

/// SCSI vendor of a disk behind a SCSI/ATA translation.
const ATA_VENDOR: &str = "ATA";

/// Reads the folder that a disk's `device` link leads to. `transport` is how it is attached.
pub(super) fn identify(
    device: &Path,
    vendor: Option<String>,
    transport: Transport,
    attributes: &mut Attributes,
) -> Identity {
    let mut model = attributes.text(&device.join("model"));
    let mut firmware = attributes.text(&device.join("rev"));
    let serial_page = attributes.bytes(&device.join("vpd_pg80"));
    let serial = serial_page
        .as_deref()
        .and_then(vpd::serial)
        .and_then(inquiry::text)
        .or_else(|| attributes.text(&device.join("serial")))
        .or_else(|| usb_serial(device, transport, attributes));
    let ata = vendor.as_deref() == Some(ATA_VENDOR);
    if ata && let Some(page) = attributes.bytes(&device.join("vpd_pg89")) {
        let identity = vpd::ata_identity(&page);
        let (full_model, full_firmware) = identity.unzip();
        model = full_model.and_then(|text| inquiry::text(&text)).or(model);
        firmware = full_firmware.and_then(|text| inquiry::text(&text)).or(firmware);
    }
    let wwid = attributes.text(&device.join("wwid"));
    let wwn = match wwid.as_deref().and_then(wwn_of_wwid) {
        Some(wwn) => Some(wwn),
        None => attributes.bytes(&device.join("vpd_pg83")).and_then(|page| vpd::wwn(&page)),
    };
    let telling = serial.as_deref().filter(|serial| !inquiry::says_nothing(serial));
    let own = match (wwn, telling) {
        (Some(wwn), _) => Some(format!("wwn-0x{wwn}")),
        (None, Some(serial)) => Some(by_serial(vendor.as_deref(), model.as_deref(), serial, transport, device)),
        // Kinds of wwid that are no name authority's: `t10.…` holds vendor, model and serial number.
        (None, None) => wwid.as_deref().map(|wwid| id::joined("scsi", &[wwid])),
    };
    Identity { vendor, model, serial, firmware, wwid, own }
}

fn by_serial(vendor: Option<&str>, model: Option<&str>, serial: &str, transport: Transport, device: &Path) -> String {
    let model = model.unwrap_or_default();
    if vendor == Some(ATA_VENDOR) {
        return id::joined("ata", &[model, serial]);
    }
    let vendor = vendor.unwrap_or_default();
    match transport {
        // The units of a card reader share the serial number of its plug.
        Transport::Usb => {
            let unit = device.file_name().and_then(|name| name.to_str());
            let unit = unit.and_then(|unit| unit.split_once(':'));
            let unit = unit.map_or("", |(_, unit)| unit);
            id::joined("usb", &[vendor, model, serial, unit])
        }
        _ => id::joined("scsi", &[vendor, model, serial]),
    }
}

/// The digits of a `naa.` or `eui.` wwid, unless they are all zeros after the first.
fn wwn_of_wwid(wwid: &str) -> Option<String> {
    let digits = wwid.strip_prefix("naa.").or_else(|| wwid.strip_prefix("eui."))?;
    let hexadecimal = digits.len() >= 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let telling = digits.bytes().skip(1).any(|byte| byte != b'0');
    (hexadecimal && telling).then(|| digits.to_ascii_lowercase())
}

/// A USB stick has its serial number in the USB device's folder, above the interface.
fn usb_serial(device: &Path, transport: Transport, attributes: &mut Attributes) -> Option<String> {
    if transport != Transport::Usb {
        return None;
    }
    let plug = device.ancestors().find(|above| is_there(&above.join("idVendor")))?;
    attributes.text(&plug.join("serial"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wwids() {
        assert_eq!(wwn_of_wwid("naa.5000C500A1B2C3D4").as_deref(), Some("5000c500a1b2c3d4"));
        assert_eq!(wwn_of_wwid("eui.0011223344556677").as_deref(), Some("0011223344556677"));
        for other in ["naa.5000000000000000", "t10.ATA  X  1", "naa.", "naa.50zz", ""] {
            assert_eq!(wwn_of_wwid(other), None, "{other}");
        }
    }
}
