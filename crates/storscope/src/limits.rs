//! Limits of the process itself.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that are asked for; one a device in use, with room for connections.
const DESCRIPTORS: u64 = 65_536;

/// Raises the soft limit of open descriptors as far as the hard one allows.
pub(crate) fn raise_descriptors() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = DESCRIPTORS.min(hard);
    if soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_err() {
        tracing::warn!(soft, hard, "the limit of open descriptors cannot be raised");
    }
}
