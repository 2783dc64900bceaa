//! The model from events to view.

mod arbitrary;
mod gone;
mod laws;
mod multipath;
mod plan;
mod replay;
mod request_times;
mod rules;
mod scenario;
mod sysstat;
mod verdict;
