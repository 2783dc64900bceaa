//! The same devices, with the same identity, as the field's tools see in the same guest.

use super::super::rig::Rig;
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
