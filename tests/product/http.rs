//! What HTTP clients, bad ones among them, get.

use crate::agent::Agent;
use crate::exchange::{self, Answer, answers, connect, raw, request, rest};
use crate::figures::Figures;
use crate::made_up;
use flate2::read::GzDecoder;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

fn agent(more: &[&str]) -> (crate::fixture::Host, Agent) {
    let host = made_up::small();
    let agent = Agent::replay(host.root.sys.parent().unwrap(), more);
    (host, agent)
}

/// A configuration file in a folder of its own.
fn config(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("storscope.toml");
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap().to_owned();
    (folder, path)
}

fn one_line(answer: &Answer) -> bool {
    answer.text().lines().count() == 1
        && answer.text().ends_with('\n')
        && answer.field("content-type").starts_with("text/plain")
}

#[test]
fn every_path_answers_get_and_head() {
    let (_host, agent) = agent(&[]);
    for (path, kind) in [
        ("/", "text/plain; charset=utf-8"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/status", "text/plain; charset=utf-8"),
        ("/status.json", "application/json"),
        ("/healthz", "text/plain; charset=utf-8"),
        ("/readyz", "text/plain; charset=utf-8"),
    ] {
        let get = agent.get(path);
        assert_eq!((get.status, get.field("content-type")), (200, kind), "{path}");
        assert!(!get.body.is_empty(), "{path}");
        assert_eq!(get.field("cache-control"), "no-store", "{path}");
        let head = request(agent.address(), "HEAD", path, "");
        assert_eq!((head.status, head.field("content-type"), head.body.len()), (200, kind, 0), "{path}");
        assert!(head.field("content-length").parse::<usize>().unwrap() > 0, "{path}");
    }
    let index = agent.text("/");
    for path in ["/status", "/status.json", "/metrics", "/healthz", "/readyz"] {
        assert!(index.lines().any(|line| line.split_whitespace().next() == Some(path)), "{path}");
    }
}

#[test]
fn what_is_not_there_is_refused_in_one_line() {
    let (_host, agent) = agent(&[]);
    let address = agent.address();
    for (method, path, status, part) in [
        ("GET", "/nowhere", 404, "not found"),
        ("GET", "/metrics/", 404, "not found"),
        ("GET", "/../../etc/passwd", 404, "not found"),
        ("GET", "/%2e%2e/status", 404, "not found"),
        ("POST", "/metrics", 405, "GET and HEAD"),
        ("PUT", "/status", 405, "GET and HEAD"),
        ("DELETE", "/", 405, "GET and HEAD"),
        ("OPTIONS", "/status.json", 405, "GET and HEAD"),
        ("BREW", "/healthz", 405, "GET and HEAD"),
        ("GET", "/status?colour=1", 400, "colour=1"),
        ("GET", "/status.json?all=1", 400, "all=1"),
        ("GET", "/status?device=nvme0n1&device=sda", 400, "device is given twice"),
        ("GET", "/status.json?device=nvme0n1&device=nvme0n1", 400, "device is given twice"),
        ("GET", "/status?all&all", 400, "all is given twice"),
        ("GET", "/metrics?name[]=x", 400, "name[]=x"),
        ("GET", "/readyz?verbose", 400, "verbose"),
        ("GET", "/nowhere?x=1", 404, "not found"),
        ("GET", "/status?device=nvme9n1", 404, "nvme9n1"),
        ("GET", "/status.json?device=nvme9n1", 404, "nvme9n1"),
        ("GET", "/status?device=", 404, "no device"),
    ] {
        let answer = request(address, method, path, "");
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(one_line(&answer) && answer.text().contains(part), "{method} {path}: {}", answer.text());
    }
    let head = request(address, "HEAD", "/nowhere", "");
    assert_eq!((head.status, head.body.len()), (404, 0));
    assert!(request(address, "POST", "/status", "").field("allow").contains("GET"));
    let long = request(address, "GET", &format!("/status?{}", "x".repeat(4000)), "");
    assert!(long.status == 400 && long.body.len() < 200, "{} {}", long.status, long.body.len());
}

#[test]
fn requests_are_counted_under_known_paths_only() {
    let (_host, agent) = agent(&[]);
    for path in ["/a", "/b", "/c\"d", "/status"] {
        request(agent.address(), "GET", path, "");
    }
    let counted = |figures: &Figures| {
        let of = |path: &str, status: &str| {
            figures.find("storscope_agent_http_requests_total", &[("path", path), ("status", status)])
        };
        of("other", "404") == Some(3.0) && of("/status", "200") >= Some(1.0)
    };
    let figures = agent.wait_figures("requests counted", counted);
    let paths = figures.labels("storscope_agent_http_requests_total", "path");
    assert!(
        paths
            .iter()
            .all(|path| ["/", "/metrics", "/status", "/status.json", "/healthz", "/readyz", "other"].contains(path)),
        "{paths:?}"
    );
}

#[test]
fn the_format_follows_accept() {
    let (_host, agent) = agent(&[]);
    agent.wait_settled();
    let kind = |path: &str, accept: &str| {
        let answer = request(agent.address(), "GET", path, &format!("Accept: {accept}\r\n"));
        assert_eq!(answer.status, 200);
        (answer.field("content-type").to_owned(), answer.text().to_owned())
    };
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
    let (open, text) = kind("/metrics", prometheus);
    assert!(open.starts_with("application/openmetrics-text; version=1.0.0") && text.ends_with("# EOF\n"), "{open}");
    for accept in ["*/*", "text/plain", "text/html", "application/openmetrics-text;q=0", "nonsense;;;q=x,"] {
        let (plain, text) = kind("/metrics", accept);
        assert!(plain.starts_with("text/plain; version=0.0.4") && !text.contains("# EOF"), "{accept}: {plain}");
    }
    let (json, text) = kind("/status", "application/json");
    assert_eq!(json, "application/json");
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    assert!(kind("/status", "text/html,*/*").0.starts_with("text/plain"));
    assert!(kind("/status.json", "text/plain").0.starts_with("application/json"));
}

#[test]
fn gzip_is_given_where_it_is_wanted_and_nowhere_else() {
    let (_host, agent) = agent(&[]);
    agent.wait_settled();
    for (wanted, compressed) in [
        ("gzip", true),
        ("deflate, gzip;q=1.0, *;q=0.5", true),
        ("gzip;q=0.001", true),
        ("br, *", true),
        ("GZIP", true),
        ("gzip;q=0", false),
        ("gzip;q=0, *", false),
        ("identity", false),
        ("br", false),
        ("", false),
    ] {
        let answer = request(agent.address(), "GET", "/metrics", &format!("Accept-Encoding: {wanted}\r\n"));
        assert_eq!(answer.status, 200);
        assert_eq!(answer.field("content-encoding") == "gzip", compressed, "{wanted}");
        assert_eq!(answer.field("vary"), "Accept, Accept-Encoding");
        let mut text = String::new();
        if compressed {
            GzDecoder::new(answer.body.as_slice()).read_to_string(&mut text).unwrap();
            assert!(answer.body.len() * 4 < text.len(), "{} of {}", answer.body.len(), text.len());
        } else {
            text = answer.text().to_owned();
        }
        assert!(Figures::parse(&text).find("storscope_devices", &[]) == Some(2.0), "{wanted}");
    }
}

#[test]
fn one_connection_serves_many_requests() {
    let (_host, agent) = agent(&[]);
    let one = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = "GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let pipelined = answers(&raw(agent.address(), format!("{one}{one}{one}{last}").as_bytes()), false);
    let bodies: Vec<&str> = pipelined.iter().map(Answer::text).collect();
    assert_eq!(bodies, ["ok\n", "ok\n", "ok\n", "ready\n"]);

    let with_body = "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let after = answers(&raw(agent.address(), format!("{with_body}{last}").as_bytes()), false);
    assert_eq!(after.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 200]);

    let chunked = "POST /status HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    assert_eq!(answers(&raw(agent.address(), chunked.as_bytes()), false)[0].status, 405);

    let mut kept = connect(agent.address());
    for _ in 0..3 {
        kept.write_all(one.as_bytes()).unwrap();
        let mut got = [0; 512];
        let length = kept.read(&mut got).unwrap();
        assert!(got[..length].starts_with(b"HTTP/1.1 200 OK"));
    }
    let old = raw(agent.address(), b"GET /healthz HTTP/1.0\r\n\r\n");
    assert!(old.starts_with(b"HTTP/1.0 200 OK") && old.ends_with(b"ok\n"), "{:?}", String::from_utf8_lossy(&old));
}

