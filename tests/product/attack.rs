//! Clients that mean no good, each from this process against the agent's: whoever asks in earnest is answered.

use crate::agent::{Agent, wait};
use crate::exchange::{self, rest};
use crate::made_up::{folder, small};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Connections that the agent admits by default.
const ADMITTED: usize = 256;

/// Most memory of the server, in kB.
const MEMORY: u64 = 64 << 10;

fn agent() -> (Agent, crate::fixture::Host) {
    let host = small();
    (Agent::replay(Path::new(folder(&host)), &[]), host)
}

/// Connections to `address` that send `bytes`, as many as this process may have, up to `count`.
fn crowd(address: SocketAddr, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let wanted = u64::try_from(count + 200).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard).max(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0), hard)
        .unwrap();
    let room = usize::try_from(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0).unwrap().saturating_sub(200);
    if room < count {
        eprintln!("only {room} of {count} connections: this process may not have more descriptors");
    }
    (0..count.min(room))
        .map(|_| {
            let mut stream = exchange::connect(address);
            // One that is refused at once may be closed by now.
            let _ = stream.write_all(bytes);
            stream
        })
        .collect()
}

/// Waits until a scrape is answered, and looks at what the server takes.
fn in_earnest(agent: &Agent) {
    wait("an answer in earnest", || {
        let bytes =
            exchange::raw(agent.address(), b"GET /metrics HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n");
        bytes.starts_with(b"HTTP/1.1 200 ").then_some(())
    });
    let status = agent.json();
    let server = status["agent"]["processes"].as_array().unwrap().iter().find(|one| one["name"] == "server").unwrap();
    let text = std::fs::read_to_string(format!("/proc/{}/status", server["pid"])).unwrap();
    let resident = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident: u64 = resident.split_whitespace().next().unwrap().parse().unwrap();
    assert!(resident < MEMORY, "{resident} kB");
}

#[test]
fn idle_clients_make_way() {
    let (agent, _host) = agent();
    let asked = b"GET /healthz HTTP/1.1\r\nHost: agent\r\n\r\n";
    let mut idle = crowd(agent.address(), ADMITTED + 20, asked);
    for stream in &mut idle[..ADMITTED] {
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    in_earnest(&agent);
    agent.end();
}

#[test]
fn five_thousand_clients_that_say_nothing_make_way() {
    let (agent, _host) = agent();
    let silent = crowd(agent.address(), 5000, b"");
    in_earnest(&agent);
    drop(silent);
    agent.end();
}

#[test]
fn heads_that_never_end_make_way() {
    let (agent, _host) = agent();
    let slow = crowd(agent.address(), ADMITTED + 50, b"GET /metrics HTTP/1.1\r\nX-Slow: ");
    in_earnest(&agent);
    drop(slow);
    agent.end();
}

#[test]
fn five_hundred_scrapes_at_once_are_answered_or_refused_and_all_at_an_end() {
    let (agent, _host) = agent();
    let request = b"GET /metrics HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n";
    let mut all = crowd(agent.address(), 500, request);
    let mut answered = 0;
    for stream in &mut all {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let answer = rest(stream);
        // A refusal may be lost to the reset that follows it: its request was not read.
        if answer.is_empty() {
            continue;
        }
        let text = String::from_utf8_lossy(&answer);
        if text.starts_with("HTTP/1.1 200 ") {
            assert!(text.ends_with('\n'), "torn: {}", &text[text.len().saturating_sub(80)..]);
            answered += 1;
        } else {
            assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
        }
    }
    assert!(answered >= ADMITTED, "{answered} answered");
    in_earnest(&agent);
    agent.end();
}

#[test]
fn requests_that_are_none_end_with_a_line_or_an_end() {
    let (agent, _host) = agent();
    let long = [b"GET /".as_slice(), &vec![b'a'; 100_000], b" HTTP/1.1\r\n\r\n"].concat();
    let fields = [b"GET / HTTP/1.1\r\n".as_slice(), &b"X-Y: z\r\n".repeat(5000), b"\r\n"].concat();
    let requests: [(&[u8], &str); 9] = [
        (b"GET /\r\n\r\n", "400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"),
        (b"GET /%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404"),
        (b"GET /status?device=%f HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404"),
        (b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", "405"),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", "200"),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\nConnection: close\r\n\r\n", "400"),
        (&long, "431"),
        (&fields, "431"),
    ];
    for (request, status) in requests {
        let answer = exchange::raw(agent.address(), request);
        let text = String::from_utf8_lossy(&answer);
        let shown = String::from_utf8_lossy(&request[..request.len().min(60)]);
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{shown:?}: {text}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(body.lines().count() == 1 && body.ends_with('\n'), "{shown:?}: {text}");
        assert!(head.to_ascii_lowercase().contains("x-content-type-options: nosniff"), "{shown:?}: {head}");
    }
    in_earnest(&agent);
    agent.end();
}

#[test]
fn pipelined_requests_are_answered_in_turn() {
    let (agent, _host) = agent();
    let many = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200);
    let last = b"GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answers = exchange::answers(&exchange::raw(agent.address(), &[&many[..], last].concat()), false);
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!((statuses.len(), statuses[200]), (201, 404));
    assert!(statuses[..200].iter().all(|status| *status == 200));
    let policy = "default-src 'none'; frame-ancestors 'none'";
    assert!(answers.iter().all(|answer| answer.field("content-security-policy") == policy));
    in_earnest(&agent);
    agent.end();
}
