//! Why nothing can be probed here, and how to see probes all the same.

use super::Page;
use storscope_model::finding::Severity;
use storscope_model::sample::probe::SkipReason;
use storscope_model::view::View;

/// Most devices whose reason is given where nothing can be probed.
const MAX_REASONS: usize = 4;

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

pub(super) fn write(page: &mut Page<'_>) {
    // Whoever has a drive in trouble wants no trial.
    if page.view.findings.iter().any(|finding| finding.severity > Severity::Info) {
        return;
    }
    let Some(why) = why_unprobed(page.view) else {
        return;
    };
    page.blank();
    page.wrapped("", &format!("No drive can be probed here ({why}). To see probes, try a loop device, as root:"), 0);
    for command in [
        "openssl rand -out disk.img 268435456",
        "losetup --find --show --direct-io=on disk.img",
        "storscope serve --include 'loop[0-9]+'",
    ] {
        page.line(&format!("    {command}"));
    }
}
