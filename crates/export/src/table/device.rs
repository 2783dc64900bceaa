//! Identity and condition of devices and controllers.

use super::{Collect, Group, Kind, Metric};
use crate::wall;
use storscope_model::device::Zoned;
use storscope_model::view::{ControllerView, DeviceView};

const fn gauge(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    source: &'static str,
    collect: Collect,
) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels, source, collect }
}

/// PCI power states that the kernel prints (drivers/pci/pci.c, `pci_power_names`).
const PCI_POWER_STATES: [&str; 7] = ["error", "D0", "D1", "D2", "D3hot", "D3cold", "unknown"];

fn flag(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "1",
        Some(false) => "0",
        None => "",
    }
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}

fn number(value: Option<u32>) -> String {
    value.map(|number| number.to_string()).unwrap_or_default()
}

fn device_labels(view: &DeviceView, put: &mut dyn FnMut(&[&str])) {
    let device = &view.state.device;
    let zoned = match device.zoned {
        Some(Zoned::None) => "none",
        Some(Zoned::HostAware) => "host-aware",
        Some(Zoned::HostManaged) => "host-managed",
        None => "",
    };
    let controller = match view.controllers.as_slice() {
        [only] => only.as_str(),
        _ => "",
    };
    put(&[
        &device.name,
        controller,
        &device.id.0,
        text(&device.model),
        text(&device.serial),
        text(&device.firmware),
        device.transport.as_str(),
        text(&device.vendor),
        text(&device.wwid),
        text(&device.pci_address),
        &number(device.numa_node),
        text(&device.place.slot),
        text(&device.place.enclosure),
        text(&device.place.bay),
        text(&device.place.port),
        flag(device.rotational),
        flag(device.removable),
        zoned,
        text(&device.partition_of),
    ]);
}

fn controller_labels(view: &ControllerView, put: &mut dyn FnMut(&[&str])) {
    let controller = &view.state.controller;
    let version = view
        .state
        .identify
        .fresh()
        .and_then(|identify| identify.version)
        .map(|(major, minor, tertiary)| format!("{major}.{minor}.{tertiary}"))
        .unwrap_or_default();
    put(&[
        &controller.name,
        &controller.id.0,
        text(&controller.model),
        text(&controller.serial),
        text(&controller.firmware),
        controller.transport.as_str(),
        text(&controller.address),
        text(&controller.pci_address),
        &number(controller.numa_node),
        text(&controller.place.slot),
        text(&controller.subsystem_nqn),
        &number(controller.cntlid),
        &version,
    ]);
}

fn asleep(device: &DeviceView) -> Option<bool> {
    let known = device.asleep || device.state.power.fresh().is_some() || device.state.ata_power.fresh().is_some();
    known.then_some(device.asleep)
}

