//! The routes.

use super::cache::Cache;
use super::negotiate;
use super::query::{self, Query};
use super::requests::Requests;
use crate::narrow;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use storscope_export::prometheus::Format;
use storscope_export::{json, text};
use storscope_model::phrase;
use storscope_model::time::BootTime;
use storscope_model::view::View;
use tokio::sync::watch;

/// How long the newest view may be old before `/healthz` says that the agent is stuck.
const VIEW_LIMIT: Duration = Duration::from_secs(180);

/// Most drives that `/readyz` names.
const MAX_WAITING: usize = 3;

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
/// Whatever a browser takes an answer for, it loads and runs nothing and stands in no frame.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const INDEX: &str = "storscope: storage health of this host\n\n\
    /status       which disk is sick, since when, why, what it carries, what to do (text)\n\
    /status.json  the same as JSON; also /status with Accept: application/json\n\
    /metrics      Prometheus\n\
    /healthz      the agent runs\n\
    /readyz       the first readings of every drive are there\n";

/// What every answer is made from.
#[derive(Debug)]
pub(crate) struct Shared {
    view: watch::Receiver<Option<Arc<View>>>,
    cache: Mutex<Cache>,
    requests: Arc<Requests>,
    clock: fn() -> BootTime,
}

impl Shared {
    /// Answers from the newest view of `view`; `clock` is the boot-time clock.
    pub(crate) fn new(
        view: watch::Receiver<Option<Arc<View>>>,
        requests: Arc<Requests>,
        clock: fn() -> BootTime,
    ) -> Self {
        Self { view, cache: Mutex::default(), requests, clock }
    }

    fn newest(&self) -> Option<Arc<View>> {
        self.view.borrow().clone()
    }
}

/// Every route.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(|| async { plain(StatusCode::OK, PLAIN, INDEX) }))
        .route("/metrics", get(metrics))
        .route("/status", get(status))
        .route("/status.json", get(status_json))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route_layer(middleware::from_fn(asked))
        .fallback(|| async { plain(StatusCode::NOT_FOUND, PLAIN, "not found; / lists what there is\n") })
        .method_not_allowed_fallback(|| async {
            plain(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD are answered\n")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), account))
        .with_state(shared)
}

async fn account(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    shared.requests.count(&path, response.status().as_u16());
    response
}

/// Reads the query for every route alike.
async fn asked(mut request: Request, next: Next) -> Response {
    match Query::of(request.uri().path(), request.uri().query()) {
        Ok(query) => {
            request.extensions_mut().insert(query);
            next.run(request).await
        }
        Err(why) => plain(StatusCode::BAD_REQUEST, PLAIN, format!("{why}\n")),
    }
}

fn plain(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn starting() -> Response {
    plain(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "starting: the first readings are not there yet\n")
}

fn given<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let Some(view) = shared.newest() else { return starting() };
    let format = negotiate::exposition(given(&headers, &header::ACCEPT));
    let gzip = negotiate::gzip(given(&headers, &header::ACCEPT_ENCODING));
    let encoded = shared.cache.lock().unwrap_or_else(PoisonError::into_inner).exposition(&view, format, gzip);
    let kind = match format {
        Format::Text => TEXT_FORMAT,
        Format::OpenMetrics => OPEN_METRICS,
    };
    match encoded {
        Ok(bytes) => {
            let mut response = plain(StatusCode::OK, kind, bytes);
            let headers = response.headers_mut();
            if gzip {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            response
        }
        Err(error) => {
            tracing::error!(%error, "metrics cannot be encoded");
            plain(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("metrics cannot be encoded: {error}\n"))
        }
    }
}

async fn status(State(shared): State<Arc<Shared>>, Extension(query): Extension<Query>, headers: HeaderMap) -> Response {
    let Some(view) = shared.newest() else { return starting() };
    if let Some(refusal) = unknown(&view, query.device.as_deref()) {
        return refusal;
    }
    if negotiate::json(given(&headers, &header::ACCEPT)) {
        return as_json(&view, query.device.as_deref());
    }
    let options = text::Options { device: query.device, all: query.all, ..text::Options::default() };
    plain(StatusCode::OK, PLAIN, text::render(&view, &options))
}

async fn status_json(State(shared): State<Arc<Shared>>, Extension(query): Extension<Query>) -> Response {
    let Some(view) = shared.newest() else { return starting() };
    if let Some(refusal) = unknown(&view, query.device.as_deref()) {
        return refusal;
    }
    as_json(&view, query.device.as_deref())
}

fn as_json(view: &View, device: Option<&str>) -> Response {
    let rendered = match device {
        Some(name) => json::render(&narrow::to_device(view, name)),
        None => json::render(view),
    };
    match rendered {
        Ok(body) => plain(StatusCode::OK, JSON, body),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, format!("status cannot be encoded: {error}\n")),
    }
}

/// Why the device that is asked for has no status.
fn unknown(view: &View, device: Option<&str>) -> Option<Response> {
    let name = device.filter(|name| !narrow::knows(view, name))?;
    Some(plain(StatusCode::NOT_FOUND, PLAIN, format!("no device {} is watched here\n", query::shown(name))))
}

async fn healthz(State(shared): State<Arc<Shared>>) -> Response {
    let Some(view) = shared.newest() else { return plain(StatusCode::OK, PLAIN, "ok: starting\n") };
    let age = (shared.clock)().since(view.now);
    if age > VIEW_LIMIT {
        let body = format!("stuck: the newest analysis is {} s old\n", age.as_secs());
        return plain(StatusCode::SERVICE_UNAVAILABLE, PLAIN, body);
    }
    plain(StatusCode::OK, PLAIN, "ok\n")
}

async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    match shared.newest() {
        Some(view) if view.ready => plain(StatusCode::OK, PLAIN, "ready\n"),
        Some(view) if !view.unread.waiting.is_empty() => {
            let drives = phrase::names(&view.unread.waiting, MAX_WAITING);
            plain(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("starting: not yet read: {drives}\n"))
        }
        _ => starting(),
    }
}
