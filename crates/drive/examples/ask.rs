//! Asks one device, named on the command line, and prints what it says and what each question cost.
//!
//! `ask CONTROLLER [NSID…]` for a live NVMe controller, `ask DIRECTORY` for captured pages, `ask --rounds N CONTROLLER` to
//! ask everything N times and print the commands by outcome only, `ask --ata DEVICE` for the power mode of an ATA drive.

use std::collections::BTreeMap;
use std::env;
use std::fmt::{Debug, Display};
use std::path::Path;
use std::process::ExitCode;

use storscope_drive::{AdminChannel, AtaDevice, CommandError, Controller, Query, Refusals, Replay, Survey};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [flag, device] if flag == "--ata" => ata(Path::new(device)),
        [flag, count, device] if flag == "--rounds" => match count.parse() {
            Ok(count) => rounds(Path::new(device), count),
            Err(error) => {
                eprintln!("--rounds {count}: {error}");
                return ExitCode::from(2);
            }
        },
        [place, nsids @ ..] => nvme(Path::new(place), nsids),
        [] => {
            eprintln!("usage: ask CONTROLLER|DIRECTORY [NSID…] | ask --rounds N CONTROLLER | ask --ata DEVICE");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error} ({})", error.class().label());
            ExitCode::FAILURE
        }
    }
}

fn ata(device: &Path) -> Result<(), CommandError> {
    let (mode, report) = AtaDevice::open(device)?.power_mode();
    println!("{report:?}\n{:?}", mode?);
    Ok(())
}

/// Prints, a line an outcome of a command: how often, the outcome, the command.
fn rounds(device: &Path, count: u32) -> Result<(), CommandError> {
    let mut channel = Controller::open(device)?;
    let mut refusals = Refusals::default();
    let survey = Survey::take(&mut channel, &mut refusals)?;
    let mut reports = channel.take_reports();
    for _ in 0..count {
        let mut query = Query::new(&mut channel, &survey, &mut refusals);
        // What fails is in the reports.
        let _ = query.supported_pages();
        let _ = query.smart_health();
        let _ = query.error_log();
        let _ = query.firmware_slots();
        let _ = query.command_effects();
        let _ = query.self_test();
        let _ = query.ocp_smart();
        reports.extend(channel.take_reports());
    }
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    for report in reports {
        *outcomes.entry(format!("{} {}", report.outcome.label(), report.command)).or_default() += 1;
    }
    for (outcome, count) in outcomes {
        println!("{count} {outcome}");
    }
    Ok(())
}

fn nvme(place: &Path, nsids: &[String]) -> Result<(), CommandError> {
    let mut replay = Replay::new(place);
    let mut controller;
    let channel: &mut dyn AdminChannel = if place.is_dir() {
        &mut replay
    } else {
        controller = Controller::open(place)?;
        &mut controller
    };
    let mut refusals = Refusals::default();
    let survey = Survey::take(channel, &mut refusals)?;
    println!("{:#?}", survey.identify);
    let mut query = Query::new(channel, &survey, &mut refusals);
    print(query.supported_pages().map(|_| "list read"));
    print(query.smart_health());
    print(query.error_log());
    print(query.firmware_slots());
    print(query.command_effects());
    print(query.self_test());
    print(query.ocp_smart());
    for nsid in nsids.iter().filter_map(|nsid| nsid.parse().ok()) {
        print(query.identify_namespace(nsid));
    }
    for report in channel.take_reports() {
        println!("{}: {:?} in {:?}", report.command, report.outcome, report.took);
    }
    for (drive, command, refusal) in refusals.iter() {
        println!("{} {}: {command}: {refusal}", drive.model, drive.firmware);
    }
    Ok(())
}

fn print<T: Debug, E: Display>(result: Result<T, E>) {
    match result {
        Ok(value) => println!("{value:#?}"),
        Err(error) => println!("{error}"),
    }
}
