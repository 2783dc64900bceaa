//! One GET of a running agent.

use anyhow::{Context, bail};
use axum::body::Bytes;
use axum::http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;

/// Longest answer, in bytes.
const MAX_BODY: usize = 64 << 20;

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(10);

/// The body of the answer to `GET path` of the agent at `url`.
///
/// # Errors
/// Names the agent and what went wrong.
pub(crate) fn get(url: &str, path: &str) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async { tokio::time::timeout(LIMIT, fetch(url, path)).await });
    answer
        .map_err(|_| anyhow::anyhow!("no answer within {} s", LIMIT.as_secs()))
        .flatten()
        .with_context(|| url.to_owned())
}

async fn fetch(url: &str, path: &str) -> anyhow::Result<String> {
    let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let uri: Uri = whole.parse().context("not a URL such as http://127.0.0.1:10210")?;
    if uri.scheme_str() != Some("http") {
        bail!("only http:// is spoken");
    }
    let authority = uri.authority().context("no host in the URL")?.clone();
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(10210))).await.context("cannot connect")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = Request::get(path).header(header::HOST, authority.as_str()).body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let collected = Limited::new(response.into_body(), MAX_BODY).collect().await;
    let body = collected.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
    let text = String::from_utf8(body.to_vec()).context("the answer is not UTF-8")?;
    if status != StatusCode::OK {
        bail!("{status}: {}", text.lines().next().unwrap_or_default());
    }
    Ok(text)
}
