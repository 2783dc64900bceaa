//! The agent itself.

use jiff::Timestamp;
use serde::Serialize;
use storscope_model::view::{PartState, View};

#[derive(Serialize)]
pub(super) struct Agent<'v> {
    version: &'v str,
    revision: Option<&'v str>,
    started: Option<Timestamp>,
    captured_host: bool,
    cpu: Option<f64>,
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
    threads: Option<u64>,
    open_fds: Option<u64>,
    max_fds: Option<u64>,
    log_lines_dropped: Option<u64>,
    events_superseded: Option<u64>,
    events_refused: u64,
    frames_refused: u64,
    processes: Vec<Process<'v>>,
    former_processes: Vec<u32>,
    probe_engine: Option<&'static str>,
    probe_engine_reason: Option<&'v str>,
    probes_off: Option<&'v str>,
    config_file: Option<&'v str>,
    config_loaded: Option<Timestamp>,
    config_error: Option<String>,
    state_error: Option<&'v str>,
}

impl<'v> Agent<'v> {
    pub(super) fn of(view: &'v View) -> Self {
        let agent = &view.agent;
        let cost = view.host.agent.fresh();
        Self {
            version: &agent.version,
            revision: agent.revision.as_deref(),
            started: super::time(view, agent.started),
            captured_host: agent.captured,
            cpu: view.agent_cpu,
            cpu_seconds: cost.map(|cost| std::time::Duration::from_nanos(cost.cpu_ns).as_secs_f64()),
            resident_bytes: cost.map(|cost| cost.resident_bytes),
            threads: cost.map(|cost| cost.threads),
            open_fds: cost.map(|cost| cost.open_fds),
            max_fds: cost.and_then(|cost| cost.max_fds),
            log_lines_dropped: cost.map(|cost| cost.log_lines_dropped),
            events_superseded: cost.map(|cost| cost.events_superseded),
            events_refused: view.events_refused,
            frames_refused: agent.frames_refused,
            former_processes: agent.former.iter().map(|(_, pid)| *pid).collect(),
            processes: agent.parts.iter().map(|part| Process::of(view, part)).collect(),
            probe_engine: agent.engine.as_ref().map(|(engine, _)| engine.as_str()),
            probe_engine_reason: agent.engine.as_ref().and_then(|(_, why)| why.as_deref()),
            probes_off: agent.probes_off.as_deref(),
            config_file: agent.config_file.as_deref(),
            config_loaded: super::time(view, agent.config_loaded),
            config_error: (!agent.config_errors.is_empty()).then(|| agent.config_errors.join("; ")),
            state_error: agent.state_error.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Process<'v> {
    name: &'v str,
    pid: Option<u32>,
    since: Option<Timestamp>,
    restarts: u64,
    last_end: Option<&'v str>,
}

impl<'v> Process<'v> {
    fn of(view: &View, part: &'v PartState) -> Self {
        Self {
            name: &part.name,
            pid: part.pid,
            since: super::time(view, part.since),
            restarts: part.restarts,
            last_end: part.fault.as_deref(),
        }
    }
}
