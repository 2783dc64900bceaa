//! Health of NVMe controllers: state and log page 02h.

use super::{Collect, Group, IntoValue, Kind, Metric, Samples};
use storscope_model::sample::nvme::{CRITICAL_WARNING_FLAGS, DATA_UNIT_BYTES, SmartHealth};
use storscope_model::view::View;

/// The states that the kernel prints (drivers/nvme/host/sysfs.c, `nvme_sysfs_show_state`).
const STATES: [&str; 8] =
    ["new", "live", "resetting", "connecting", "deleting", "deleting (no IO)", "dead", "unknown state"];

const SENSORS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];

const PAGE: &str = "log page 02h";

const fn gauge(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels: &["controller"], source: PAGE, collect }
}

const fn counter(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { kind: Kind::Counter, ..gauge(name, help, collect) }
}

fn pages(view: &View) -> impl Iterator<Item = (&str, &SmartHealth)> {
    view.controllers.iter().filter_map(|controller| {
        let page = controller.state.smart.fresh()?;
        Some((controller.state.controller.name.as_str(), page))
    })
}

fn each<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&SmartHealth) -> V) {
    for (controller, page) in pages(view) {
        out.put(&[controller], value(page));
    }
}

fn ratio(percent: u8) -> f64 {
    f64::from(percent) / 100.0
}

/// Data units as bytes. The standard takes 0 for "not reported" (NVM Express base specification, SMART / health).
fn data_bytes(units: u128) -> Option<u128> {
    (units > 0).then(|| units.saturating_mul(DATA_UNIT_BYTES))
}

fn live(view: &View, out: &mut Samples<'_, '_>) {
    for controller in &view.controllers {
        let live = controller.state.state.fresh().map(|state| state.is_live());
        out.put(&[&controller.state.controller.name], live);
    }
}

fn state(view: &View, out: &mut Samples<'_, '_>) {
    for controller in &view.controllers {
        let Some(now) = controller.state.state.fresh() else {
            continue;
        };
        for state in STATES {
            out.put(&[&controller.state.controller.name, state], state == now.state);
        }
        let other = !STATES.contains(&now.state.as_str());
        out.put(&[&controller.state.controller.name, "other"], other);
    }
}

fn temperatures(view: &View, out: &mut Samples<'_, '_>) {
    for (controller, page) in pages(view) {
        out.put(&[controller, "composite"], page.temperature_c);
        for (name, degrees) in SENSORS.into_iter().zip(page.sensors_c) {
            out.put(&[controller, name], degrees);
        }
    }
}

fn critical_warnings(view: &View, out: &mut Samples<'_, '_>) {
    for (controller, page) in pages(view) {
        for (bit, flag) in (0..).zip(CRITICAL_WARNING_FLAGS) {
            out.put(&[controller, flag], page.critical_warning >> bit & 1);
        }
    }
}

