//! Criterion's benchmarks, run within a limit, their medians read from what they print.

use anyhow::{Context, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// Longest run of one benchmark program, in seconds.
const LIMIT: &str = "300";

/// Names of benchmarks and nanoseconds an iteration.
pub(super) type Times = Vec<(String, f64)>;

/// Runs one program of benchmarks.
///
/// # Errors
/// When it fails or is not done in time.
pub(super) fn run(program: &Path) -> anyhow::Result<Times> {
    let options = ["--output-format", "bencher", "--warm-up-time", "1", "--measurement-time", "5"];
    let times = parse(&output(program, &options)?);
    if times.is_empty() {
        bail!("{} printed no times", program.display());
    }
    Ok(times)
}

/// What a program of benchmarks prints when run with `options`.
///
/// # Errors
/// As [`run`].
pub(super) fn output(program: &Path, options: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", LIMIT]).arg(program).arg("--bench").args(options);
    let done = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot start timeout")?;
    if !done.status.success() {
        bail!("{} ended with {}", program.display(), done.status);
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// Lines as `test NAME ... bench:  1234 ns/iter (+/- 56)`.
fn parse(text: &str) -> Times {
    let line = |line: &str| {
        let (name, rest) = line.strip_prefix("test ")?.split_once(" ... bench:")?;
        let time = rest.trim().split_once(" ns/iter")?.0.replace(',', "");
        Some((name.to_owned(), time.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// The time of the benchmark whose name ends in `end`.
///
/// # Errors
/// When there is none.
pub(super) fn time(times: &Times, end: &str) -> anyhow::Result<f64> {
    let found = times.iter().find(|(name, _)| name.ends_with(end));
    found.map(|(_, time)| *time).with_context(|| format!("no benchmark named …{end} in {times:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_numbers_with_commas_are_read() {
        let text =
            "Gnuplot not found\ntest 9 devices/by hand ... bench:   1,234,567 ns/iter (+/- 45)\n\ntest x ... ok\n";
        let times = parse(text);
        assert_eq!(times, [("9 devices/by hand".to_owned(), 1_234_567.0)]);
        assert!(time(&times, "by hand").is_ok_and(|time| time > 1e6));
        assert!(time(&times, "tick/24").is_err());
    }
}
