//! Figures out of an exposition.

use crate::exposition::{self, Family, Sample};
use std::collections::BTreeMap;

/// A parsed exposition.
#[derive(Debug)]
pub(crate) struct Figures(BTreeMap<String, Family>);

impl Figures {
    /// Parses text 0.0.4 strictly.
    pub(crate) fn parse(text: &str) -> Self {
        Self(exposition::parse(text).unwrap_or_else(|why| panic!("{why}")))
    }

    /// Every series of `name`.
    pub(crate) fn series(&self, name: &str) -> &[Sample] {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        let family = self.0.get(name).or_else(|| self.0.get(family?));
        family.map_or(&[], |family| &family.samples)
    }

    /// The value of the only series of `name` that has `labels`; `None` when there is none.
    pub(crate) fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let fits = |sample: &&Sample| {
            sample.name == name
                && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|given| given == value))
        };
        let found: Vec<&Sample> = self.series(name).iter().filter(fits).collect();
        assert!(found.len() < 2, "{name} {labels:?}: {found:?}");
        found.first().map(|sample| sample.value)
    }

    /// The value of the series of `name` that has `labels` and no other.
    pub(crate) fn exact(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: BTreeMap<String, String> =
            labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
        self.series(name).iter().find(|sample| sample.labels == wanted).map(|sample| sample.value)
    }

    /// The value of a series that must be there; see [`Self::find`].
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels).unwrap_or_else(|| panic!("no {name} {labels:?} in {:#?}", self.series(name)))
    }

    /// The values that label `label` has among the series of `name`.
    pub(crate) fn labels(&self, name: &str, label: &str) -> Vec<&str> {
        let mut values: Vec<&str> =
            self.series(name).iter().filter_map(|sample| sample.labels.get(label).map(String::as_str)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Every series of every family.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Sample> {
        self.0.values().flat_map(|family| &family.samples)
    }

    /// Open findings as `rule subject`.
    pub(crate) fn findings(&self) -> Vec<String> {
        let subject = |sample: &Sample| {
            let of = |label: &str| sample.labels.get(label).cloned();
            of("device").or_else(|| of("controller")).unwrap_or_else(|| "host".to_owned())
        };
        let one = |sample: &Sample| format!("{} {}", sample.labels["rule"], subject(sample));
        let mut all: Vec<String> = self.series("storscope_finding").iter().map(one).collect();
        all.sort();
        all
    }
}
