//! The emulator's control socket (QEMU Machine Protocol).

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest wait for one answer.
const LIMIT: Duration = Duration::from_secs(20);

/// A connection that has left negotiation mode.
pub(super) struct Qmp {
    stream: BufReader<UnixStream>,
}

impl Qmp {
    /// Connects and negotiates.
    ///
    /// # Errors
    /// When nobody listens or the greeting is not QMP's.
    pub(super) fn connect(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path).with_context(|| path.display().to_string())?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut qmp = Self { stream: BufReader::new(stream) };
        if qmp.message()?.get("QMP").is_none() {
            bail!("{}: no QMP greeting", path.display());
        }
        qmp.call("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Runs one command; events that come between are passed over.
    ///
    /// # Errors
    /// The emulator's refusal, or no answer within the limit.
    pub(super) fn call(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let request = json!({ "execute": command, "arguments": arguments });
        let stream = self.stream.get_mut();
        writeln!(stream, "{request}").with_context(|| format!("QMP {command}"))?;
        loop {
            let mut answer = self.message().with_context(|| format!("QMP {command}"))?;
            if let Some(error) = answer.get("error") {
                bail!("QMP {command} {arguments}: {error}", arguments = request["arguments"]);
            }
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    fn message(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the emulator closed its control socket");
        }
        Ok(serde_json::from_str(&line)?)
    }
}
