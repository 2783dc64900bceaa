//! The kernel and the drives turned into samples: one source a file.
#![forbid(unsafe_code)]

pub mod attribute;
pub mod root;
