//! The socket pair between the side that touches devices and the side that serves: events one way, requests the other.
//!
//! The sending side keeps the newest event a slot ([`Outbox`]) and never waits for the receiving one.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use storscope_collect::collector::EventSink;
use storscope_model::codec::{self, CodecError, HEADER};
use storscope_model::event::Event;
use storscope_model::outbox::Outbox;
use storscope_model::request::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// Requests that may wait to be written; a newer plan replaces an older one long before that.
const REQUESTS: usize = 16;

/// Events decoded and not yet applied; when full the socket fills, and the sender keeps only the newest of each slot.
const EVENTS: usize = 64;

/// Takes events from any thread and hands them to the thread that writes them.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    outbox: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    outbox: Outbox,
    closed: bool,
}

impl Sender {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Events that a newer one replaced before they were sent.
    pub(crate) fn superseded(&self) -> u64 {
        self.lock().outbox.superseded()
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn next(&self) -> Option<Event> {
        let mut waiting = self.lock();
        loop {
            if waiting.closed {
                return None;
            }
            if let Some(event) = waiting.outbox.take() {
                return Some(event);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl EventSink for Sender {
    fn put(&self, event: Event) {
        self.lock().outbox.put(event);
        self.changed.notify_one();
    }
}

/// Serves one end of a pair on two threads: one writes what `sender` is given, one reads requests.
/// Both end when the other end is closed.
///
/// # Errors
/// When the stream cannot be duplicated or a thread cannot be started.
pub(crate) fn attach(
    stream: UnixStream,
    name: &str,
    sender: Arc<Sender>,
    mut on_request: impl FnMut(Request) + Send + 'static,
) -> io::Result<()> {
    let mut writing = stream.try_clone()?;
    let writer = Arc::clone(&sender);
    thread::Builder::new().name(format!("{name}-events")).spawn(move || {
        while let Some(event) = writer.next() {
            match codec::encode(&event) {
                Ok(frame) => {
                    if writing.write_all(&frame).is_err() {
                        break;
                    }
                }
                Err(error) => tracing::error!(%error, slot = ?event.slot(), "event cannot be sent"),
            }
        }
    })?;
    let mut reading = stream;
    thread::Builder::new().name(format!("{name}-requests")).spawn(move || {
        while let Ok(payload) = read_frame(&mut reading) {
            match codec::decode(&payload) {
                Ok(request) => on_request(request),
                Err(error) => tracing::error!(%error, "request cannot be read"),
            }
        }
        sender.close();
    })?;
    Ok(())
}

fn read_frame(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let length = codec::payload_length(header).map_err(io::Error::other)?;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

/// The serving side of a pair.
#[derive(Debug)]
pub(crate) struct Link {
    /// Events, or why one could not be read.
    pub(crate) events: mpsc::Receiver<Result<Event, CodecError>>,
    requests: mpsc::Sender<Request>,
}

impl Link {
    /// Reads events and writes requests on the runtime of the caller.
    ///
    /// # Errors
    /// When the stream cannot be given to the runtime.
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (mut reading, mut writing) = tokio::net::UnixStream::from_std(stream)?.into_split();
        let (event_out, events) = mpsc::channel(EVENTS);
        let (requests, mut request_in) = mpsc::channel::<Request>(REQUESTS);
        tokio::spawn(async move {
            loop {
                let mut header = [0; HEADER];
                if reading.read_exact(&mut header).await.is_err() {
                    return;
                }
                let length = match codec::payload_length(header) {
                    Ok(length) => length,
                    // Without a length the stream cannot be followed any further.
                    Err(error) => {
                        let _ = event_out.send(Err(error)).await;
                        return;
                    }
                };
                let mut payload = vec![0; length];
                if reading.read_exact(&mut payload).await.is_err() {
                    return;
                }
                if event_out.send(codec::decode(&payload)).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(async move {
            while let Some(request) = request_in.recv().await {
                let Ok(frame) = codec::encode(&request) else { continue };
                if writing.write_all(&frame).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self { events, requests })
    }

    /// Sends `request` without waiting; false when the other end does not keep up or is gone.
    pub(crate) fn send(&self, request: Request) -> bool {
        self.requests.try_send(request).is_ok()
    }
}
