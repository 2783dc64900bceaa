//! The view rendered: Prometheus exposition, JSON and plain text. Pure: a [`View`](storscope_model::view::View) in,
//! text out.
//!
//! Every metric is a row of [`table`]; `docs/METRICS.md` and the exposition come from the same rows.
#![forbid(unsafe_code)]

pub mod docs;
pub mod json;
pub mod prometheus;
pub mod schema;
pub mod table;
pub mod text;
pub mod wall;
