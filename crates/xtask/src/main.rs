//! Developer commands: `cargo xtask <command>`.
#![forbid(unsafe_code)]

mod bench;
mod docs;
mod expose;
mod fuzz;
mod lab;
mod licences;
mod packages;
mod steps;
mod tidy;
mod units;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Developer commands of storscope")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// All set-up and all checks: what has to pass before a change lands.
    Test,
    /// Write the generated documents, or with --check say which are not as generated.
    Docs {
        /// Compare instead of writing.
        #[arg(long)]
        check: bool,
    },
    /// Check licences and sources of the dependencies against deny.toml.
    Licences,
    /// Check the rules of the house: file lengths, unsafe code and kernel paths in their rooms only, nothing left behind.
    Tidy,
    /// Check the systemd units with systemd-analyze: valid, and no more exposed than allowed.
    Units,
    /// Run decoders and parsers under libFuzzer.
    Fuzz(fuzz::FuzzArgs),
    /// Start the agent and check what it exposes: promtool, an OpenMetrics parser.
    Expose,
    /// Measure the figures that the agent is held to, as ratios where there is a peer. Wants root and a quiet machine.
    Bench(bench::BenchArgs),
    /// Run the agent in an emulated machine against drives that misbehave on command.
    Lab(lab::LabArgs),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Test => steps::test(),
        Command::Docs { check } => docs::run(check),
        Command::Licences => licences::run(),
        Command::Tidy => tidy::run(),
        Command::Units => units::run().map(drop),
        Command::Fuzz(arguments) => fuzz::run(&arguments).map(drop),
        Command::Expose => expose::run(),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments).map(drop),
    }
}
