//! PCIe links.

use super::super::drive;
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::LinkSpeed;
use super::super::topology::serial::{NVME_CRYPT, NVME_FREE, NVME_SWITCHED};
use super::same;
use anyhow::{Context, Result, bail, ensure};
use std::time::Duration;

/// Two link periods of the lab's configuration, the rule's own persistence, and a tick.
const SOON: Duration = Duration::from_secs(20);
/// Reads of the link until a downgrade is a finding: two, and two for the moments of looking.
const MOST_READS: f64 = 4.0;

pub(super) fn equal_to_sysfs(rig: &Rig) -> Result<()> {
    rig.eventually(SOON, |scrape| compare(rig, scrape))
}

fn compare(rig: &Rig, scrape: &Scrape) -> Result<()> {
    for nvme in drive::nvme_controllers(&rig.guest())? {
        let controller = nvme.controller.as_str();
        let labels = [("controller", controller)];
        if nvme.address.is_empty() {
            let links = scrape.all("storscope_pcie_link_width_lanes", &labels).len();
            ensure!(links == 0, "{controller} is on fabrics and has a PCIe link");
            continue;
        }
        let folder = format!("/sys/bus/pci/devices/{}", nvme.address);
        let read = |file: &str| rig.guest().sh(&format!("cat {folder}/{file}"));
        let now = ("storscope_pcie_link_speed_transfers_per_second", "storscope_pcie_link_width_lanes", "current");
        let most = (
            "storscope_pcie_link_maximum_speed_transfers_per_second",
            "storscope_pcie_link_maximum_width_lanes",
            "max",
        );
        for (speed, width, file) in [now, most] {
            let truth = transfers(&read(&format!("{file}_link_speed"))?)?;
            same(&format!("{file} speed of {controller}"), &scrape.value(speed, &labels)?, &truth)?;
            let truth: f64 = read(&format!("{file}_link_width"))?.parse()?;
            same(&format!("{file} width of {controller}"), &scrape.value(width, &labels)?, &truth)?;
        }
        let status = rig.guest().sh(&format!("lspci -vv -s {} | grep LnkSta:", nvme.address))?;
        let speed = scrape.value("storscope_pcie_link_speed_transfers_per_second", &labels)? / 1e9;
        let width = scrape.value("storscope_pcie_link_width_lanes", &labels)?;
        // What follows a value says how it compares with the capability.
        let words: Vec<&str> = status.split([' ', ',', '\t']).collect();
        let told = [format!("{speed}GT/s"), format!("x{width}")];
        let agrees = told.iter().all(|value| words.contains(&value.as_str()));
        ensure!(agrees, "{controller}: the agent says {told:?}, lspci {status}");
        ensure!(
            scrape.value("storscope_pcie_link_changes_total", &labels)? == 0.0,
            "{controller}: changes without any"
        );
    }
    Ok(())
}

/// `16.0 GT/s PCIe` as transfers a second.
fn transfers(text: &str) -> Result<f64> {
    let number: f64 = text.split(' ').next().context("empty speed")?.parse().with_context(|| text.to_owned())?;
    Ok(number * 1e9)
}

