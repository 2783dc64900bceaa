//! The exposition of 1,000 devices against a hand-written writer of the same samples, in one run.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

#[path = "../tests/exposition/mod.rs"]
mod exposition;
#[path = "../tests/fixture/mod.rs"]
mod fixture;

use criterion::{Criterion, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use storscope_export::prometheus::{Format, encode};
use storscope_model::view::{DeviceView, View};

/// `count` devices that give about 60 series each, and nothing else.
fn many(count: usize) -> View {
    let mut view = fixture::full();
    view.findings.clear();
    view.controllers.clear();
    let template = view.devices[0].clone();
    view.devices = (0..count).map(|number| numbered(&template, number)).collect();
    view
}

fn numbered(template: &DeviceView, number: usize) -> DeviceView {
    let mut view = template.clone();
    let mut device = (*view.state.device).clone();
    device.name = format!("nvme{number}n1");
    device.id.0 = format!("id-{}", device.name);
    view.state.device = Arc::new(device);
    view.probe.windows.clear();
    view.state.probe = storscope_model::reading::Reading::Never;
    view.state.namespace = storscope_model::reading::Reading::Never;
    view
}

/// What a writer without a library does: names and labels are known, numbers are formatted, values are escaped.
fn by_hand(families: &[(String, exposition::Family)], out: &mut String) {
    out.clear();
    for (name, family) in families {
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {}", family.help, family.kind);
        for sample in &family.samples {
            out.push_str(&sample.name);
            let mut separator = '{';
            for (label, value) in &sample.labels {
                out.push(separator);
                separator = ',';
                out.push_str(label);
                out.push_str("=\"");
                escape(value, out);
                out.push('"');
            }
            out.push_str(if separator == ',' { "} " } else { " " });
            let _ = writeln!(out, "{}", sample.value);
        }
    }
}

fn escape(value: &str, out: &mut String) {
    if !value.bytes().any(|b| matches!(b, b'"' | b'\\' | b'\n')) {
        return out.push_str(value);
    }
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

fn benches(c: &mut Criterion) {
    let view = Arc::new(many(1000));
    let mut out = String::new();
    encode(&view, Format::Text, &mut out).expect("encodes");
    let families: Vec<_> = exposition::parse(&out).expect("parses").into_iter().collect();
    let series: usize = families.iter().map(|(_, family)| family.samples.len()).sum();
    let mut group = c.benchmark_group(format!("1000 devices, {series} series, {} bytes", out.len()));
    group.sample_size(20);
    group.bench_function("by hand", |b| b.iter(|| by_hand(black_box(&families), &mut out)));
    group.bench_function("text 0.0.4", |b| b.iter(|| encode(black_box(&view), Format::Text, &mut out)));
    group.bench_function("openmetrics", |b| b.iter(|| encode(black_box(&view), Format::OpenMetrics, &mut out)));
    group.finish();
}

criterion_group!(encoding, benches);
criterion_main!(encoding);
