//! Timed direct reads.

use super::{Collect, Group, Kind, Metric, Samples};
use std::time::Duration;
use storscope_model::distribution::Distribution;
use storscope_model::sample::probe::{ProbeOp, ProbeReport};
use storscope_model::view::{ProbeWindow, View};

const fn gauge(name: &'static str, help: &'static str, labels: &'static [&'static str], collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels, source: "timed O_DIRECT reads", collect }
}

const fn counter(name: &'static str, help: &'static str, labels: &'static [&'static str], collect: Collect) -> Metric {
    Metric { kind: Kind::Counter, ..gauge(name, help, labels, collect) }
}

/// Finite buckets: 8 µs doubled up to 16.8 s.
pub(crate) const BUCKETS: usize = 22;

/// Upper bound of the first bucket in nanoseconds.
pub(crate) const FIRST_BOUND_NS: u64 = 8_000;

fn reports(view: &View) -> impl Iterator<Item = (&str, &ProbeReport)> {
    view.devices.iter().filter_map(|device| {
        let report = device.state.probe.fresh()?;
        Some((device.state.device.name.as_str(), report))
    })
}

/// The ops that were read at all, each with its latencies on an idle and on a busy device.
fn by_op(report: &ProbeReport) -> impl Iterator<Item = (ProbeOp, impl Iterator<Item = &Distribution> + Clone)> {
    ProbeOp::ALL.into_iter().filter_map(|op| {
        let classes = report.classes.iter().filter(move |class| class.op == op).map(|class| &class.latencies);
        classes.clone().next()?;
        Some((op, classes))
    })
}

fn total<'r>(latencies: impl Iterator<Item = &'r Distribution>, of: fn(&Distribution) -> u64) -> u64 {
    latencies.map(of).fold(0, u64::saturating_add)
}

/// Counts of the single buckets with their bounds in seconds, the infinite one last.
#[expect(clippy::cast_precision_loss, reason = "bounds are below 2^53")]
fn ladder<'r>(latencies: impl Iterator<Item = &'r Distribution>) -> [(f64, u64); BUCKETS + 1] {
    let mut ladder = [(f64::INFINITY, 0); BUCKETS + 1];
    let mut bound_ns = FIRST_BOUND_NS;
    for (bound, _) in ladder.iter_mut().take(BUCKETS) {
        *bound = bound_ns as f64 / 1e9;
        bound_ns *= 2;
    }
    for distribution in latencies {
        let mut rest = distribution.buckets().iter().peekable();
        let mut bound_ns = FIRST_BOUND_NS;
        for (step, (_, count)) in ladder.iter_mut().enumerate() {
            let last = step == BUCKETS;
            while let Some(bucket) = rest.next_if(|bucket| last || bucket.upper_ns <= bound_ns) {
                *count = u64::saturating_add(*count, bucket.count);
            }
            bound_ns *= 2;
        }
    }
    ladder
}

fn latency(view: &View, out: &mut Samples<'_, '_>) {
    for (device, report) in reports(view) {
        for (op, latencies) in by_op(report) {
            let sum = Duration::from_nanos(total(latencies.clone(), Distribution::sum_ns)).as_secs_f64();
            let count = total(latencies.clone(), Distribution::count);
            out.put_histogram(&[device, op.as_str()], sum, count, &ladder(latencies));
        }
    }
}

