//! Timed `O_DIRECT` reads: how long a small read of each device takes, seen from user space.
//!
//! A [`Prober`] reads every [`Target`] in short bursts, one read at a time a device, within a budget, and hands out
//! one cumulative [`Report`] a burst. A disk read cannot be cancelled: past its deadline it is reported as
//! outstanding, awaited for ever and never issued twice; nothing of another device waits for it.
#![deny(unsafe_code)]

mod budget;
mod buffer;
mod burst;
mod clock;
mod device;
mod engine;
mod histogram;
mod lane;
mod load;
mod offsets;
mod pread;
mod prober;
mod tally;
mod target;
mod uring;

pub use budget::{DEVICE_SHARE, Limits, MAX_READS_PER_SECOND, READS_PER_SECOND, WINDOW};
pub use engine::{EngineChoice, EngineInUse};
pub use lane::{DEADLINE, IDLE_AFTER};
pub use prober::{Config, MAX_TARGETS, Prober, Report, StartError};
pub use target::{BURST, INTERVAL, Pace, QueueSize, Target};
