//! The exposition: text 0.0.4 and OpenMetrics 1.0, by prometheus-client, straight from the view.

use crate::table::{self, Samples};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;
use storscope_model::view::View;

/// A format of the exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Text,
    /// OpenMetrics 1.0.0 text.
    OpenMetrics,
}

impl Format {
    /// The value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Replaces what is in `out` by the exposition of `view`. The buffer's capacity is kept, so that the next scrape of a
/// host of the same size allocates nothing for it.
///
/// # Errors
/// None that a [`String`] could cause; it is the encoder's own signature.
pub fn encode(view: &Arc<View>, format: Format, out: &mut String) -> fmt::Result {
    out.clear();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Rows(Arc::clone(view))));
    match format {
        Format::Text => prometheus_text::encode(out, &registry),
        Format::OpenMetrics => text::encode(out, &registry),
    }
}

#[derive(Debug)]
struct Rows(Arc<View>);

impl Collector for Rows {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for metric in table::metrics() {
            let unit = metric.unit().map(|unit| Unit::Other(unit.to_owned()));
            let mut samples = Samples::new(metric, unit.as_ref(), &mut encoder);
            (metric.collect)(&self.0, &mut samples);
            samples.finish()?;
        }
        Ok(())
    }
}
