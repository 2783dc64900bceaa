//! Log page C0h of the OCP Datacenter NVMe SSD specification.

use super::{Collect, Group, IntoValue, Kind, Metric, Samples};
use storscope_model::sample::nvme::OcpSmart;
use storscope_model::view::View;

const fn gauge(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels: &["controller"], source: "log page C0h", collect }
}

const fn counter(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { kind: Kind::Counter, ..gauge(name, help, collect) }
}

fn each<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&OcpSmart) -> V) {
    for controller in &view.controllers {
        if let Some(page) = controller.state.ocp.fresh() {
            out.put(&[&controller.state.controller.name], value(page));
        }
    }
}

fn ratio(percent: impl Into<f64>) -> f64 {
    percent.into() / 100.0
}

/// The endurance estimate is in billions of bytes.
const ENDURANCE_UNIT_BYTES: u128 = 1_000_000_000;

pub(super) static GROUP: Group = Group {
    title: "OCP extended SMART",
    about: "Log page C0h, only of drives whose page carries the OCP GUID. A field that the drive marks as not implemented, \
        or that came with a later version of the page, is absent.",
    metrics: &[
        gauge("storscope_nvme_ocp_page_version", "Version of the page.", |view, out| {
            each(view, out, |page| page.version);
        }),
        counter("storscope_nvme_ocp_media_written_bytes_total", "Bytes written to the medium.", |view, out| {
            each(view, out, |page| page.media_written_bytes);
        }),
        counter("storscope_nvme_ocp_media_read_bytes_total", "Bytes read from the medium.", |view, out| {
            each(view, out, |page| page.media_read_bytes);
        }),
        gauge("storscope_nvme_ocp_bad_user_blocks", "Bad user NAND blocks.", |view, out| {
            each(view, out, |page| page.bad_user_blocks.0);
        }),
        gauge(
            "storscope_nvme_ocp_bad_user_blocks_normalized_ratio",
            "Bad user NAND blocks, normalised: 1 is new.",
            |view, out| each(view, out, |page| page.bad_user_blocks.1.map(ratio)),
        ),
        gauge("storscope_nvme_ocp_bad_system_blocks", "Bad system NAND blocks.", |view, out| {
            each(view, out, |page| page.bad_system_blocks.0);
        }),
        gauge(
            "storscope_nvme_ocp_bad_system_blocks_normalized_ratio",
            "Bad system NAND blocks, normalised: 1 is new.",
            |view, out| each(view, out, |page| page.bad_system_blocks.1.map(ratio)),
        ),
        counter("storscope_nvme_ocp_xor_recoveries_total", "Recoveries by XOR.", |view, out| {
            each(view, out, |page| page.xor_recoveries);
        }),
        counter("storscope_nvme_ocp_uncorrectable_reads_total", "Uncorrectable read errors.", |view, out| {
            each(view, out, |page| page.uncorrectable_reads);
        }),
        counter("storscope_nvme_ocp_soft_ecc_errors_total", "Reads that needed a retry with soft ECC.", |view, out| {
            each(view, out, |page| page.soft_ecc_errors);
        }),
        counter("storscope_nvme_ocp_end_to_end_detected_total", "End-to-end errors detected.", |view, out| {
            each(view, out, |page| page.end_to_end_detected);
        }),
        counter("storscope_nvme_ocp_end_to_end_corrected_total", "End-to-end errors corrected.", |view, out| {
            each(view, out, |page| page.end_to_end_corrected);
        }),
        gauge("storscope_nvme_ocp_system_data_used_ratio", "Endurance used of the system area.", |view, out| {
            each(view, out, |page| page.system_data_used_percent.map(ratio));
        }),
        counter("storscope_nvme_ocp_refreshes_total", "Blocks rewritten to keep their data.", |view, out| {
            each(view, out, |page| page.refreshes);
        }),
        gauge("storscope_nvme_ocp_erase_count_max", "Erases of the most worn user block.", |view, out| {
            each(view, out, |page| page.erase_count_max);
        }),
        gauge("storscope_nvme_ocp_erase_count_min", "Erases of the least worn user block.", |view, out| {
            each(view, out, |page| page.erase_count_min);
        }),
        counter(
            "storscope_nvme_ocp_throttle_events_total",
            "Thermal throttling events; one byte, stands still at 255.",
            |view, out| each(view, out, |page| page.throttle_events),
        ),
        gauge("storscope_nvme_ocp_throttle_status", "Thermal throttling level now; 0 is none.", |view, out| {
            each(view, out, |page| page.throttle_status);
        }),
        counter(
            "storscope_nvme_ocp_pcie_correctable_errors_total",
            "PCIe correctable errors that the drive counted.",
            |view, out| each(view, out, |page| page.pcie_correctable_errors),
        ),
        counter("storscope_nvme_ocp_link_retrains_total", "PCIe link retrainings.", |view, out| {
            each(view, out, |page| page.link_retrains);
        }),
        counter("storscope_nvme_ocp_incomplete_shutdowns_total", "Shutdowns that did not complete.", |view, out| {
            each(view, out, |page| page.incomplete_shutdowns);
        }),
        gauge("storscope_nvme_ocp_free_blocks_ratio", "Free blocks.", |view, out| {
            each(view, out, |page| page.free_blocks_percent.map(ratio));
        }),
        gauge(
            "storscope_nvme_ocp_capacitor_health_ratio",
            "Energy of the power-loss capacitor over what is needed; 1 is just enough.",
            |view, out| each(view, out, |page| page.capacitor_health_percent.map(ratio)),
        ),
        counter("storscope_nvme_ocp_plp_starts_total", "Times that power-loss protection started.", |view, out| {
            each(view, out, |page| page.plp_starts);
        }),
        counter("storscope_nvme_ocp_unaligned_io_total", "Unaligned writes.", |view, out| {
            each(view, out, |page| page.unaligned_io);
        }),
        gauge("storscope_nvme_ocp_security_version", "Security version of the firmware.", |view, out| {
            each(view, out, |page| page.security_version);
        }),
        gauge("storscope_nvme_ocp_namespaces_used_blocks", "Logical blocks in use by all namespaces.", |view, out| {
            each(view, out, |page| page.total_nuse)
        }),
        gauge(
            "storscope_nvme_ocp_endurance_estimate_bytes",
            "Bytes that may be written over the drive's life, by its own estimate.",
            |view, out| {
                each(view, out, |page| page.endurance_estimate.map(|units| units.saturating_mul(ENDURANCE_UNIT_BYTES)));
            },
        ),
        counter("storscope_nvme_ocp_power_state_changes_total", "Power state changes.", |view, out| {
            each(view, out, |page| page.power_state_changes);
        }),
    ],
};
