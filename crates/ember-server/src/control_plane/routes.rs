//! What is answered on `metrics-port`: which path gives what.

use std::convert::Infallible;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Method, Request, Response, StatusCode};

use crate::metrics;
use crate::server::Server;

const PLAIN: &str = "text/plain; charset=utf-8";

/// Answers a request; what it carries behind its head is not looked at.
pub(super) async fn answer(
    request: Request<Incoming>,
    server: &'static Server,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let route: Option<Route> = match request.uri().path() {
        "/metrics" => Some(Route::Metrics),
        "/health" => Some(Route::Health),
        "/ready" => Some(Route::Ready),
        _ => None,
    };
    let is_asked = matches!(*request.method(), Method::GET | Method::HEAD);
    let mut response = match route {
        None => plain(StatusCode::NOT_FOUND, "not found\n"),
        Some(_) if !is_asked => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        Some(Route::Metrics) => scrape(server).await,
        Some(Route::Health) => plain(StatusCode::OK, "ok\n"),
        Some(Route::Ready) => match server.why_not_ready() {
            None => plain(StatusCode::OK, "ready\n"),
            Some(reason) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        },
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

enum Route {
    /// All metrics.
    Metrics,
    /// Whether the process is alive.
    Health,
    /// Whether it serves.
    Ready,
}

/// Looks at the server beside this thread: that may wait for a lock, and `/health` is to be answered meanwhile.
async fn scrape(server: &'static Server) -> Response<Full<Bytes>> {
    match tokio::task::spawn_blocking(|| metrics::render(server)).await {
        Ok(text) => of_type(StatusCode::OK, metrics::CONTENT_TYPE, text),
        Err(error) => {
            tracing::error!("a bug kept the metrics from being told: {error}");
            plain(StatusCode::INTERNAL_SERVER_ERROR, "internal error\n")
        }
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    of_type(status, PLAIN, text)
}

fn of_type(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
