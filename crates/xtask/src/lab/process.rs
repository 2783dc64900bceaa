//! Running a program to its end within a limit, its output in a log file.

use anyhow::{Context, Result, bail};
use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two looks at a child.
const POLL: Duration = Duration::from_millis(20);
/// Lines of a log that an error message carries.
const LOG_TAIL_LINES: usize = 12;

/// Runs `command`, appending its output to `log`.
///
/// # Errors
/// When it cannot be started, fails, or is not done within `limit` (it is then killed); the end of the log is in the message.
pub(super) fn run(command: &mut Command, limit: Duration, log: &Path) -> Result<()> {
    run_fed(command, Stdio::null(), limit, log)
}

/// As [`run`], with `input` as its standard input.
///
/// # Errors
/// As [`run`].
pub(super) fn run_fed(command: &mut Command, input: Stdio, limit: Duration, log: &Path) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = open_log(log)?;
    let mut child = command
        .stdin(input)
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("{name}: cannot be started"))?;
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            if status.success() {
                return Ok(());
            }
            bail!("{name}: {status}\n{}", tail(log));
        }
        if Instant::now() > deadline {
            end(&mut child);
            bail!("{name}: not done within {limit:?}\n{}", tail(log));
        }
        thread::sleep(POLL);
    }
}

/// Kills a child and collects it.
pub(super) fn end(child: &mut Child) {
    // Either may fail only because it has ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// Opens a log for appending.
///
/// # Errors
/// With the path, when it cannot.
pub(super) fn open_log(log: &Path) -> Result<File> {
    OpenOptions::new().create(true).append(true).open(log).with_context(|| log.display().to_string())
}

/// The last lines of a log, empty where there is none.
pub(super) fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}
