//! Where rows put their samples.

use super::Metric;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::borrow::Cow;
use std::fmt::{self, Write};
use std::time::Duration;

/// A number in the exposition. Integers up to 64 bits keep all their digits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Not negative.
    Unsigned(u64),
    /// Maybe negative.
    Signed(i64),
    /// Anything else.
    Float(f64),
}

/// What can stand as a sample's value; `None` is no sample.
pub trait IntoValue {
    /// The value.
    fn into_value(self) -> Option<Value>;
}

macro_rules! unsigned {
    ($($kind:ty),*) => {
        $(impl IntoValue for $kind {
            fn into_value(self) -> Option<Value> {
                Some(Value::Unsigned(u64::from(self)))
            }
        })*
    };
}

unsigned!(u8, u16, u32, u64, bool);

impl IntoValue for usize {
    fn into_value(self) -> Option<Value> {
        u64::try_from(self).ok().map(Value::Unsigned)
    }
}

impl IntoValue for u128 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "the exposition is 64-bit floating point: low digits are lost there, and only there"
    )]
    fn into_value(self) -> Option<Value> {
        Some(u64::try_from(self).map_or(Value::Float(self as f64), Value::Unsigned))
    }
}

impl IntoValue for i32 {
    fn into_value(self) -> Option<Value> {
        Some(Value::Signed(i64::from(self)))
    }
}

/// Not a finite number is no sample.
impl IntoValue for f64 {
    fn into_value(self) -> Option<Value> {
        self.is_finite().then_some(Value::Float(self))
    }
}

/// In seconds.
impl IntoValue for Duration {
    fn into_value(self) -> Option<Value> {
        Some(Value::Float(self.as_secs_f64()))
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Option<Value> {
        self.and_then(T::into_value)
    }
}

/// Takes the samples of one metric. The family is announced with its first sample, so that one without samples leaves
/// nothing in the exposition.
pub struct Samples<'e, 'd> {
    metric: &'static Metric,
    name: &'static str,
    unit: Option<&'e Unit>,
    descriptor: Option<&'e mut DescriptorEncoder<'d>>,
    encoder: Option<MetricEncoder<'e>>,
    result: fmt::Result,
}

impl fmt::Debug for Samples<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Samples").field("metric", &self.metric.name).finish_non_exhaustive()
    }
}

impl<'e, 'd> Samples<'e, 'd> {
    pub(crate) fn new(
        metric: &'static Metric,
        unit: Option<&'e Unit>,
        descriptor: &'e mut DescriptorEncoder<'d>,
    ) -> Self {
        Self { metric, name: metric.split().0, unit, descriptor: Some(descriptor), encoder: None, result: Ok(()) }
    }

    pub(crate) fn finish(self) -> fmt::Result {
        self.result
    }

    /// Puts one sample: a value for each label of the metric, in its order; an empty one leaves the label out. The
    /// value of an info metric is not looked at.
    pub fn put(&mut self, labels: &[&str], value: impl IntoValue) {
        if let Some(value) = value.into_value() {
            let names = self.metric.labels;
            self.attempt(|encoder, kind| {
                one(encoder, kind, &Labels { names, values: labels, printable: false }, value)
            });
        }
    }

    /// Puts one histogram: the counts of the single buckets, each with its upper bound; the last bound is infinite.
    pub fn put_histogram(&mut self, labels: &[&str], sum: f64, count: u64, buckets: &[(f64, u64)]) {
        let names = self.metric.labels;
        // The labels stand in every line of the histogram.
        let printable: Vec<Cow<'_, str>> = labels.iter().map(|value| printable(value)).collect();
        let values: Vec<&str> = printable.iter().map(AsRef::as_ref).collect();
        self.attempt(|encoder, _| {
            encoder
                .encode_family(&Labels { names, values: &values, printable: true })?
                .encode_histogram::<NoLabelSet>(sum, count, buckets, None)
        });
    }

    fn attempt(&mut self, put: impl FnOnce(&mut MetricEncoder<'e>, MetricType) -> fmt::Result) {
        let kind = metric_type(self.metric);
        if let Some(descriptor) = self.descriptor.take() {
            match descriptor.encode_descriptor(self.name, self.metric.help, self.unit, kind) {
                Ok(encoder) => self.encoder = Some(encoder),
                Err(error) => self.result = Err(error),
            }
        }
        if let Some(encoder) = &mut self.encoder
            && self.result.is_ok()
        {
            self.result = put(encoder, kind);
        }
    }
}

const NO_LABELS: [(&str, &str); 0] = [];

fn one(encoder: &mut MetricEncoder<'_>, kind: MetricType, labels: &Labels<'_>, value: Value) -> fmt::Result {
    let mut series = encoder.encode_family(labels)?;
    match (kind, value) {
        (MetricType::Info, _) => series.encode_info(&NO_LABELS),
        (MetricType::Counter, Value::Unsigned(value)) => series.encode_counter::<NoLabelSet, _, f64>(&value, None),
        (MetricType::Counter, Value::Float(value)) => series.encode_counter::<NoLabelSet, _, f64>(&value, None),
        (_, Value::Unsigned(value)) => series.encode_gauge(&value),
        (_, Value::Signed(value)) => series.encode_gauge(&value),
        (_, Value::Float(value)) => series.encode_gauge(&value),
    }
}

fn metric_type(metric: &Metric) -> MetricType {
    match metric.kind {
        super::Kind::Counter => MetricType::Counter,
        super::Kind::Gauge => MetricType::Gauge,
        super::Kind::Histogram => MetricType::Histogram,
        super::Kind::Info => MetricType::Info,
    }
}

struct Labels<'a> {
    names: &'static [&'static str],
    values: &'a [&'a str],
    /// The values are known to be printable.
    printable: bool,
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for (name, value) in self.names.iter().zip(self.values) {
            if value.is_empty() {
                continue;
            }
            let mut label = encoder.encode_label();
            let mut key = label.encode_label_key()?;
            key.write_str(name)?;
            let mut text = key.encode_label_value()?;
            if self.printable {
                text.write_str(value)?;
            } else {
                text.write_str(&printable(value))?;
            }
            text.finish()?;
        }
        Ok(())
    }
}

/// The value with control characters replaced: a scrape is read on terminals too. The line feed stays, which the
/// formats escape themselves.
fn printable(value: &str) -> Cow<'_, str> {
    let suspicious = value.bytes().fold(false, |found, byte| found | matches!(byte, 0..0x20 | 0x7F | 0xC2));
    if suspicious {
        Cow::Owned(
            value.chars().map(|c| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c }).collect(),
        )
    } else {
        Cow::Borrowed(value)
    }
}
