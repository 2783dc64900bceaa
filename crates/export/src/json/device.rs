//! A block device.

use super::source::Source;
use jiff::Timestamp;
use serde::Serialize;
use storscope_model::device::{self, Zoned};
use storscope_model::sample::diskstats::{Direction, DiskCounters, SECTOR_BYTES};
use storscope_model::sample::queue::QueueSettings;
use storscope_model::view::{DeviceView, IoRates, ProbeWindow, View};

#[derive(Serialize)]
pub(super) struct Device<'v> {
    name: &'v str,
    id: &'v str,
    weak_id: bool,
    transport: &'static str,
    vendor: Option<&'v str>,
    model: Option<&'v str>,
    serial: Option<&'v str>,
    firmware: Option<&'v str>,
    wwid: Option<&'v str>,
    size_bytes: Option<u64>,
    logical_block_bytes: Option<u32>,
    rotational: Option<bool>,
    removable: Option<bool>,
    read_only: Option<bool>,
    zoned: Option<&'static str>,
    pci_address: Option<&'v str>,
    numa_node: Option<u32>,
    place: Place<'v>,
    partition_of: Option<&'v str>,
    nsid: Option<u32>,
    paths: Vec<Path<'v>>,
    controllers: &'v [String],
    carries: &'v [String],
    first_seen: Option<Timestamp>,
    asleep: bool,
    io_time_reliable: bool,
    rates: Option<Rates>,
    counters: Option<Counters>,
    queue: Option<Queue<'v>>,
    namespace: Option<Namespace>,
    probe: Probe<'v>,
    sources: Vec<Source>,
}

#[derive(Serialize)]
pub(super) struct Place<'v> {
    slot: Option<&'v str>,
    enclosure: Option<&'v str>,
    bay: Option<&'v str>,
    port: Option<&'v str>,
}

