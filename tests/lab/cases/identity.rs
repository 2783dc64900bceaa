//! The same devices, with the same identity, as the field's tools see in the same guest.

use super::super::drive::{self, Nvme};
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::{NVME_FABRICS, SATA_ROTATING, SATA_SOLID, SCSI};
use super::same;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Every source's first read.
const SOON: Duration = Duration::from_secs(20);
/// 0 °C in kelvin, as the standard rounds it.
const FREEZING: f64 = 273.0;

pub(super) fn run(rig: &Rig) -> Result<()> {
    // Queue settings are read a little later than the devices are found.
    rig.eventually(SOON, |scrape| compare(rig, scrape))
}

fn compare(rig: &Rig, scrape: &Scrape) -> Result<()> {
    let listing: Value =
        serde_json::from_str(&rig.guest().sh("lsblk --json --nodeps --bytes -o NAME,TYPE,SIZE,MODEL,LOG-SEC")?)?;
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
        let block = disk["log-sec"].as_u64().context("lsblk: no log-sec")?;
        same(
            &format!("logical block of {name}"),
            &scrape.value("storscope_queue_logical_block_bytes", &[("device", name)])?,
            &(block as f64),
        )?;
        let info = scrape.one("storscope_device_info", &[("device", name)])?;
        same(&format!("model of {name}"), &info.label("model"), &disk["model"].as_str().unwrap_or_default().trim())?;
    }
    controllers(rig, scrape)?;
    disks_by_smartctl(rig, scrape)
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
        for (threshold, field) in [("warning", "wctemp"), ("critical", "cctemp")] {
            // In kelvin; 0 is "not reported".
            let kelvin = identify[field].as_u64().with_context(|| format!("nvme id-ctrl: no {field}"))?;
            let truth: Vec<f64> = (kelvin > 0).then_some(kelvin as f64 - FREEZING).into_iter().collect();
            let labels = [("controller", name), ("threshold", threshold)];
            let told = scrape.all("storscope_nvme_temperature_threshold_celsius", &labels);
            let told: Vec<f64> = told.iter().map(|series| series.value).collect();
            same(&format!("{threshold} temperature of {name}"), &told, &truth)?;
        }
        for block in &nvme.blocks {
            let device = scrape.one("storscope_device_info", &[("device", block)])?;
            same(&format!("serial of {block}"), &device.label("serial"), &nvme.serial.as_str())?;
        }
    }
    Ok(())
}

/// SATA and SCSI disks as smartctl(8) identifies them.
fn disks_by_smartctl(rig: &Rig, scrape: &Scrape) -> Result<()> {
    for serial in [SATA_ROTATING, SATA_SOLID, SCSI] {
        let name = rig.disk(serial)?;
        // Its exit status has bits for what the emulated disk lacks.
        let report = rig.guest().sh(&format!("smartctl --json --info /dev/{name} || true"))?;
        let report: Value = serde_json::from_str(&report).context("smartctl")?;
        let text = |fields: [&str; 2]| fields.iter().find_map(|field| report[field].as_str()).map(str::trim);
        let info = scrape.one("storscope_device_info", &[("device", &name)])?;
        same(&format!("serial of {name}"), &Some(info.label("serial")), &text(["serial_number", "serial_number"]))?;
        same(
            &format!("firmware of {name}"),
            &Some(info.label("firmware")),
            &text(["firmware_version", "scsi_revision"]),
        )?;
        same(&format!("model of {name}"), &Some(info.label("model")), &text(["model_name", "scsi_product"]))?;
        let size = report["user_capacity"]["bytes"].as_f64().context("smartctl: no user_capacity")?;
        same(&format!("size of {name}"), &scrape.value("storscope_device_size_bytes", &[("device", &name)])?, &size)?;
        // Revolutions a minute; 0 is solid state.
        let rotates = report["rotation_rate"].as_u64().context("smartctl: no rotation_rate")? > 0;
        let rotational = scrape.value("storscope_queue_rotational", &[("device", &name)])?;
        same(&format!("{name} rotates"), &(rotational == 1.0), &rotates)?;
    }
    Ok(())
}

/// A namespace over fabrics has no PCIe place, no link, and what its target does not report is absent.
pub(super) fn fabrics(rig: &Rig) -> Result<()> {
    let drive = rig.nvme(NVME_FABRICS)?;
    rig.eventually(SOON, |scrape| without_pcie(scrape, &drive))
}

fn without_pcie(scrape: &Scrape, drive: &Nvme) -> Result<()> {
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
