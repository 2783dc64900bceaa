//! The first lines: the verdict, and whether it is storage at all.

use super::{Page, line, number};
use crate::wall;
use std::collections::BTreeSet;
use std::time::Duration;
use storscope_model::finding::Severity;
use storscope_model::identity::{DeviceId, Subject};
use storscope_model::view::View;

/// Drives, and those of them with an open finding of at least a warning. A drive is a block device, or a controller that
/// has none.
pub(crate) fn drives(view: &View) -> (usize, usize) {
    let lone = view.controllers.iter().filter(|controller| controller.devices.is_empty()).count();
    let mut sick = BTreeSet::new();
    for finding in view.findings.iter().filter(|finding| finding.severity >= Severity::Warning) {
        let controller = finding.controller.as_deref();
        // Another device may have the name of one that is gone.
        let own = |id: &DeviceId| !matches!(&finding.subject, Subject::Device(of) if of != id);
        let known = |name: &&str| {
            view.devices.iter().any(|device| device.state.device.name == **name && own(&device.state.device.id))
        };
        match (finding.device.as_deref().filter(|name| known(name)), controller) {
            (Some(device), _) => {
                sick.insert(device);
            }
            (None, Some(controller)) => {
                let of = view.controllers.iter().find(|known| known.state.controller.name == controller);
                match of {
                    Some(of) if !of.devices.is_empty() => sick.extend(of.devices.iter().map(String::as_str)),
                    _ => {
                        sick.insert(controller);
                    }
                }
            }
            (None, None) => {}
        }
    }
    (view.devices.len() + lone, sick.len())
}

/// How busy the host is: the parts that are fresh.
fn load(view: &View) -> Vec<String> {
    let mut parts = Vec::new();
    let io = view.host.pressure.fresh().map(|pressure| pressure.io);
    if let Some(some) = io.and_then(|io| io.some) {
        let full = io.and_then(|io| io.full).map(|full| format!(" (full {})", number::percent_fine(full.avg10)));
        let full = full.unwrap_or_default();
        parts.push(format!("I/O pressure {}{full} over 10 s", number::percent_fine(some.avg10)));
    }
    if let Some(cpu) = view.cpu {
        parts.push(format!("iowait {}", number::percent_fine(cpu.iowait)));
        parts.push(format!("CPU {} busy", number::percent_fine(cpu.busy)));
    }
    if let Some(cpu) = view.host.cpu.fresh() {
        let tasks = [(cpu.running, "running"), (cpu.blocked, "blocked")];
        parts.extend(tasks.into_iter().filter_map(|(count, word)| Some(format!("{} {word}", count?))));
        parts.extend(cpu.load1.map(|load| format!("load {load:.2}")));
    }
    parts
}

pub(super) fn write(page: &mut Page<'_>) {
    let view = page.view;
    let host = view.host.info.last().and_then(|info| info.value.hostname.clone());
    let host = host.unwrap_or_else(|| "this host".to_owned());
    let host = line::clean(&host);
    let time = wall::timestamp(&view.clock, view.now).map(|at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string());
    let time = time.unwrap_or_default();
    let verdict = view.verdict.as_str().to_uppercase();
    let host = line::cut(&host, page.width.saturating_sub(verdict.len() + time.len() + 4));
    let head = format!("{host}  {}", page.paint.verdict(view.verdict, &verdict));
    let room = page.width.saturating_sub(line::width(&host) + verdict.len() + time.len() + 6);
    let headline = line::clean(&view.headline);
    let beside = line::width(&headline) <= room;
    let shown = line::pad(if beside { &headline } else { "" }, room);
    page.line(&format!("{head}  {shown}  {time}"));
    if !beside {
        page.wrapped("", &headline, 0);
    }
    let load = load(view);
    if !load.is_empty() {
        page.wrapped("", &load.join(", "), 0);
    }
    clock_step(page);
    if view.agent.captured {
        page.wrapped("", "captured host: what is shown was read then; nothing is asked and nothing is probed", 0);
    }
    processes(page);
    former(page);
    config_errors(page);
    if let Some(error) = &view.agent.state_error {
        page.wrapped("state", &format!("not kept: {error}"), INDENT);
    }
}

/// Which processes of the agent do not run, or did not lately.
fn processes(page: &mut Page<'_>) {
    let view = page.view;
    for part in &view.agent.parts {
        let name = line::clean(&part.name);
        let since = number::span(view.now.since(part.since));
        let fault = part.fault.as_deref().map(|fault| format!(" ({})", line::clean(fault))).unwrap_or_default();
        let restarts = if part.restarts == 1 { "once".to_owned() } else { format!("{} times", part.restarts) };
        let text = match part.pid {
            None => format!("{name} does not run since {since}{fault}; it is started again"),
            Some(_) if part.restarts > 0 && view.now.since(part.since) < TELL_RESTART => {
                format!("{name} was started again {since} ago{fault}, {restarts} so far")
            }
            Some(_) => continue,
        };
        page.wrapped("agent", &text, INDENT);
    }
}

/// Processes of a former agent that hold on to a hung device.
fn former(page: &mut Page<'_>) {
    for (name, pid) in &page.view.agent.former {
        let name = line::clean(name);
        page.wrapped(
            "agent",
            &format!("{name} of a former agent, process {pid}, is still stuck in the kernel"),
            INDENT,
        );
    }
}

/// How long the page tells that a process was started again.
const TELL_RESTART: Duration = Duration::from_secs(3600);

/// Why the newest configuration is not in use, a line a mistake.
fn config_errors(page: &mut Page<'_>) {
    let errors = &page.view.agent.config_errors;
    if errors.is_empty() {
        return;
    }
    page.wrapped("config", "refused, the former one stays in use:", INDENT);
    for error in errors.iter().take(MAX_ERRORS) {
        page.wrapped("", error, INDENT);
    }
    if errors.len() > MAX_ERRORS {
        page.wrapped("", &format!("and {} more", errors.len() - MAX_ERRORS), INDENT);
    }
}

/// Most mistakes of a configuration that are shown.
const MAX_ERRORS: usize = 6;

/// That the clock was set, while log lines from before are of interest.
fn clock_step(page: &mut Page<'_>) {
    let now = page.view.now;
    if let Some(step) = page.view.clock_step.filter(|step| now.since(step.seen) < TELL_STEP) {
        let by = Duration::from_nanos(u64::try_from(step.by_ns.unsigned_abs()).unwrap_or(u64::MAX));
        let way = if step.by_ns < 0 { "back" } else { "forward" };
        let (by, ago) = (number::span(by), number::span(now.since(step.seen)));
        let text = format!(
            "set {by} {way} {ago} ago: every time here is told by the present clock; log lines from before bear that of then"
        );
        page.wrapped("clock", &text, INDENT);
    }
}

/// How long the page tells that the clock was set.
const TELL_STEP: Duration = Duration::from_secs(24 * 3600);

const INDENT: usize = 10;
