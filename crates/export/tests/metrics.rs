//! The exposition held against the table.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod exposition;
mod fixture;

use exposition::parse;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use storscope_export::prometheus::{Format, encode};
use storscope_export::table::{self, Kind};
use storscope_model::event::Event;
use storscope_model::snapshot::Snapshot;
use storscope_model::view::View;

fn text(view: View, format: Format) -> String {
    let mut out = String::new();
    encode(&Arc::new(view), format, &mut out).expect("encodes");
    out
}

fn families(view: View) -> BTreeMap<String, exposition::Family> {
    parse(&text(view, Format::Text)).expect("parses")
}

#[test]
fn the_exposition_is_as_it_was() {
    fixture::golden("tests/golden/metrics.txt", &text(fixture::full(), Format::Text));
    fixture::golden("tests/golden/metrics.openmetrics.txt", &text(fixture::full(), Format::OpenMetrics));
}

#[test]
fn every_row_has_samples_on_a_host_that_has_everything() {
    let families = families(fixture::full());
    for metric in table::metrics() {
        assert!(families.contains_key(metric.name), "{} has no sample", metric.name);
    }
    assert_eq!(families.len(), table::metrics().count());
}

#[test]
fn every_label_is_used_and_no_other() {
    let families = families(fixture::full());
    for metric in table::metrics() {
        let used: BTreeSet<&str> = families[metric.name]
            .samples
            .iter()
            .flat_map(|sample| sample.labels.keys())
            .map(String::as_str)
            .filter(|label| *label != "le")
            .collect();
        let promised: BTreeSet<&str> = metric.labels.iter().copied().collect();
        assert_eq!(used, promised, "{}", metric.name);
        assert_eq!(promised.len(), metric.labels.len(), "{} repeats a label", metric.name);
    }
}

