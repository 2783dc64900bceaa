//! `docs/METRICS.md`, generated from the metric table.

use crate::table::{GROUPS, Metric};
use std::fmt::Write;

const INTRODUCTION: &str = "\
# Metrics

Generated from the metric table in `crates/export/src/table`; a test holds this file against it.

Names are those of the Prometheus text format 0.0.4. OpenMetrics 1.0 gives the same series; there the family of a
counter goes without `_total`, that of an info metric without `_info`, and a `# UNIT` line names the unit.

A value that is not fresh is absent, never zero and never old: `storscope_source_up` and `storscope_source_age_seconds`
say why. A label without a value is left out. Counters of 128 bits lose their low digits in the exposition only; the JSON
status has all of them.

Ratios are 0 to 1, times seconds, sizes bytes, temperatures degrees Celsius.
";

/// The document, ending in a line feed.
pub fn metrics_markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    for group in GROUPS {
        let _ = write!(text, "\n## {}\n\n{}\n\n", group.title, group.about);
        text.push_str("| Name | Type | Unit | Labels | Meaning | Source |\n|---|---|---|---|---|---|\n");
        for metric in group.metrics {
            row(&mut text, metric);
        }
    }
    text
}

fn row(text: &mut String, metric: &Metric) {
    let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
    let _ = writeln!(
        text,
        "| `{}` | {} | {} | {} | {} | {} |",
        metric.name,
        metric.kind.as_str(),
        metric.unit().unwrap_or_default().replace('_', " "),
        labels.join(", "),
        metric.help.replace('|', "\\|"),
        metric.source
    );
}
