//! The SMART / health log page.

use super::super::drive;
use super::super::rig::Rig;
use super::super::scrape::Scrape;
use super::super::topology::serial::{NVME_CRYPT, NVME_FREE};
use super::same;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::time::Duration;

/// Bits of the critical warning that the emulator can set, and the labels that the agent gives them (NVM Express base
/// specification, SMART / health).
const FLAGS: [(u8, &str); 4] = [
    (0x01, "available_spare"),
    (0x04, "reliability_degraded"),
    (0x08, "read_only"),
    (0x10, "volatile_memory_backup_failed"),
];
/// Two SMART periods of the lab's configuration, and a tick.
const SOON: Duration = Duration::from_secs(12);

/// Reads that the agent's own probes may add between its read of the log and the tool's: two SMART periods' worth.
const PROBES_BETWEEN: f64 = 160.0;
/// 0 °C in kelvin, as the standard rounds it.
const FREEZING: f64 = 273.0;

pub(super) fn equal_to_the_tool(rig: &Rig) -> Result<()> {
    for nvme in drive::nvme_controllers(&rig.guest())? {
        let name = nvme.controller.as_str();
        // The tool's own I/O may move a counter between the two reads.
        rig.eventually(SOON, |scrape| compare(rig, scrape, name))?;
        // smartctl does not know the kernel's own target.
        if !nvme.address.is_empty() {
            rig.eventually(SOON, |scrape| compare_with_smartctl(rig, scrape, name))?;
        }
    }
    Ok(())
}

fn compare_with_smartctl(rig: &Rig, scrape: &Scrape, controller: &str) -> Result<()> {
    let report = rig.guest().sh(&format!("smartctl --json --all /dev/{controller}"))?;
    let report: Value = serde_json::from_str(&report).context("smartctl")?;
    let log = &report["nvme_smart_health_information_log"];
    let exact = [
        ("storscope_nvme_percentage_used_ratio", "percentage_used", 0.01),
        ("storscope_nvme_available_spare_ratio", "available_spare", 0.01),
        // Thousands of 512 bytes.
        ("storscope_nvme_data_read_bytes_total", "data_units_read", 512_000.0),
        ("storscope_nvme_data_written_bytes_total", "data_units_written", 512_000.0),
        ("storscope_nvme_host_reads_total", "host_reads", 1.0),
        ("storscope_nvme_host_writes_total", "host_writes", 1.0),
        ("storscope_nvme_media_errors_total", "media_errors", 1.0),
        ("storscope_nvme_warning_temperature_seconds_total", "warning_temp_time", 60.0),
        ("storscope_nvme_critical_temperature_seconds_total", "critical_comp_time", 60.0),
    ];
    for (metric, field, unit) in exact {
        let truth = log[field].as_f64().with_context(|| format!("smartctl: no {field}"))? * unit;
        let told = scrape.all(metric, &[("controller", controller)]);
        if field.starts_with("data_units") && truth == 0.0 {
            // "Not reported", says the standard.
            ensure!(told.is_empty(), "{controller} {metric}: {told:?} of an amount that is not reported");
            continue;
        }
        // Probes go on between the two reads.
        let moves = match field {
            "host_reads" => PROBES_BETWEEN,
            "data_units_read" => 2.0 * unit,
            _ => 0.0,
        };
        let agent = scrape.value(metric, &[("controller", controller)])?;
        ensure!((agent - truth).abs() <= moves + 1e-9, "{controller} {metric}: {agent}, smartctl says {truth}");
    }
    let labels = [("controller", controller), ("sensor", "composite")];
    let truth = log["temperature"].as_f64().context("smartctl: no temperature")?;
    same(&format!("temperature of {controller}"), &scrape.value("storscope_nvme_temperature_celsius", &labels)?, &truth)
}

