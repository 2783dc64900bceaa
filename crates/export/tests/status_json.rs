//! `/status.json` held against its schema.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod fixture;

use serde_json::Value;
use std::collections::BTreeSet;
use storscope_export::{json, schema};

/// The part of JSON Schema (draft 2020-12) that the schema uses; stricter in one point: no field may be missing from it.
struct Validator {
    schema: Value,
    used: BTreeSet<String>,
}

impl Validator {
    fn check(&mut self, rule: &Value, value: &Value, place: &str) -> Result<(), String> {
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

fn full() -> Value {
    serde_json::from_str(&json::render(&fixture::full()).expect("renders")).expect("parses")
}

#[test]
fn the_status_fits_its_schema_and_uses_all_of_it() {
    let schema: Value = serde_json::from_str(&schema::status_schema()).expect("parses");
    let mut validator = Validator { schema: schema.clone(), used: BTreeSet::new() };
    assert_eq!(validator.check(&schema, &full(), "status"), Ok(()));
    let defined: BTreeSet<String> =
        schema["$defs"].as_object().expect("definitions").keys().map(|name| format!("#/$defs/{name}")).collect();
    assert_eq!(validator.used, defined);
    let analysed = serde_json::from_str(&json::render(&fixture::analysed()).expect("renders")).expect("parses");
    assert_eq!(validator.check(&schema, &analysed, "status"), Ok(()));
    let empty = serde_json::from_str(&json::render(&fixture::empty()).expect("renders")).expect("parses");
    assert_eq!(validator.check(&schema, &empty, "status"), Ok(()));
}

#[test]
fn the_validator_can_fail() {
    let schema: Value = serde_json::from_str(&schema::status_schema()).expect("parses");
    let mut validator = Validator { schema: schema.clone(), used: BTreeSet::new() };
    let mut wrong = full();
    wrong["findings"][0]["severity"] = Value::from("bad");
    assert!(validator.check(&schema, &wrong, "status").is_err_and(|why| why.contains("findings[0].severity")));
    let mut wrong = full();
    wrong["devices"][0]["surprise"] = Value::from(1);
    assert!(validator.check(&schema, &wrong, "status").is_err_and(|why| why.contains("surprise")));
}

#[test]
fn the_status_is_as_it_was() {
    let text = json::render_pretty(&fixture::full()).expect("renders");
    fixture::golden("tests/golden/status.json", &format!("{text}\n"));
}

#[test]
fn counters_of_128_bits_keep_every_digit() {
    let status = full();
    let smart = &status["controllers"][0]["smart"];
    assert_eq!(smart["host_reads"], (u128::MAX / 3).to_string());
    assert_eq!(smart["data_read_bytes"], "16579274242048000");
}

#[test]
fn what_is_not_fresh_is_null_and_its_source_says_why() {
    let status = full();
    let stuck = &status["controllers"][3];
    assert_eq!(stuck["smart"], Value::Null);
    let sources = stuck["sources"].as_array().expect("sources");
    let smart = sources.iter().find(|source| source["source"] == "smart_health").expect("smart");
    assert_eq!((smart["state"].as_str(), smart["age_seconds"].as_f64()), (Some("stalled"), Some(180.0)));
    assert_eq!(status["time"], "2026-11-30T18:25:43Z");
}
