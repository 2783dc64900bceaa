//! One scrape of the agent, parsed (Prometheus text exposition format 0.0.4).

use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;

/// One series and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// Metric name.
    pub(crate) name: String,
    /// Labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Value.
    pub(crate) value: f64,
}

impl Series {
    /// A label, empty where there is none, as Prometheus sees it.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    fn matches(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.label(name) == *value)
    }
}

/// All series of one scrape.
#[derive(Debug)]
pub(crate) struct Scrape(Vec<Series>);

impl Scrape {
    /// Parses the text.
    ///
    /// # Errors
    /// With the first line that is not in the format.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(|line| series(line).with_context(|| format!("/metrics: {line}"))).collect::<Result<_>>().map(Self)
    }

    /// The series of `name` that carry all of `labels`.
    pub(crate) fn all(&self, name: &str, labels: &[(&str, &str)]) -> Vec<&Series> {
        self.0.iter().filter(|series| series.name == name && series.matches(labels)).collect()
    }

    /// The one series of `name` that carries all of `labels`.
    ///
    /// # Errors
    /// When there is none or more than one.
    pub(crate) fn one(&self, name: &str, labels: &[(&str, &str)]) -> Result<&Series> {
        match self.all(name, labels).as_slice() {
            [only] => Ok(only),
            [] => Err(anyhow!("no {name} with {labels:?}")),
            _ => Err(anyhow!("more than one {name} with {labels:?}")),
        }
    }

    /// The value of [`Scrape::one`].
    ///
    /// # Errors
    /// As [`Scrape::one`].
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
        self.one(name, labels).map(|series| series.value)
    }

    /// Names of all series.
    pub(crate) fn series(&self) -> &[Series] {
        &self.0
    }
}

fn series(line: &str) -> Result<Series> {
    let name_ends = line.find(['{', ' ']).context("no value")?;
    let (name, mut rest) = line.split_at(name_ends);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").context("a label without a value")?;
            let (value, after) = quoted(after)?;
            labels.insert(label.to_owned(), value);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.split_whitespace().next().context("no value")?;
    let value = value.parse().with_context(|| value.to_owned())?;
    Ok(Series { name: name.to_owned(), labels, value })
}

/// A label value up to its closing quote, unescaped, and what follows.
fn quoted(text: &str) -> Result<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                _ => bail!("a bad escape"),
            },
            plain => value.push(plain),
        }
    }
    bail!("a label value without its closing quote")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_unescaped_and_values_read() {
        let text = "# TYPE a gauge\na{b=\"x\\\"}\\\\ y\",c=\"\"} 1.5e3\nplain 2\ninfinite +Inf\n";
        let scrape = Scrape::parse(text).unwrap();
        assert_eq!(scrape.value("a", &[("b", "x\"}\\ y")]).unwrap(), 1500.0);
        assert_eq!(scrape.value("plain", &[]).unwrap(), 2.0);
        assert!(scrape.value("infinite", &[]).unwrap().is_infinite());
        assert!(scrape.value("a", &[("b", "other")]).is_err());
    }

    #[test]
    fn a_line_out_of_format_is_named() {
        let error = Scrape::parse("a{b=\"c} 1\n").unwrap_err();
        assert!(format!("{error:#}").contains("a{b="), "{error:#}");
    }
}
