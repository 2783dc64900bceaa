//! The kernel and the drives turned into samples: one source a file.
#![forbid(unsafe_code)]

pub mod aer;
pub mod agent;
pub mod attribute;
pub mod clock;
pub mod controller_state;
pub mod cpu;
pub mod discovery;
pub mod diskstats;
pub mod host_info;
pub mod lanes;
pub mod pcie;
pub mod power;
pub mod pressure;
pub mod queue;
pub mod root;
pub mod schedule;
pub mod select;
pub mod uevent;
#[cfg(test)]
mod unprivileged;
