//! `/status.json` held against its schema.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod fixture;
mod json_schema;

use json_schema::Validator;
use serde_json::Value;
use std::collections::BTreeSet;
use storscope_export::{json, schema};

fn full() -> Value {
    serde_json::from_str(&json::render(&fixture::full()).expect("renders")).expect("parses")
}

#[test]
fn the_status_fits_its_schema_and_uses_all_of_it() {
    let schema: Value = serde_json::from_str(&schema::status_schema()).expect("parses");
    let mut validator = Validator::new(schema.clone());
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
    let mut validator = Validator::new(schema.clone());
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