#[test]
fn garbage_costs_its_own_connection_only() {
    let (_host, agent) = agent(&[]);
    for garbage in [
        &b"GET /\r\n"[..],
        b"GET /metrics\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ] {
        let mut stream = connect(agent.address());
        stream.write_all(garbage).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let got = rest(&mut stream);
        let text = String::from_utf8_lossy(&got);
        assert!(got.is_empty() || text.starts_with("HTTP/1.1 4"), "{:?}: {text}", String::from_utf8_lossy(garbage));
        if let Some(answer) = answers(&got, false).first() {
            assert!(one_line(answer), "{:?}: {text}", String::from_utf8_lossy(garbage));
        }
    }
    assert_eq!(agent.get("/healthz").status, 200);
}

#[test]
fn heads_have_a_limit() {
    let (_folder, file) = config("[http]\nmax_header_bytes = 8192\n");
    let (_host, agent) = agent(&["--config", &file]);
    let fits = request(agent.address(), "GET", "/healthz", &format!("X: {}\r\n", "y".repeat(4000)));
    assert_eq!(fits.status, 200);
    let status_of = |head: &str| {
        let got = raw(agent.address(), head.as_bytes());
        answers(&got, false).first().map(|answer| answer.status)
    };
    let long = format!("GET /healthz HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(100_000));
    assert!(matches!(status_of(&long), None | Some(431)));
    let many = format!("GET /healthz HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(200));
    assert_eq!(status_of(&many), Some(431));
    let refused = raw(agent.address(), many.as_bytes());
    let refused = &answers(&refused, false)[0];
    assert!(one_line(refused) && refused.text().contains("head is too long"), "{}", refused.text());
    assert_eq!(refused.field("connection"), "close");
    let pipelined = raw(agent.address(), b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/9.9\r\n\r\n");
    let pipelined = answers(&pipelined, false);
    assert_eq!(pipelined.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 400]);
    assert!(one_line(&pipelined[1]), "{}", pipelined[1].text());
    let path = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "p".repeat(100_000));
    assert!(matches!(status_of(&path), None | Some(414 | 431)));
    assert_eq!(agent.get("/healthz").status, 200);
}

#[test]
fn connections_past_the_limit_are_told_so_and_room_comes_back() {
    let (_folder, file) = config("[http]\nmax_connections = 4\n");
    let (_host, agent) = agent(&["--config", &file]);
    let address = agent.address();
    let full = || answers(&raw(address, b""), false).first().map(|answer| (answer.status, answer.text().to_owned()));
    // Again and again, for who is not yet stuck, or has been silent for a while, makes way.
    let held = crate::agent::wait("a refusal", || {
        // Who takes no answer is being answered, and does not make way: more than the buffers on the way hold.
        let stuck: Vec<_> = (0..3)
            .map(|_| {
                let mut stream = connect(address);
                stream.write_all(&b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2000)).unwrap();
                stream
            })
            .collect();
        for _ in 0..50 {
            let _ = raw(address, b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        }
        // The fourth has just come, and may still ask.
        let fourth = connect(address);
        (full() == Some((503, "too many connections; try again soon\n".to_owned()))).then_some((stuck, fourth))
    });
    drop(held);
    crate::agent::wait("room", || {
        let bytes = raw(address, b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        answers(&bytes, false).first().filter(|answer| answer.status == 200).map(|_| ())
    });
}

#[test]
fn a_client_that_has_nothing_more_to_say_gets_all_its_answers() {
    let (_host, agent) = agent(&[]);
    let mut stream = connect(agent.address());
    // More than the buffers on the way hold.
    stream.write_all(&b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1000)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let all = answers(&rest(&mut stream), false);
    assert_eq!(all.len(), 1000);
    assert!(all.iter().all(|answer| answer.status == 200));
}

#[test]
fn who_sends_no_whole_head_is_left_after_the_time_limit() {
    let (_folder, file) = config("[http]\ntimeout = \"1s\"\nkeep_alive = \"2s\"\n");
    let (_host, agent) = agent(&["--config", &file]);
    for part in
        [&b""[..], b"GET /metr", b"GET / HTTP/1.1\r\nHost: a\r\nX: ", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /"]
    {
        let mut stream = connect(agent.address());
        stream.write_all(part).unwrap();
        // Ends only because the agent closes.
        let got = rest(&mut stream);
        let whole = part.ends_with(b"GET /");
        let statuses: Vec<u16> = answers(&got, false).iter().map(|answer| answer.status).collect();
        assert!(statuses.iter().all(|status| *status == 408 || whole && *status == 200), "{statuses:?}");
    }
    assert_eq!(exchange::get(agent.address(), "/healthz").status, 200);
}

/// One request on a connection that is kept, which must be answered.
fn asked(stream: &mut TcpStream) {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut got = [0; 512];
    let length = stream.read(&mut got).unwrap();
    assert!(got[..length].starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(&got[..length]));
}

#[test]
fn an_idle_connection_outlives_the_time_limit_of_a_head() {
    let (_folder, file) = config("[http]\ntimeout = \"1s\"\nkeep_alive = \"1h\"\n");
    let (_host, agent) = agent(&["--config", &file]);
    let (mut idle, mut slow) = (connect(agent.address()), connect(agent.address()));
    asked(&mut idle);
    asked(&mut slow);
    slow.write_all(b"GET /metr").unwrap();
    // Ends only because the agent closes: more than the time limit after the other one was heard of.
    assert_eq!(rest(&mut slow), b"");
    asked(&mut idle);
    asked(&mut idle);
}

#[test]
fn an_idle_connection_ends_after_its_time() {
    let (_folder, file) = config("[http]\nkeep_alive = \"1s\"\n");
    let (_host, agent) = agent(&["--config", &file]);
    let mut idle = connect(agent.address());
    asked(&mut idle);
    assert_eq!(rest(&mut idle), b"");
}
