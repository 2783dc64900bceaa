//! What this build is.

/// Version of the package.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Git revision, where the builder gave one in `STORSCOPE_REVISION`.
pub(crate) const REVISION: Option<&str> = option_env!("STORSCOPE_REVISION");

/// What `--version` prints after the name.
pub(crate) const LONG: &str = VERSION;
