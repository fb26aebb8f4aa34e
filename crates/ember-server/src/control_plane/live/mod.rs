//! Live queries for browsers, on `http-watch-port`.
//!
//! ```text
//! GET  /watch?cmd=GET%20price   the states of the commands, as server-sent events      (events.rs)
//! POST /watch/ticket            a ticket, which replaces a password in a URL           (tickets.rs)
//! ```
//!
//! Each stream is a client of a worker, on a socket inside the process ([`session`]), and watches with `WATCH.OPEN`: so
//! the code for permissions, limits, versions and slow readers is that of other clients. A stream counts towards
//! `maxclients`.

mod events;
pub(super) mod following;
mod frames;
pub(super) mod listening;
mod origins;
mod session;
mod stream_place;
mod tickets;
mod wish;

use std::time::{Duration, Instant};

use ember_config::Config;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use super::answer::{AnswerBody, not_allowed, of_type};
use super::door::{self, Credentials};
use super::visitor::Visitor;
use crate::server::Server;
use events::{Events, Refusal};
use origins::Page;
use session::Session;
use stream_place::{StreamPlace, Streams};
use tickets::Tickets;
use wish::Wish;

const JSON: &str = "application/json";

/// The streams' connection name in `CLIENT LIST`.
const CLIENT_NAME: &str = "http-watch";

/// The delay of the response to a wrong password or ticket, which slows down guessing.
const WRONG_PASSWORD_COSTS: Duration = Duration::from_millis(500);

/// The number of open streams of this port.
static STREAMS: Streams = Streams::new();

/// The unused tickets of all users.
static TICKETS: Tickets = Tickets::new();

/// An error response: its status and its message.
struct Excuse(StatusCode, String);

impl Excuse {
    fn new(status: StatusCode, reason: impl Into<String>) -> Excuse {
        Excuse(status, reason.into())
    }

    fn into_response(self) -> Response<AnswerBody> {
        let Excuse(status, reason) = self;
        let mut response = of_type(status, JSON, json!({ "error": reason }).to_string());
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"ember\", charset=\"UTF-8\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response.map(AnswerBody::Whole)
    }

