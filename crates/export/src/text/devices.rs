//! One row a drive, and notes on what is not fresh.

use super::{MAX_ROWS, Page, findings, line, lone, number};
use crate::wall;
use std::collections::BTreeSet;
use storscope_model::history::windows::samples_needed;
use storscope_model::sample::nvme::SmartHealth;
use storscope_model::sample::pcie::Link;
use storscope_model::sample::probe::{ProbeOp, SkipReason};
use storscope_model::snapshot::SourceStatus;
use storscope_model::view::{ControllerView, DeviceView, LinkStatus, LinkView, ProbeWindow, View};

/// Most notes that are shown unless all are asked for.
const MAX_NOTES: usize = 40;

const HEADINGS: [&str; 14] = [
    "DRIVE", "r/s", "w/s", "rMB/s", "wMB/s", "r_await", "w_await", "queue", "util", "p50", "p99", "temp", "used",
    "link",
];

pub(super) const DASH: &str = "-";

/// A row: cells under the headings, or a name with a remark.
enum Row {
    Cells(Box<[String; 14]>),
    Remark(String, String),
}

pub(super) fn write(page: &mut Page<'_>) {
    let view = page.view;
    let all: Vec<&DeviceView> = view.devices.iter().filter(|device| page.shown(device)).collect();
    page.blank();
    let lone: Vec<&ControllerView> = page.lone().take(MAX_ROWS).collect();
    if let (true, true, Some(name)) = (all.is_empty(), lone.is_empty(), &page.options.device) {
        let text = format!("no drive of the name {name} is watched");
        page.wrapped("", &text, 0);
        return;
    }
    let shown = choose(page, &all);
    table(page, &shown, &lone);
    if all.len() > shown.len() {
        let rest = all.len() - shown.len();
        page.wrapped("", &format!("and {rest} drives more; ask for all to see them (/status?all)"), 0);
    }
    legend(page, &shown);
    let mut notes: Vec<(String, String)> = all.iter().flat_map(|device| notes(page, device)).collect();
    notes.extend(lone.iter().map(|of| (of.state.controller.name.clone(), lone::note(of))));
    let most = if page.options.all { notes.len() } else { MAX_NOTES };
    for (name, note) in notes.iter().take(most) {
        let head = format!("{}  ", line::clean(name));
        let indent = line::width(&head).max(9);
        page.wrapped(&head, note, indent);
    }
    if notes.len() > most {
        page.line(&format!("and {} more notes", notes.len() - most));
    }
    if page.options.device.is_some() {
        for device in shown {
            sources(page, device);
        }
    }
    unprobed(page);
}

/// The rows that are shown: all, or at most [`MAX_ROWS`] of which those in trouble come first.
fn choose<'v>(page: &Page<'_>, all: &[&'v DeviceView]) -> Vec<&'v DeviceView> {
    if all.len() <= MAX_ROWS || page.options.all {
        return all.to_vec();
    }
    let named: BTreeSet<&str> = page.view.findings.iter().filter_map(|finding| finding.device.as_deref()).collect();
    let trouble = |device: &DeviceView| {
        named.contains(device.state.device.name.as_str())
            || unfresh(page.view, device).iter().any(|status| status.up == Some(false))
    };
    let (sick, sound): (Vec<usize>, Vec<usize>) = (0..all.len()).partition(|index| trouble(all[*index]));
    let mut chosen: Vec<usize> = sick.into_iter().chain(sound).take(MAX_ROWS).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|index| all[index]).collect()
}

fn controllers<'v>(view: &'v View, device: &'v DeviceView) -> impl Iterator<Item = &'v ControllerView> {
    view.controllers.iter().filter(|controller| device.controllers.contains(&controller.state.controller.name))
}

fn unfresh(view: &View, device: &DeviceView) -> Vec<SourceStatus> {
    let mut all = device.state.sources();
    all.extend(controllers(view, device).flat_map(|controller| controller.state.sources()));
    all.retain(|status| !matches!(status.state, "fresh" | "unsupported"));
    all
}

