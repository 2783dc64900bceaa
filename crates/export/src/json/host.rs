//! The host, and how busy it is.

use super::source::Source;
use crate::wall;
use jiff::Timestamp;
use serde::Serialize;
use storscope_model::sample::host::{PressureLine, PressureResource};
use storscope_model::view::View;

#[derive(Serialize)]
pub(super) struct Host<'v> {
    name: Option<&'v str>,
    kernel: Option<&'v str>,
    boot_id: &'v str,
    boot_time: Option<Timestamp>,
    clock_set: Option<Timestamp>,
    clock_set_by_seconds: Option<f64>,
    cpus: Option<u64>,
    memory_bytes: Option<u64>,
    memory_available_bytes: Option<u64>,
    block_devices_seen: Option<u64>,
    sources: Vec<Source>,
}

impl<'v> Host<'v> {
    pub(super) fn of(view: &'v View) -> Self {
        let info = view.host.info.fresh();
        let boot_time = info.and_then(|info| info.boot_time_unix).and_then(|seconds| i64::try_from(seconds).ok());
        Self {
            name: info.and_then(|info| info.hostname.as_deref()),
            kernel: info.and_then(|info| info.kernel.as_deref()),
            boot_id: &view.clock.boot_id,
            boot_time: boot_time.and_then(|seconds| Timestamp::from_second(seconds).ok()),
            clock_set: view.clock_step.and_then(|step| super::time(view, step.seen)),
            clock_set_by_seconds: view.clock_step.map(|step| wall::seconds(step.by_ns)),
            cpus: info.and_then(|info| info.cpus),
            memory_bytes: info.and_then(|info| info.memory_bytes),
            memory_available_bytes: info.and_then(|info| info.memory_available_bytes),
            block_devices_seen: view.host.discovery.fresh().map(|scan| scan.seen),
            sources: Source::all(view, view.host.sources()),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Load {
    pressure: Option<Pressure>,
    cpu_busy: Option<f64>,
    cpu_iowait: Option<f64>,
    running: Option<u64>,
    blocked: Option<u64>,
    load1: Option<f64>,
}

#[derive(Serialize)]
struct Pressure {
    io: Resource,
    cpu: Resource,
    memory: Resource,
}

#[derive(Serialize)]
struct Resource {
    some: Option<Line>,
    full: Option<Line>,
}

#[derive(Serialize)]
struct Line {
    avg10: f64,
    avg60: f64,
    avg300: f64,
    total_us: u64,
}

impl Resource {
    fn of(resource: PressureResource) -> Self {
        let line = |line: PressureLine| Line {
            avg10: line.avg10,
            avg60: line.avg60,
            avg300: line.avg300,
            total_us: line.total_us,
        };
        Self { some: resource.some.map(line), full: resource.full.map(line) }
    }
}

impl Load {
    pub(super) fn of(view: &View) -> Self {
        let cpu = view.host.cpu.fresh();
        Self {
            pressure: view.host.pressure.fresh().map(|pressure| Pressure {
                io: Resource::of(pressure.io),
                cpu: Resource::of(pressure.cpu),
                memory: Resource::of(pressure.memory),
            }),
            cpu_busy: view.cpu.map(|cpu| cpu.busy),
            cpu_iowait: view.cpu.map(|cpu| cpu.iowait),
            running: cpu.and_then(|cpu| cpu.running),
            blocked: cpu.and_then(|cpu| cpu.blocked),
            load1: cpu.and_then(|cpu| cpu.load1),
        }
    }
}
