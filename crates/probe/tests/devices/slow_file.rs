//! A file whose reads can be held: a FUSE server for one file (include/uapi/linux/fuse.h), in the test's own process.
//! A loop device over it is a hung disk for as long as the test wants.
//!
//! A process that is killed while it waits for its own file would wait for ever: the descriptor of the server is closed
//! with its last thread. So a child, which outlives it, ends every wait after [`LONGEST_LIFE`] seconds.

use nix::libc::{EIO, ENOENT, ENOSYS};
use nix::mount::{MsFlags, mount};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Size of the file in bytes.
const SIZE: u64 = 64 << 20;
/// Seconds after which the file is unmounted, come what may.
const LONGEST_LIFE: &str = "180";
/// A failure after this long is a test that would wait for ever.
const PATIENCE: Duration = Duration::from_secs(60);
/// The server takes direct reads while others wait (`FUSE_ASYNC_DIO`).
const ASYNC_DIO: u32 = 1 << 15;
const NAME: &[u8] = b"disk";
const ROOT: u64 = 1;
const FILE: u64 = 2;
const HEADER: usize = 40;
/// Longest request: a header, and the most that a write may carry.
const LONGEST_WRITE: u32 = 128 << 10;
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const INIT: u32 = 26;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;

#[derive(Default)]
struct Gate {
    closed: bool,
    /// Held reads: request number and length.
    held: Vec<(u64, u32)>,
}

struct Server {
    device: File,
    gate: Mutex<Gate>,
    arrived: Condvar,
}

/// The mounted file.
pub(crate) struct SlowFile {
    mountpoint: PathBuf,
    server: Arc<Server>,
    /// Unmounts once its standard input is closed, or time is up.
    unmounter: Child,
}

impl SlowFile {
    /// Serves a file under `mountpoint`; `fuse` is the node of the FUSE device.
    pub(crate) fn mount(fuse: &Path, mountpoint: &Path) -> io::Result<Self> {
        let device = OpenOptions::new().read(true).write(true).open(fuse)?;
        let mut unmounter = Command::new("sh")
            .args(["-c", "timeout $1 cat; umount -f -l \"$2\""])
            .args(["sh", LONGEST_LIFE])
            .arg(mountpoint)
            .stdin(Stdio::piped())
            .spawn()?;
        let options = format!("fd={},rootmode=40755,user_id=0,group_id=0", device.as_raw_fd());
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        if let Err(errno) = mount(Some("slow"), mountpoint, Some("fuse"), flags, Some(options.as_str())) {
            unmounter.kill()?;
            unmounter.wait()?;
            return Err(errno.into());
        }
        let server = Arc::new(Server { device, gate: Mutex::default(), arrived: Condvar::new() });
        let serving = Arc::clone(&server);
        thread::spawn(move || serving.serve());
        Ok(Self { mountpoint: mountpoint.to_owned(), server, unmounter })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.mountpoint.join("disk")
    }

    /// Holds every read from now on.
    pub(crate) fn hold(&self) {
        self.server.gate.lock().unwrap().closed = true;
    }

    /// Waits until `count` reads are held.
    pub(crate) fn wait_for_held(&self, count: usize) {
        let gate = self.server.gate.lock().unwrap();
        let held = self.server.arrived.wait_timeout_while(gate, PATIENCE, |gate| gate.held.len() < count);
        let (gate, waited) = held.unwrap();
        assert!(!waited.timed_out(), "{} of {count} held", gate.held.len());
    }

    pub(crate) fn held(&self) -> usize {
        self.server.gate.lock().unwrap().held.len()
    }

    /// Answers what is held, and every read from now on.
    pub(crate) fn release(&self) {
        let mut gate = self.server.gate.lock().unwrap();
        gate.closed = false;
        for (unique, length) in gate.held.drain(..) {
            self.server.answer_read(unique, length);
        }
    }
}

impl Drop for SlowFile {
    fn drop(&mut self) {
        self.release();
        drop(self.unmounter.stdin.take());
        let _ = self.unmounter.wait();
    }
}

impl Server {
    /// Serves until the file system is unmounted.
    fn serve(&self) {
        let mut request = vec![0_u8; HEADER + 4096 + LONGEST_WRITE as usize];
        while let Ok(length) = (&self.device).read(&mut request) {
            self.handle(&request[..length]);
        }
    }

    fn handle(&self, request: &[u8]) {
        let opcode = u32_at(request, 4);
        let unique = u64_at(request, 8);
        let node = u64_at(request, 16);
        let body = &request[HEADER..];
        match opcode {
            INIT => self.answer(unique, 0, &init()),
            LOOKUP if body.strip_suffix(b"\0") == Some(NAME) => {
                let mut entry = [FILE, 0, u64::from(u32::MAX), u64::from(u32::MAX), 0].map(u64::to_ne_bytes).concat();
                entry.extend(attributes(FILE));
                self.answer(unique, 0, &entry);
            }
            LOOKUP => self.answer(unique, ENOENT, &[]),
            GETATTR => {
                let mut reply = [u64::from(u32::MAX), 0].map(u64::to_ne_bytes).concat();
                reply.extend(attributes(node));
                self.answer(unique, 0, &reply);
            }
            OPEN => self.answer(unique, 0, &[0; 16]),
            READ => self.read(unique, u32_at(body, 16)),
            RELEASE | FSYNC => self.answer(unique, 0, &[]),
            FORGET | BATCH_FORGET | INTERRUPT => {}
            _ => self.answer(unique, ENOSYS, &[]),
        }
    }

    fn read(&self, unique: u64, length: u32) {
        let mut gate = self.gate.lock().unwrap();
        if gate.closed {
            gate.held.push((unique, length));
            self.arrived.notify_all();
        } else {
            self.answer_read(unique, length);
        }
    }

    fn answer_read(&self, unique: u64, length: u32) {
        match usize::try_from(length) {
            Ok(length) => self.answer(unique, 0, &vec![0x5a; length]),
            Err(_) => self.answer(unique, EIO, &[]),
        }
    }

    fn answer(&self, unique: u64, errno: i32, body: &[u8]) {
        let length = u32::try_from(16 + body.len()).unwrap();
        let mut reply = length.to_ne_bytes().to_vec();
        reply.extend((-errno).to_ne_bytes());
        reply.extend(unique.to_ne_bytes());
        reply.extend(body);
        // Fails for a request whose file system is gone: nobody waits for it.
        let _ = (&self.device).write_all(&reply);
    }
}

/// `struct fuse_init_out` of protocol 7.31.
fn init() -> Vec<u8> {
    let mut reply = [7_u32, 31, 0, ASYNC_DIO].map(u32::to_ne_bytes).concat();
    reply.extend([256_u16, 256].map(u16::to_ne_bytes).concat());
    reply.extend(LONGEST_WRITE.to_ne_bytes());
    reply.resize(64, 0);
    reply
}

/// `struct fuse_attr`.
fn attributes(node: u64) -> Vec<u8> {
    let (mode, size) = if node == ROOT { (0o040_755_u32, 0) } else { (0o100_644, SIZE) };
    let mut attributes = [node, size, size / 512, 0, 0, 0].map(u64::to_ne_bytes).concat();
    attributes.extend([0, 0, 0, mode, 1, 0, 0, 0, 4096, 0].map(u32::to_ne_bytes).concat());
    attributes
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}
