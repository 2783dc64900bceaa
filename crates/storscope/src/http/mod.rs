//! HTTP: the newest view, rendered. Nothing here reaches a device.

mod answer;
mod cache;
mod head;
mod negotiate;
mod patience;
mod query;
mod refusal;
mod requests;

pub(crate) use answer::{Shared, router};
pub(crate) use requests::Requests;

use crate::config::Http;
use axum::Router;
use head::{HeadTimer, Heard};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use patience::Patience;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Header fields of one request.
const MAX_HEADERS: usize = 64;

/// What is sent to a connection past the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 37\r\n\r\ntoo many connections; try again soon\n";

/// Pause after a failed accept, so that a want of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the task is dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Http, permits: Arc<Semaphore>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            refuse(stream).await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let heard = Heard::default();
        let stream = TokioIo::new(Patience::new(stream, limits.timeout, Arc::clone(&heard)));
        let connection = http1::Builder::new()
            .timer(HeadTimer::new(heard, limits.timeout, limits.keep_alive))
            .header_read_timeout(limits.timeout)
            .max_buf_size(limits.max_header_bytes)
            .max_headers(MAX_HEADERS)
            .serve_connection(stream, service);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
            drop(permit);
        });
    }
}

async fn refuse(mut stream: TcpStream) {
    // One attempt that cannot wait: the socket's buffer is empty, so it takes this much or the client is gone.
    let _ = tokio::time::timeout(Duration::from_millis(10), stream.write_all(FULL)).await;
}

#[cfg(test)]
mod tests {
    use super::FULL;

    #[test]
    fn refusal_states_its_length() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
    }
}
