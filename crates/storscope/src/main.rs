//! storscope: host storage-health agent.
#![forbid(unsafe_code)]

mod capture;
mod cli;
mod config;
mod core;
mod deadline;
mod doctor;
mod fetch;
mod http;
mod limits;
mod logging;
mod narrow;
mod prober;
mod serve;
mod settings;
mod status;
mod version;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

/// Exit status of `status` when nothing could be said, as monitoring plug-ins have it.
const UNKNOWN: u8 = 3;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let unknown = matches!(cli.command, Some(Command::Status(_)));
    run(cli).unwrap_or_else(|error| {
        eprintln!("storscope: {error:#}");
        if unknown { ExitCode::from(UNKNOWN) } else { ExitCode::FAILURE }
    })
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        None => serve::run(&cli.serve).map(|()| ExitCode::SUCCESS),
        Some(Command::Serve(args)) => serve::run(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Status(args)) => status::run(&args),
        Some(Command::CheckConfig { file }) => {
            config::load::file(&file)?;
            println!("{}: ok", file.display());
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Capture(args)) => capture::run(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Document { name }) => {
            print!("{}", document(&name)?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn document(name: &str) -> anyhow::Result<String> {
    Ok(match name {
        "config" => config::docs::reference(),
        "storscope.toml" => config::docs::shipped(),
        "metrics" => storscope_export::docs::metrics_markdown(),
        "status-schema" => storscope_export::schema::status_schema(),
        other => anyhow::bail!("no document {other}"),
    })
}
