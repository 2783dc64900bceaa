//! I/O counters of block devices.

use super::{Group, IntoValue, Kind, Metric, Samples};
use storscope_model::sample::diskstats::{DiskCounters, SECTOR_BYTES};
use storscope_model::view::View;

const fn row(name: &'static str, help: &'static str, collect: super::Collect) -> Metric {
    Metric { name, kind: Kind::Counter, help, labels: &["device"], source: "diskstats", collect }
}

fn each<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&DiskCounters) -> V) {
    for device in &view.devices {
        if let Some(counters) = &device.counters {
            out.put(&[&device.state.device.name], value(counters));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "2^53 ms are 285,000 years")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

fn bytes(sectors: u64) -> u128 {
    u128::from(sectors) * u128::from(SECTOR_BYTES)
}

pub(super) static GROUP: Group = Group {
    title: "Disk I/O",
    about: "Counters of the kernel's block layer, named as node_exporter's are. A multipath NVMe device counts what its \
        paths did. Groups that the running kernel does not print (discards before 4.18, flushes before 5.5) are absent.",
    metrics: &[
        row("storscope_disk_reads_completed_total", "Reads completed.", |view, out| {
            each(view, out, |c| c.reads.completed);
        }),
        row("storscope_disk_reads_merged_total", "Reads merged into another one.", |view, out| {
            each(view, out, |c| c.reads.merged);
        }),
        row("storscope_disk_read_bytes_total", "Bytes read.", |view, out| {
            each(view, out, |c| bytes(c.reads.sectors));
        }),
        row("storscope_disk_read_time_seconds_total", "Time spent in reads, summed over them.", |view, out| {
            each(view, out, |c| seconds(c.reads.time_ms));
        }),
        row("storscope_disk_writes_completed_total", "Writes completed.", |view, out| {
            each(view, out, |c| c.writes.completed);
        }),
        row("storscope_disk_writes_merged_total", "Writes merged into another one.", |view, out| {
            each(view, out, |c| c.writes.merged);
        }),
        row("storscope_disk_written_bytes_total", "Bytes written.", |view, out| {
            each(view, out, |c| bytes(c.writes.sectors));
        }),
        row("storscope_disk_write_time_seconds_total", "Time spent in writes, summed over them.", |view, out| {
            each(view, out, |c| seconds(c.writes.time_ms));
        }),
        row("storscope_disk_discards_completed_total", "Discards completed.", |view, out| {
            each(view, out, |c| c.discards.map(|d| d.completed));
        }),
        row("storscope_disk_discards_merged_total", "Discards merged into another one.", |view, out| {
            each(view, out, |c| c.discards.map(|d| d.merged));
        }),
        row("storscope_disk_discarded_bytes_total", "Bytes discarded.", |view, out| {
            each(view, out, |c| c.discards.map(|d| bytes(d.sectors)));
        }),
        row("storscope_disk_discard_time_seconds_total", "Time spent in discards, summed over them.", |view, out| {
            each(view, out, |c| c.discards.map(|d| seconds(d.time_ms)));
        }),
        row("storscope_disk_flush_requests_total", "Flush requests completed.", |view, out| {
            each(view, out, |c| c.flushes.map(|f| f.completed));
        }),
        row(
            "storscope_disk_flush_requests_time_seconds_total",
            "Time spent in flush requests, summed over them.",
            |view, out| each(view, out, |c| c.flushes.map(|f| seconds(f.time_ms))),
        ),
        Metric {
            kind: Kind::Gauge,
            ..row("storscope_disk_io_now", "Requests in flight; may be momentarily odd.", |view, out| {
                each(view, out, |c| c.in_flight);
            })
        },
        row(
            "storscope_disk_io_time_seconds_total",
            "Time with at least one request in flight; near 1 a second is not saturation on a device that serves requests in parallel.",
            |view, out| each(view, out, |c| seconds(c.io_time_ms)),
        ),
        row(
            "storscope_disk_io_time_weighted_seconds_total",
            "Time with requests in flight, weighted by their number; its rate is the mean queue length.",
            |view, out| each(view, out, |c| seconds(c.weighted_time_ms)),
        ),
        Metric {
            name: "storscope_disk_io_time_reliable",
            kind: Kind::Gauge,
            help: "0 when the kernel is known to count idle time of the device as busy, so that both io_time counters mean \
                nothing: Linux 4.17 to 4.20 and 3.10.0-957 of Red Hat 7 with scheduler none.",
            labels: &["device"],
            source: "kernel release, queue/scheduler",
            collect: |view, out| {
                for device in view.devices.iter().filter(|device| device.counters.is_some()) {
                    out.put(&[&device.state.device.name], device.io_time_reliable);
                }
            },
        },
    ],
};
