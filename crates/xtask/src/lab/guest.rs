//! The running guest as seen over its two forwarded ports: a shell and the agent's HTTP.

use anyhow::{Context, Result, anyhow, bail};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Limit of a command in the guest unless its caller names another.
pub(crate) const COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// Limit of one HTTP request.
const HTTP_LIMIT: Duration = Duration::from_secs(10);
/// Largest answer of a shell or of the agent.
const LARGEST_ANSWER: usize = 32 << 20;
/// Pause between two tries of [`eventually`].
const RETRY: Duration = Duration::from_millis(500);
/// What the shell prints after a command, before its exit status.
const STATUS_MARK: &str = "\nLAB-STATUS ";
/// Digits of an exit status.
const MOST_STATUS_DIGITS: usize = 3;

/// The two ports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guest {
    /// Of the shell, on this host's loopback.
    pub(crate) shell_port: u16,
    /// Of the agent, on this host's loopback.
    pub(crate) http_port: u16,
}

/// An answer of the agent.
#[derive(Debug)]
pub(crate) struct Response {
    /// Status code.
    pub(crate) status: u16,
    /// Status line and header lines.
    pub(crate) head: String,
    /// Body.
    pub(crate) body: String,
}

impl Guest {
    /// Runs a script in a shell of its own and returns what it printed, both streams, without trailing blanks.
    ///
    /// # Errors
    /// When its exit status is not 0 or it is not done within [`COMMAND_LIMIT`]; what it printed is in the message.
    pub(crate) fn sh(&self, script: &str) -> Result<String> {
        self.sh_within(script, COMMAND_LIMIT)
    }

    /// As [`Guest::sh`], with a limit.
    ///
    /// # Errors
    /// As [`Guest::sh`].
    pub(crate) fn sh_within(&self, script: &str, limit: Duration) -> Result<String> {
        let quoted = script.replace('\'', r"'\''");
        let line = format!("sh -c '{quoted}' </dev/null; printf '\\nLAB-STATUS %d\\n' $?; exit\n");
        // The mark ends the answer, not the closing of the connection, which the emulator's network may delay.
        let ended = |answer: &[u8]| {
            let tail = &answer[answer.len().saturating_sub(STATUS_MARK.len() + MOST_STATUS_DIGITS + 1)..];
            tail.ends_with(b"\n") && tail.windows(STATUS_MARK.len()).any(|part| part == STATUS_MARK.as_bytes())
        };
        let answer =
            exchange(self.shell_port, line.as_bytes(), limit, ended).with_context(|| format!("guest: {script}"))?;
        let text = String::from_utf8_lossy(&answer);
        let (output, status) =
            text.rsplit_once(STATUS_MARK).ok_or_else(|| anyhow!("guest: {script}: shell ended: {text}"))?;
        match status.trim() {
            "0" => Ok(output.trim_end().to_owned()),
            status => bail!("guest: {script}: exit status {status}: {}", output.trim_end()),
        }
    }

    /// Starts a script that outlives the call; its output goes to `log` in the guest.
    ///
    /// # Errors
    /// When the shell does not answer.
    pub(crate) fn background(&self, script: &str, log: &str) -> Result<()> {
        let quoted = script.replace('\'', r"'\''");
        self.sh(&format!("setsid sh -c '{quoted}' >{log} 2>&1 </dev/null &")).map(drop)
    }

    /// Gets `path` from the agent, whatever the status of the answer.
    ///
    /// # Errors
    /// When there is no answer within the limit or it is not HTTP.
    pub(crate) fn get(&self, path: &str) -> Result<Response> {
        self.request("GET", path, "")
    }

    /// Gets `path`, with further header lines (each ended by CR LF).
    ///
    /// # Errors
    /// As [`Guest::get`].
    pub(crate) fn request(&self, method: &str, path: &str, headers: &str) -> Result<Response> {
        // 1.0, so that the end of the body is the end of the connection.
        let request = format!("{method} {path} HTTP/1.0\r\nHost: lab\r\n{headers}\r\n");
        let answer = exchange(self.http_port, request.as_bytes(), HTTP_LIMIT, |_| false)
            .with_context(|| format!("{method} {path}"))?;
        let text = String::from_utf8_lossy(&answer);
        let (head, body) =
            text.split_once("\r\n\r\n").ok_or_else(|| anyhow!("{method} {path}: no answer: {text:?}"))?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| anyhow!("{method} {path}: not HTTP: {head:?}"))?;
        Ok(Response { status, head: head.to_owned(), body: body.to_owned() })
    }

    /// The body at `path`.
    ///
    /// # Errors
    /// As [`Guest::get`], and when the status is not 200.
    pub(crate) fn body(&self, path: &str) -> Result<String> {
        let response = self.get(path)?;
        if response.status != 200 {
            bail!("GET {path}: {}\n{}", response.head, response.body);
        }
        Ok(response.body)
    }
}

/// Sends `request` and reads until `ended` says that the answer is whole or the other side closes.
fn exchange(port: u16, request: &[u8], limit: Duration, ended: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>> {
    let deadline = Instant::now() + limit;
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), limit)?;
    stream.set_write_timeout(Some(limit))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            bail!("not done within {limit:?}; so far: {}", String::from_utf8_lossy(&answer));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(answer),
            Ok(count) => {
                answer.extend_from_slice(&chunk[..count]);
                if ended(&answer) {
                    return Ok(answer);
                }
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
        if answer.len() > LARGEST_ANSWER {
            bail!("an answer of more than {LARGEST_ANSWER} bytes");
        }
    }
}

/// Tries `check` until it holds, for at most `within`.
///
/// # Errors
/// The last failure of `check`, once the time is up.
pub(crate) fn eventually<T>(within: Duration, mut check: impl FnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + within;
    loop {
        match check() {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() > deadline => {
                return Err(error.context(format!("still so after {within:?}")));
            }
            Err(_) => thread::sleep(RETRY),
        }
    }
}
