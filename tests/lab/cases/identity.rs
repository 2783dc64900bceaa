//! The same devices, with the same identity, as the field's tools see in the same guest.

use super::super::rig::Rig;
use super::super::topology::serial::NVME_FABRICS;
use super::super::{drive, scrape::Scrape};
use super::same;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn run(rig: &Rig) -> Result<()> {
    let scrape = rig.scrape()?;
    let listing: Value =
        serde_json::from_str(&rig.guest().sh("lsblk --json --nodeps --bytes -o NAME,TYPE,SIZE,MODEL")?)?;
    let disks: Vec<&Value> = listing["blockdevices"]
        .as_array()
        .context("lsblk: no list")?
        .iter()
        .filter(|device| device["type"] == "disk")
        .collect();
    let truth: BTreeSet<&str> = disks.iter().filter_map(|disk| disk["name"].as_str()).collect();
    let listed: Vec<&str> =
        scrape.all("storscope_device_info", &[]).iter().map(|series| series.label("device")).collect();
    ensure!(listed.len() == truth.len(), "devices: the agent lists {listed:?}, lsblk {truth:?}");
    same("devices", &listed.into_iter().collect(), &truth)?;
    for disk in disks {
        let name = disk["name"].as_str().context("lsblk: no name")?;
        let size = disk["size"].as_u64().context("lsblk: no size")?;
        same(
            &format!("size of {name}"),
            &scrape.value("storscope_device_size_bytes", &[("device", name)])?,
            &(size as f64),
        )?;
        let info = scrape.one("storscope_device_info", &[("device", name)])?;
        same(&format!("model of {name}"), &info.label("model"), &disk["model"].as_str().unwrap_or_default().trim())?;
    }
    controllers(rig, &scrape)
}

fn controllers(rig: &Rig, scrape: &Scrape) -> Result<()> {
    for nvme in drive::nvme_controllers(&rig.guest())? {
        let name = nvme.controller.as_str();
        let identify: Value =
            serde_json::from_str(&rig.guest().sh(&format!("nvme id-ctrl /dev/{name} --output-format json"))?)?;
        let info = scrape.one("storscope_controller_info", &[("controller", name)])?;
        for (label, field) in [("model", "mn"), ("serial", "sn"), ("firmware", "fr")] {
            let truth = identify[field].as_str().unwrap_or_default().trim();
            same(&format!("{label} of {name}"), &info.label(label), &truth)?;
        }
        for block in &nvme.blocks {
            let device = scrape.one("storscope_device_info", &[("device", block)])?;
            same(&format!("serial of {block}"), &device.label("serial"), &nvme.serial.as_str())?;
        }
    }
    Ok(())
}

/// A namespace over fabrics has no PCIe place, no link, and what its target does not report is absent.
pub(super) fn fabrics(rig: &Rig) -> Result<()> {
    let drive = rig.nvme(NVME_FABRICS)?;
    let scrape = rig.scrape()?;
    let info = scrape.one("storscope_device_info", &[("device", drive.block()?)])?;
    same("transport", &info.label("transport"), &"nvme-fabrics")?;
    same("address", &drive.address.as_str(), &"")?;
    let controller = [("controller", drive.controller.as_str())];
    for name in
        ["storscope_pcie_link_width_lanes", "storscope_pcie_aer_errors_total", "storscope_nvme_temperature_celsius"]
    {
        let found = scrape.all(name, &controller);
        ensure!(found.is_empty(), "a drive on fabrics has {found:?}");
    }
    same("live", &scrape.value("storscope_nvme_controller_live", &controller)?, &1.0)
}
