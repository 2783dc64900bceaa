//! What is wrong, worst first; then what was wrong until lately.

use super::{Page, line, number};
use crate::wall;
use jiff::Timestamp;
use storscope_model::finding::{Finding, Severity};
use storscope_model::identity::{DeviceId, Subject};
use storscope_model::view::View;

/// Most open findings that are shown in full.
const MAX_FINDINGS: usize = 24;

/// Most lines of evidence, and of what is carried, a finding.
const MAX_LINES: usize = 6;

/// Most closed findings that are shown.
const MAX_CLOSED: usize = 5;

const INDENT: usize = 10;

/// Least columns that a title may have beside its time; below, the time has its own line.
const LEAST_TITLE: usize = 36;

pub(super) fn write(page: &mut Page<'_>) {
    let view = page.view;
    let asked = page.options.device.as_deref();
    let open: Vec<&Finding> = view.findings.iter().filter(|finding| concerns(view, finding, asked)).collect();
    let mut brief = false;
    for finding in open.iter().take(MAX_FINDINGS) {
        let follows = std::mem::replace(&mut brief, is_brief(page, finding));
        if !(follows && brief) {
            page.blank();
        }
        one(page, finding);
    }
    if open.len() > MAX_FINDINGS {
        page.line(&format!("and {} more findings; the JSON has all of them", open.len() - MAX_FINDINGS));
    }
    let closed: Vec<&Finding> =
        view.closed.iter().filter(|finding| concerns(view, finding, asked)).take(MAX_CLOSED).collect();
    if !closed.is_empty() {
        page.blank();
    }
    for finding in closed {
        let since = wall::since(&view.clock, finding.since).map(|at| clock(page, at)).unwrap_or_default();
        let until = finding.ended.and_then(|at| wall::timestamp(&view.clock, at));
        let until = until.map(|at| clock(page, at)).unwrap_or_default();
        let text = format!("{}  {} (since {since} until {until})", subject(finding), finding.title);
        page.wrapped("closed", &text, INDENT);
    }
}

/// True when the finding is about the device that is asked for, or about the host and names that device or one of its
/// controllers.
fn concerns(view: &View, finding: &Finding, asked: Option<&str>) -> bool {
    let Some(asked) = asked else {
        return true;
    };
    let controllers = view.devices.iter().filter(|device| device.state.device.name == asked);
    let mut controllers = controllers.flat_map(|device| &device.controllers);
    match (&finding.device, &finding.controller) {
        (Some(device), _) if device == asked => true,
        (_, Some(controller)) => controllers.any(|of| of == controller),
        (Some(_), None) => false,
        (None, None) => names(finding, asked) || controllers.any(|of| names(finding, of)),
    }
}

/// True when title or evidence has `name` as a word.
fn names(finding: &Finding, name: &str) -> bool {
    let within = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '!');
    let texts = std::iter::once(&finding.title).chain(&finding.evidence);
    texts.flat_map(|text| text.split(|c| !within(c))).any(|word| word == name)
}

fn subject(finding: &Finding) -> &str {
    finding.device.as_deref().or(finding.controller.as_deref()).unwrap_or("host")
}