#[test]
fn names_follow_the_conventions() {
    let mut names = BTreeSet::new();
    for metric in table::metrics() {
        let name = metric.name;
        assert!(names.insert(name), "{name} is given twice");
        assert!(name.starts_with("storscope_"), "{name}");
        assert!(name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
        assert_eq!(name.ends_with("_info"), metric.kind == Kind::Info, "{name}");
        assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{name}: {}", metric.help);
        for wrong in ["milliseconds", "_ms", "_kb", "percent_", "minutes", "hours", "_count", "_sum", "_bucket"] {
            assert!(!metric.family().ends_with(wrong), "{name} ends in {wrong}");
        }
        for label in metric.labels {
            assert!(!["le", "job", "instance", "quantile"].contains(label), "{name}: {label}");
        }
    }
    let families: BTreeSet<_> = table::metrics().map(table::Metric::family).collect();
    assert_eq!(families.len(), names.len(), "two metrics have one family in OpenMetrics");
}

#[test]
fn identity_is_on_info_metrics_only() {
    for metric in table::metrics().filter(|metric| metric.kind != Kind::Info) {
        for label in ["id", "model", "serial", "firmware", "wwid"] {
            assert!(!metric.labels.contains(&label), "{} has {label}", metric.name);
        }
    }
}

#[test]
fn promised_names_are_there() {
    let mut promised: BTreeSet<String> = [
        "io_now",
        "reads_completed_total",
        "reads_merged_total",
        "read_bytes_total",
        "read_time_seconds_total",
        "writes_completed_total",
        "writes_merged_total",
        "written_bytes_total",
        "write_time_seconds_total",
        "discards_completed_total",
        "discards_merged_total",
        "discard_time_seconds_total",
        "flush_requests_total",
        "flush_requests_time_seconds_total",
        "io_time_seconds_total",
        "io_time_weighted_seconds_total",
    ]
    .iter()
    .map(|name| format!("storscope_disk_{name}"))
    .collect();
    let nvme = "percentage_used_ratio available_spare_ratio available_spare_threshold_ratio temperature_celsius \
                critical_warning media_errors_total error_log_entries_total data_read_bytes_total \
                data_written_bytes_total controller_busy_seconds_total power_on_seconds_total";
    promised.extend(nvme.split_whitespace().map(|name| format!("storscope_nvme_{name}")));
    let link = "speed_transfers_per_second width_lanes expected_speed_transfers_per_second expected_width_lanes \
                bandwidth_bytes_per_second expected_bandwidth_bytes_per_second downgraded slot_limited changes_total";
    promised.extend(link.split_whitespace().map(|name| format!("storscope_pcie_link_{name}")));
    let others = "device_info pcie_aer_errors_total probe_latency_seconds probe_latency_quantile_seconds \
                  probe_reads_total probe_errors_total probe_skipped_total drive_commands_total finding build_info \
                  source_up";
    promised.extend(others.split_whitespace().map(|name| format!("storscope_{name}")));
    let there: BTreeSet<String> = table::metrics().map(|metric| metric.name.to_owned()).collect();
    assert_eq!(promised.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn what_is_not_fresh_is_not_exported() {
    let families = families(fixture::full());
    let of = |name: &str, label: &str, value: &str| {
        families[name].samples.iter().filter(|sample| sample.labels.get(label).is_some_and(|v| v == value)).count()
    };
    assert_eq!(of("storscope_nvme_percentage_used_ratio", "controller", "nvme0"), 1);
    assert_eq!(of("storscope_nvme_percentage_used_ratio", "controller", "nvme3"), 0, "stalled");
    assert_eq!(of("storscope_queue_nr_requests", "device", "sda"), 0, "asleep");
    assert_eq!(of("storscope_nvme_temperature_celsius", "sensor", "3"), 0, "not reported");
    assert_eq!(of("storscope_pcie_link_downgraded", "controller", "nvme3"), 0, "unknown");
    assert_eq!(of("storscope_source_age_seconds", "controller", "nvme3"), 2, "the age itself stays");
}

#[test]
fn values_are_the_drives_own() {
    let families = families(fixture::full());
    let one = |name: &str, labels: &[(&str, &str)]| {
        let found: Vec<f64> = families[name]
            .samples
            .iter()
            .filter(|s| labels.iter().all(|(k, v)| s.labels.get(*k).is_some_and(|found| found == v)))
            .map(|s| s.value)
            .collect();
        assert_eq!(found.len(), 1, "{name} {labels:?}");
        found[0]
    };
    let worn = [("controller", "nvme1")];
    assert_eq!(one("storscope_nvme_percentage_used_ratio", &worn), 1.35);
    assert_eq!(one("storscope_nvme_critical_warning", &[worn[0], ("flag", "reliability_degraded")]), 1.0);
    assert_eq!(one("storscope_nvme_critical_warning", &[worn[0], ("flag", "temperature")]), 0.0);
    let bytes = one("storscope_nvme_data_read_bytes_total", &worn);
    assert_eq!(bytes, 32_381_395_004.0 * 512_000.0);
    assert_eq!(one("storscope_nvme_error_log_held_entries", &[worn[0], ("status_type", "media")]), 2.0);
    let port = [("controller", "nvme2"), ("port", "0000:00:01.1"), ("error", "RxErr")];
    assert_eq!(one("storscope_pcie_aer_errors_total", &port), 4211.0);
    assert_eq!(one("storscope_disk_reads_completed_total", &[("device", "nvme4n1")]), 11_000.0);
}

#[test]
fn the_histogram_is_cumulative_and_whole() {
    let families = families(fixture::full());
    let buckets: Vec<_> = families["storscope_probe_latency_seconds"]
        .samples
        .iter()
        .filter(|s| s.name.ends_with("_bucket") && s.labels["device"] == "nvme0n1" && s.labels["op"] == "read")
        .map(|s| (s.labels["le"].clone(), s.value))
        .collect();
    assert_eq!(buckets.len(), 23);
    assert_eq!(buckets[0], ("8e-06".to_owned(), 6.0));
    assert_eq!(buckets[21], ("16.777216".to_owned(), 846.0));
    assert_eq!(buckets[22], ("+Inf".to_owned(), 848.0));
    assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1));
}

#[test]
fn nothing_read_gives_no_device_series() {
    let families = families(fixture::empty());
    for (name, family) in families {
        assert!(!name.starts_with("storscope_disk_") && !name.starts_with("storscope_nvme_"), "{name}");
        assert!(family.samples.iter().all(|sample| !sample.labels.contains_key("device")), "{name}");
    }
}

#[test]
fn what_the_analysis_gives_parses() {
    let families = families(fixture::analysed());
    assert!(families.contains_key("storscope_finding"));
    let worn = [("rule", "wear"), ("controller", "nvme1")];
    let found = families["storscope_finding"]
        .samples
        .iter()
        .any(|s| worn.iter().all(|(label, value)| s.labels.get(*label).is_some_and(|found| found.contains(value))));
    assert!(found, "{:?}", families["storscope_finding"].samples);
}

#[test]
fn the_buffer_is_reused() {
    let view = Arc::new(fixture::full());
    let mut out = String::new();
    encode(&view, Format::OpenMetrics, &mut out).expect("encodes");
    let (first, capacity) = (out.clone(), out.capacity());
    for _ in 0..3 {
        encode(&view, Format::OpenMetrics, &mut out).expect("encodes");
    }
    assert_eq!((out == first, out.capacity()), (true, capacity));
}

#[test]
fn hostile_names_stay_in_their_label() {
    let families = families(fixture::full());
    let info = &families["storscope_device_info"].samples;
    let model = &info.iter().find(|s| s.labels["device"] == "sdb").expect("sdb").labels["model"];
    assert_eq!(model, "2.5\" HDD \\ evil\nDISK \u{fffd}[31mred\u{202e}");
}

proptest! {
    #[test]
    fn any_text_in_labels_parses(name in "\\PC*|.*", model in ".*", hostname in any::<String>()) {
        let mut snapshot = Snapshot::default();
        let mut device = fixture::device(&name, storscope_model::device::Transport::Usb);
        device.model = Some(model);
        device.serial = Some(hostname);
        snapshot.apply(Event::DeviceAppeared(Box::new(device)), fixture::NOW);
        let text = text(fixture::view_of(&snapshot), Format::Text);
        prop_assert!(parse(&text).is_ok(), "{:?}", parse(&text).err());
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    }
}
