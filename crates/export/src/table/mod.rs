//! The metric table: one row a metric. Exposition, documents, dashboards and alerts are held against it.
//!
//! A row names a metric as it is scraped in text 0.0.4, suffixes included. How the name is split follows from it:
//! `_total` is the mark of a counter and `_info` that of an info metric, and the words before are the unit
//! ([`Metric::unit`]). OpenMetrics wants the family without `_total` and `_info`, and names the unit in a `# UNIT` line;
//! [`Metric::family`] gives that.
//!
//! A label without a value is left out, which is the same as an empty one to Prometheus. So one scheme serves every
//! subject: a series about a device has `device`, one about a controller `controller`, one about the host neither.

mod agent;
mod device;
mod disk;
mod finding;
mod host;
mod nvme;
mod nvme_identify;
mod nvme_logs;
mod ocp;
mod pcie;
mod probe;
mod queue;
mod samples;
mod source;

pub use samples::{IntoValue, Samples, Value};
use storscope_model::view::View;

/// What a metric is (OpenMetrics 1.0, metric types).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises, until a reset.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bound.
    Histogram,
    /// Always 1: the labels are the value.
    Info,
}

impl Kind {
    /// The word in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// Gives the samples of one metric.
pub type Collect = fn(&View, &mut Samples<'_, '_>);

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name as scraped in text 0.0.4.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What it means: one sentence, ending in a full stop.
    pub help: &'static str,
    /// Labels that its series may have, in the order of [`Samples::put`].
    pub labels: &'static [&'static str],
    /// Kernel file, log page or command that it comes from.
    pub source: &'static str,
    /// Gives its samples.
    pub collect: Collect,
}

/// Units that a name may end in, the longest first (OpenMetrics 1.0: base units, part of the name).
const UNITS: [&str; 7] = ["transfers_per_second", "bytes_per_second", "seconds", "bytes", "celsius", "ratio", "lanes"];

impl Metric {
    /// The name of the family in OpenMetrics: without `_total` and `_info`.
    pub fn family(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Info => self.name.strip_suffix("_info").unwrap_or(self.name),
            Kind::Gauge | Kind::Histogram => self.name,
        }
    }

    /// The unit, where the metric has one.
    pub fn unit(&self) -> Option<&'static str> {
        self.split().1
    }

    /// The family's name without its unit, and the unit.
    pub(crate) fn split(&self) -> (&'static str, Option<&'static str>) {
        let family = self.family();
        UNITS
            .into_iter()
            .find_map(|unit| {
                let base = family.strip_suffix(unit)?.strip_suffix('_')?;
                Some((base, Some(unit)))
            })
            .unwrap_or((family, None))
    }
}

/// Metrics on one subject.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Heading in documents.
    pub title: &'static str,
    /// What the group is about, and what to know of it.
    pub about: &'static str,
    /// Its metrics.
    pub metrics: &'static [Metric],
}

/// Every group, in the order of the exposition.
pub static GROUPS: [&Group; 14] = [
    &finding::GROUP,
    &device::GROUP,
    &disk::GROUP,
    &queue::GROUP,
    &probe::GROUP,
    &pcie::GROUP,
    &nvme::GROUP,
    &nvme_identify::GROUP,
    &nvme_logs::GROUP,
    &ocp::GROUP,
    &source::GROUP,
    &host::PRESSURE,
    &host::GROUP,
    &agent::GROUP,
];

/// Every metric.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    GROUPS.iter().flat_map(|group| group.metrics)
}
