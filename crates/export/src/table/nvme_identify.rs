//! What Identify says of NVMe controllers and namespaces.

use super::{Collect, Group, IntoValue, Kind, Metric, Samples};
use std::time::Duration;
use storscope_model::sample::nvme::{Identify, Namespace};
use storscope_model::view::View;

const fn controller(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels: &["controller"], source: "Identify Controller", collect }
}

const fn namespace(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { labels: &["device"], source: "Identify Namespace", ..controller(name, help, collect) }
}

fn identities(view: &View) -> impl Iterator<Item = (&str, &Identify)> {
    view.controllers.iter().filter_map(|controller| {
        let identify = controller.state.identify.fresh()?;
        Some((controller.state.controller.name.as_str(), identify))
    })
}

fn each<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&Identify) -> V) {
    for (controller, identify) in identities(view) {
        out.put(&[controller], value(identify));
    }
}

fn spaces<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&Namespace) -> V) {
    for device in &view.devices {
        if let Some(namespace) = device.state.namespace.fresh() {
            out.put(&[&device.state.device.name], value(namespace));
        }
    }
}

fn blocks(namespace: &Namespace, count: u64) -> u128 {
    u128::from(count) * u128::from(namespace.block_bytes)
}

fn reported(bytes: u128) -> Option<u128> {
    (bytes > 0).then_some(bytes)
}

pub(super) static GROUP: Group = Group {
    title: "NVMe identity",
    about: "Facts of Identify Controller and Identify Namespace. What the drive does not report is absent.",
    metrics: &[
        Metric {
            labels: &["controller", "threshold"],
            ..controller(
                "storscope_nvme_temperature_threshold_celsius",
                "The drive's own composite temperature thresholds: `warning` (WCTEMP) and `critical` (CCTEMP).",
                |view, out| {
                    for (controller, identify) in identities(view) {
                        out.put(&[controller, "warning"], identify.warning_temperature_c);
                        out.put(&[controller, "critical"], identify.critical_temperature_c);
                    }
                },
            )
        },
        controller("storscope_nvme_capacity_bytes", "Capacity of the drive.", |view, out| {
            each(view, out, |identify| reported(identify.total_capacity_bytes));
        }),
        controller("storscope_nvme_unallocated_capacity_bytes", "Capacity that no namespace has.", |view, out| {
            each(view, out, |identify| {
                reported(identify.total_capacity_bytes).map(|_| identify.unallocated_capacity_bytes)
            });
        }),
        controller("storscope_nvme_namespaces_max", "Highest namespace id that is valid.", |view, out| {
            each(view, out, |identify| identify.namespaces);
        }),
        controller("storscope_nvme_power_states", "Power states that the drive has.", |view, out| {
            each(view, out, |identify| identify.power_states);
        }),
        controller(
            "storscope_nvme_power_state_exit_latency_max_seconds",
            "Longest exit latency of any power state.",
            |view, out| each(view, out, |identify| identify.longest_exit_latency_us.map(Duration::from_micros)),
        ),
        controller(
            "storscope_nvme_autonomous_power_transitions",
            "1 when the drive can change power states by itself.",
            |view, out| each(view, out, |identify| identify.autonomous_power),
        ),
        controller(
            "storscope_nvme_volatile_write_cache",
            "1 when the drive has a volatile write cache.",
            |view, out| {
                each(view, out, |identify| identify.volatile_write_cache);
            },
        ),
        controller("storscope_nvme_error_log_capacity", "Entries that the error log keeps.", |view, out| {
            each(view, out, |identify| identify.error_log_entries);
        }),
        controller("storscope_nvme_self_test_supported", "1 when the drive has a self-test.", |view, out| {
            each(view, out, |identify| identify.self_test_supported);
        }),
        controller(
            "storscope_nvme_pages_not_asked",
            "Pages that are not asked of the drive because it does not offer or has refused them.",
            |view, out| each(view, out, |identify| identify.not_asked.len()),
        ),
        namespace("storscope_nvme_namespace_size_bytes", "Size of the namespace.", |view, out| {
            spaces(view, out, |space| blocks(space, space.size_blocks));
        }),
        namespace(
            "storscope_nvme_namespace_capacity_bytes",
            "Most that may be allocated in the namespace.",
            |view, out| {
                spaces(view, out, |space| blocks(space, space.capacity_blocks));
            },
        ),
        namespace("storscope_nvme_namespace_used_bytes", "Allocated in the namespace.", |view, out| {
            spaces(view, out, |space| blocks(space, space.used_blocks));
        }),
        namespace("storscope_nvme_namespace_nvm_capacity_bytes", "Medium that the namespace takes.", |view, out| {
            spaces(view, out, |space| reported(space.nvm_capacity_bytes));
        }),
        namespace("storscope_nvme_namespace_block_bytes", "Data bytes of a logical block.", |view, out| {
            spaces(view, out, |space| space.block_bytes);
        }),
        namespace("storscope_nvme_namespace_metadata_bytes", "Metadata bytes of a logical block.", |view, out| {
            spaces(view, out, |space| space.metadata_bytes);
        }),
        namespace(
            "storscope_nvme_namespace_protection_type",
            "End-to-end protection type in use; 0 is none.",
            |view, out| spaces(view, out, |space| space.protection),
        ),
    ],
};