fn table(page: &mut Page<'_>, devices: &[&DeviceView], lone: &[&ControllerView]) {
    let rows = devices.iter().map(|device| row(page, device));
    let rows: Vec<Row> = rows.chain(lone.iter().map(|of| Row::Cells(lone::cells(of)))).collect();
    let mut widths: [usize; 14] = HEADINGS.map(str::len);
    for row in &rows {
        match row {
            Row::Cells(cells) => {
                for (width, cell) in widths.iter_mut().zip(cells.iter()) {
                    *width = (*width).max(line::width(cell));
                }
            }
            Row::Remark(name, _) => widths[0] = widths[0].max(line::width(name)),
        }
    }
    let total: usize = widths.iter().sum();
    let columns = widths.len() - 1;
    let gap = if total + 2 * columns <= page.width { 2 } else { 1 };
    let over = (total + gap * columns).saturating_sub(page.width);
    widths[0] = widths[0].saturating_sub(over).max(HEADINGS[0].len());
    let gap = " ".repeat(gap);
    let head = cells(&HEADINGS.map(ToOwned::to_owned), &widths, &gap);
    let head = page.paint.faint(&head);
    page.line(&head);
    for row in rows {
        match row {
            Row::Cells(row) => page.line(&cells(&row, &widths, &gap)),
            Row::Remark(name, remark) => {
                let name = format!("{}{gap}", line::pad(&line::cut(&name, widths[0]), widths[0]));
                page.wrapped(&name, &remark, line::width(&name));
            }
        }
    }
}

fn cells(row: &[String; 14], widths: &[usize; 14], gap: &str) -> String {
    let last = row.len() - 1;
    let texts: Vec<String> = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, width))| match column {
            0 => line::pad(&line::cut(cell, *width), *width),
            column if column == last => cell.clone(),
            _ => line::right(cell, *width),
        })
        .collect();
    texts.join(gap)
}

fn row(page: &Page<'_>, device: &DeviceView) -> Row {
    let name = line::clean(&device.state.device.name).into_owned();
    if device.asleep {
        return Row::Remark(name, asleep(page, device));
    }
    let dash = || DASH.to_owned();
    let rates = device.rates;
    let rate = |value: Option<f64>| value.map_or_else(dash, number::short);
    let await_of = |value: Option<f64>| value.map_or_else(dash, number::latency);
    let (p50, p99) = probe(device);
    let smart = controllers(page.view, device).find_map(|controller| controller.state.smart.fresh());
    let (temperature, used) = smart.map_or_else(|| (dash(), dash()), condition);
    let link = controllers(page.view, device).find_map(|controller| controller.link.as_ref()).map_or_else(dash, link);
    Row::Cells(Box::new([
        name,
        rate(rates.map(|r| r.reads_per_second)),
        rate(rates.map(|r| r.writes_per_second)),
        rate(rates.map(|r| r.read_bytes_per_second / 1e6)),
        rate(rates.map(|r| r.written_bytes_per_second / 1e6)),
        await_of(rates.and_then(|r| r.read_await_seconds)),
        await_of(rates.and_then(|r| r.write_await_seconds)),
        rate(rates.map(|r| r.queue)),
        rates.map_or_else(dash, |r| number::percent(r.utilisation)),
        p50,
        p99,
        temperature,
        used,
        link,
    ]))
}

pub(super) fn condition(page: &SmartHealth) -> (String, String) {
    let temperature = page.temperature_c.map_or_else(|| DASH.to_owned(), |degrees| format!("{degrees}C"));
    (temperature, format!("{}%", page.percentage_used))
}