pub(super) fn downgrade(rig: &Rig) -> Result<()> {
    let sick = rig.nvme(NVME_FREE)?.controller;
    let others = [rig.nvme(NVME_CRYPT)?.controller, rig.nvme(NVME_SWITCHED)?.controller];
    // The link must have been seen at full width.
    let reads = |scrape: &Scrape| {
        scrape.value("storscope_source_reads_total", &[("controller", &sick), ("source", "pcie_link")])
    };
    rig.eventually(SOON, |scrape| {
        ensure!(reads(scrape)? >= 2.0, "the link was not read twice");
        Ok(())
    })?;
    let fault = rig.link(NVME_FREE, LinkSpeed::Gt8, 2)?;
    let reads_before = reads(&rig.scrape()?)?;
    rig.eventually(SOON, |scrape| {
        found(scrape, &sick)?;
        let needed = reads(scrape)? - reads_before;
        ensure!(needed <= MOST_READS, "the finding took {needed} reads of the link");
        let labels = [("controller", sick.as_str())];
        same(
            "speed",
            &scrape.value("storscope_pcie_link_speed_transfers_per_second", &labels)?,
            &LinkSpeed::Gt8.transfers_per_second(),
        )?;
        same("width", &scrape.value("storscope_pcie_link_width_lanes", &labels)?, &2.0)?;
        same(
            "expected speed",
            &scrape.value("storscope_pcie_link_expected_speed_transfers_per_second", &labels)?,
            &LinkSpeed::Gt16.transfers_per_second(),
        )?;
        same("expected width", &scrape.value("storscope_pcie_link_expected_width_lanes", &labels)?, &4.0)?;
        // 128b/130b at both speeds: a quarter of the bandwidth.
        let now = scrape.value("storscope_pcie_link_bandwidth_bytes_per_second", &labels)?;
        let expected = scrape.value("storscope_pcie_link_expected_bandwidth_bytes_per_second", &labels)?;
        ensure!((expected / now - 4.0).abs() < 1e-6, "bandwidth {now} of {expected}");
        same("bandwidth", &now.round(), &(2.0 * 8e9 * 128.0 / 130.0 / 8.0_f64).round())?;
        for other in &others {
            ensure!(found(scrape, other).is_err(), "a finding on {other} as well");
        }
        Ok(())
    })?;
    let page = rig.guest().body("/status")?;
    ensure!(page.contains(NVME_FREE), "/status does not name the drive:\n{page}");
    fault.release()?;
    rig.eventually(SOON, |scrape| {
        ensure!(found(scrape, &sick).is_err(), "the finding did not end");
        same("expected width", &scrape.value("storscope_pcie_link_width_lanes", &[("controller", &sick)])?, &4.0)
    })?;
    // Its whole course stays on the page for a while.
    let closed = rig.json("/status.json")?;
    let closed = closed["closed"].as_array().and_then(|all| {
        all.iter()
            .find(|finding| finding["rule"] == super::rule::LINK_DOWNGRADED && finding["controller"] == sick.as_str())
    });
    let closed = closed.context("the ended finding is not on /status.json")?;
    let time = |field: &str| closed[field].as_str().with_context(|| format!("no {field}: {closed}"));
    ensure!(time("since")? < time("ended")?, "no duration: {closed}");
    Ok(())
}

/// Whether a downgrade of this controller's link is an open finding.
fn found(scrape: &Scrape, controller: &str) -> Result<()> {
    let labels = [("rule", super::rule::LINK_DOWNGRADED), ("controller", controller)];
    match scrape.all("storscope_finding", &labels).len() {
        0 => bail!("no finding {} on {controller}", super::rule::LINK_DOWNGRADED),
        _ => Ok(()),
    }
}

pub(super) fn flapping(rig: &Rig) -> Result<()> {
    let controller = rig.nvme(NVME_FREE)?.controller;
    let width = |expected: f64| {
        rig.eventually(SOON, |scrape| {
            let labels = [("controller", controller.as_str())];
            same("width", &scrape.value("storscope_pcie_link_width_lanes", &labels)?, &expected)
        })
    };
    width(4.0)?;
    for _ in 0..2 {
        let fault = rig.link(NVME_FREE, LinkSpeed::Gt16, 2)?;
        width(2.0)?;
        fault.release()?;
        width(4.0)?;
    }
    rig.eventually(SOON, |scrape| {
        let labels = [("rule", "pcie_link_flapping"), ("controller", controller.as_str())];
        ensure!(!scrape.all("storscope_finding", &labels).is_empty(), "no finding pcie_link_flapping on {controller}");
        Ok(())
    })
}

pub(super) fn correctable_errors(rig: &Rig) -> Result<()> {
    let controller = rig.nvme(NVME_FREE)?.controller;
    let count = |scrape: &Scrape| -> f64 {
        let labels = [("controller", controller.as_str()), ("severity", "correctable")];
        scrape.all("storscope_pcie_aer_errors_total", &labels).iter().map(|series| series.value).sum()
    };
    let before = rig.eventually(SOON, |scrape| Ok(count(scrape)))?;
    rig.correctable_error(NVME_FREE)?;
    rig.eventually(SOON, |scrape| {
        ensure!(count(scrape) > before, "{} correctable errors, {before} before", count(scrape));
        Ok(())
    })
}
