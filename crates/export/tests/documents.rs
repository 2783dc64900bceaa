//! Generated documents held against what they are generated from.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod fixture;

use storscope_export::{docs, schema, table};

#[test]
fn the_metrics_document_is_current() {
    fixture::golden("../../docs/METRICS.md", &docs::metrics_markdown());
}

#[test]
fn the_schema_is_current() {
    fixture::golden("../../docs/status.schema.json", &schema::status_schema());
}

#[test]
fn the_document_has_every_metric_once() {
    let text = docs::metrics_markdown();
    for metric in table::metrics() {
        assert_eq!(text.matches(&format!("| `{}` |", metric.name)).count(), 1, "{}", metric.name);
    }
}
