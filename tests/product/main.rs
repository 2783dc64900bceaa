//! The whole product on hosts that are made up or captured: a directory in, bytes out.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test may panic")]

mod agent;
mod attack;
mod cases;
mod denied;
mod exchange;
mod field_cases;
mod figures;
mod golden;
mod hostile;
mod http;
mod made_up;
mod many_devices;
mod multipath;
mod odd_input;
mod privacy;
mod real_hosts;
mod restart;
mod server;
mod starting;
mod status_command;
mod whole_host;

#[allow(dead_code, reason = "the tests of discovery use more of it")]
#[path = "../../crates/collect/src/discovery/fixture.rs"]
mod fixture;

#[path = "../../crates/export/tests/exposition/mod.rs"]
mod exposition;

#[path = "../../crates/export/tests/json_schema/mod.rs"]
mod json_schema;

#[path = "../../crates/collect/tests/realdata/mod.rs"]
mod realdata;

#[path = "../../crates/collect/tests/ttar/mod.rs"]
mod ttar;

#[path = "../../crates/collect/src/unprivileged.rs"]
mod unprivileged;

/// The name under which the fixture looks for the root of a host.
mod root {
    pub(crate) use storscope_collect::root::Root;
}
