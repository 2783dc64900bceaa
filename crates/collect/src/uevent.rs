//! Hot-plug: kernel uevents over netlink (NETLINK_KOBJECT_UEVENT, lib/kobject_uevent.c).

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};
use storscope_model::fault::Fault;

/// Longest message that is read, in bytes: the kernel's buffer (`UEVENT_BUFFER_SIZE`) has 2 KiB, plus the header.
pub const MAX_MESSAGE: usize = 8 << 10;
/// Events come in bursts (a disk with its partitions); a rescan waits for this much quiet.
pub const QUIET: Duration = Duration::from_millis(300);
/// A rescan waits no longer than this from the first event on.
pub const MAX_DELAY: Duration = Duration::from_secs(3);
/// Multicast group of the kernel's own messages; group 2 carries udev's.
const KERNEL_GROUP: u32 = 1;

/// One kernel message about a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uevent {
    /// `add`, `remove`, `change`, `move`, `online`, `offline`, `bind` or `unbind`.
    pub action: String,
    /// `block`, `nvme`, `pci`, …
    pub subsystem: String,
    /// Path below sysfs.
    pub devpath: String,
    /// Kernel name of the device node.
    pub devname: Option<String>,
    /// `disk` or `partition` for block devices.
    pub devtype: Option<String>,
}

impl Uevent {
    /// True when the list of devices, or what discovery says of one, may have changed.
    pub fn concerns_devices(&self) -> bool {
        matches!(
            self.subsystem.as_str(),
            "block" | "nvme" | "nvme-subsystem" | "pci" | "scsi" | "enclosure" | "mmc" | "virtio"
        )
    }
}

/// The message in `bytes`: `ACTION@DEVPATH`, then `KEY=VALUE` pairs, each ended by a NUL. `None` for anything else, such
/// as udev's own messages, which begin with `libudev`.
pub fn parse(bytes: &[u8]) -> Option<Uevent> {
    let mut fields = bytes.split(|byte| *byte == 0);
    let header = std::str::from_utf8(fields.next()?).ok()?;
    let (action, devpath) = header.split_once('@')?;
    let mut event = Uevent {
        action: action.to_owned(),
        subsystem: String::new(),
        devpath: devpath.to_owned(),
        devname: None,
        devtype: None,
    };
    for field in fields {
        // A value may hold any bytes (a label, say); the ones that count here are ASCII.
        let Some((key, value)) = std::str::from_utf8(field).ok().and_then(|field| field.split_once('=')) else {
            continue;
        };
        match key {
            "ACTION" => value.clone_into(&mut event.action),
            "SUBSYSTEM" => value.clone_into(&mut event.subsystem),
            "DEVNAME" => event.devname = Some(value.to_owned()),
            "DEVTYPE" => event.devtype = Some(value.to_owned()),
            _ => {}
        }
    }
    (!event.subsystem.is_empty() && !event.action.is_empty()).then_some(event)
}

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Devices may have changed.
    Rescan,
    /// The time ran out without an event that matters.
    Nothing,
}

/// A socket that hears the kernel's messages. It needs no privilege. In a network namespace that is not the host's the
/// kernel may send nothing: hence the periodic rescan.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    buffer: Box<[u8]>,
}

impl Listener {
    /// Opens the socket.
    ///
    /// # Errors
    /// [`Fault::Denied`] when a sandbox forbids netlink sockets, else [`Fault::Io`].
    pub fn open() -> Result<Self, Fault> {
        let opened = socket(
            AddressFamily::Netlink,
            SockType::Datagram,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkKObjectUEvent,
        )
        .and_then(|socket| {
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, KERNEL_GROUP))?;
            Ok(socket)
        });
        match opened {
            Ok(socket) => Ok(Self { socket, buffer: vec![0; MAX_MESSAGE].into() }),
            Err(Errno::EPERM | Errno::EACCES) => {
                Err(Fault::Denied { path: SOCKET_NAME.to_owned(), needs: "AF_NETLINK sockets".to_owned() })
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    /// Waits up to `timeout` for an event about devices, then until [`QUIET`] has passed without another one, but at
    /// most [`MAX_DELAY`]. Blocks the calling thread.
    ///
    /// # Errors
    /// [`Fault::Io`] when the socket fails; it should be opened anew then.
    pub fn wait(&mut self, timeout: Duration) -> Result<Signal, Fault> {
        let began = Instant::now();
        let mut first = None;
        loop {
            let waited = match first {
                None => timeout.saturating_sub(began.elapsed()),
                Some(heard) => MAX_DELAY.saturating_sub(Instant::now().duration_since(heard)).min(QUIET),
            };
            if waited.is_zero() {
                break;
            }
            match self.receive(waited)? {
                Heard::Devices => first = first.or(Some(Instant::now())),
                Heard::Other => {}
                Heard::Silence if first.is_some() => break,
                Heard::Silence => {}
            }
        }
        Ok(if first.is_some() { Signal::Rescan } else { Signal::Nothing })
    }

    fn receive(&mut self, timeout: Duration) -> Result<Heard, Fault> {
        // A time-out of zero would mean for ever.
        let micros = i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX).max(1);
        setsockopt(&self.socket, sockopt::ReceiveTimeout, &TimeVal::microseconds(micros)).map_err(failed)?;
        match recvfrom::<NetlinkAddr>(self.socket.as_raw_fd(), &mut self.buffer) {
            Ok((length, sender)) => Ok(judge(&self.buffer[..length], sender)),
            // Messages were lost: any device may have changed.
            Err(Errno::ENOBUFS) => Ok(Heard::Devices),
            Err(Errno::EAGAIN) => Ok(Heard::Silence),
            Err(Errno::EINTR) => Ok(Heard::Other),
            Err(errno) => Err(failed(errno)),
        }
    }
}