impl<'v> Place<'v> {
    pub(super) fn of(place: &'v device::Place) -> Self {
        Self {
            slot: place.slot.as_deref(),
            enclosure: place.enclosure.as_deref(),
            bay: place.bay.as_deref(),
            port: place.port.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Path<'v> {
    name: &'v str,
    controller: &'v str,
    ana_state: Option<&'v str>,
}

#[derive(Serialize)]
struct Rates {
    interval_seconds: f64,
    reads_per_second: f64,
    writes_per_second: f64,
    discards_per_second: Option<f64>,
    flushes_per_second: Option<f64>,
    read_bytes_per_second: f64,
    written_bytes_per_second: f64,
    read_await_seconds: Option<f64>,
    write_await_seconds: Option<f64>,
    read_await_resolution_seconds: Option<f64>,
    write_await_resolution_seconds: Option<f64>,
    queue: f64,
    utilisation: f64,
}

impl Rates {
    fn of(rates: IoRates) -> Self {
        Self {
            interval_seconds: rates.interval.as_secs_f64(),
            reads_per_second: rates.reads_per_second,
            writes_per_second: rates.writes_per_second,
            discards_per_second: rates.discards_per_second,
            flushes_per_second: rates.flushes_per_second,
            read_bytes_per_second: rates.read_bytes_per_second,
            written_bytes_per_second: rates.written_bytes_per_second,
            read_await_seconds: rates.read_await_seconds,
            write_await_seconds: rates.write_await_seconds,
            read_await_resolution_seconds: rates.read_await_resolution_seconds,
            write_await_resolution_seconds: rates.write_await_resolution_seconds,
            queue: rates.queue,
            utilisation: rates.utilisation,
        }
    }
}

#[derive(Serialize)]
struct Counters {
    reads: Counted,
    writes: Counted,
    discards: Option<Counted>,
    flushes_completed: Option<u64>,
    flush_time_ms: Option<u64>,
    in_flight: u64,
    io_time_ms: u64,
    weighted_time_ms: u64,
}

#[derive(Serialize)]
struct Counted {
    completed: u64,
    merged: u64,
    bytes: u64,
    time_ms: u64,
}

impl Counters {
    fn of(counters: &DiskCounters) -> Self {
        let counted = |direction: Direction| Counted {
            completed: direction.completed,
            merged: direction.merged,
            bytes: direction.sectors.saturating_mul(SECTOR_BYTES),
            time_ms: direction.time_ms,
        };
        Self {
            reads: counted(counters.reads),
            writes: counted(counters.writes),
            discards: counters.discards.map(counted),
            flushes_completed: counters.flushes.map(|flushes| flushes.completed),
            flush_time_ms: counters.flushes.map(|flushes| flushes.time_ms),
            in_flight: counters.in_flight,
            io_time_ms: counters.io_time_ms,
            weighted_time_ms: counters.weighted_time_ms,
        }
    }
}

#[derive(Serialize)]
struct Queue<'v> {
    scheduler: Option<&'v str>,
    schedulers: &'v [String],
    nr_requests: Option<u64>,
    read_ahead_bytes: Option<u64>,
    max_sectors_bytes: Option<u64>,
    max_hw_sectors_bytes: Option<u64>,
    logical_block_bytes: Option<u64>,
    physical_block_bytes: Option<u64>,
    minimum_io_bytes: Option<u64>,
    optimal_io_bytes: Option<u64>,
    discard_granularity_bytes: Option<u64>,
    discard_max_bytes: Option<u64>,
    write_cache: Option<&'v str>,
    fua: Option<bool>,
    wbt_lat_usec: Option<u64>,
    nomerges: Option<u64>,
    rq_affinity: Option<u64>,
    io_poll: Option<bool>,
    iostats: Option<bool>,
    rotational: Option<bool>,
    zoned: Option<&'v str>,
    dma_alignment: Option<u64>,
    io_timeout_ms: Option<u64>,
    stable_writes: Option<bool>,
    inflight_reads: Option<u64>,
    inflight_writes: Option<u64>,
    device_state: Option<&'v str>,
}

impl<'v> Queue<'v> {
    fn of(queue: &'v QueueSettings) -> Self {
        Self {
            scheduler: queue.scheduler.as_deref(),
            schedulers: &queue.schedulers,
            nr_requests: queue.nr_requests,
            read_ahead_bytes: queue.read_ahead_bytes,
            max_sectors_bytes: queue.max_sectors_bytes,
            max_hw_sectors_bytes: queue.max_hw_sectors_bytes,
            logical_block_bytes: queue.logical_block_bytes,
            physical_block_bytes: queue.physical_block_bytes,
            minimum_io_bytes: queue.minimum_io_bytes,
            optimal_io_bytes: queue.optimal_io_bytes,
            discard_granularity_bytes: queue.discard_granularity_bytes,
            discard_max_bytes: queue.discard_max_bytes,
            write_cache: queue.write_cache.as_deref(),
            fua: queue.fua,
            wbt_lat_usec: queue.wbt_lat_usec,
            nomerges: queue.nomerges,
            rq_affinity: queue.rq_affinity,
            io_poll: queue.io_poll,
            iostats: queue.iostats,
            rotational: queue.rotational,
            zoned: queue.zoned.as_deref(),
            dma_alignment: queue.dma_alignment,
            io_timeout_ms: queue.io_timeout_ms,
            stable_writes: queue.stable_writes,
            inflight_reads: queue.inflight.map(|(reads, _)| reads),
            inflight_writes: queue.inflight.map(|(_, writes)| writes),
            device_state: queue.device_state.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Namespace {
    size_blocks: u64,
    capacity_blocks: u64,
    used_blocks: u64,
    block_bytes: u64,
    metadata_bytes: u16,
    protection_type: u8,
    nvm_capacity_bytes: Option<super::Big>,
}

#[derive(Serialize)]
struct Probe<'v> {
    planned: bool,
    not_planned_reason: Option<&'v str>,
    interval_seconds: Option<f64>,
    windows: Vec<Window>,
    recent_skips: Vec<Skips>,
    recent_errors: Vec<Errors>,
    outstanding_since: Option<Timestamp>,
}

#[derive(Serialize)]
struct Window {
    op: &'static str,
    window_seconds: u64,
    reads: u64,
    busy_share: f64,
    p50_seconds: Option<f64>,
    p95_seconds: Option<f64>,
    p99_seconds: Option<f64>,
    p999_seconds: Option<f64>,
}

impl Window {
    fn of(window: &ProbeWindow) -> Self {
        let [(_, p50), (_, p95), (_, p99), (_, p999)] = window.quantiles;
        Self {
            op: window.op.as_str(),
            window_seconds: window.window.as_secs(),
            reads: window.count,
            busy_share: window.busy_share,
            p50_seconds: p50,
            p95_seconds: p95,
            p99_seconds: p99,
            p999_seconds: p999,
        }
    }
}

#[derive(Serialize)]
struct Skips {
    reason: &'static str,
    bursts: u64,
}

#[derive(Serialize)]
struct Errors {
    errno: i32,
    reads: u64,
}

fn probe<'v>(view: &'v View, device: &'v DeviceView) -> Probe<'v> {
    let probe = &device.probe;
    let outstanding = device.state.probe.fresh().and_then(|report| report.outstanding_since);
    Probe {
        planned: probe.not_planned.is_none(),
        not_planned_reason: probe.not_planned.as_deref(),
        interval_seconds: probe.interval.map(|interval| interval.as_secs_f64()),
        windows: probe.windows.iter().map(Window::of).collect(),
        recent_skips: probe
            .recent_skips
            .iter()
            .map(|(reason, bursts)| Skips { reason: reason.as_str(), bursts: *bursts })
            .collect(),
        recent_errors: probe
            .recent_errors
            .iter()
            .map(|(errno, reads)| Errors { errno: *errno, reads: *reads })
            .collect(),
        outstanding_since: outstanding.and_then(|at| super::time(view, at)),
    }
}

impl<'v> Device<'v> {
    pub(super) fn of(view: &'v View, of: &'v DeviceView) -> Self {
        let device = &of.state.device;
        let nvme = device.nvme.as_ref();
        let paths = nvme.map(|nvme| nvme.paths.as_slice()).unwrap_or_default();
        Self {
            name: &device.name,
            id: &device.id.0,
            weak_id: device.id.is_weak(),
            transport: device.transport.as_str(),
            vendor: device.vendor.as_deref(),
            model: device.model.as_deref(),
            serial: device.serial.as_deref(),
            firmware: device.firmware.as_deref(),
            wwid: device.wwid.as_deref(),
            size_bytes: device.size_bytes,
            logical_block_bytes: device.logical_block_bytes,
            rotational: device.rotational,
            removable: device.removable,
            read_only: device.read_only,
            zoned: device.zoned.map(|zoned| match zoned {
                Zoned::None => "none",
                Zoned::HostAware => "host-aware",
                Zoned::HostManaged => "host-managed",
            }),
            pci_address: device.pci_address.as_deref(),
            numa_node: device.numa_node,
            place: Place::of(&device.place),
            partition_of: device.partition_of.as_deref(),
            nsid: nvme.and_then(|nvme| nvme.nsid),
            paths: paths
                .iter()
                .map(|path| Path {
                    name: &path.name,
                    controller: &path.controller.0,
                    ana_state: path.ana_state.as_deref(),
                })
                .collect(),
            controllers: &of.controllers,
            carries: &of.carries,
            first_seen: super::time(view, of.state.appeared),
            asleep: of.asleep,
            io_time_reliable: of.io_time_reliable,
            rates: of.rates.map(Rates::of),
            counters: of.counters.as_ref().map(Counters::of),
            queue: of.state.queue.fresh().map(Queue::of),
            namespace: of.state.namespace.fresh().map(|space| Namespace {
                size_blocks: space.size_blocks,
                capacity_blocks: space.capacity_blocks,
                used_blocks: space.used_blocks,
                block_bytes: space.block_bytes,
                metadata_bytes: space.metadata_bytes,
                protection_type: space.protection,
                nvm_capacity_bytes: (space.nvm_capacity_bytes > 0).then_some(super::Big(space.nvm_capacity_bytes)),
            }),
            probe: probe(view, of),
            sources: Source::all(view, of.state.sources()),
        }
    }
}
