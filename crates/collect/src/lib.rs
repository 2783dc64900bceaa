//! The kernel and the drives turned into samples: one source a file.
//!
//! - [`root`] says where the host's files are; [`mod@attribute`] reads them, bounded.
//! - [`discovery`] finds devices and controllers, [`select`] chooses among them, [`uevent`] hears of changes.
//! - One file a source turns kernel files (`diskstats`, `queue`, `pcie`, …) or drive pages (`nvme/`, `ata_power`) into a
//!   sample or the reason why there is none. A source keeps no state and knows no time.
//! - [`schedule`] says when a source is due, [`lanes`] that nothing hangs but what hangs, [`collector`] runs it all.
//!
//! # Adding a source
//!
//! 1. `model`: a sample type, its variants of `Source` and `Sample`, its reading in the snapshot.
//! 2. Here: a file named by the kernel's or the standard's noun, with
//!    `pub fn read(root: &Root, …) -> Result<T, Fault>`, or `-> Outcome` where *not offered* is an answer. It reads
//!    bounded and never guesses: what is absent is `None`, what is damaged is a fault that names the file. Its tests:
//!    healthy, absent, malformed, denied.
//! 3. [`schedule::Periods`] gets its period, [`lanes::Lane::of`] its lane: whatever may hang when that device hangs
//!    belongs to the device's lane. `schedule::deadline` is how long it may take.
//! 4. `collector/reads.rs`: one entry in the list of sources of the host, a controller or a device, one arm that calls
//!    `read`. A drive page is one entry in `nvme::PAGES` and one arm in `nvme/drives.rs` instead; whether the drive has
//!    it is decided by `storscope_drive::Plan` before anything is sent.
#![forbid(unsafe_code)]

pub mod aer;
pub mod agent;
mod answer;
pub mod ata_power;
pub mod attribute;
pub mod clock;
pub mod collector;
pub mod controller_state;
pub mod cpu;
pub mod discovery;
pub mod diskstats;
pub mod former;
#[doc(hidden)]
pub mod fuzzing;
pub mod host_info;
pub mod lanes;
pub mod node;
pub mod nvme;
pub mod pcie;
pub mod power;
pub mod pressure;
pub mod queue;
pub mod root;
pub mod schedule;
pub mod select;
pub mod stack;
pub mod uevent;
#[cfg(test)]
mod unprivileged;
