//! Findings and the verdict.

use super::{Group, Kind, Metric};
use crate::wall;
use std::collections::BTreeSet;
use storscope_model::finding::{Finding, Severity, Verdict};
use storscope_model::view::View;

const SUBJECT: &[&str] = &["rule", "severity", "controller", "device"];

const SEVERITIES: [Severity; 3] = [Severity::Info, Severity::Warning, Severity::Critical];

const VERDICTS: [Verdict; 4] = [Verdict::Ok, Verdict::Degraded, Verdict::Critical, Verdict::Unknown];

/// The open findings, one for each set of labels: the first, which is the worst.
fn distinct(view: &View, mut put: impl FnMut(&[&str], &Finding)) {
    let mut seen = BTreeSet::new();
    for finding in &view.findings {
        let labels = [
            finding.rule,
            finding.severity.as_str(),
            finding.controller.as_deref().unwrap_or_default(),
            finding.device.as_deref().unwrap_or_default(),
        ];
        if seen.insert(labels) {
            put(&labels, finding);
        }
    }
}

pub(super) static GROUP: Group = Group {
    title: "Findings",
    about: "What the agent holds to be wrong. A finding is 1 while it is open and absent once it is closed; `severity` is \
        `info`, `warning` or `critical`. One about the host has neither `controller` nor `device`.",
    metrics: &[
        Metric {
            name: "storscope_finding",
            kind: Kind::Gauge,
            help: "1 for each open finding.",
            labels: SUBJECT,
            source: "the rules",
            collect: |view, out| distinct(view, |labels, _| out.put(labels, true)),
        },
        Metric {
            name: "storscope_finding_since_timestamp_seconds",
            kind: Kind::Gauge,
            help: "When each open finding began.",
            labels: SUBJECT,
            source: "the rules",
            collect: |view, out| {
                distinct(view, |labels, finding| {
                    let since = wall::since(&view.clock, finding.since);
                    out.put(labels, since.map(|at| at.as_duration().as_secs_f64()));
                });
            },
        },
        Metric {
            name: "storscope_findings",
            kind: Kind::Gauge,
            help: "Number of open findings.",
            labels: &["severity"],
            source: "the rules",
            collect: |view, out| {
                for severity in SEVERITIES {
                    let count = view.findings.iter().filter(|finding| finding.severity == severity).count();
                    out.put(&[severity.as_str()], count);
                }
            },
        },
        Metric {
            name: "storscope_verdict",
            kind: Kind::Gauge,
            help: "1 for the state of the host in one word, 0 for the others: `ok`, `degraded`, `critical`, `unknown`.",
            labels: &["verdict"],
            source: "the rules",
            collect: |view, out| {
                for verdict in VERDICTS {
                    out.put(&[verdict.as_str()], verdict == view.verdict);
                }
            },
        },
    ],
};