fn compare(rig: &Rig, scrape: &Scrape, controller: &str) -> Result<()> {
    let log: Value =
        serde_json::from_str(&rig.guest().sh(&format!("nvme smart-log /dev/{controller} --output-format json"))?)?;
    let truth = |field: &str| -> Result<f64> {
        let value = &log[field];
        let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
        number.with_context(|| format!("nvme smart-log: no {field}"))
    };
    let labels = [("controller", controller)];
    let exact = [
        ("storscope_nvme_critical_warning_raw", "critical_warning", 1.0),
        ("storscope_nvme_percentage_used_ratio", "percent_used", 0.01),
        ("storscope_nvme_available_spare_ratio", "avail_spare", 0.01),
        ("storscope_nvme_available_spare_threshold_ratio", "spare_thresh", 0.01),
        ("storscope_nvme_media_errors_total", "media_errors", 1.0),
        ("storscope_nvme_error_log_entries_total", "num_err_log_entries", 1.0),
        ("storscope_nvme_power_cycles_total", "power_cycles", 1.0),
        ("storscope_nvme_unsafe_shutdowns_total", "unsafe_shutdowns", 1.0),
        ("storscope_nvme_power_on_seconds_total", "power_on_hours", 3600.0),
        ("storscope_nvme_controller_busy_seconds_total", "controller_busy_time", 60.0),
    ];
    for (metric, field, unit) in exact {
        let agent = scrape.value(metric, &labels)?;
        let expected = truth(field)? * unit;
        ensure!((agent - expected).abs() < 1e-9, "{controller} {metric}: {agent}, nvme smart-log says {expected}");
    }
    let kelvin = truth("temperature")?;
    let temperature =
        scrape.all("storscope_nvme_temperature_celsius", &[("controller", controller), ("sensor", "composite")]);
    let agent: Vec<f64> = temperature.iter().map(|series| series.value).collect();
    // 0 K is "not reported": no series.
    let expected = if kelvin > 0.0 { vec![kelvin - FREEZING] } else { Vec::new() };
    same(&format!("temperature of {controller}"), &agent, &expected)
}

pub(super) fn critical_warning(rig: &Rig) -> Result<()> {
    let sick = rig.nvme(NVME_FREE)?.controller;
    let well = rig.nvme(NVME_CRYPT)?.controller;
    let flag = |scrape: &Scrape, controller: &str, flag: &str| {
        scrape.value("storscope_nvme_critical_warning", &[("controller", controller), ("flag", flag)])
    };
    for (bits, name) in FLAGS {
        let fault = rig.critical_warning(NVME_FREE, bits)?;
        rig.eventually(SOON, |scrape| {
            same(name, &flag(scrape, &sick, name)?, &1.0)?;
            same(name, &flag(scrape, &well, name)?, &0.0)?;
            for (other, name) in FLAGS.iter().filter(|(other, _)| *other != bits) {
                ensure!(flag(scrape, &sick, name)? == 0.0, "bit {other:#x} beside {bits:#x}");
            }
            ensure!(warnings(scrape, &sick) > 0, "no finding for {name}");
            ensure!(warnings(scrape, &well) == 0, "a finding on the healthy drive for {name}");
            Ok(())
        })?;
        fault.release()?;
    }
    rig.eventually(SOON, |scrape| {
        ensure!(warnings(scrape, &sick) == 0, "the finding did not end");
        Ok(())
    })
}

fn warnings(scrape: &Scrape, controller: &str) -> usize {
    let findings = scrape.all("storscope_finding", &[("rule", super::rule::CRITICAL_WARNING)]);
    findings.iter().filter(|finding| finding.label("controller") == controller).count()
}

pub(super) fn over_temperature(rig: &Rig) -> Result<()> {
    let controller = rig.nvme(NVME_FREE)?.controller;
    let labels = [("controller", controller.as_str()), ("flag", "temperature")];
    let bit = |expected: f64| {
        rig.eventually(SOON, |scrape| {
            same("temperature bit", &scrape.value("storscope_nvme_critical_warning", &labels)?, &expected)?;
            same("findings", &(warnings(scrape, &controller) as f64), &expected)
        })
    };
    let fault = rig.over_temperature(NVME_FREE)?;
    bit(1.0)?;
    fault.release()?;
    bit(0.0)
}
