//! One row a drive, and notes on what is not fresh.

use super::{MAX_ROWS, Page, findings, line, lone, notes, number, unprobed};
use crate::wall;
use std::collections::BTreeSet;
use storscope_model::sample::nvme::SmartHealth;
use storscope_model::sample::pcie::Link;
use storscope_model::sample::probe::ProbeOp;
use storscope_model::snapshot::SourceStatus;
use storscope_model::view::{ControllerView, DeviceView, IoRates, LinkStatus, LinkView, ProbeWindow, View};

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
    notes::write(page, &all, &lone);
    if page.options.device.is_some() {
        for device in shown {
            sources(page, device);
        }
    }
    unprobed::write(page);
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

pub(super) fn controllers<'v>(view: &'v View, device: &'v DeviceView) -> impl Iterator<Item = &'v ControllerView> {
    view.controllers.iter().filter(|controller| device.controllers.contains(&controller.state.controller.name))
}

pub(super) fn unfresh(view: &View, device: &DeviceView) -> Vec<SourceStatus> {
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
    let await_of = |mean: Option<f64>, resolution: Option<f64>| mean.map_or_else(dash, |mean| waited(mean, resolution));
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
        rates.map_or_else(dash, |r| await_of(r.read_await_seconds, r.read_await_resolution_seconds)),
        rates.map_or_else(dash, |r| await_of(r.write_await_seconds, r.write_await_resolution_seconds)),
        rates.map_or_else(dash, |r| queue(&r)),
        rates.map_or_else(dash, |r| utilisation(device, &r)),
        p50,
        p99,
        temperature,
        used,
        link,
    ]))
}

/// A mean time of requests; where the kernel's counters are too coarse to tell it, what it is below.
fn waited(mean: f64, resolution: Option<f64>) -> String {
    match resolution {
        Some(resolution) if mean <= 0.0 => number::below(resolution),
        _ => number::latency(mean),
    }
}

/// True when requests completed: what was counted of their time was not none.
fn worked(rates: &IoRates) -> bool {
    let counted = [Some(rates.reads_per_second), Some(rates.writes_per_second), rates.discards_per_second];
    counted.into_iter().chain([rates.flushes_per_second]).flatten().any(|rate| rate > 0.0)
}

fn queue(rates: &IoRates) -> String {
    if rates.queue <= 0.0 && worked(rates) { number::TRACE.to_owned() } else { number::short(rates.queue) }
}

/// Marked where the kernel counts idle time as busy.
fn utilisation(device: &DeviceView, rates: &IoRates) -> String {
    let mark = if device.io_time_reliable { "" } else { "?" };
    let share = rates.utilisation;
    let shown = if share <= 0.0 && worked(rates) { number::TRACE_PERCENT.to_owned() } else { number::percent(share) };
    format!("{shown}{mark}")
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

/// p50 and p99 of one kind of reads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Quantiles {
    /// Over the shortest window that has enough reads for it, in seconds.
    p50: Option<f64>,
    /// As `p50`.
    pub(super) p99: Option<f64>,
    /// Only zeros were read.
    zeros: bool,
}

impl Quantiles {
    fn of(device: &DeviceView, op: ProbeOp) -> Self {
        let mut windows: Vec<&ProbeWindow> = device.probe.windows.iter().filter(|window| window.op == op).collect();
        windows.sort_by_key(|window| window.window);
        let shortest = |q: f64| windows.iter().find_map(|window| quantile(window, q));
        Self { p50: shortest(0.5), p99: shortest(0.99), zeros: op == ProbeOp::ReadZeros }
    }

    fn told(self) -> usize {
        [self.p50, self.p99].into_iter().flatten().count()
    }
}

/// What the table tells of the probes, both quantiles of the same kind of reads: of those that returned data, unless only
/// those that met zeros are enough to tell more. Nothing of a device that only fails now.
pub(super) fn quantiles(device: &DeviceView) -> Quantiles {
    if device.probe.only_fails {
        return Quantiles::default();
    }
    let (data, zeros) = (Quantiles::of(device, ProbeOp::Read), Quantiles::of(device, ProbeOp::ReadZeros));
    if zeros.told() > data.told() { zeros } else { data }
}

fn quantile(window: &ProbeWindow, q: f64) -> Option<f64> {
    window.quantiles.iter().find(|(of, _)| (of - q).abs() < 1e-9).and_then(|(_, seconds)| *seconds)
}

fn probe(device: &DeviceView) -> (String, String) {
    let Quantiles { p50, p99, zeros } = quantiles(device);
    let mark = if zeros { " z" } else { "" };
    let shown = |quantile: Option<f64>| {
        quantile.map_or_else(|| DASH.to_owned(), |seconds| format!("{}{mark}", number::latency(seconds)))
    };
    (shown(p50), shown(p99))
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
    let zeros = devices.iter().any(|device| !device.asleep && quantiles(device).zeros);
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
