//! Drive commands of NVMe controllers: asked as their [`storscope_drive::Plan`] says, the pages turned into samples.
//!
//! Every command of a controller and of its namespaces runs in the controller's lane, one at a time. Each page is a
//! source of its own: one that fails costs nothing but itself.

mod drives;
mod error_log;
mod firmware_slots;
mod identify;
mod namespace;
mod ocp_smart;
mod self_test;
mod smart_health;
mod tally;

pub use drives::{Drives, PAGES, Poll};
