//! How each source of each subject fares.

use super::{Collect, Group, Kind, Metric, Samples};
use storscope_model::sample::Source;
use storscope_model::snapshot::SourceStatus;
use storscope_model::view::View;

const SUBJECT: &[&str] = &["device", "controller", "source"];

const fn gauge(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels: SUBJECT, source: "the agent", collect }
}

fn each(view: &View, mut put: impl FnMut(&str, &str, &SourceStatus)) {
    for status in view.host.sources() {
        put("", "", &status);
    }
    for device in &view.devices {
        for status in device.state.sources() {
            put(&device.state.device.name, "", &status);
        }
    }
    for controller in &view.controllers {
        for status in controller.state.sources() {
            put("", &controller.state.controller.name, &status);
        }
    }
}

fn partial(view: &View, out: &mut Samples<'_, '_>) {
    let host = &view.host;
    let mut put = |device: &str, controller: &str, source: Source, parts: Option<usize>| {
        out.put(&[device, controller, source.as_str()], parts);
    };
    put("", "", Source::Diskstats, host.diskstats.fresh().map(|file| file.faults.len()));
    put("", "", Source::Pressure, host.pressure.fresh().map(|pressure| pressure.faults.len()));
    put("", "", Source::Cpu, host.cpu.fresh().map(|cpu| cpu.faults.len()));
    put("", "", Source::HostInfo, host.info.fresh().map(|info| info.faults.len()));
    put("", "", Source::Discovery, host.discovery.fresh().map(|scan| scan.faults.len()));
    put("", "", Source::Stack, host.stack.fresh().map(|stack| stack.faults.len()));
    for device in &view.devices {
        let parts = device.state.queue.fresh().map(|queue| queue.faults.len());
        put(&device.state.device.name, "", Source::Queue, parts);
        let parts = device.state.power.fresh().map(|power| power.faults.len());
        put(&device.state.device.name, "", Source::Power, parts);
    }
    for controller in &view.controllers {
        let name = &controller.state.controller.name;
        put("", name, Source::Power, controller.state.power.fresh().map(|power| power.faults.len()));
        put("", name, Source::PcieLink, controller.state.link.fresh().map(|link| link.faults.len()));
        put("", name, Source::PcieAer, controller.state.aer.fresh().map(|aer| aer.faults.len()));
    }
}

pub(super) static GROUP: Group = Group {
    title: "Sources",
    about: "One source is one file, log page or command of one device, one controller or, with neither label, the host. A \
        value that is not fresh is absent from the exposition: these metrics say why, and how old the last one is.",
    metrics: &[
        gauge(
            "storscope_source_up",
            "1 when the newest read succeeded, 0 when it failed or hangs; absent when the source is not asked.",
            |view, out| {
                each(view, |device, controller, status| {
                    out.put(&[device, controller, status.source.as_str()], status.up);
                });
            },
        ),
        gauge("storscope_source_age_seconds", "Age of the last good read.", |view, out| {
            each(view, |device, controller, status| {
                let age = status.last_good.map(|at| view.now.since(at));
                out.put(&[device, controller, status.source.as_str()], age);
            });
        }),
        gauge("storscope_source_read_duration_seconds", "Duration of the last read that ended.", |view, out| {
            each(view, |device, controller, status| {
                out.put(&[device, controller, status.source.as_str()], status.stats.last_duration);
            });
        }),
        Metric {
            kind: Kind::Counter,
            ..gauge("storscope_source_reads_total", "Reads that ended, well or not.", |view, out| {
                each(view, |device, controller, status| {
                    out.put(&[device, controller, status.source.as_str()], status.stats.reads);
                });
            })
        },
        Metric {
            kind: Kind::Counter,
            labels: &["device", "controller", "source", "reason"],
            ..gauge(
                "storscope_source_failures_total",
                "Reads that failed, by reason: `io`, `parse`, `status` (refused by the drive), `denied`, `gone`, `stalled`.",
                |view, out| {
                    each(view, |device, controller, status| {
                        for (reason, count) in &status.stats.failures {
                            out.put(&[device, controller, status.source.as_str(), reason], *count);
                        }
                    });
                },
            )
        },
        gauge("storscope_source_partial_faults", "Parts of the newest good read that could not be read.", partial),
    ],
};