    fn of_error(text: String) -> Excuse {
        let status = match text.split(' ').next() {
            Some("NOAUTH" | "WRONGPASS") => StatusCode::UNAUTHORIZED,
            Some("DENIED" | "NOPERM") => StatusCode::FORBIDDEN,
            Some("LOADING" | "MASTERDOWN") => StatusCode::SERVICE_UNAVAILABLE,
            Some("ERR") if text == "ERR max number of clients reached" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        Excuse(status, text)
    }
}

impl From<Refusal> for Excuse {
    fn from(refusal: Refusal) -> Excuse {
        match refusal {
            Refusal::Error(text) => Excuse::of_error(text),
            Refusal::Lagging => {
                Excuse::new(StatusCode::SERVICE_UNAVAILABLE, "this server has not reached this version yet")
            }
            Refusal::Closed(error) => {
                Excuse::new(StatusCode::SERVICE_UNAVAILABLE, format!("the connection was closed: {error}"))
            }
        }
    }
}

/// Handles a request on `http-watch-port`.
pub(super) async fn answer(
    request: Request<Incoming>,
    visitor: Visitor,
    server: &'static Server,
) -> Response<AnswerBody> {
    // The body of a ticket request is ignored.
    let (head, _) = request.into_parts();
    let config = server.config.snapshot();
    let page = Page::of(&head.headers, &config.http_watch_origins);
    let answered = match page {
        Page::Foreign => {
            Err(Excuse::new(StatusCode::FORBIDDEN, "the page's origin is not in http-watch-origins"))
        }
        _ if head.method == Method::OPTIONS => Ok(preflight()),
        _ => route(&head, &config, visitor, server).await,
    };
    let mut response = answered.unwrap_or_else(Excuse::into_response);
    let headers = response.headers_mut();
    page.allow_reading(headers);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn preflight() -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Whole(Full::default()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, OPTIONS"));
    origins::permit(response.headers_mut());
    response
}

async fn route(
    head: &Parts,
    config: &Config,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Response<AnswerBody>, Excuse> {
    let allowed = match head.uri.path() {
        "/watch" => Method::GET,
        "/watch/ticket" => Method::POST,
        _ => return Err(Excuse::new(StatusCode::NOT_FOUND, "not found")),
    };
    if head.method != allowed {
        let allowed = if allowed == Method::GET { "GET, OPTIONS" } else { "POST, OPTIONS" };
        return Ok(not_allowed(allowed).map(AnswerBody::Whole));
    }
    if server.is_stopping() {
        return Err(Excuse::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    }
    let malformed = |_| Excuse::new(StatusCode::UNAUTHORIZED, "the scheme of Authorization must be Basic");
    let credentials = Credentials::of(&head.headers).map_err(malformed)?;
    if allowed == Method::POST {
        ticket(&head.headers, config, credentials, visitor, server).await
    } else {
        let bad = |reason| Excuse::new(StatusCode::BAD_REQUEST, reason);
        let wish = Wish::parse(head.uri.query().unwrap_or_default(), &head.headers).map_err(bad)?;
        watch(&head.headers, config, wish, credentials, visitor, server).await
    }
}

/// Checks the requested host, unless the request has a password or a ticket. A request under another name is an attack:
/// if an attacker's name resolves to this server, the attacker's pages under that name have the same origin.
fn check_host(headers: &HeaderMap, config: &Config, has_shown: bool) -> Result<(), Excuse> {
    let is_ours = door::is_addressed_to_us(headers, &config.http_watch_bind);
    let is_listed =
        || door::named_host(headers).is_some_and(|host| config.http_watch_origins.have_host(&host));
    if has_shown || is_ours || is_listed() {
        return Ok(());
    }
    let reason = "use an IP address, a name in http-watch-bind or http-watch-origins, or a password";
    Err(Excuse::new(StatusCode::MISDIRECTED_REQUEST, reason))
}

/// Opens a session that is authenticated with these credentials, or as the default user.
async fn introduce(
    credentials: Option<&Credentials>,
    name: &str,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Session, Excuse> {
    let mut words: Vec<&[u8]> = vec![b"HELLO", b"3"];
    if let Some(Credentials { user, password }) = credentials {
        words.extend([b"AUTH", user.as_slice(), password.as_slice()]);
    }
    words.extend([&b"SETNAME"[..], name.as_bytes()]);
    let opened = Session::open(server, visitor.into_peer());
    let mut session = opened.map_err(Refusal::Closed)?;
    // The worker may close a refused connection before the write, which then fails; its error reply can still be read.
    let sent = session.send(&words).await;
    let reply = match (session.receive().await, sent) {
        (Ok(reply), _) => reply,
        (Err(_), Err(error)) | (Err(error), Ok(())) => return Err(Refusal::Closed(error).into()),
    };
    if !reply.is_error() {
        let id = reply.get("id").and_then(|id| id.integer()).and_then(|id| u64::try_from(id).ok());
        session.client_id = id.expect("HELLO returns the client's number, which is positive");
        return Ok(session);
    }
    if reply.text().starts_with("WRONGPASS") {
        tokio::time::sleep(WRONG_PASSWORD_COSTS).await;
    }
    Err(Excuse::of_error(reply.text()))
}

async fn ticket(
    headers: &HeaderMap,
    config: &Config,
    credentials: Option<Credentials>,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Response<AnswerBody>, Excuse> {
    check_host(headers, config, credentials.is_some())?;
    drop(introduce(credentials.as_ref(), CLIENT_NAME, visitor, server).await?);
    let too_many = || Excuse::new(StatusCode::SERVICE_UNAVAILABLE, "the user has too many unused tickets");
    let ticket = TICKETS.issue(credentials, Instant::now()).ok_or_else(too_many)?;
    let text = json!({ "ticket": ticket, "seconds": tickets::GOOD_FOR.as_secs() }).to_string();
    Ok(of_type(StatusCode::OK, JSON, text).map(AnswerBody::Whole))
}

async fn watch(
    headers: &HeaderMap,
    config: &Config,
    wish: Wish,
    credentials: Option<Credentials>,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Response<AnswerBody>, Excuse> {
    check_host(headers, config, credentials.is_some() || wish.ticket.is_some())?;
    let credentials = match &wish.ticket {
        None => credentials,
        Some(ticket) => match TICKETS.redeem(ticket, Instant::now()) {
            Some(credentials) => credentials,
            None => {
                tokio::time::sleep(WRONG_PASSWORD_COSTS).await;
                return Err(Excuse::new(
                    StatusCode::UNAUTHORIZED,
                    "the ticket was already used or has expired",
                ));
            }
        },
    };
    let too_many =
        || Excuse::new(StatusCode::SERVICE_UNAVAILABLE, "the limit http-watch-max-streams is reached");
    let place = STREAMS.take(config.streams_max()).ok_or_else(too_many)?;
    let session = introduce(credentials.as_ref(), CLIENT_NAME, visitor, server).await?;
    begin(session, wish, place).await
}

/// Watches the commands of the request, and returns the response with the stream of states.
async fn begin(session: Session, wish: Wish, place: StreamPlace) -> Result<Response<AnswerBody>, Excuse> {
    let body = match Events::begin(session, wish, place).await {
        Ok(events) => AnswerBody::Stream(Box::new(events)),
        // A browser reconnects after an empty stream, but not after an error response.
        Err(Refusal::Lagging) => AnswerBody::Whole(Full::from(events::RECONNECT)),
        Err(refusal) => return Err(refusal.into()),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    // The header disables buffering in nginx, which would delay events.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}
