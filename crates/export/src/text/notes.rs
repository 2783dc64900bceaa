//! What is to be said below the table: what is not fresh, and probes that say little. The same of several drives is said once.

use super::devices::{condition, controllers, quantiles, unfresh};
use super::{Page, findings, line, lone, number};
use crate::wall;
use storscope_model::history::windows::samples_needed;
use storscope_model::sample::probe::{ProbeOp, SkipReason};
use storscope_model::snapshot::SourceStatus;
use storscope_model::view::{ControllerView, DeviceView};

/// Most notes that are shown unless all are asked for.
const MAX_NOTES: usize = 40;
/// Most drives that one note names unless all are asked for.
const MAX_NAMES: usize = 8;

pub(super) fn write(page: &mut Page<'_>, devices: &[&DeviceView], lone: &[&ControllerView]) {
    let mut notes: Vec<(Vec<String>, String)> = Vec::new();
    for device in devices {
        for note in of_device(page, device) {
            let name = line::clean(&device.state.device.name).into_owned();
            match notes.iter_mut().find(|(_, known)| *known == note) {
                Some((names, _)) => names.push(name),
                None => notes.push((vec![name], note)),
            }
        }
    }
    for of in lone {
        notes.push((vec![line::clean(&of.state.controller.name).into_owned()], lone::note(of)));
    }
    let most = if page.options.all { notes.len() } else { MAX_NOTES };
    for (names, note) in notes.iter().take(most) {
        let head = format!("{}  ", list(page, names));
        let indent = line::width(&head).clamp(9, 30);
        if line::width(&head) > indent {
            page.wrapped("", &format!("{head}{note}"), 0);
        } else {
            page.wrapped(&head, note, indent);
        }
    }
    if notes.len() > most {
        page.line(&format!("and {} more notes", notes.len() - most));
    }
    learning(page, devices);
}

fn list(page: &Page<'_>, names: &[String]) -> String {
    let most = if page.options.all { names.len() } else { MAX_NAMES };
    let mut text = names.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > most {
        text.push_str(&format!(" and {} more", names.len() - most));
    }
    text
}

/// The drives whose probes are too few for a p99 yet, in one line.
fn learning(page: &mut Page<'_>, devices: &[&DeviceView]) {
    let mut counted = Vec::new();
    for device in
        devices.iter().filter(|device| !device.asleep && device.probe.not_planned.is_none() && !device.probe.only_fails)
    {
        // The most of one kind over one window: those that returned data, or those that met zeros.
        let windows = device.probe.windows.iter().filter(|of| matches!(of.op, ProbeOp::Read | ProbeOp::ReadZeros));
        let most = windows.map(|window| window.count).filter(|count| *count > 0).max();
        if let (None, Some(reads)) = (quantiles(device).p99, most) {
            counted.push(format!("{} {reads}", line::clean(&device.state.device.name)));
        }
    }
    if !counted.is_empty() {
        let needed = samples_needed(0.99);
        let text = format!("learning, a p99 needs {needed} reads; so far: {}", list(page, &counted));
        page.wrapped("", &text, 0);
    }
}

/// What is to be said of a device below the table: sources that are not fresh, and probes that say little.
fn of_device(page: &Page<'_>, device: &DeviceView) -> Vec<String> {
    if device.asleep {
        return Vec::new();
    }
    let view = page.view;
    let mut notes = Vec::new();
    for status in unfresh(view, device) {
        notes.push(source_note(page, device, &status));
    }
    let uncounted = device.state.uncounted() && device.state.counters.fresh().is_some();
    if uncounted {
        notes.push(
            "I/O accounting is off (queue/iostats is 0): no rates; echo 1 > /sys/block/NAME/queue/iostats turns it on"
                .to_owned(),
        );
    }
    if !device.io_time_reliable && device.rates.is_some() {
        notes.push(unreliable(page));
    }
    let probe = &device.probe;
    // Why nothing is probed at all is said once, elsewhere.
    let at_all = view.agent.probes_off.is_none();
    if let Some(why) = probe.not_planned.as_ref().filter(|_| at_all) {
        notes.push(format!("not probed: {why}"));
    }
    // That the budget holds is no news on the page of the host.
    let told = |reason: SkipReason| reason != SkipReason::Budget || page.options.device.is_some();
    let skips = probe.recent_skips.iter().filter(|(reason, _)| told(*reason));
    let skips: Vec<String> = skips.map(|(reason, count)| skip(*reason, *count)).collect();
    if !skips.is_empty() {
        notes.push(format!("probe: bursts left out in the last 5 min: {}", skips.join(", ")));
    }
    let told = view
        .findings
        .iter()
        .any(|finding| finding.rule == "probe_errors" && finding.device.as_ref() == Some(&device.state.device.name));
    for (errno, count) in probe.recent_errors.iter().filter(|_| !told) {
        let error = std::io::Error::from_raw_os_error(*errno);
        notes.push(format!("probe: {count} reads failed in the last hour: {error}"));
    }
    notes
}

/// Why a utilisation is marked.
fn unreliable(page: &Page<'_>) -> String {
    let kernel = page.view.host.info.fresh().and_then(|info| info.kernel.as_deref());
    let kernel = kernel.map(|release| format!(" {}", line::clean(release))).unwrap_or_default();
    format!(
        "util? is unreliable: kernel{kernel} with scheduler none counts idle time as busy; judge by await and queue"
    )
}

fn skip(reason: SkipReason, count: u64) -> String {
    let what = match reason {
        SkipReason::QueueFull => "the queue was full",
        SkipReason::Suspended => "suspended",
        SkipReason::Asleep => "asleep",
        SkipReason::Denied => "access to the device node was denied",
        SkipReason::Budget => "the time that probes may take was used up",
        SkipReason::Gone => "the device was gone or another one",
        SkipReason::Outstanding => "a former read was still outstanding",
        SkipReason::Unsuitable => "it cannot be read in blocks",
        SkipReason::Exhausted => "the agent was out of descriptors, memory or threads",
    };
    format!("{count} as {what}")
}

fn source_note(page: &Page<'_>, device: &DeviceView, status: &SourceStatus) -> String {
    let view = page.view;
    let since = status.since.and_then(|at| wall::timestamp(&view.clock, at)).map(|at| findings::clock(page, at));
    let since = since.map(|at| format!(" since {at}")).unwrap_or_default();
    let why = status.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let mut note = format!("{} {}{since}{why}", status.source.as_str(), status.state);
    if let Some(last) = status.last_good {
        let value = (status.source == storscope_model::sample::Source::SmartHealth)
            .then(|| controllers(view, device).find_map(|controller| controller.state.smart.last()))
            .flatten()
            .map(|smart| condition(&smart.value))
            .map(|(temperature, used)| format!(": {temperature}, used {used}"));
        let age = number::span(view.now.since(last));
        note.push_str(&format!("; last seen {age} ago{}", value.unwrap_or_default()));
    }
    note
}