const SOCKET_NAME: &str = "netlink kobject_uevent socket";

#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Devices,
    Other,
    Silence,
}

/// Port 0 is the kernel's: any process may send to the members of the group.
fn judge(message: &[u8], sender: Option<NetlinkAddr>) -> Heard {
    let from_kernel = sender.is_some_and(|sender| sender.pid() == 0);
    match parse(message) {
        Some(event) if from_kernel && event.concerns_devices() => Heard::Devices,
        _ => Heard::Other,
    }
}

fn failed(errno: Errno) -> Fault {
    Fault::Io { path: SOCKET_NAME.to_owned(), errno: errno as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{MsgFlags, sendto};
    use proptest::prelude::*;

    const ADDED: &[u8] = b"add@/devices/virtual/block/loop9\0ACTION=add\0DEVPATH=/devices/virtual/block/loop9\0\
        SUBSYSTEM=block\0MAJOR=7\0MINOR=9\0DEVNAME=loop9\0DEVTYPE=disk\0SEQNUM=4711\0";

    #[test]
    fn a_block_device_appears() {
        let event = parse(ADDED).unwrap();
        assert_eq!((event.action.as_str(), event.subsystem.as_str()), ("add", "block"));
        assert_eq!((event.devname.as_deref(), event.devtype.as_deref()), (Some("loop9"), Some("disk")));
        assert_eq!(event.devpath, "/devices/virtual/block/loop9");
        assert!(event.concerns_devices());
    }

    #[test]
    fn other_subsystems_do_not_concern_devices() {
        let event = parse(b"change@/devices/x\0ACTION=change\0SUBSYSTEM=thermal\0").unwrap();
        assert!(!event.concerns_devices());
    }

    #[test]
    fn what_is_no_kernel_message_is_left() {
        for bytes in [
            &b"libudev\0\xfe\xed\xca\xfe\0SUBSYSTEM=block\0"[..],
            b"",
            b"\0\0\0",
            b"add@/devices/x\0",
            b"add@/devices/x\0SUBSYSTEM=\0",
            b"\xff\xfe@x\0SUBSYSTEM=block\0",
        ] {
            assert_eq!(parse(bytes), None, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn only_the_kernel_is_believed() {
        assert_eq!(judge(ADDED, Some(NetlinkAddr::new(0, 0))), Heard::Devices);
        assert_eq!(judge(ADDED, Some(NetlinkAddr::new(4711, 0))), Heard::Other);
        assert_eq!(judge(ADDED, None), Heard::Other);
    }

    #[test]
    fn a_process_has_a_port_of_its_own() {
        let listener = match Listener::open() {
            Ok(listener) => listener,
            Err(fault) => return eprintln!("skipped: {fault}"),
        };
        let socket = listener.socket.as_raw_fd();
        // Delivered before sendto returns; a bound all the same, so that a lost message cannot hang the test.
        setsockopt(&listener.socket, sockopt::ReceiveTimeout, &TimeVal::seconds(10)).unwrap();
        let own: NetlinkAddr = nix::sys::socket::getsockname(socket).unwrap();
        let forged = b"add@/forged\0SUBSYSTEM=block\0";
        assert_eq!(sendto(socket, forged, &NetlinkAddr::new(own.pid(), 0), MsgFlags::empty()), Ok(forged.len()));
        let mut buffer = [0; MAX_MESSAGE];
        loop {
            let (length, sender) = recvfrom::<NetlinkAddr>(socket, &mut buffer).unwrap();
            // Messages of the kernel may come first.
            if buffer[..length] == *forged {
                assert_eq!(judge(forged, sender), Heard::Other);
                return;
            }
        }
    }

    #[test]
    fn a_wait_ends_without_events() {
        match Listener::open() {
            Ok(mut listener) => assert!(listener.wait(Duration::from_millis(1)).is_ok()),
            Err(fault) => eprintln!("skipped: {fault}"),
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            parse(&bytes);
        }

        #[test]
        fn pairs_come_back(subsystem in "[a-z-]{1,12}", devname in "[a-z0-9/]{1,12}", junk in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut message = format!("add@/devices/x\0SUBSYSTEM={subsystem}\0DEVNAME={devname}\0").into_bytes();
            message.extend(b"X=");
            message.extend(junk.iter().map(|byte| (*byte).max(1)));
            let event = parse(&message).unwrap();
            prop_assert_eq!(event.subsystem, subsystem);
            prop_assert_eq!(event.devname, Some(devname));
        }
    }
}
