//! Queue settings of block devices.

use super::{Collect, Group, IntoValue, Kind, Metric, Samples};
use std::time::Duration;
use storscope_model::sample::queue::QueueSettings;
use storscope_model::view::View;

const fn row(name: &'static str, help: &'static str, source: &'static str, collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels: &["device"], source, collect }
}

fn settings(view: &View) -> impl Iterator<Item = (&str, &QueueSettings)> {
    view.devices.iter().filter_map(|device| {
        let settings = device.state.queue.fresh()?;
        Some((device.state.device.name.as_str(), settings))
    })
}

fn each<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&QueueSettings) -> V) {
    for (device, queue) in settings(view) {
        out.put(&[device], value(queue));
    }
}

pub(super) static GROUP: Group = Group {
    title: "Queue settings",
    about: "As the kernel has them now (Documentation/ABI/stable/sysfs-block). An attribute that the running kernel does \
        not have for a device is absent.",
    metrics: &[
        Metric {
            name: "storscope_queue_scheduler_info",
            kind: Kind::Info,
            help: "I/O scheduler in use.",
            labels: &["device", "scheduler"],
            source: "queue/scheduler",
            collect: |view, out| {
                for (device, queue) in settings(view) {
                    if let Some(scheduler) = &queue.scheduler {
                        out.put(&[device, scheduler], true);
                    }
                }
            },
        },
        Metric {
            name: "storscope_queue_inflight",
            kind: Kind::Gauge,
            help: "Requests in flight when the settings were read.",
            labels: &["device", "direction"],
            source: "inflight",
            collect: |view, out| {
                for (device, queue) in settings(view) {
                    out.put(&[device, "read"], queue.inflight.map(|(reads, _)| reads));
                    out.put(&[device, "write"], queue.inflight.map(|(_, writes)| writes));
                }
            },
        },
        row("storscope_queue_nr_requests", "Requests that the queue may hold.", "queue/nr_requests", |view, out| {
            each(view, out, |q| q.nr_requests);
        }),
        row("storscope_queue_read_ahead_bytes", "Read-ahead.", "queue/read_ahead_kb", |view, out| {
            each(view, out, |q| q.read_ahead_bytes);
        }),
        row("storscope_queue_max_sectors_bytes", "Largest request, as set.", "queue/max_sectors_kb", |view, out| {
            each(view, out, |q| q.max_sectors_bytes);
        }),
        row(
            "storscope_queue_max_hw_sectors_bytes",
            "Largest request that the hardware takes.",
            "queue/max_hw_sectors_kb",
            |view, out| each(view, out, |q| q.max_hw_sectors_bytes),
        ),
        row("storscope_queue_logical_block_bytes", "Logical block size.", "queue/logical_block_size", |view, out| {
            each(view, out, |q| q.logical_block_bytes);
        }),
        row(
            "storscope_queue_physical_block_bytes",
            "Physical block size.",
            "queue/physical_block_size",
            |view, out| {
                each(view, out, |q| q.physical_block_bytes);
            },
        ),
        row("storscope_queue_minimum_io_bytes", "Smallest efficient request.", "queue/minimum_io_size", |view, out| {
            each(view, out, |q| q.minimum_io_bytes);
        }),
        row(
            "storscope_queue_optimal_io_bytes",
            "Best request size; absent when the device does not say.",
            "queue/optimal_io_size",
            |view, out| each(view, out, |q| q.optimal_io_bytes.filter(|bytes| *bytes > 0)),
        ),
        row(
            "storscope_queue_discard_granularity_bytes",
            "Discard granularity; 0 means that the device cannot discard.",
            "queue/discard_granularity",
            |view, out| each(view, out, |q| q.discard_granularity_bytes),
        ),
        row(
            "storscope_queue_discard_max_bytes",
            "Largest discard, as set; 0 means that discards are off.",
            "queue/discard_max_bytes",
            |view, out| each(view, out, |q| q.discard_max_bytes),
        ),
        row(
            "storscope_queue_write_cache_enabled",
            "1 when the kernel takes the device to have a volatile write cache (write back).",
            "queue/write_cache",
            |view, out| each(view, out, |q| q.write_cache.as_deref().map(|mode| mode == "write back")),
        ),
        row("storscope_queue_fua", "1 when forced unit access is supported.", "queue/fua", |view, out| {
            each(view, out, |q| q.fua);
        }),
        row(
            "storscope_queue_wbt_latency_target_seconds",
            "Latency target of write-back throttling; 0 means that it is off.",
            "queue/wbt_lat_usec",
            |view, out| each(view, out, |q| q.wbt_lat_usec.map(Duration::from_micros)),
        ),
        row("storscope_queue_nomerges", "Merging: 0 all, 1 only simple, 2 none.", "queue/nomerges", |view, out| {
            each(view, out, |q| q.nomerges)
        }),
        row(
            "storscope_queue_rq_affinity",
            "Where requests complete: 0 anywhere, 1 CPU group of the submitter, 2 its CPU.",
            "queue/rq_affinity",
            |view, out| each(view, out, |q| q.rq_affinity),
        ),
        row("storscope_queue_io_poll", "1 when polling is enabled.", "queue/io_poll", |view, out| {
            each(view, out, |q| q.io_poll);
        }),
        row(
            "storscope_queue_iostats",
            "1 when the kernel counts I/O of the device; with 0 all disk counters stand still.",
            "queue/iostats",
            |view, out| each(view, out, |q| q.iostats),
        ),
        row("storscope_queue_rotational", "1 for a rotating medium.", "queue/rotational", |view, out| {
            each(view, out, |q| q.rotational);
        }),
        row(
            "storscope_queue_dma_alignment_bytes",
            "Alignment of memory for direct I/O.",
            "queue/dma_alignment",
            |view, out| each(view, out, |q| q.dma_alignment.map(|mask| mask.saturating_add(1))),
        ),
        row("storscope_queue_io_timeout_seconds", "Request time-out.", "queue/io_timeout", |view, out| {
            each(view, out, |q| q.io_timeout_ms.map(Duration::from_millis));
        }),
        row(
            "storscope_queue_stable_writes",
            "1 when pages must not change during a write.",
            "queue/stable_writes",
            |view, out| each(view, out, |q| q.stable_writes),
        ),
        row(
            "storscope_queue_device_running",
            "1 when the state of a SCSI device is `running`, 0 when it is `offline`, `blocked` or another.",
            "device/state",
            |view, out| each(view, out, |q| q.device_state.as_deref().map(|state| state == "running")),
        ),
    ],
};
