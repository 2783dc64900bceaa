//! The pure model: what was sampled, what follows from it, and what is shown.
//!
//! No I/O, no clock, no runtime: every instant is an argument, so that any run can be replayed.
//! Data flows `Event` → [`snapshot::Snapshot`] → [`analysis`] → [`view::View`].
#![forbid(unsafe_code)]

pub mod analysis;
pub mod carries;
pub mod codec;
pub mod device;
pub mod distribution;
pub mod event;
pub mod fault;
pub mod finding;
pub mod history;
pub mod identity;
pub mod io_ticks;
pub mod limits;
pub mod link;
pub mod memory;
pub mod outbox;
pub mod phrase;
pub mod privacy;
pub mod probe_plan;
pub mod reading;
pub mod refused;
pub mod request;
pub mod request_times;
pub mod rules;
pub mod sample;
pub mod snapshot;
pub mod time;
pub mod unread;
pub mod view;
pub mod wall_clock;
