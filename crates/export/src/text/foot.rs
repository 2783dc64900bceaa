//! The last lines: what the agent costs, and how old the data is.

use super::{Page, number};
use std::time::Duration;
use storscope_model::snapshot::SourceStatus;
use storscope_model::view::View;

fn statuses(view: &View) -> impl Iterator<Item = SourceStatus> {
    let devices = view.devices.iter().flat_map(|device| device.state.sources());
    let controllers = view.controllers.iter().flat_map(|controller| controller.state.sources());
    view.host.sources().into_iter().chain(devices).chain(controllers)
}

/// Age of the oldest value that is shown as fresh, and whether there is any that is not.
fn ages(view: &View) -> (Option<Duration>, bool) {
    let mut oldest = None;
    let mut others = false;
    for status in statuses(view) {
        if status.state == "fresh" {
            let age = status.last_good.map(|at| view.now.since(at));
            oldest = oldest.max(age);
        } else {
            others |= status.state != "unsupported";
        }
    }
    (oldest, others)
}

pub(super) fn write(page: &mut Page<'_>) {
    let view = page.view;
    page.blank();
    for status in view.host.sources() {
        if status.up == Some(false) {
            let why = status.why.unwrap_or_default();
            page.wrapped("host      ", &format!("{} {}: {why}", status.source.as_str(), status.state), 10);
        }
    }
    if let Some((engine, Some(why))) = &view.agent.engine {
        page.wrapped("probes    ", &format!("by {}: {why}", engine.as_str()), 10);
    }
    let cpu = view.agent_cpu.map(|share| format!("{} CPU", number::percent_fine(share)));
    let memory = view.host.agent.fresh().map(|agent| format!("{} MB", (agent.resident_bytes + 500_000) / 1_000_000));
    let cost: Vec<String> = [cpu, memory].into_iter().flatten().collect();
    let age = match ages(view) {
        (None, _) => "nothing was read yet".to_owned(),
        (Some(age), false) => format!("all data fresher than {}", rounded_up(age)),
        (Some(age), true) => format!("all other data fresher than {}", rounded_up(age)),
    };
    let cost = if cost.is_empty() { String::new() } else { format!("{}; ", cost.join(", ")) };
    page.wrapped("", &format!("agent {cost}{age}; storscope {}", view.agent.version), 0);
}

/// The span such that "fresher than" it is true.
fn rounded_up(age: Duration) -> String {
    let seconds = age.as_secs();
    let step = match seconds {
        0..119 => 1,
        119..7199 => 60,
        7199..172_799 => 3600,
        _ => 86_400,
    };
    let up = (seconds / step + 1) * step;
    number::span(Duration::from_secs(up))
}