pub(super) fn link(link: &LinkView) -> String {
    if link.current == Link::default() {
        return "?".to_owned();
    }
    let width = link.current.width.map_or_else(|| "?".to_owned(), |lanes| lanes.to_string());
    let speed = link.current.mega_transfers.map(|mega| format!("{}.{}", mega / 1000, mega % 1000 / 100));
    let mark = match link.status {
        LinkStatus::Downgraded => " !",
        LinkStatus::SlotLimited => " s",
        LinkStatus::Ok | LinkStatus::Unknown => "",
    };
    format!("x{width} {}{mark}", speed.unwrap_or_else(|| "?".to_owned()))
}

/// The windows that the table takes its quantiles from: of reads that returned data where there are any.
fn windows(device: &DeviceView) -> (ProbeOp, Vec<&ProbeWindow>) {
    let of = |op: ProbeOp| -> Vec<&ProbeWindow> {
        let mut windows: Vec<_> =
            device.probe.windows.iter().filter(|window| window.op == op && window.count > 0).collect();
        windows.sort_by_key(|window| window.window);
        windows
    };
    let read = of(ProbeOp::Read);
    if read.is_empty() { (ProbeOp::ReadZeros, of(ProbeOp::ReadZeros)) } else { (ProbeOp::Read, read) }
}

fn quantile(window: &ProbeWindow, q: f64) -> Option<f64> {
    window.quantiles.iter().find(|(of, _)| (of - q).abs() < 1e-9).and_then(|(_, seconds)| *seconds)
}

/// p50 and p99, each over the shortest window that has enough reads for it.
fn probe(device: &DeviceView) -> (String, String) {
    let (op, windows) = windows(device);
    let mark = if op == ProbeOp::ReadZeros { " z" } else { "" };
    let shown = |q: f64| {
        windows
            .iter()
            .find_map(|window| quantile(window, q))
            .map_or_else(|| DASH.to_owned(), |seconds| format!("{}{mark}", number::latency(seconds)))
    };
    (shown(0.5), shown(0.99))
}

fn legend(page: &mut Page<'_>, devices: &[&DeviceView]) {
    if devices.is_empty() {
        return;
    }
    let view = page.view;
    let linked = |status: LinkStatus| {
        devices
            .iter()
            .flat_map(|device| controllers(view, device))
            .any(|controller| controller.link.as_ref().is_some_and(|link| link.status == status))
    };
    let zeros = devices.iter().any(|device| {
        let (op, windows) = windows(device);
        op == ProbeOp::ReadZeros && !windows.is_empty()
    });
    let mut text =
        "util is the time with any request in flight: 100% is not saturation where requests run in parallel, \
                    queue and await tell; p50 and p99: probe reads over the shortest of 1 min, 5 min, 1 h with enough"
            .to_owned();
    for (shown, meaning) in [
        (linked(LinkStatus::Downgraded), "; !: link below what drive and slot can do"),
        (linked(LinkStatus::SlotLimited), "; s: the slot limits the link"),
        (zeros, "; z: only zeros were read, so the medium was perhaps not touched"),
    ] {
        if shown {
            text.push_str(meaning);
        }
    }
    page.wrapped("", &text, 0);
}

/// Since when the device is left alone, and how old the last SMART page is.
fn asleep(page: &Page<'_>, device: &DeviceView) -> String {
    let view = page.view;
    let since = unfresh(view, device).iter().filter(|status| status.state == "withheld").filter_map(|s| s.since).min();
    let since = since.and_then(|at| wall::timestamp(&view.clock, at)).map(|at| findings::clock(page, at));
    let since = since.map(|at| format!(" since {at}")).unwrap_or_default();
    let smart = controllers(view, device).find_map(|controller| controller.state.smart.last());
    let smart = smart.map(|last| format!(", SMART as of {} ago", number::span(view.now.since(last.ended))));
    format!("asleep{since}: not probed{}", smart.unwrap_or_default())
}