pub(super) static GROUP: Group = Group {
    title: "NVMe health",
    about: "Log page 02h as the drive says it (NVM Express base specification, SMART / health information). Counters span \
        the drive's life: alert on a change that was seen, not on a total. A data unit is 512,000 bytes, rounded up by the \
        drive.",
    metrics: &[
        Metric {
            source: "sysfs: state",
            ..gauge("storscope_nvme_controller_live", "1 when the controller takes commands.", live)
        },
        Metric {
            labels: &["controller", "state"],
            source: "sysfs: state",
            ..gauge("storscope_nvme_controller_state", "1 for the state of the controller, 0 for the others.", state)
        },
        gauge(
            "storscope_nvme_percentage_used_ratio",
            "Endurance used; may pass 1, and stands still at 2.55.",
            |view, out| each(view, out, |page| ratio(page.percentage_used)),
        ),
        gauge("storscope_nvme_available_spare_ratio", "Spare capacity left.", |view, out| {
            each(view, out, |page| ratio(page.available_spare_percent));
        }),
        gauge(
            "storscope_nvme_available_spare_threshold_ratio",
            "Spare capacity below which the drive warns.",
            |view, out| each(view, out, |page| ratio(page.available_spare_threshold_percent)),
        ),
        Metric {
            labels: &["controller", "sensor"],
            ..gauge(
                "storscope_nvme_temperature_celsius",
                "Temperature: `composite`, and the drive's own sensors by number.",
                temperatures,
            )
        },
        Metric {
            labels: &["controller", "flag"],
            ..gauge("storscope_nvme_critical_warning", "1 when the critical-warning bit is set.", critical_warnings)
        },
        gauge(
            "storscope_nvme_critical_warning_raw",
            "The critical-warning byte, reserved bits included.",
            |view, out| each(view, out, |page| page.critical_warning),
        ),
        gauge(
            "storscope_nvme_endurance_group_warning_raw",
            "Summary of the endurance groups' critical warnings, as a byte.",
            |view, out| each(view, out, |page| page.endurance_group_warning),
        ),
        counter("storscope_nvme_media_errors_total", "Unrecovered data integrity errors.", |view, out| {
            each(view, out, |page| page.media_errors);
        }),
        counter(
            "storscope_nvme_error_log_entries_total",
            "Error log entries; refused commands count too, so this alone is no fault.",
            |view, out| each(view, out, |page| page.error_log_entries),
        ),
        counter("storscope_nvme_data_read_bytes_total", "Bytes read by hosts.", |view, out| {
            each(view, out, |page| data_bytes(page.data_units_read));
        }),
        counter("storscope_nvme_data_written_bytes_total", "Bytes written by hosts.", |view, out| {
            each(view, out, |page| data_bytes(page.data_units_written));
        }),
        counter("storscope_nvme_host_reads_total", "Read commands completed.", |view, out| {
            each(view, out, |page| page.host_reads);
        }),
        counter("storscope_nvme_host_writes_total", "Write commands completed.", |view, out| {
            each(view, out, |page| page.host_writes);
        }),
        counter(
            "storscope_nvme_controller_busy_seconds_total",
            "Time busy with I/O; counted in minutes.",
            |view, out| {
                each(view, out, |page| page.busy_minutes.saturating_mul(60));
            },
        ),
        counter("storscope_nvme_power_on_seconds_total", "Time powered on; counted in hours.", |view, out| {
            each(view, out, |page| page.power_on_hours.saturating_mul(3600));
        }),
        counter("storscope_nvme_power_cycles_total", "Power cycles.", |view, out| {
            each(view, out, |page| page.power_cycles);
        }),
        counter("storscope_nvme_unsafe_shutdowns_total", "Power losses without a shutdown notice.", |view, out| {
            each(view, out, |page| page.unsafe_shutdowns);
        }),
        counter(
            "storscope_nvme_warning_temperature_seconds_total",
            "Time at or above the warning temperature; counted in minutes.",
            |view, out| each(view, out, |page| u64::from(page.warning_temperature_minutes) * 60),
        ),
        counter(
            "storscope_nvme_critical_temperature_seconds_total",
            "Time at or above the critical temperature; counted in minutes.",
            |view, out| each(view, out, |page| u64::from(page.critical_temperature_minutes) * 60),
        ),
        Metric {
            labels: &["controller", "state"],
            ..counter(
                "storscope_nvme_thermal_transitions_total",
                "Times that the drive went into light (1) or heavy (2) throttling by host-controlled thermal management.",
                |view, out| {
                    for (controller, page) in pages(view) {
                        out.put(&[controller, "1"], page.thermal_transitions[0]);
                        out.put(&[controller, "2"], page.thermal_transitions[1]);
                    }
                },
            )
        },
        Metric {
            labels: &["controller", "state"],
            ..counter(
                "storscope_nvme_thermal_throttled_seconds_total",
                "Time in light (1) or heavy (2) throttling by host-controlled thermal management.",
                |view, out| {
                    for (controller, page) in pages(view) {
                        out.put(&[controller, "1"], page.thermal_seconds[0]);
                        out.put(&[controller, "2"], page.thermal_seconds[1]);
                    }
                },
            )
        },
    ],
};
