//! The server's end of the pair that leads to a part: events one way, requests the other.
//!
//! What arrives is not trusted: a frame is checked before it is taken in, and each part may tell only what is its own.

use crate::parts::Part;
use std::io;
use std::os::unix::net::UnixStream;
use storscope_model::codec::{self, CodecError, HEADER};
use storscope_model::event::Event;
use storscope_model::identity::Subject;
use storscope_model::request::Request;
use storscope_model::sample::Source;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Requests that may wait to be written; a newer plan replaces an older one long before that.
const REQUESTS: usize = 16;

/// Events decoded and not yet applied; when full the socket fills, and the part keeps only the newest of each slot.
const EVENTS: usize = 64;

/// Why an event is not taken in.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Untaken {
    /// It cannot be read.
    #[error(transparent)]
    Malformed(#[from] CodecError),
    /// It is not for this part to tell.
    #[error("the {0} told what it cannot know")]
    Foreign(&'static str),
}

/// The server's end of one pair, or the lack of one.
#[derive(Debug)]
pub(super) struct Link {
    /// Events, or why one could not be taken.
    pub(super) events: mpsc::Receiver<Result<Event, Untaken>>,
    requests: mpsc::Sender<Request>,
    tasks: Vec<JoinHandle<()>>,
}

impl Link {
    /// A link that brings nothing.
    pub(super) fn none() -> Self {
        Self { events: mpsc::channel(1).1, requests: mpsc::channel(1).0, tasks: Vec::new() }
    }

    /// Reads events of `part` and writes requests on the runtime of the caller.
    ///
    /// # Errors
    /// When the stream cannot be given to the runtime.
    pub(super) fn new(part: Part, stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (mut reading, mut writing) = tokio::net::UnixStream::from_std(stream)?.into_split();
        let (event_out, events) = mpsc::channel(EVENTS);
        let (requests, mut request_in) = mpsc::channel::<Request>(REQUESTS);
        let reader = tokio::spawn(async move {
            while let Ok(frame) = read_frame(&mut reading).await {
                let last = frame.is_err();
                let event = frame.and_then(|payload| codec::decode(&payload)).map_err(Untaken::from);
                let event = event.and_then(|event| own(part, event));
                // Without a length the stream cannot be followed any further.
                if event_out.send(event).await.is_err() || last {
                    return;
                }
            }
        });
        let writer = tokio::spawn(async move {
            while let Some(request) = request_in.recv().await {
                let Ok(frame) = codec::encode(&request) else { continue };
                if writing.write_all(&frame).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self { events, requests, tasks: vec![reader, writer] })
    }

    /// Sends `request` without waiting; false when the other end does not keep up or is gone.
    pub(super) fn send(&self, request: Request) -> bool {
        self.requests.try_send(request).is_ok()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn read_frame(stream: &mut OwnedReadHalf) -> io::Result<Result<Vec<u8>, CodecError>> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).await?;
    let length = match codec::payload_length(header) {
        Ok(length) => length,
        Err(error) => return Ok(Err(error)),
    };
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload).await?;
    Ok(Ok(payload))
}

/// The prober tells of timed reads of devices and of its engine, the collector of everything else.
fn own(part: Part, event: Event) -> Result<Event, Untaken> {
    let probes = match &event {
        Event::Read { subject, source, .. } | Event::Stalled { subject, source, .. } => {
            *source == Source::Probe && matches!(subject, Subject::Device(_))
        }
        Event::Engine { .. } => true,
        Event::DeviceAppeared(_) | Event::ControllerAppeared(_) | Event::Vanished(_) | Event::Refusals(_) => false,
    };
    if probes == (part == Part::Prober) { Ok(event) } else { Err(Untaken::Foreign(part.as_str())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storscope_model::sample::probe::Engine;

    #[test]
    fn each_part_tells_only_what_is_its_own() {
        let engine = || Event::Engine { engine: Engine::Pread, fallback: None };
        assert_eq!(own(Part::Prober, engine()), Ok(engine()));
        assert_eq!(own(Part::Collector, engine()), Err(Untaken::Foreign("collector")));
        let refusals = || Event::Refusals(Vec::new());
        assert_eq!(own(Part::Collector, refusals()), Ok(refusals()));
        assert_eq!(own(Part::Prober, refusals()), Err(Untaken::Foreign("prober")));
    }
}
