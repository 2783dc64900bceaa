//! Debian packages that the checks need.

use crate::steps::run;
use anyhow::bail;
use std::path::Path;
use std::process::{Command, Stdio};

/// A package, and a file that is there once it is installed.
const NEEDED: [(&str, &str); 8] = [
    ("prometheus", "/usr/bin/promtool"),
    ("python3-prometheus-client", "/usr/lib/python3/dist-packages/prometheus_client/openmetrics/parser.py"),
    ("fio", "/usr/bin/fio"),
    // Builds libFuzzer.
    ("g++", "/usr/bin/g++"),
    ("sysstat", "/usr/bin/iostat"),
    ("xz-utils", "/usr/bin/xz"),
    ("systemd", "/usr/bin/systemd-analyze"),
    // The unit names kill(1).
    ("procps", "/usr/bin/kill"),
];

/// Installs what is missing; without the right to do so, names it.
///
/// # Errors
/// When something is missing and cannot be installed.
pub(crate) fn install() -> anyhow::Result<()> {
    let missing = || -> Vec<&str> {
        NEEDED.iter().filter(|(_, file)| !Path::new(file).exists()).map(|(package, _)| *package).collect()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !is_root()? {
        bail!("missing Debian packages; as root: {by_hand}");
    }
    println!("installing {}", packages.join(" "));
    run(quiet("apt-get").args(["update", "-qq"]))?;
    run(quiet("apt-get").args(["install", "-y", "-qq", "--no-install-recommends"]).args(&packages))?;
    let still = missing();
    if !still.is_empty() {
        bail!("installed, but not found afterwards: {}", still.join(" "));
    }
    Ok(())
}

fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn is_root() -> anyhow::Result<bool> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(output.stdout.trim_ascii() == b"0")
}
