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

/// What is wrong with a configuration that was not taken: a line a mistake, whatever characters the file holds.
pub(super) fn mistakes(error: &anyhow::Error) -> Vec<String> {
    let lines = match error.downcast_ref::<Mistakes>() {
        Some(Mistakes { file, all }) => {
            let alone = |mistake: &Mistake| Mistakes { file: file.clone(), all: vec![mistake.clone()] }.to_string();
            all.iter().map(alone).collect()
        }
        None => vec![format!("{error:#}")],
    };
    lines.iter().map(|line| in_one_line(line)).collect()
}

fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
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
    keys
}

/// Whether a prober that runs with `old` has to make way for one with `new`.
pub(super) fn needs_new_prober(old: &Config, new: &Config) -> bool {
    let fixed = |config: &Config| {
        let probe = &config.probe;
        (probe.engine, probe.deadline, probe.max_share.to_bits(), probe.reads_per_second)
    };
    fixed(old) != fixed(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_mistake_is_a_line_whatever_the_file_holds() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "stat_dir = \"/x\"\n[devices]\n\"a\\nb\\u001b[2J\" = 1\n").unwrap();
        let error = anyhow::Error::from(load::file(file.path()).unwrap_err());
        let told = mistakes(&error);
        let named = |line: usize, what: &str| format!("{}:{line}: unknown key {what}", file.path().display());
        assert_eq!(told, [named(1, "stat_dir; did you mean state_dir?"), named(3, "devices.a\\nb\\u{1b}[2J")]);
    }

    #[test]
    fn another_error_is_one_line_with_its_causes() {
        let error = anyhow::Error::from(load::file(Path::new("no-such-file.toml")).unwrap_err());
        assert!(mistakes(&error)[0].starts_with("no-such-file.toml: "));
        let other = anyhow::anyhow!("unclosed\ngroup").context("selection of devices");
        assert_eq!(mistakes(&other), ["selection of devices: unclosed\\ngroup"]);
    }
}
