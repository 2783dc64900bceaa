//! A strict parser of the text format 0.0.4, for tests.
#![allow(dead_code, reason = "tests and benchmark use different parts of it")]

use std::collections::{BTreeMap, BTreeSet};

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// One family.
#[derive(Debug, Clone, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    pub(crate) samples: Vec<Sample>,
}

/// The families by name; an error names the line.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, Family>, String> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line does not end".to_owned());
    }
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let fail = |what: &str| format!("line {}: {what}: {line:?}", number + 1);
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or_else(|| fail("no help"))?;
            if families.contains_key(name) {
                return Err(fail("family given twice"));
            }
            current = name.to_owned();
            families.insert(current.clone(), Family { help: help.to_owned(), ..Family::default() });
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or_else(|| fail("no type"))?;
            if name != current || !["counter", "gauge", "histogram"].contains(&kind) {
                return Err(fail("type out of place"));
            }
            families.entry(current.clone()).or_default().kind = kind.to_owned();
        } else {
            let sample = sample(line).ok_or_else(|| fail("no sample"))?;
            let family = families.get_mut(&current).ok_or_else(|| fail("no family"))?;
            let suffix = sample.name.strip_prefix(current.as_str()).ok_or_else(|| fail("other family"))?;
            let fits = match family.kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"].contains(&suffix),
                _ => suffix.is_empty(),
            };
            if !fits {
                return Err(fail("name does not fit the family"));
            }
            if !seen.insert((sample.name.clone(), sample.labels.clone())) {
                return Err(fail("series given twice"));
            }
            family.samples.push(sample);
        }
    }
    match families.iter().find(|(_, family)| family.samples.is_empty()) {
        Some((name, _)) => Err(format!("{name} has no samples")),
        None => Ok(families),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            if !is_name(label) || value.is_empty() || labels.insert(label.to_owned(), value).is_some() {
                return None;
            }
            rest = after;
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            rest = rest.strip_prefix(',')?;
        }
    }
    let number = rest.strip_prefix(' ')?;
    let plain = number.bytes().all(|b| b.is_ascii_digit() || b"+-.eInf".contains(&b));
    let value = number.parse().ok().filter(|_| plain)?;
    is_name(name).then(|| Sample { name: name.to_owned(), labels, value })
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                '\\' => '\\',
                '"' => '"',
                'n' => '\n',
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}
