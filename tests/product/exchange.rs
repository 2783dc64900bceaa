//! HTTP by hand, so that also what no client would send can be sent.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// After this the agent is called stuck.
const LIMIT: Duration = Duration::from_secs(60);

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Fields by name in lower case.
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// A connection to the agent.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Sends `bytes` and reads until the agent closes. A reset after the answer is the end, too.
pub(crate) fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    let _ = stream.write_all(bytes);
    rest(&mut stream)
}

/// What the agent sends until it closes.
pub(crate) fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    let mut part = [0; 65_536];
    loop {
        match stream.read(&mut part) {
            Ok(0) => return got,
            Ok(length) => got.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return got,
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&got)),
        }
    }
}

/// One request with the fields `fields`, each ending in a line break.
pub(crate) fn request(address: SocketAddr, method: &str, path: &str, fields: &str) -> Answer {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n{fields}\r\n");
    let bytes = raw(address, head.as_bytes());
    let mut answers = answers(&bytes, method == "HEAD");
    assert_eq!(answers.len(), 1, "{method} {path}: {:?}", String::from_utf8_lossy(&bytes));
    answers.remove(0)
}

/// `GET path`.
pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path, "")
}

/// The answers in `bytes`, one after another.
pub(crate) fn answers(bytes: &[u8], head_only: bool) -> Vec<Answer> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").expect("an end of the head");
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let fields: BTreeMap<String, String> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = fields.get("content-length").map_or(0, |length| length.parse().unwrap());
        let length = if head_only { 0 } else { length };
        let (body, after) = rest[end + 4..].split_at(length);
        out.push(Answer { status, fields, body: body.to_vec() });
        rest = after;
    }
    out
}
