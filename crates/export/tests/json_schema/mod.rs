//! A validator for the schema of the status, for tests.
#![allow(dead_code, reason = "not every test looks at what was used")]

use serde_json::Value;
use std::collections::BTreeSet;

/// The part of JSON Schema (draft 2020-12) that the schema uses; stricter in one point: no field may be missing from it.
pub(crate) struct Validator {
    schema: Value,
    /// Definitions that were used.
    pub(crate) used: BTreeSet<String>,
}

impl Validator {
    pub(crate) const fn new(schema: Value) -> Self {
        Self { schema, used: BTreeSet::new() }
    }

    /// Holds `value` against `rule`; an error names the place.
    pub(crate) fn check(&mut self, rule: &Value, value: &Value, place: &str) -> Result<(), String> {
        if let Some(reference) = rule.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').ok_or("a reference elsewhere")?;
            let of = self.schema.pointer(pointer).ok_or(format!("{reference} is not there"))?.clone();
            self.used.insert(reference.to_owned());
            return self.check(&of, value, place);
        }
        if let Some(choices) = rule.get("anyOf").and_then(Value::as_array) {
            let mut errors = Vec::new();
            for choice in choices {
                match self.check(choice, value, place) {
                    Ok(()) => return Ok(()),
                    Err(error) => errors.push(error),
                }
            }
            return Err(errors.join(" or "));
        }
        let kind = rule.get("type").and_then(Value::as_str).ok_or(format!("{place}: no type"))?;
        match (kind, value) {
            ("object", Value::Object(_)) => self.object(rule, value, place),
            ("array", Value::Array(items)) => {
                let of = &rule["items"];
                items
                    .iter()
                    .enumerate()
                    .try_for_each(|(number, item)| self.check(of, item, &format!("{place}[{number}]")))
            }
            ("integer", Value::Number(number)) => {
                let whole = number.is_u64() || number.is_i64() && rule.get("minimum").is_none();
                let constant = rule.get("const").is_none_or(|constant| constant == value);
                (whole && constant).then_some(()).ok_or(format!("{place}: {value}"))
            }
            ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("null", Value::Null) => Ok(()),
            ("string", Value::String(text)) => text_fits(rule, text).then_some(()).ok_or(format!("{place}: {text}")),
            _ => Err(format!("{place}: {value} is no {kind}")),
        }
    }

    fn object(&mut self, rule: &Value, value: &Value, place: &str) -> Result<(), String> {
        let fields = value.as_object().ok_or("no object")?;
        if let Some(of) = rule.get("additionalProperties") {
            return fields.iter().try_for_each(|(name, value)| self.check(of, value, &format!("{place}.{name}")));
        }
        let properties = rule["properties"].as_object().ok_or("no properties")?;
        let required: BTreeSet<&str> =
            rule["required"].as_array().ok_or("none")?.iter().filter_map(Value::as_str).collect();
        let given: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
        if required != given {
            let differing: Vec<_> = required.symmetric_difference(&given).collect();
            return Err(format!("{place}: {differing:?}"));
        }
        fields.iter().try_for_each(|(name, value)| self.check(&properties[name], value, &format!("{place}.{name}")))
    }
}

fn text_fits(rule: &Value, text: &str) -> bool {
    let listed = rule.get("enum").and_then(Value::as_array).is_none_or(|words| words.iter().any(|word| word == text));
    let digits = rule.get("pattern").is_none() || !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let time = rule.get("format").is_none() || text.parse::<jiff::Timestamp>().is_ok() && text.ends_with('Z');
    listed && digits && time
}
