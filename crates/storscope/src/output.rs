//! Writing to the terminal or a pipe: a full or closed one is an error to report, never a panic.

use std::io::{self, Write};

/// Writes `text` to standard output. A reader such as head(1) that has seen enough is no failure.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| anyhow::anyhow!("standard output: {error}")),
    }
}

/// Writes one line to standard error, if that can be had.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "storscope: {text}");
}
