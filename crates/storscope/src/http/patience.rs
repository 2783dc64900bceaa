//! A stream whose writes give up: a client that does not take its answer must not hold a connection for ever. It also notes
//! when something was read, and gives refusals their words.

use super::head::Heard;
use super::refusal;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// `inner`, with a limit on how long one write may stay pending.
pub(super) struct Patience<S> {
    inner: S,
    limit: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    heard: Heard,
    worded: Option<Worded>,
}

/// A refusal that is being written in place of another.
struct Worded {
    bytes: Vec<u8>,
    done: usize,
    /// Length of what it stands for.
    instead_of: usize,
}

impl<S> Patience<S> {
    /// Gives up a write that makes no progress for `limit`; `heard` is told of every byte that is read.
    pub(super) const fn new(inner: S, limit: Duration, heard: Heard) -> Self {
        Self { inner, limit, waiting: None, heard, worded: None }
    }

    fn judge<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.heard.writing(result.is_pending());
        if result.is_ready() {
            self.waiting = None;
            return result;
        }
        let limit = self.limit;
        let timer = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + limit)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Worded {
    /// Writes the rest; ready when nothing is left, with the length that the caller knows.
    fn poll<S: AsyncWrite>(&mut self, mut inner: Pin<&mut S>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while let Some(rest) = self.bytes.get(self.done..).filter(|rest| !rest.is_empty()) {
            match inner.as_mut().poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => self.done += written,
                other => return other,
            }
        }
        Poll::Ready(Ok(self.instead_of))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patience<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.heard.read();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patience<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.worded.is_none() {
            self.worded = refusal::worded(bytes).map(|whole| Worded { bytes: whole, done: 0, instead_of: bytes.len() });
        }
        let this = &mut *self;
        let result = match &mut this.worded {
            Some(worded) => worded.poll(Pin::new(&mut this.inner), context),
            None => Pin::new(&mut this.inner).poll_write(context, bytes),
        };
        if result.is_ready() {
            this.worded = None;
        }
        this.judge(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_flush(context);
        self.judge(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.inner).poll_shutdown(context);
        self.judge(context, result)
    }
}
