//! The configuration in use: the file, with the command line over it.

use crate::cli::ServeArgs;
use crate::config::load::{Mistake, Mistakes};
use crate::config::{Config, load};

/// The configuration that `args` ask for.
///
/// # Errors
/// Every mistake of the file, with its line, or of the command line.
pub(super) fn read(args: &ServeArgs) -> anyhow::Result<Config> {
    let mut config = match &args.config {
        Some(file) => load::file(file)?,
        None => Config::default(),
    };
    args.override_config(&mut config)?;
    Ok(config)
}

/// What is wrong with a configuration that was not taken: a line a mistake.
pub(super) fn mistakes(error: &anyhow::Error) -> Vec<String> {
    match error.downcast_ref::<Mistakes>() {
        Some(Mistakes { file, all }) => {
            let alone = |mistake: &Mistake| Mistakes { file: file.clone(), all: vec![mistake.clone()] }.to_string();
            all.iter().map(alone).collect()
        }
        None => vec![format!("{error:#}")],
    }
}

/// Keys whose change takes effect at the next start only.
pub(super) fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let mut keys = Vec::new();
    if old.listen != new.listen {
        keys.push("listen");
    }
    if old.state_dir != new.state_dir {
        keys.push("state_dir");
    }
    if old.http != new.http {
        keys.push("http");
    }
    if old.probe.engine != new.probe.engine
        || old.probe.deadline != new.probe.deadline
        || old.probe.max_share.to_bits() != new.probe.max_share.to_bits()
    {
        keys.push("probe.engine, probe.deadline, probe.max_share");
    }
    keys
}
