//! HTTP: the newest view, rendered. Nothing here reaches a device.

mod answer;
mod cache;
mod crowd;
mod head;
mod negotiate;
mod patience;
mod query;
mod refusal;
mod requests;

pub(crate) use answer::{Shared, router};
pub(crate) use crowd::Crowd;
pub(crate) use requests::Requests;

use crate::config::Http;
use axum::Router;
use crowd::{Guest, Refused};
use head::{HeadTimer, Heard};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use patience::Patience;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// Header fields of one request.
const MAX_HEADERS: usize = 64;

/// What is sent to a connection when an address has its share of them.
const SHARE: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 44\r\n\r\ntoo many connections of this address; close\n";

/// What is sent to a connection past the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 37\r\n\r\ntoo many connections; try again soon\n";

/// Pause after a failed accept, so that a want of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the task is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Http, crowd: Arc<Crowd>) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let heard = Heard::default();
        let guest = match crowd.admit(Some(peer.ip()), heard.clone(), Instant::now()) {
            Ok(guest) => guest,
            Err(why) => {
                refuse(stream, why).await;
                continue;
            }
        };
        tokio::spawn(attend(stream, router.clone(), limits, heard, guest));
    }
}

/// Answers on one connection until it ends, or its place is needed.
async fn attend(stream: TcpStream, router: Router, limits: Http, heard: Heard, guest: Guest) {
    let routes = TowerToHyperService::new(router);
    let asked = heard.clone();
    let service = service_fn(move |request| {
        asked.answering();
        routes.call(request)
    });
    let stream = TokioIo::new(Patience::new(stream, limits.timeout, heard.clone()));
    let connection = http1::Builder::new()
        .timer(HeadTimer::new(heard, limits.timeout, limits.keep_alive))
        .header_read_timeout(limits.timeout)
        .max_buf_size(limits.max_header_bytes)
        .max_headers(MAX_HEADERS)
        .half_close(true)
        .serve_connection(stream, service);
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "connection ended");
            }
        }
        () = guest.asked_to_leave() => tracing::debug!("connection makes way for another"),
    }
}

async fn refuse(mut stream: TcpStream, why: Refused) {
    let words = match why {
        Refused::Full => FULL,
        Refused::Share => SHARE,
    };
    // One attempt that cannot wait: the socket's buffer is empty, so it takes this much or the client is gone.
    let _ = tokio::time::timeout(Duration::from_millis(10), stream.write_all(words)).await;
}

#[cfg(test)]
mod tests {
    use super::{FULL, SHARE};

    #[test]
    fn refusal_states_its_length() {
        for refusal in [FULL, SHARE] {
            let text = std::str::from_utf8(refusal).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
        }
    }
}
