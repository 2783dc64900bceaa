//! The agent itself.

use super::{Collect, Group, IntoValue, Kind, Metric, Samples};
use crate::wall;
use std::time::Duration;
use storscope_model::sample::host::Agent;
use storscope_model::view::View;

const fn gauge(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels: &[], source: "the agent", collect }
}

const fn counter(name: &'static str, help: &'static str, collect: Collect) -> Metric {
    Metric { kind: Kind::Counter, ..gauge(name, help, collect) }
}

fn cost<V: IntoValue>(view: &View, out: &mut Samples<'_, '_>, value: impl Fn(&Agent) -> V) {
    out.put(&[], view.host.agent.fresh().map(value));
}

pub(super) static GROUP: Group = Group {
    title: "Agent",
    about: "What the agent costs, and how it fares.",
    metrics: &[
        Metric {
            kind: Kind::Info,
            labels: &["version", "revision"],
            ..gauge("storscope_build_info", "Version of the agent.", |view, out| {
                let revision = view.agent.revision.as_deref().unwrap_or_default();
                out.put(&[&view.agent.version, revision], true);
            })
        },
        counter("storscope_agent_cpu_seconds_total", "CPU time of all processes, user and system.", |view, out| {
            cost(view, out, |agent| Duration::from_nanos(agent.cpu_ns));
        }),
        gauge(
            "storscope_agent_resident_memory_bytes",
            "Resident memory of all processes; what they share counts once.",
            |view, out| {
                cost(view, out, |agent| agent.resident_bytes);
            },
        ),
        gauge("storscope_agent_threads", "Threads of all processes.", |view, out| {
            cost(view, out, |agent| agent.threads)
        }),
        gauge("storscope_agent_open_fds", "Open file descriptors of all processes.", |view, out| {
            cost(view, out, |agent| agent.open_fds);
        }),
        gauge("storscope_agent_max_fds", "Limit of open file descriptors of each process.", |view, out| {
            cost(view, out, |agent| agent.max_fds);
        }),
        counter(
            "storscope_agent_log_lines_dropped_total",
            "Log lines dropped because writing them would have blocked.",
            |view, out| cost(view, out, |agent| agent.log_lines_dropped),
        ),
        counter(
            "storscope_agent_events_superseded_total",
            "Events that a newer one of the same source replaced before they were sent.",
            |view, out| cost(view, out, |agent| agent.events_superseded),
        ),
        counter(
            "storscope_agent_events_refused_total",
            "Events that did not fit what is known, for example of a device that is gone.",
            |view, out| out.put(&[], view.events_refused),
        ),
        Metric {
            labels: &["process"],
            ..gauge("storscope_agent_process_up", "1 when this process of the agent runs.", |view, out| {
                for part in &view.agent.parts {
                    out.put(&[&part.name], part.pid.is_some());
                }
            })
        },
        Metric {
            labels: &["process"],
            ..counter(
                "storscope_agent_process_restarts_total",
                "How often a process of the agent was started again after it had ended.",
                |view, out| {
                    for part in &view.agent.parts {
                        out.put(&[&part.name], part.restarts);
                    }
                },
            )
        },
        Metric {
            labels: &["process"],
            ..gauge(
                "storscope_agent_process_changed_timestamp_seconds",
                "When a process of the agent was last started, or ended, since the Unix epoch.",
                |view, out| {
                    for part in &view.agent.parts {
                        out.put(&[&part.name], wall::unix_seconds(&view.clock, part.since));
                    }
                },
            )
        },
        gauge(
            "storscope_agent_former_processes",
            "Processes of a former agent that are still stuck in the kernel.",
            |view, out| out.put(&[], view.agent.former.len()),
        ),
        counter(
            "storscope_agent_frames_refused_total",
            "Messages between processes that could not be decoded, or that the sender has no business to send.",
            |view, out| out.put(&[], view.agent.frames_refused),
        ),
        gauge("storscope_agent_start_time_seconds", "When the agent started, since the Unix epoch.", |view, out| {
            out.put(&[], wall::unix_seconds(&view.clock, view.agent.started));
        }),
        gauge("storscope_agent_uptime_seconds", "Time since the agent started, suspend included.", |view, out| {
            out.put(&[], view.now.since(view.agent.started));
        }),
        gauge("storscope_agent_view_timestamp_seconds", "When the data shown here was worked out.", |view, out| {
            out.put(&[], wall::unix_seconds(&view.clock, view.now));
        }),
        gauge("storscope_agent_captured_host", "1 when a captured host is replayed.", |view, out| {
            out.put(&[], view.agent.captured);
        }),
        gauge("storscope_agent_probes_off", "1 when no probes run at all.", |view, out| {
            out.put(&[], view.agent.probes_off.is_some());
        }),
        gauge(
            "storscope_agent_config_last_reload_successful",
            "1 when the newest configuration was taken, 0 when an older one stays in use.",
            |view, out| out.put(&[], view.agent.config_errors.is_empty()),
        ),
        gauge(
            "storscope_agent_config_loaded_timestamp_seconds",
            "When the configuration in use was taken.",
            |view, out| out.put(&[], wall::unix_seconds(&view.clock, view.agent.config_loaded)),
        ),
        Metric {
            labels: &["outcome"],
            ..counter(
                "storscope_agent_config_reloads_total",
                "Configurations since start, by outcome: `taken`, `refused`.",
                |view, out| {
                    let (taken, refused) = view.agent.config_reloads;
                    out.put(&["taken"], taken);
                    out.put(&["refused"], refused);
                },
            )
        },
        gauge(
            "storscope_agent_state_usable",
            "1 when the state directory is in use or none was given, 0 when it cannot be used.",
            |view, out| out.put(&[], view.agent.state_error.is_none()),
        ),
        Metric {
            labels: &["path", "status"],
            ..counter("storscope_agent_http_requests_total", "Requests answered.", |view, out| {
                for (path, status, count) in &view.agent.http_requests {
                    out.put(&[path, &status.to_string()], *count);
                }
            })
        },
    ],
};
