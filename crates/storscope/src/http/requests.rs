//! Requests answered, counted by known path and status: labels stay bounded whatever is asked for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Paths that are counted by name; every other one is `other`.
pub(super) const PATHS: [&str; 6] = ["/", "/metrics", "/status", "/status.json", "/healthz", "/readyz"];

/// Counts of answers.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<BTreeMap<(&'static str, u16), u64>>);

impl Requests {
    /// Counts one answer.
    pub(super) fn count(&self, path: &str, status: u16) {
        let path = PATHS.into_iter().find(|known| *known == path).unwrap_or("other");
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((path, status)).or_default();
        *count = count.saturating_add(1);
    }

    /// The counts so far.
    pub(crate) fn counts(&self) -> Vec<(String, u16, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|((path, status), count)| ((*path).to_owned(), *status, *count)).collect()
    }
}