pub(super) static GROUP: Group = Group {
    title: "Devices and controllers",
    about: "`device` is the kernel name of a block device, `controller` that of an NVMe controller; both can change at the \
        next boot. Identity is on the info metrics only: join with `* on(device) group_left(model, serial) \
        storscope_device_info`. `id` follows the drive and stays when its name changes.",
    metrics: &[
        Metric {
            name: "storscope_device_info",
            kind: Kind::Info,
            help: "Identity of a block device; `controller` is given where there is exactly one.",
            labels: &[
                "device",
                "controller",
                "id",
                "model",
                "serial",
                "firmware",
                "transport",
                "vendor",
                "wwid",
                "pci_address",
                "numa_node",
                "slot",
                "enclosure",
                "bay",
                "port",
                "rotational",
                "removable",
                "zoned",
                "partition_of",
            ],
            source: "sysfs",
            collect: |view, out| {
                for device in &view.devices {
                    device_labels(device, &mut |labels| out.put(labels, true));
                }
            },
        },
        Metric {
            name: "storscope_controller_info",
            kind: Kind::Info,
            help: "Identity of an NVMe controller.",
            labels: &[
                "controller",
                "id",
                "model",
                "serial",
                "firmware",
                "transport",
                "address",
                "pci_address",
                "numa_node",
                "slot",
                "subsystem_nqn",
                "cntlid",
                "nvme_version",
            ],
            source: "sysfs, Identify Controller",
            collect: |view, out| {
                for controller in &view.controllers {
                    controller_labels(controller, &mut |labels| out.put(labels, true));
                }
            },
        },
        Metric {
            name: "storscope_device_controller_info",
            kind: Kind::Info,
            help: "Which controllers lead to a block device: one series a pair.",
            labels: &["device", "controller"],
            source: "sysfs",
            collect: |view, out| {
                for device in &view.devices {
                    for controller in &device.controllers {
                        out.put(&[&device.state.device.name, controller], true);
                    }
                }
            },
        },
        Metric {
            name: "storscope_nvme_path_info",
            kind: Kind::Info,
            help: "Paths of a multipath namespace, with their ANA state.",
            labels: &["device", "path", "controller", "ana_state"],
            source: "sysfs: ana_state",
            collect: |view, out| {
                for device in &view.devices {
                    let paths = device.state.device.nvme.iter().flat_map(|nvme| &nvme.paths);
                    for path in paths {
                        let controller = view
                            .controllers
                            .iter()
                            .find(|known| known.state.controller.id == path.controller)
                            .map_or("", |known| known.state.controller.name.as_str());
                        out.put(&[&device.state.device.name, &path.name, controller, text(&path.ana_state)], true);
                    }
                }
            },
        },
        gauge("storscope_device_size_bytes", "Size.", &["device"], "sysfs: size", |view, out| {
            for device in &view.devices {
                out.put(&[&device.state.device.name], device.state.device.size_bytes);
            }
        }),
        gauge("storscope_device_read_only", "1 when writes are refused.", &["device"], "sysfs: ro", |view, out| {
            for device in &view.devices {
                out.put(&[&device.state.device.name], device.state.device.read_only);
            }
        }),
        gauge(
            "storscope_device_first_seen_timestamp_seconds",
            "When this process first saw the device under its identity.",
            &["device"],
            "sysfs, uevents",
            |view, out| {
                for device in &view.devices {
                    let seen = wall::unix_seconds(&view.clock, device.state.appeared);
                    out.put(&[&device.state.device.name], seen);
                }
            },
        ),
        gauge(
            "storscope_device_asleep",
            "1 when the device sleeps or is suspended, so that nothing is asked of it.",
            &["device"],
            "power/runtime_status, CHECK POWER MODE",
            |view, out| {
                for device in &view.devices {
                    out.put(&[&device.state.device.name], asleep(device));
                }
            },
        ),
        gauge(
            "storscope_device_ata_power_mode",
            "Raw answer of CHECK POWER MODE: 0 or 1 standby, 64 spun down, 128 to 131 idle, 255 active or idle.",
            &["device"],
            "ATA CHECK POWER MODE",
            |view, out| {
                for device in &view.devices {
                    let mode = device.state.ata_power.fresh().map(|power| power.mode);
                    out.put(&[&device.state.device.name], mode);
                }
            },
        ),
        gauge(
            "storscope_controller_suspended",
            "1 when the controller or a bridge above it is suspended.",
            &["controller"],
            "power/runtime_status",
            |view, out| {
                for controller in &view.controllers {
                    let suspended = controller.state.power.fresh().map(|power| power.suspended);
                    out.put(&[&controller.state.controller.name], suspended);
                }
            },
        ),
        gauge(
            "storscope_controller_pci_power_state",
            "1 for the power state of the PCI function.",
            &["controller", "state"],
            "power_state",
            |view, out| {
                for controller in &view.controllers {
                    let state = controller.state.power.fresh().and_then(|power| power.pci_power_state.as_deref());
                    if let Some(state) = state {
                        let state = PCI_POWER_STATES.into_iter().find(|known| *known == state).unwrap_or("other");
                        out.put(&[&controller.state.controller.name, state], true);
                    }
                }
            },
        ),
    ],
};
