//! Orders and notices between the supervisor and a part: frames of the codec over a socket pair, each with at most one
//! descriptor (unix(7), SCM_RIGHTS).

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use storscope_model::codec::{self, HEADER};

/// How long an order may wait for room. A part's channel has a thread of its own that always reads, so that one which
/// takes no order for this long is stuck.
const PATIENCE: Duration = Duration::from_millis(500);

/// Bytes for one descriptor in a message.
const ONE_DESCRIPTOR: usize = rustix::cmsg_space!(ScmRights(1));

/// One end.
#[derive(Debug)]
pub(crate) struct Channel(UnixStream);

impl Channel {
    /// The supervisor's end, and the other one for the standard input of a part.
    ///
    /// # Errors
    /// That of socketpair(2).
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = UnixStream::pair()?;
        here.set_write_timeout(Some(PATIENCE))?;
        Ok((Self(here), there.into()))
    }

    /// The end that this process was given as its standard input.
    ///
    /// # Errors
    /// When standard input cannot be duplicated or is no socket.
    pub(crate) fn inherited() -> io::Result<Self> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        // Fails for anything but a Unix socket.
        stream.peer_addr()?;
        Ok(Self(stream))
    }

    /// The same end once more.
    ///
    /// # Errors
    /// When it cannot be duplicated.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Sends one message, with `passed` if there is something to pass.
    ///
    /// # Errors
    /// A message that is too long, or an other end that is gone or takes nothing.
    pub(crate) fn send<T: Serialize>(&self, message: &T, passed: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let frame = codec::encode(message).map_err(io::Error::other)?;
        let mut space = [MaybeUninit::uninit(); ONE_DESCRIPTOR];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = passed.map(|descriptor| [descriptor]);
        if let Some(descriptors) = &descriptors
            && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(io::Error::other("no room for a descriptor"));
        }
        let sent = loop {
            match sendmsg(&self.0, &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        (&self.0).write_all(frame.get(sent..).unwrap_or_default())
    }

    /// Waits for one message and what was passed with it.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] when the other end is closed; a malformed message.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> io::Result<(T, Option<OwnedFd>)> {
        let mut header = [0; HEADER];
        let mut passed = None;
        let mut filled = 0;
        while filled < HEADER {
            let (length, descriptor) = self.receive_some(header.get_mut(filled..).unwrap_or_default())?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += length;
            passed = passed.or(descriptor);
        }
        let length = codec::payload_length(header).map_err(io::Error::other)?;
        let mut payload = vec![0; length];
        (&self.0).read_exact(&mut payload)?;
        let message = codec::decode_owned(&payload).map_err(io::Error::other)?;
        Ok((message, passed))
    }

    fn receive_some(&self, into: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); ONE_DESCRIPTOR];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut parts = [IoSliceMut::new(into)];
            match recvmsg(&self.0, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        let mut passed = None;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                passed = passed.or_else(|| descriptors.into_iter().next());
            }
        }
        Ok((received.bytes, passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};

    fn pair() -> (Channel, Channel) {
        let (here, there) = Channel::pair().unwrap();
        (here, Channel(there.into()))
    }

    #[test]
    fn a_descriptor_arrives_with_its_message_and_no_other() {
        let (here, there) = pair();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"passed").unwrap();
        here.send(&"one".to_owned(), None).unwrap();
        here.send(&"two".to_owned(), Some(file.as_fd())).unwrap();
        here.send(&"three".to_owned(), None).unwrap();
        let (first, nothing) = there.receive::<String>().unwrap();
        assert!(first == "one" && nothing.is_none());
        let (second, passed) = there.receive::<String>().unwrap();
        assert_eq!(second, "two");
        let mut same = std::fs::File::from(passed.unwrap());
        same.seek(SeekFrom::Start(0)).unwrap();
        let mut text = String::new();
        same.read_to_string(&mut text).unwrap();
        assert_eq!(text, "passed");
        let (third, nothing) = there.receive::<String>().unwrap();
        assert!(third == "three" && nothing.is_none());
    }

    #[test]
    fn a_long_message_arrives_whole_and_an_end_is_told() {
        let (here, there) = pair();
        let long = "x".repeat(3 << 20);
        let sent = long.clone();
        let sender = std::thread::spawn(move || here.send(&sent, None).unwrap());
        assert!(there.receive::<String>().unwrap().0 == long);
        sender.join().unwrap();
        let end = there.receive::<String>().unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn an_end_that_takes_nothing_is_an_error_and_no_wait_for_ever() {
        let (here, _there) = pair();
        let error = here.send(&"x".repeat(8_000_000), None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
