//! The whole product on this host: a loop device that comes, works and goes. Needs root and a loop driver, fio and
//! iostat; says so where they are not there.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test may panic")]

#[allow(dead_code, reason = "the tests of replayed hosts use more of it")]
mod agent;
#[allow(dead_code, reason = "the tests of replayed hosts use more of it")]
mod exchange;
#[allow(dead_code, reason = "the tests of replayed hosts use more of it")]
mod figures;
mod live_hung;
mod live_load;
mod live_plug;
mod live_processes;
mod live_rights;
mod live_ring;
mod loop_device;

#[path = "../../crates/export/tests/exposition/mod.rs"]
mod exposition;

#[path = "../../crates/probe/tests/devices/slow_file.rs"]
mod slow_file;
