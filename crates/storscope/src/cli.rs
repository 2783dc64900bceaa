//! The command line.

use crate::config::{Config, Devices, Pattern, value};
use crate::parts::order::Host;
use anyhow::{anyhow, bail};
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use storscope_collect::root::Root;

/// Host storage-health agent: which disk is sick, since when, why, what it carries, what to do.
#[derive(Debug, Parser)]
#[command(version = crate::version::LONG, about, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

/// A value, or none in spite of the configuration: an empty one. (clap gives `Option<Option<_>>` another meaning.)
type OrNone<T> = Option<T>;

/// What to do; `serve` when nothing is said.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sample, probe and serve /metrics and /status (the default).
    Serve(ServeArgs),
    /// Print the status of this host, a running agent or a captured host. Exit status: 0 healthy, 1 warning, 2 critical, 3 unknown.
    Status(StatusArgs),
    /// Write what the agent reads of this host into a directory, identities replaced by pseudonyms.
    Capture(CaptureArgs),
    /// Check a configuration file; every mistake is named with its line.
    CheckConfig {
        /// The file.
        file: PathBuf,
    },
    /// Say what this host denies or lacks, device by device, and the command that mends it.
    Doctor(SelectArgs),
    /// Print a generated document: `config`, `storscope.toml`, `metrics` or `status-schema`.
    #[command(hide = true)]
    Document {
        /// Which one.
        name: String,
    },
}

/// Options of `serve`.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; may be repeated [default: 127.0.0.1:10210].
    #[arg(long, value_name = "ADDR", value_parser = value::parse_address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Configuration file; read again on SIGHUP.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Directory in which findings are remembered over restarts, by its absolute path; empty for none.
    #[arg(long, value_name = "DIR", value_parser = value::parse_directory)]
    pub(crate) state_dir: Option<OrNone<PathBuf>>,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Which host, and which of its devices.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct SelectArgs {
    /// Look at a captured host instead of this one: no drive command, no probe.
    #[arg(long, value_name = "DIR", conflicts_with = "host_root")]
    pub(crate) root: Option<PathBuf>,
    /// Look at a live host whose /proc, /sys and /dev are mounted under PREFIX, as in a container.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) host_root: Option<PathBuf>,
    /// Add block devices to the default choice, by a regular expression for the whole kernel name, such as 'loop[0-9]+'; empty for none.
    #[arg(long, value_name = "RE", value_parser = value::parse_pattern)]
    pub(crate) include: Option<OrNone<Pattern>>,
    /// Leave block devices out; wins over the other two.
    #[arg(long, value_name = "RE", value_parser = value::parse_pattern)]
    pub(crate) exclude: Option<OrNone<Pattern>>,
    /// Take only these block devices.
    #[arg(long, value_name = "RE", value_parser = value::parse_pattern, conflicts_with = "include")]
    pub(crate) only: Option<OrNone<Pattern>>,
}

/// Options of `status`.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct StatusArgs {
    /// Ask a running agent, for example http://127.0.0.1:10210.
    #[arg(long, value_name = "URL", conflicts_with_all = ["root", "host_root", "include", "exclude", "only"])]
    pub(crate) url: Option<String>,
    /// JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// One device only, by kernel name.
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// Every row, however many.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Options of `capture`.
#[derive(Debug, Args, Clone)]
pub(crate) struct CaptureArgs {
    /// Directory to write into; it must not exist or be empty.
    pub(crate) dir: PathBuf,
    /// Keep serial numbers, world-wide ids, host and volume names as they are.
    #[arg(long)]
    pub(crate) keep_serials: bool,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

impl SelectArgs {
    /// The host that is meant, if there is one.
    ///
    /// # Errors
    /// A directory that holds neither a captured nor a mounted host.
    pub(crate) fn checked_host(&self) -> anyhow::Result<Root> {
        let root = Host::of(self).root();
        let there = |path: &Path| path.is_dir();
        if let Some(dir) = &self.root
            && !there(&root.sys)
            && !there(&root.proc)
            && !root.drives.as_deref().is_some_and(there)
        {
            bail!("{}: no captured host: neither sys, proc nor drives is in it", dir.display());
        }
        if let Some(prefix) = &self.host_root
            && !(there(&root.sys) && there(&root.proc))
        {
            bail!("{}: no host is mounted there: proc and sys are not both in it", prefix.display());
        }
        Ok(root)
    }

