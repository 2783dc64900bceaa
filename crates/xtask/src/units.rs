//! The systemd units: that they are valid, how exposed the service is, and that each directive left open is told why.

use crate::steps::{Verdict, repository, target};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// Folder of the units, from the root of the repository.
const FOLDER: &str = "systemd";
const SERVICE: &str = "storscope.service";
const SOCKET: &str = "storscope.socket";

/// Highest exposure, of 10 (systemd-analyze(1), `security`).
const MOST_EXPOSED: f64 = 1.5;

/// How the service is started. The program need not be installed where it is only analysed.
const STARTED: &str = "\nExecStart=storscope ";
const STAND_IN: &str = "\nExecStart=/bin/true ";

/// A row of the analysis.
#[derive(Debug, Deserialize)]
struct Row {
    /// The directive, and where it has several rows, which of its values.
    name: String,
    /// Share of the exposure, `null` where the directive is as it should be.
    exposure: Option<String>,
}

/// Checks the units.
///
/// # Errors
/// What is wrong with them; in CI also that systemd-analyze(1) is missing.
pub(crate) fn run() -> Result<Verdict> {
    match analyze().arg("--version").stdout(Stdio::null()).status() {
        Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("CI").is_none() => {
            println!("units: DID NOT RUN: no systemd-analyze");
            return Ok(Verdict::NotRun);
        }
        status => ensure!(status.context("systemd-analyze")?.success(), "systemd-analyze does not run"),
    }
    let folder = target().join("units");
    let text = copy(&repository().join(FOLDER), &folder)?;
    verify(&folder)?;
    let exposure = exposure(&analysis(&folder, &[])?)?;
    println!("{SERVICE}: exposure {exposure} of 10");
    ensure!(exposure <= MOST_EXPOSED, "{SERVICE}: exposure {exposure}, at most {MOST_EXPOSED} is allowed");
    let rows: Vec<Row> = serde_json::from_str(&analysis(&folder, &["--json=short"])?).context("systemd-analyze")?;
    let silent = untold(&rows, &text);
    ensure!(silent.is_empty(), "{SERVICE} does not say why these are left open: {}", silent.join(", "));
    Ok(Verdict::Passed)
}

fn analyze() -> Command {
    let mut command = Command::new("systemd-analyze");
    command.env("LC_ALL", "C").env("SYSTEMD_LOG_LEVEL", "warning").arg("--no-pager").stdin(Stdio::null());
    command
}

/// Puts the units into `to`, with a program that is there; returns the service's text.
fn copy(from: &Path, to: &Path) -> Result<String> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    let read = |name: &str| {
        let path = from.join(name);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let service = read(SERVICE)?;
    ensure!(service.contains(STARTED), "{SERVICE} does not start storscope as expected");
    for (name, text) in [(SERVICE, service.replace(STARTED, STAND_IN)), (SOCKET, read(SOCKET)?)] {
        let path = to.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(service)
}

/// What is said about other units of this machine is not the agent's business.
fn verify(folder: &Path) -> Result<()> {
    let units = [SERVICE, SOCKET].map(|name| folder.join(name));
    let output = analyze().args(["verify", "--recursive-errors=no"]).args(units).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("storscope")).collect();
    ensure!(ours.is_empty() && output.status.success(), "systemd-analyze verify: {}\n{said}", output.status);
    Ok(())
}

fn analysis(folder: &Path, options: &[&str]) -> Result<String> {
    let mut command = analyze();
    command.args(["security", "--offline=true"]).args(options).arg(folder.join(SERVICE));
    let output = command.output()?;
    if !output.status.success() {
        bail!("systemd-analyze security: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The figure in the last line of the analysis.
fn exposure(analysis: &str) -> Result<f64> {
    let said = analysis.split_once("Overall exposure level for ").and_then(|(_, rest)| rest.split_once(": "));
    let figure = said.and_then(|(_, rest)| rest.split_whitespace().next());
    let figure = figure.with_context(|| format!("systemd-analyze names no exposure:\n{analysis}"))?;
    figure.parse().with_context(|| figure.to_owned())
}

/// Directives that add to the exposure and of which `text` says nothing.
fn untold<'a>(rows: &'a [Row], text: &str) -> Vec<&'a str> {
    let open = rows.iter().filter(|row| row.exposure.is_some()).map(|row| row.name.as_str());
    open.filter(|name| {
        let directive = name.split_once('=').map_or(*name, |(directive, _)| directive);
        !text.contains(&format!("{directive}="))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_that_of_the_last_line() {
        let text =
            "  NAME  EXPOSURE\n- PrivateUsers=  0.2\n\n-> Overall exposure level for storscope.service: 1.3 OK :-)\n";
        assert!((exposure(text).unwrap() - 1.3).abs() < 1e-9);
        assert!(exposure("nothing").is_err());
    }

    #[test]
    fn an_open_directive_is_to_be_mentioned() {
        let row =
            |name: &str, exposure: Option<&str>| Row { name: name.to_owned(), exposure: exposure.map(str::to_owned) };
        let rows = [
            row("PrivateUsers=", Some("0.2")),
            row("RestrictAddressFamilies=~AF_UNIX", Some("0.1")),
            row("ProtectClock=", None),
            row("ProtectHostname=", Some("0.1")),
        ];
        let text = "# Not PrivateUsers=: reason.\n# Reason.\nRestrictAddressFamilies=AF_UNIX\n";
        assert_eq!(untold(&rows, text), ["ProtectHostname="]);
    }
}
