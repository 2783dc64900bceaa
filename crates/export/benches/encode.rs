//! The exposition of 1,000 devices against a hand-written writer of the same samples, in one run.
#![allow(missing_docs, unreachable_pub, reason = "criterion's macros and the tests' modules")]
#![allow(clippy::expect_used, reason = "a benchmark may panic")]

#[path = "../tests/exposition/mod.rs"]
mod exposition;
#[path = "../tests/fixture/mod.rs"]
mod fixture;

use criterion::{Criterion, criterion_group, criterion_main};
use std::collections::{BTreeMap, HashSet};
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

/// A sample as a writer without a library would have it: names and labels at hand, integers as integers.
struct Flat {
    name: &'static str,
    labels: std::ops::Range<usize>,
    value: Result<u64, f64>,
}

/// The samples of all families, their labels one after the other, each text once in memory.
#[derive(Default)]
struct Flats {
    families: Vec<(String, Vec<Flat>)>,
    labels: Vec<(&'static str, &'static str)>,
    texts: HashSet<&'static str>,
}

impl Flats {
    fn text(&mut self, text: &str) -> &'static str {
        if let Some(known) = self.texts.get(text) {
            return known;
        }
        let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
        self.texts.insert(kept);
        kept
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "only whole numbers that fit are cast"
    )]
    fn of(families: BTreeMap<String, exposition::Family>) -> Self {
        let mut all = Self::default();
        for (name, family) in families {
            let head = format!("# HELP {name} {}\n# TYPE {name} {}\n", family.help, family.kind);
            let mut samples = Vec::with_capacity(family.samples.len());
            for sample in &family.samples {
                let begin = all.labels.len();
                for (label, value) in &sample.labels {
                    let label = (all.text(label), all.text(value));
                    all.labels.push(label);
                }
                let whole = sample.value >= 0.0 && sample.value.fract() == 0.0 && sample.value < u64::MAX as f64;
                let value = if whole { Ok(sample.value as u64) } else { Err(sample.value) };
                samples.push(Flat { name: all.text(&sample.name), labels: begin..all.labels.len(), value });
            }
            all.families.push((head, samples));
        }
        all
    }
}

fn by_hand(flats: &Flats, out: &mut String) {
    out.clear();
    for (head, samples) in &flats.families {
        out.push_str(head);
        for sample in samples {
            out.push_str(sample.name);
            let mut separator = '{';
            for (label, value) in &flats.labels[sample.labels.clone()] {
                out.push(separator);
                separator = ',';
                out.push_str(label);
                out.push_str("=\"");
                escape(value, out);
                out.push('"');
            }
            out.push_str(if separator == ',' { "} " } else { " " });
            match sample.value {
                Ok(whole) => digits(whole, out),
                Err(broken) => {
                    let _ = write!(out, "{broken}");
                }
            }
            out.push('\n');
        }
    }
}

fn digits(mut number: u64, out: &mut String) {
    let mut buffer = [b'0'; 20];
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&buffer[at..]).unwrap_or_default());
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
    let families = Flats::of(exposition::parse(&out).expect("parses"));
    let series: usize = families.families.iter().map(|(_, samples)| samples.len()).sum();
    let mut group = c.benchmark_group(format!("1000 devices, {series} series, {} bytes", out.len()));
    group.sample_size(20);
    group.bench_function("by hand", |b| b.iter(|| by_hand(black_box(&families), &mut out)));
    group.bench_function("text 0.0.4", |b| b.iter(|| encode(black_box(&view), Format::Text, &mut out)));
    group.bench_function("openmetrics", |b| b.iter(|| encode(black_box(&view), Format::OpenMetrics, &mut out)));
    group.finish();
}

criterion_group!(encoding, benches);
criterion_main!(encoding);
