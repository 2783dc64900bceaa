//! The host as a whole: is it storage at all?

use super::{Collect, Group, IntoValue, Kind, Metric, Samples};
use std::time::Duration;
use storscope_model::sample::host::{Cpu, HostInfo, Pressure, PressureLine, PressureResource};
use storscope_model::view::View;

const fn gauge(name: &'static str, help: &'static str, source: &'static str, collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels: &[], source, collect }
}

const fn stalled(name: &'static str, help: &'static str, source: &'static str, collect: Collect) -> Metric {
    Metric { kind: Kind::Counter, ..gauge(name, help, source, collect) }
}

fn total(view: &View, out: &mut Samples<'_, '_>, line: impl Fn(&Pressure) -> Option<PressureLine>) {
    let line = view.host.pressure.fresh().and_then(line);
    out.put(&[], line.map(|line| Duration::from_micros(line.total_us)));
}

fn averages(view: &View, out: &mut Samples<'_, '_>) {
    let Some(pressure) = view.host.pressure.fresh() else {
        return;
    };
    let resources: [(&str, &PressureResource); 3] =
        [("io", &pressure.io), ("cpu", &pressure.cpu), ("memory", &pressure.memory)];
    for (name, resource) in resources {
        for (kind, line) in [("some", resource.some), ("full", resource.full)] {
            out.put(&[name, kind, "10s"], line.map(|line| line.avg10));
            out.put(&[name, kind, "60s"], line.map(|line| line.avg60));
            out.put(&[name, kind, "300s"], line.map(|line| line.avg300));
        }
    }
}

pub(super) static PRESSURE: Group = Group {
    title: "Pressure",
    about: "Pressure stall information (Documentation/accounting/psi.rst), named as node_exporter's is: `waiting` is the \
        kernel's `some`, `stalled` its `full`.",
    metrics: &[
        stalled(
            "storscope_pressure_io_waiting_seconds_total",
            "Time in which some task waited for I/O.",
            "pressure/io",
            |view, out| total(view, out, |pressure| pressure.io.some),
        ),
        stalled(
            "storscope_pressure_io_stalled_seconds_total",
            "Time in which all tasks waited for I/O.",
            "pressure/io",
            |view, out| total(view, out, |pressure| pressure.io.full),
        ),
        stalled(
            "storscope_pressure_cpu_waiting_seconds_total",
            "Time in which some task waited for a CPU.",
            "pressure/cpu",
            |view, out| total(view, out, |pressure| pressure.cpu.some),
        ),
        stalled(
            "storscope_pressure_cpu_stalled_seconds_total",
            "Time in which all tasks waited for a CPU; the kernel counts this in groups only.",
            "pressure/cpu",
            |view, out| total(view, out, |pressure| pressure.cpu.full),
        ),
        stalled(
            "storscope_pressure_memory_waiting_seconds_total",
            "Time in which some task waited for memory.",
            "pressure/memory",
            |view, out| total(view, out, |pressure| pressure.memory.some),
        ),
        stalled(
            "storscope_pressure_memory_stalled_seconds_total",
            "Time in which all tasks waited for memory.",
            "pressure/memory",
            |view, out| total(view, out, |pressure| pressure.memory.full),
        ),
        Metric {
            labels: &["resource", "kind", "window"],
            ..gauge(
                "storscope_pressure_stalled_ratio",
                "Share of the window in which tasks waited, as the kernel averages it.",
                "pressure/io, pressure/cpu, pressure/memory",
                averages,
            )
        },
    ],
};

fn cpu<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&Cpu) -> V) {
    out.put(&[], view.host.cpu.fresh().map(value));
}

fn info<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&HostInfo) -> V) {
    out.put(&[], view.host.info.fresh().map(value));
}

pub(super) static GROUP: Group = Group {
    title: "Host",
    about: "CPU, tasks and memory, as far as they tell whether storage is to blame.",
    metrics: &[
        Metric {
            kind: Kind::Info,
            labels: &["hostname", "kernel"],
            ..gauge("storscope_host_info", "Name and kernel of the host.", "sysinfo", |view, out| {
                if let Some(info) = view.host.info.fresh() {
                    let name = info.hostname.as_deref().unwrap_or_default();
                    let kernel = info.kernel.as_deref().unwrap_or_default();
                    out.put(&[name, kernel], true);
                }
            })
        },
        gauge("storscope_boot_time_seconds", "When the host booted, since the Unix epoch.", "sysinfo", |view, out| {
            info(view, out, |info| info.boot_time_unix);
        }),
        gauge("storscope_host_cpus", "Logical CPUs.", "sysinfo", |view, out| info(view, out, |info| info.cpus)),
        gauge("storscope_memory_size_bytes", "Memory.", "sysinfo", |view, out| {
            info(view, out, |info| info.memory_bytes);
        }),
        gauge("storscope_memory_available_bytes", "Memory available without swapping.", "sysinfo", |view, out| {
            info(view, out, |info| info.memory_available_bytes);
        }),
        gauge(
            "storscope_cpu_busy_ratio",
            "Share of CPU time neither idle nor waiting, newest interval.",
            "stat",
            |view, out| {
                out.put(&[], view.cpu.map(|cpu| cpu.busy));
            },
        ),
        gauge(
            "storscope_cpu_iowait_ratio",
            "Share of CPU time idle while I/O was outstanding, newest interval.",
            "stat",
            |view, out| {
                out.put(&[], view.cpu.map(|cpu| cpu.iowait));
            },
        ),
        gauge("storscope_procs_running", "Runnable tasks.", "stat: procs_running", |view, out| {
            cpu(view, out, |cpu| cpu.running);
        }),
        gauge("storscope_procs_blocked", "Tasks blocked on I/O.", "stat: procs_blocked", |view, out| {
            cpu(view, out, |cpu| cpu.blocked);
        }),
        gauge("storscope_load1", "Load average over 1 min.", "loadavg", |view, out| cpu(view, out, |cpu| cpu.load1)),
        gauge("storscope_devices", "Block devices that are watched.", "the agent", |view, out| {
            out.put(&[], view.devices.len());
        }),
        gauge("storscope_controllers", "NVMe controllers that are watched.", "the agent", |view, out| {
            out.put(&[], view.controllers.len());
        }),
        gauge(
            "storscope_discovery_devices_seen",
            "Block devices on the host, before selection.",
            "sysfs",
            |view, out| {
                out.put(&[], view.host.discovery.fresh().map(|scan| scan.seen));
            },
        ),
    ],
};