/// What is to be said of a device below the table: sources that are not fresh, and probes that say little.
fn notes(page: &Page<'_>, device: &DeviceView) -> Vec<(String, String)> {
    if device.asleep {
        return Vec::new();
    }
    let view = page.view;
    let mut notes = Vec::new();
    for status in unfresh(view, device) {
        notes.push(source_note(page, device, &status));
    }
    let (op, windows) = windows(device);
    let reads = windows.iter().map(|window| window.count).max().unwrap_or(0);
    let ranked = windows.iter().any(|window| quantile(window, 0.99).is_some());
    let probe = &device.probe;
    if let Some(why) = &probe.not_planned {
        notes.push(format!("not probed: {why}"));
    } else if !windows.is_empty() && !ranked {
        let needed = samples_needed(0.99);
        let kind = if op == ProbeOp::ReadZeros { " (only zeros were read)" } else { "" };
        notes.push(format!("probe: learning, {reads} of {needed} reads that a p99 needs{kind}"));
    }
    let skips: Vec<String> = probe.recent_skips.iter().map(|(reason, count)| skip(*reason, *count)).collect();
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
    let name = &device.state.device.name;
    notes.into_iter().map(|note| (name.clone(), note)).collect()
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

/// Every source of a device and its controllers, for the page of one device.
fn sources(page: &mut Page<'_>, device: &DeviceView) {
    let view = page.view;
    let mut all: Vec<(&str, SourceStatus)> =
        device.state.sources().into_iter().map(|status| (device.state.device.name.as_str(), status)).collect();
    for controller in controllers(view, device) {
        let name = controller.state.controller.name.as_str();
        all.extend(controller.state.sources().into_iter().map(|status| (name, status)));
    }
    page.blank();
    for (name, status) in all {
        let age = status.last_good.map(|at| format!("{} ago", number::span(view.now.since(at))));
        let took = status.stats.last_duration.map(|took| format!("took {}", number::latency(took.as_secs_f64())));
        let parts: Vec<String> = [age, took, status.why.clone()].into_iter().flatten().collect();
        let source = format!("{}/{}", line::clean(name), status.source.as_str());
        let head = format!("{}  {}", line::pad(&source, 28), line::pad(status.state, 12));
        let indent = line::width(&head);
        page.wrapped(&head, &parts.join(", "), indent);
    }
    for carried in &device.carries {
        page.wrapped("carries  ", carried, 9);
    }
}

/// Why nothing can be probed here; `None` when something can, or may soon be.
fn why_unprobed(view: &View) -> Option<String> {
    if view.agent.captured {
        return None;
    }
    if let Some(why) = &view.agent.probes_off {
        return Some(why.clone());
    }
    let mut reasons = Vec::new();
    for device in view.devices.iter().filter(|device| !device.asleep) {
        let denied = device.probe.recent_skips.iter().any(|(reason, _)| *reason == SkipReason::Denied);
        let reason = match &device.probe.not_planned {
            Some(why) => why.as_str(),
            None if denied => "access to the device node is denied",
            None => return None,
        };
        if !device.probe.windows.is_empty() {
            return None;
        }
        reasons.push(format!("{}: {reason}", device.state.device.name));
    }
    if !view.devices.is_empty() && reasons.is_empty() {
        return None;
    }
    let rest = reasons.len().saturating_sub(MAX_REASONS);
    reasons.truncate(MAX_REASONS);
    if rest > 0 {
        reasons.push(format!("and {rest} more"));
    }
    let seen = view.host.discovery.fresh().map(|scan| format!("none of {} block devices is selected", scan.seen));
    Some(if reasons.is_empty() { seen? } else { reasons.join("; ") })
}

/// Most devices whose reason is given where nothing can be probed.
const MAX_REASONS: usize = 4;

fn unprobed(page: &mut Page<'_>) {
    let Some(why) = why_unprobed(page.view) else {
        return;
    };
    page.blank();
    page.wrapped("", &format!("No drive can be probed here ({why}). To see probes, try a loop device, as root:"), 0);
    for command in [
        "openssl rand -out disk.img 268435456",
        "losetup --find --show --direct-io=on disk.img",
        "storscope serve --include '^loop'",
    ] {
        page.line(&format!("    {command}"));
    }
}
