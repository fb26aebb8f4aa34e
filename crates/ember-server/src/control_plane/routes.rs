//! The URL paths of `metrics-port`.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;

use super::answer::{AnswerBody, not_allowed, of_type, plain, whole};
use super::dashboard;
use super::readiness::{Readiness, readiness};
use super::visitor::Visitor;
use crate::metrics;
use crate::server::Server;

/// The permit for one scrape at a time, regardless of the number of clients.
static SCRAPES: Semaphore = Semaphore::const_new(1);

/// Handles a request. Ignores its body, except for the dashboard.
pub(super) async fn answer(
    request: Request<Incoming>,
    visitor: Visitor,
    server: &'static Server,
) -> Response<AnswerBody> {
    let route: Option<Route> = match request.uri().path() {
        "/metrics" => Some(Route::Metrics),
        "/health" => Some(Route::Health),
        "/ready" => Some(Route::Ready),
        _ => None,
    };
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = match route {
        None => match dashboard::answer(request, visitor, server).await {
            Some(response) => response,
            None => whole(plain(StatusCode::NOT_FOUND, "not found\n")),
        },
        Some(_) if !is_read => whole(not_allowed("GET, HEAD")),
        Some(Route::Metrics) => whole(scrape(server).await),
        Some(Route::Health) => whole(plain(StatusCode::OK, "ok\n")),
        Some(Route::Ready) => whole(match readiness(server) {
            Readiness::Ready => plain(StatusCode::OK, "ready\n"),
            Readiness::Slow(reason) => plain(StatusCode::OK, format!("ready, but {reason}\n")),
            Readiness::Not(reason) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        }),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

enum Route {
    /// `/metrics`: all metrics.
    Metrics,
    /// `/health`: whether the process is alive.
    Health,
    /// `/ready`: whether traffic should be sent to the server.
    Ready,
}

/// Collects the metrics on another thread, because that may wait for a lock while `/health` must be answered.
async fn scrape(server: &'static Server) -> Response<Full<Bytes>> {
    let Ok(permit) = SCRAPES.acquire().await else { return internal_error() };
    let collect = move || {
        let _permit = permit;
        metrics::render(server)
    };
    run_blocking(collect)
        .await
        .map_or_else(|_: Bug| internal_error(), |text| of_type(StatusCode::OK, metrics::CONTENT_TYPE, text))
}

/// The error for a task that a bug ended before it produced a response; the bug is logged.
pub(super) struct Bug;

/// Runs a blocking function on another thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Bug> {
    tokio::task::spawn_blocking(act).await.map_err(|error| {
        tracing::error!("a request on metrics-port got no reply because of a bug: {error}");
        Bug
    })
}

fn internal_error() -> Response<Full<Bytes>> {
    plain(StatusCode::INTERNAL_SERVER_ERROR, "internal error\n")
}
