//! A client with one connection that is kept alive, the same for every server that is timed.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(20);
/// Longest body that is taken.
const MAX_BODY: usize = 256 << 20;

/// A connection.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Client {
    /// Connects to `address`.
    ///
    /// # Errors
    /// When nobody answers.
    pub(super) fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| address.to_owned())?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::with_capacity(64 << 10, stream), body: Vec::new() })
    }

    /// Asks for /metrics; the time from the first byte sent to the last one received.
    ///
    /// # Errors
    /// When the answer is not 200 or not HTTP/1.1.
    pub(super) fn scrape(&mut self, gzip: bool) -> anyhow::Result<Duration> {
        let encoding = if gzip { "Accept-Encoding: gzip\r\n" } else { "" };
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: bench\r\nAccept: text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n{encoding}\r\n"
        );
        let begun = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read_answer()?;
        Ok(begun.elapsed())
    }

    /// The body of the last answer, as it was sent.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    fn read_answer(&mut self) -> anyhow::Result<()> {
        let status = self.line()?;
        if !status.starts_with("HTTP/1.1 200") {
            bail!("answered {status}");
        }
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse::<usize>()?);
            }
        }
        self.body.clear();
        let Some(length) = length else { return self.read_chunks() };
        self.take(length)
    }

    /// RFC 9112, section 7.1.
    fn read_chunks(&mut self) -> anyhow::Result<()> {
        loop {
            let line = self.line()?;
            let length = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)?;
            self.take(length)?;
            self.line()?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn take(&mut self, length: usize) -> anyhow::Result<()> {
        self.body.len().checked_add(length).filter(|end| *end <= MAX_BODY).context("a body without end")?;
        // Filling the buffer first would cost this client, which is not optimised, more than the answer costs its server.
        let taken = self.stream.by_ref().take(u64::try_from(length)?).read_to_end(&mut self.body)?;
        if taken < length {
            bail!("the connection was closed");
        }
        Ok(())
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the connection was closed");
        }
        Ok(line.trim_end().to_owned())
    }
}
