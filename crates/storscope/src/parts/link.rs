//! A part's end of the pair that leads to the server: events one way, requests the other.
//!
//! What is not sent yet is kept as the newest event of each slot ([`Outbox`]): a part never waits for the server. The newest
//! event of each slot is kept also after it was sent, so that a server that was started anew hears everything again.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use storscope_collect::collector::EventSink;
use storscope_model::codec::{self, HEADER};
use storscope_model::event::{Event, Slot};
use storscope_model::outbox::Outbox;
use storscope_model::request::Request;

/// Stack of a link's threads, in bytes.
const STACK: usize = 256 << 10;

/// Takes events from any thread and hands them to whatever link there is.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    outbox: Outbox,
    newest: BTreeMap<Slot, Event>,
    /// Links so far; only the last one is in use.
    links: u64,
    superseded: u64,
}

impl Waiting {
    fn keep(&mut self, event: &Event) {
        match event {
            Event::Vanished(subject) => self.newest.retain(|slot, _| slot.subject() != Some(subject)),
            other => drop(self.newest.insert(other.slot(), other.clone())),
        }
    }

    /// Everything known waits to be sent over a new link.
    fn begin_again(&mut self) {
        self.superseded = self.superseded.saturating_add(self.outbox.superseded());
        self.outbox = Outbox::default();
        for event in self.newest.values() {
            self.outbox.put(event.clone());
        }
        self.links += 1;
    }
}

impl Outgoing {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Events that a newer one replaced before they were sent.
    pub(crate) fn superseded(&self) -> u64 {
        let waiting = self.lock();
        waiting.superseded.saturating_add(waiting.outbox.superseded())
    }

    /// The next event for link number `link`; `None` when there is a newer link.
    fn next(&self, link: u64) -> Option<Event> {
        let mut waiting = self.lock();
        loop {
            if waiting.links != link {
                return None;
            }
            if let Some(event) = waiting.outbox.take() {
                return Some(event);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Uses `stream` from now on, on two threads: one writes events, one hands requests to `on_request`.
    ///
    /// # Errors
    /// When the stream cannot be duplicated or a thread cannot be started.
    pub(crate) fn attach(
        self: &Arc<Self>,
        stream: UnixStream,
        mut on_request: impl FnMut(Request) + Send + 'static,
    ) -> io::Result<()> {
        let mut writing = stream.try_clone()?;
        let link = {
            let mut waiting = self.lock();
            waiting.begin_again();
            waiting.links
        };
        self.changed.notify_all();
        let outgoing = Arc::clone(self);
        thread::Builder::new().name("link-events".to_owned()).stack_size(STACK).spawn(move || {
            while let Some(event) = outgoing.next(link) {
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
        thread::Builder::new().name("link-requests".to_owned()).stack_size(STACK).spawn(move || {
            while let Ok(payload) = read_frame(&mut reading) {
                match codec::decode(&payload) {
                    Ok(request) => on_request(request),
                    Err(error) => tracing::error!(%error, "request cannot be read"),
                }
            }
        })?;
        Ok(())
    }
}

impl EventSink for Outgoing {
    fn put(&self, event: Event) {
        let mut waiting = self.lock();
        waiting.keep(&event);
        waiting.outbox.put(event);
        drop(waiting);
        self.changed.notify_all();
    }
}

fn read_frame(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header)?;
    let length = codec::payload_length(header).map_err(io::Error::other)?;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use storscope_model::event::Outcome;
    use storscope_model::fault::Fault;
    use storscope_model::identity::{DeviceId, Subject};
    use storscope_model::sample::Source;
    use storscope_model::time::BootTime;

    fn read(name: &str, second: u64) -> Event {
        Event::Read {
            subject: Subject::Device(DeviceId(name.to_owned())),
            source: Source::Queue,
            began: BootTime::from_secs(second),
            ended: BootTime::from_secs(second),
            outcome: Outcome::Failed(Fault::Gone),
        }
    }

    fn received(stream: &mut UnixStream, count: usize) -> Vec<Event> {
        (0..count).map(|_| codec::decode(&read_frame(stream).unwrap()).unwrap()).collect()
    }

    #[test]
    fn a_new_link_hears_the_newest_of_everything_that_is_still_there() {
        let outgoing = Arc::new(Outgoing::default());
        let (mut server, part) = UnixStream::pair().unwrap();
        outgoing.attach(part, drop).unwrap();
        outgoing.put(read("a", 1));
        outgoing.put(read("b", 1));
        assert_eq!(received(&mut server, 2), [read("a", 1), read("b", 1)]);
        outgoing.put(read("a", 2));
        outgoing.put(read("c", 2));
        outgoing.put(Event::Vanished(Subject::Device(DeviceId("b".to_owned()))));
        received(&mut server, 3);
        drop(server);
        let (mut server, part) = UnixStream::pair().unwrap();
        outgoing.attach(part, drop).unwrap();
        assert_eq!(received(&mut server, 2), [read("a", 2), read("c", 2)]);
        outgoing.put(read("a", 3));
        assert_eq!(received(&mut server, 1), [read("a", 3)]);
    }

    #[test]
    fn without_a_link_nothing_waits_but_the_newest() {
        let outgoing = Arc::new(Outgoing::default());
        for second in 0..1000 {
            outgoing.put(read("a", second));
        }
        assert_eq!(outgoing.superseded(), 999);
        let (mut server, part) = UnixStream::pair().unwrap();
        outgoing.attach(part, drop).unwrap();
        assert_eq!(received(&mut server, 1), [read("a", 999)]);
        assert_eq!(outgoing.superseded(), 999);
    }
}
