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
mod output;
mod parts;
mod prober;
mod serve;
mod settings;
mod status;
mod supervise;
mod version;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

/// Exit status of `status` when nothing could be said, as monitoring plug-ins have it.
const UNKNOWN: u8 = 3;

/// Exit status of a command line that cannot be understood, as clap has it.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    if let Some(part) = parts::Part::of_this_process() {
        return match parts::run(part) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                output::complain(&format!("{}: {error:#}", part.as_str()));
                ExitCode::FAILURE
            }
        };
    }
    let unknown = std::env::args_os().nth(1).is_some_and(|command| command == "status");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return match (error.use_stderr(), unknown) {
                (false, _) => ExitCode::SUCCESS,
                (true, true) => ExitCode::from(UNKNOWN),
                (true, false) => ExitCode::from(USAGE),
            };
        }
    };
    run(cli).unwrap_or_else(|error| {
        output::complain(&format!("{error:#}"));
        if unknown { ExitCode::from(UNKNOWN) } else { ExitCode::FAILURE }
    })
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        None => supervise::run(&cli.serve).map(|()| ExitCode::SUCCESS),
        Some(Command::Serve(args)) => supervise::run(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Status(args)) => status::run(&args),
        Some(Command::CheckConfig { file }) => {
            config::load::file(&file)?;
            output::print(&format!("{}: ok\n", file.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Capture(args)) => capture::run(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Document { name }) => {
            output::print(&document(&name)?)?;
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