/// The window as in the label `window`.
pub(crate) fn window_name(window: Duration) -> String {
    let seconds = window.as_secs();
    match seconds {
        3600.. if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        60.. if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

fn windows(view: &View, mut put: impl FnMut(&str, &str, &str, &ProbeWindow)) {
    let mut names = Spelled::default();
    for device in &view.devices {
        for window in &device.probe.windows {
            let name = names.of(window.window, window_name);
            put(&device.state.device.name, window.op.as_str(), name, window);
        }
    }
}

/// Values that many series have as a label, spelled once a scrape.
struct Spelled<T>(Vec<(T, String)>);

impl<T> Default for Spelled<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy + PartialEq> Spelled<T> {
    fn of(&mut self, value: T, spell: impl FnOnce(T) -> String) -> &str {
        let at = self.0.iter().position(|(known, _)| *known == value).unwrap_or_else(|| {
            self.0.push((value, spell(value)));
            self.0.len() - 1
        });
        &self.0[at].1
    }
}

pub(super) static GROUP: Group = Group {
    title: "Latency probes",
    about: "Single reads of one block at a random place, past the page cache, a few a second. `op` is `read`, `read_zeros` \
        (only zeros came back: an unwritten block answers without touching the medium) or `read_after_idle` (the first \
        read after a pause: it pays for leaving a power state). Quantiles are absent while there are too few reads to say \
        them.",
    metrics: &[
        Metric {
            kind: Kind::Histogram,
            ..gauge(
                "storscope_probe_latency_seconds",
                "Latency of probe reads; bounds from 8 µs, doubling, to 16.8 s. An `op` without any read is absent.",
                &["device", "op"],
                latency,
            )
        },
        gauge(
            "storscope_probe_latency_quantile_seconds",
            "Quantiles of probe reads at 1 % precision over windows of 1 min, 5 min and 1 h.",
            &["device", "op", "window", "q"],
            |view, out| {
                let mut names = Spelled::default();
                windows(view, |device, op, name, window| {
                    for (q, seconds) in window.quantiles.iter().filter(|(_, seconds)| seconds.is_some()) {
                        out.put(&[device, op, name, names.of(*q, |q| q.to_string())], *seconds);
                    }
                });
            },
        ),
        gauge(
            "storscope_probe_window_reads",
            "Probe reads in the window.",
            &["device", "op", "window"],
            |view, out| windows(view, |device, op, name, window| out.put(&[device, op, name], window.count)),
        ),
        gauge(
            "storscope_probe_window_busy_ratio",
            "Share of the probe reads in the window that met other requests in flight: tells busy from sick.",
            &["device", "op", "window"],
            |view, out| {
                windows(view, |device, op, name, window| {
                    out.put(&[device, op, name], (window.count > 0).then_some(window.busy_share));
                });
            },
        ),
        counter("storscope_probe_reads_total", "Probe reads that gave data.", &["device", "op"], |view, out| {
            for (device, report) in reports(view) {
                for (op, latencies) in by_op(report) {
                    out.put(&[device, op.as_str()], total(latencies, Distribution::count));
                }
            }
        }),
        counter(
            "storscope_probe_errors_total",
            "Probe reads that failed, by errno(3) number.",
            &["device", "errno"],
            |view, out| {
                for (device, report) in reports(view) {
                    for (errno, count) in &report.errors {
                        out.put(&[device, &errno.to_string()], *count);
                    }
                }
            },
        ),
        counter(
            "storscope_probe_skipped_total",
            "Bursts that were not run, by reason; `queue_full` is evidence of a hang or of saturation.",
            &["device", "reason"],
            |view, out| {
                for (device, report) in reports(view) {
                    for (reason, count) in &report.skipped {
                        out.put(&[device, reason.as_str()], *count);
                    }
                }
            },
        ),
        counter(
            "storscope_probe_busy_seconds_total",
            "Time spent in probe reads: the share of the device's time that they take.",
            &["device"],
            |view, out| {
                for (device, report) in reports(view) {
                    out.put(&[device], Duration::from_nanos(report.busy_ns));
                }
            },
        ),
        gauge(
            "storscope_probe_outstanding_seconds",
            "Age of the read that is outstanding past its deadline; absent when none is.",
            &["device"],
            |view, out| {
                for (device, report) in reports(view) {
                    out.put(&[device], report.outstanding_since.map(|since| view.now.since(since)));
                }
            },
        ),
        gauge(
            "storscope_probe_in_flight_before",
            "Requests of others in flight before the newest burst.",
            &["device"],
            |view, out| {
                for (device, report) in reports(view) {
                    out.put(&[device], report.in_flight_before);
                }
            },
        ),
        gauge("storscope_probe_planned", "1 when the device is in the plan of probes.", &["device"], |view, out| {
            for device in &view.devices {
                out.put(&[&device.state.device.name], device.probe.not_planned.is_none());
            }
        }),
        gauge("storscope_probe_interval_seconds", "Time between bursts in the plan.", &["device"], |view, out| {
            for device in &view.devices {
                out.put(&[&device.state.device.name], device.probe.interval);
            }
        }),
        Metric {
            kind: Kind::Info,
            ..gauge(
                "storscope_probe_engine_info",
                "What reads the devices: `io_uring` or, where the kernel refuses that, `pread` with its reason.",
                &["engine", "reason"],
                |view, out| {
                    if let Some((engine, why)) = &view.agent.engine {
                        out.put(&[engine.as_str(), why.as_deref().unwrap_or_default()], true);
                    }
                },
            )
        },
    ],
};
