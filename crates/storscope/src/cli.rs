//! The command line.

use crate::config::{Config, Pattern, value};
use anyhow::bail;
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
    /// Directory in which findings are remembered over restarts.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
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
    /// Add block devices to the default choice, by a regular expression for the whole kernel name, such as loop.*
    #[arg(long, value_name = "RE", value_parser = value::parse_pattern)]
    pub(crate) include: Option<Pattern>,
    /// Leave block devices out; wins over the other two.
    #[arg(long, value_name = "RE", value_parser = value::parse_pattern)]
    pub(crate) exclude: Option<Pattern>,
    /// Take only these block devices.
    #[arg(long, value_name = "RE", value_parser = value::parse_pattern, conflicts_with = "include")]
    pub(crate) only: Option<Pattern>,
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
    /// The host that is meant.
    pub(crate) fn host(&self) -> Root {
        match (&self.root, &self.host_root) {
            (Some(dir), _) => Root::captured(dir),
            (None, Some(prefix)) => Root::host(prefix),
            (None, None) => Root::live(),
        }
    }

    /// The host that is meant, if there is one.
    ///
    /// # Errors
    /// A directory that holds neither a captured nor a mounted host.
    pub(crate) fn checked_host(&self) -> anyhow::Result<Root> {
        let root = self.host();
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

    /// Puts what was given on the command line over what the configuration says.
    pub(crate) fn override_config(&self, config: &mut Config) {
        if self.only.is_some() {
            config.devices.only.clone_from(&self.only);
            config.devices.include = None;
        }
        if self.include.is_some() {
            config.devices.include.clone_from(&self.include);
            config.devices.only = None;
        }
        if self.exclude.is_some() {
            config.devices.exclude.clone_from(&self.exclude);
        }
    }
}

impl ServeArgs {
    /// Puts what was given on the command line over what the configuration says.
    pub(crate) fn override_config(&self, config: &mut Config) {
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
        }
        if let Some(directory) = &self.state_dir {
            // Without a working directory it stays as it was given, and is found missing where it is used.
            config.state_dir = Some(std::path::absolute(directory).unwrap_or_else(|_| directory.clone()));
        }
        self.select.override_config(config);
    }
}