/// Hour and minute, with the date when that is not today's.
pub(super) fn clock(page: &Page<'_>, at: Timestamp) -> String {
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    let today = wall::timestamp(&page.view.clock, page.view.now).map(day);
    let format = if today.is_some_and(|today| today == day(at)) { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    at.strftime(format).to_string()
}

fn since(page: &Page<'_>, finding: &Finding) -> String {
    let gone = finding.since.elapsed(page.view.now, page.view.clock.wall_offset_ns);
    let at = wall::since(&page.view.clock, finding.since).map(|at| clock(page, at));
    match at {
        Some(at) => format!("since {at} ({})", number::span(gone)),
        None => format!("for {}", number::span(gone)),
    }
}

/// Information has one line, except on the page of one device.
fn is_brief(page: &Page<'_>, finding: &Finding) -> bool {
    finding.severity == Severity::Info && page.options.device.is_none()
}

fn one(page: &mut Page<'_>, finding: &Finding) {
    let word = finding.severity.as_str().to_uppercase();
    let name = line::clean(subject(finding)).into_owned();
    let indent = INDENT + line::width(&name) + 2;
    let since = since(page, finding);
    let room = page.width.saturating_sub(indent + since.len() + 2);
    let beside = room >= LEAST_TITLE;
    let room = if beside { room } else { page.width.saturating_sub(indent) };
    let head = page.paint.severity(finding.severity, &word);
    let head = format!("{head}{}{name}  ", " ".repeat(INDENT.saturating_sub(word.len())));
    for (number, piece) in line::wrap(&finding.title, room).iter().enumerate() {
        if number > 0 {
            page.line(&format!("{}{piece}", " ".repeat(indent)));
        } else if beside {
            page.line(&format!("{head}{}  {since}", line::pad(piece, room)));
        } else {
            page.line(&format!("{head}{piece}"));
        }
    }
    if !beside {
        page.wrapped("", &since, INDENT);
    }
    if is_brief(page, finding) {
        return;
    }
    if let Some(identity) = identity(page.view, finding) {
        page.wrapped("", &identity, INDENT);
    }
    for evidence in finding.evidence.iter().take(MAX_LINES) {
        page.wrapped("", evidence, INDENT);
    }
    more(page, finding.evidence.len());
    for (number, carried) in finding.carries.iter().take(MAX_LINES).enumerate() {
        let label = if number == 0 { "carries  " } else { "         " };
        hanging(page, label, carried);
    }
    more(page, finding.carries.len());
    if !finding.next.is_empty() {
        hanging(page, "next     ", &finding.next);
    }
}

fn more(page: &mut Page<'_>, lines: usize) {
    if lines > MAX_LINES {
        page.wrapped("", &format!("and {} more", lines - MAX_LINES), INDENT);
    }
}

fn hanging(page: &mut Page<'_>, label: &str, text: &str) {
    let head = format!("{}{label}", " ".repeat(INDENT));
    let indent = head.len();
    page.wrapped(&head, text, indent);
}

/// Model, serial number, firmware and address of what the finding is about.
fn identity(view: &View, finding: &Finding) -> Option<String> {
    // A finding on a device that is gone tells its identity itself; another one may have its name by now.
    let own = |id: &DeviceId| !matches!(&finding.subject, Subject::Device(of) if of != id);
    let device = finding.device.as_ref().and_then(|name| {
        let found = view.devices.iter().find(|device| device.state.device.name == *name);
        found.map(|found| &found.state.device).filter(|device| own(&device.id))
    });
    let controller = finding.controller.as_ref().and_then(|name| {
        view.controllers.iter().find(|known| known.state.controller.name == *name).map(|found| &found.state.controller)
    });
    let pick = |of_device: Option<&String>, of_controller: Option<&String>| of_device.or(of_controller).cloned();
    let model = pick(device.and_then(|d| d.model.as_ref()), controller.and_then(|c| c.model.as_ref()));
    let serial = pick(device.and_then(|d| d.serial.as_ref()), controller.and_then(|c| c.serial.as_ref()));
    let firmware = pick(device.and_then(|d| d.firmware.as_ref()), controller.and_then(|c| c.firmware.as_ref()));
    let address = pick(device.and_then(|d| d.pci_address.as_ref()), controller.and_then(|c| c.address.as_ref()));
    let place = device.map(|d| &d.place).or(controller.map(|c| &c.place))?;
    let parts = [
        model,
        serial.map(|serial| format!("S/N {serial}")),
        firmware.map(|firmware| format!("fw {firmware}")),
        address,
        place.enclosure.as_ref().map(|enclosure| format!("enclosure {enclosure}")),
        place.bay.as_ref().map(|bay| format!("bay {bay}")),
        place.slot.as_ref().map(|slot| format!("slot {slot}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("  "))
}