    /// Puts what was given on the command line over what the configuration says. Of `include` and `only`, which exclude
    /// each other, the one that is given here holds.
    pub(crate) fn override_devices(&self, devices: &mut Devices) {
        if let Some(only) = &self.only {
            devices.only.clone_from(only);
            if only.is_some() {
                devices.include = None;
            }
        }
        if let Some(include) = &self.include {
            devices.include.clone_from(include);
            if include.is_some() {
                devices.only = None;
            }
        }
        if let Some(exclude) = &self.exclude {
            devices.exclude.clone_from(exclude);
        }
    }

    /// Which devices are meant without a configuration file.
    pub(crate) fn devices(&self) -> Devices {
        let mut devices = Devices::default();
        self.override_devices(&mut devices);
        devices
    }
}

impl ServeArgs {
    /// Puts what was given on the command line over what the configuration says.
    ///
    /// # Errors
    /// More addresses than may be listened on.
    pub(crate) fn override_config(&self, config: &mut Config) -> anyhow::Result<()> {
        if !self.listen.is_empty() {
            value::check_count(self.listen.len()).map_err(|what| anyhow!("--listen: {what}"))?;
            config.listen.clone_from(&self.listen);
        }
        if let Some(directory) = &self.state_dir {
            config.state_dir.clone_from(directory);
        }
        self.select.override_devices(&mut config.devices);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    fn given(line: &[&str]) -> Result<Config, String> {
        let cli = Cli::try_parse_from([&["storscope"], line].concat()).map_err(|error| error.to_string())?;
        let mut config = Config::default();
        cli.serve.override_config(&mut config).map_err(|error| error.to_string())?;
        Ok(config)
    }

    fn written(line: &str) -> Result<Config, String> {
        load::text(line).map_err(|mistakes| mistakes[0].what.clone())
    }

    #[test]
    fn an_option_takes_what_its_key_takes() {
        let pairs = [
            ("--state-dir", "state_dir = ", ["", "/var/lib/x", "rel", "./rel", "~/x"].as_slice()),
            ("--include", "devices.include = ", &["", "loop[0-9]+", "(", "a)|(b", "(?x)a # b"]),
            ("--exclude", "devices.exclude = ", &["", "loop.*", "[z-a]"]),
            ("--only", "devices.only = ", &["", "nvme.*", "*"]),
        ];
        for (option, key, values) in pairs {
            for value in values {
                let by_option = given(&[option, value]);
                let by_key = written(&format!("{key}{value:?}"));
                match (&by_option, &by_key) {
                    (Ok(one), Ok(other)) => assert_eq!(one, other, "{option} {value:?}"),
                    (Err(one), Err(other)) => {
                        let what = other.split_once(": ").unwrap().1;
                        assert!(one.contains(option) && one.contains(what), "{one} / {what}");
                    }
                    _ => panic!("{option} {value:?}: {by_option:?} / {by_key:?}"),
                }
            }
        }
    }

    #[test]
    fn a_relative_state_directory_is_refused_with_the_rule() {
        let why = given(&["--state-dir", "rel"]).unwrap_err();
        assert!(why.contains("--state-dir") && why.contains("expected an absolute path"), "{why}");
    }

    #[test]
    fn addresses_have_one_rule_and_one_limit() {
        for address in [":10210", "localhost:1", "[::1]:9", "127.0.0.1", "host:1", ""] {
            let by_key = written(&format!("listen = [{address:?}]"));
            assert_eq!(given(&["--listen", address]).ok(), by_key.ok(), "{address}");
        }
        let many = |count: usize| vec!["--listen=127.0.0.1:0"; count];
        assert!(given(&many(16)).is_ok());
        let why = given(&many(17)).unwrap_err();
        assert!(why.starts_with("--listen: expected 1 to 16 addresses"), "{why}");
    }

    #[test]
    fn an_empty_option_takes_back_what_the_file_says() {
        let mut config = load::text("state_dir = \"/x\"\n[devices]\nonly = \"sd.\"\nexclude = \"sdb\"\n").unwrap();
        let cli = Cli::try_parse_from(["storscope", "--only=", "--exclude", "", "--state-dir="]).unwrap();
        cli.serve.override_config(&mut config).unwrap();
        assert_eq!(config, Config::default());
    }
}
