//! What an SD card or eMMC says of itself (drivers/mmc/core/mmc.c, sd.c).

use super::attributes::Attributes;
use super::block::Identity;
use super::id;
use super::inquiry;
use std::path::Path;

/// Reads the folder that a card's `device` link leads to. `name` is the block device's: the boot areas of an eMMC are
/// block devices of the same card.
pub(super) fn identify(device: &Path, name: &str, attributes: &mut Attributes) -> Identity {
    let model = attributes.text(&device.join("name"));
    let serial = attributes.text(&device.join("serial"));
    let firmware = attributes.text(&device.join("fwrev"));
    let card = attributes.text(&device.join("cid")).filter(|cid| !inquiry::says_nothing(cid)).or_else(|| {
        let serial = serial.as_deref()?.trim_start_matches("0x");
        (!inquiry::says_nothing(serial)).then(|| serial.to_owned())
    });
    let area =
        name.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start_matches(|c: char| c.is_ascii_digit());
    Identity { own: card.map(|card| id::joined("mmc", &[&card, area])), model, serial, firmware, ..Identity::default() }
}
