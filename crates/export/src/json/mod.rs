//! `/status.json`: the versioned schema. Its types are its own, so that the model can change without breaking readers.
//!
//! Every field is always there; `null` is "not available", and `sources` says why and since when. A group of values
//! (rates, counters, a log page) is given only while it is fresh. Times are RFC 3339 in UTC, ages and durations are
//! seconds, shares are 0–1. Counters of 128 bits are strings of digits.

mod agent;
mod controller;
mod device;
mod finding;
mod host;
mod ocp;
mod source;

use crate::text::drives;
use crate::wall;
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use storscope_model::time::BootTime;
use storscope_model::view::View;

/// Version of the schema: raised when a field changes its meaning or goes away, not when one is added.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Status<'v> {
    schema: u32,
    time: Option<Timestamp>,
    verdict: &'static str,
    exit_status: u8,
    headline: &'v str,
    drives: Drives,
    host: host::Host<'v>,
    load: host::Load,
    findings: Vec<finding::Finding<'v>>,
    closed: Vec<finding::Finding<'v>>,
    devices: Vec<device::Device<'v>>,
    controllers: Vec<controller::Controller<'v>>,
    agent: agent::Agent<'v>,
}

#[derive(Serialize)]
struct Drives {
    total: usize,
    need_attention: usize,
}

/// A counter of 128 bits, as a string of digits: no reader of JSON keeps them all otherwise.
struct Big(u128);

impl Serialize for Big {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn time(view: &View, at: BootTime) -> Option<Timestamp> {
    wall::timestamp(&view.clock, at)
}

fn status(view: &View) -> Status<'_> {
    let (total, need_attention) = drives(view);
    Status {
        schema: SCHEMA,
        time: time(view, view.now),
        verdict: view.verdict.as_str(),
        exit_status: view.verdict.exit_status(),
        headline: &view.headline,
        drives: Drives { total, need_attention },
        host: host::Host::of(view),
        load: host::Load::of(view),
        findings: view.findings.iter().map(|finding| finding::Finding::of(view, finding)).collect(),
        closed: view.closed.iter().map(|finding| finding::Finding::of(view, finding)).collect(),
        devices: view.devices.iter().map(|device| device::Device::of(view, device)).collect(),
        controllers: view.controllers.iter().map(|known| controller::Controller::of(view, known)).collect(),
        agent: agent::Agent::of(view),
    }
}

/// The status as JSON on one line.
///
/// # Errors
/// None that this schema could cause: it has no map with keys that are not strings. It is the serializer's signature.
pub fn render(view: &View) -> Result<String, serde_json::Error> {
    serde_json::to_string(&status(view))
}

/// The same, indented for people.
///
/// # Errors
/// As [`render`].
pub fn render_pretty(view: &View) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&status(view))
}
