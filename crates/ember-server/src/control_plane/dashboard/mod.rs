//! The dashboard: a page that shows the server and its keys, under `/dashboard/`, enabled by `metrics-dashboard`.
//!
//! The page consists of a few files, which need no authentication. Its data comes from seven paths, which accept POST
//! requests and return JSON. Their commands run on the connection of an ordinary client ([`connection`]), after its
//! user has authenticated:
//!
//! ```text
//! api/commands        runs commands; their replies
//! api/permitted       which commands the user may run; runs nothing
//! api/overview        the reply of INFO, and other counters; for users that may run INFO
//! api/history         the figures of the last hour; for the same users
//! api/configuration   the parameters, without passwords; for users that may run CONFIG GET
//! api/live            each change of the keys that commands read, as server-sent events until the page closes it
//! api/listen          what SUBSCRIBE or MONITOR receives, as server-sent events, within limits
//! ```

mod configuration;
mod connection;
mod figures;
mod json;
pub(super) mod last_hour;
mod page;

use std::sync::Arc;
use std::time::Duration;

use ember_protocol::OwnedBatch;
use ember_protocol::client::Value;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value as Json, json};
use tokio::sync::Semaphore;

use super::answer::{AnswerBody, not_allowed, of_type, plain, whole};
use super::door::{self, Credentials};
use super::live::{following, listening};
use super::routes::{Bug, run_blocking};
use super::visitor::Visitor;
use crate::acl::denial::Denial;
use crate::acl::user::User;
use crate::server::Server;
use connection::{Connection, Failure, Refusal};
use json::{Commands, Words};
use last_hour::LastHour;

const JSON: &str = "application/json";

/// The path of the page. The paths of its files and data begin with it.
const PAGE_PATH: &str = "/dashboard/";

/// The maximum size of a request body in bytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The maximum number of bytes of a body that are read and discarded before an error response. A connection that is
/// closed before everything was read is reset, and the client may lose the response.
const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The maximum time for discarding a body.
const DISCARDS_WITHIN: Duration = Duration::from_secs(1);

/// The maximum number of requests whose commands run concurrently, which bounds the memory of replies.
const RUNNING_MAX: usize = 4;

static RUNNING: Semaphore = Semaphore::const_new(RUNNING_MAX);

/// The delay of the response to a wrong password, which slows down guessing.
const WRONG_PASSWORD_COSTS: Duration = Duration::from_millis(500);

/// Handles a request. Returns `None` if its path does not belong to the dashboard, or the dashboard is disabled.
pub(super) async fn answer(
    request: Request<Incoming>,
    visitor: Visitor,
    server: &'static Server,
) -> Option<Response<AnswerBody>> {
    let config = server.config.snapshot();
    let path = request.uri().path();
    let below = path.strip_prefix(PAGE_PATH).map(str::to_owned);
    if !config.metrics_dashboard || (below.is_none() && path != "/" && path != "/dashboard") {
        return None;
    }
    let (head, mut body) = request.into_parts();
    let mut response = if !door::is_addressed_to_us(&head.headers, &config.metrics_bind) {
        let reason = "use an IP address, or a name in metrics-bind\n";
        whole(plain(StatusCode::MISDIRECTED_REQUEST, reason))
    } else if let Some(path) = below.as_deref().and_then(|below| below.strip_prefix("api/")) {
        let answered = match path {
            "live" => live(&head, &mut body, visitor, server).await,
            "listen" => listen(&head, &mut body, visitor, server).await,
            _ => data(&head, &mut body, path, visitor, server).await.map(whole),
        };
        answered.unwrap_or_else(|excuse| whole(excuse.into_response()))
    } else if !matches!(head.method, Method::GET | Method::HEAD) {
        whole(not_allowed("GET, HEAD"))
    } else if let Some(below) = below {
        whole(page::answer(&below).unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "not found\n")))
    } else {
        let mut response = plain(StatusCode::TEMPORARY_REDIRECT, "");
        response.headers_mut().insert(LOCATION, HeaderValue::from_static(PAGE_PATH));
        whole(response)
    };
    if response.status().is_client_error() {
        // After the time limit, the client may lose the response.
        let _ = tokio::time::timeout(DISCARDS_WITHIN, read_body(&mut body, 0)).await;
    }
    page::confine(response.headers_mut());
    Some(response)
}

/// The requests for data, by their path below `api/`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Commands,
    Permitted,
    Overview,
    LastHour,
    Configuration,
}

/// An error response: its status and its message.
struct Excuse(StatusCode, String);

impl Excuse {
    fn new(status: StatusCode, reason: impl Into<String>) -> Excuse {
        Excuse(status, reason.into())
    }

    fn into_response(self) -> Response<Full<Bytes>> {
        let Excuse(status, reason) = self;
        let mut response = of_type(status, JSON, json!({ "error": reason }).to_string());
        if status == StatusCode::UNAUTHORIZED {
            // A scheme that browsers do not know: with a known scheme, the browser would ask for the password and then
            // send it with every request.
            let challenge = HeaderValue::from_static("Ember realm=\"dashboard\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

impl From<Bug> for Excuse {
    fn from(_: Bug) -> Excuse {
        Excuse::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
    }
}

impl From<Failure> for Excuse {
    fn from(failure: Failure) -> Excuse {
        let status = match failure {
            Failure::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Failure::TooLarge | Failure::Pushes => StatusCode::UNPROCESSABLE_ENTITY,
            Failure::Closed(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Excuse::new(status, failure.to_string())
    }
}

impl From<Refusal> for Excuse {
    fn from(refusal: Refusal) -> Excuse {
        let text = match refusal {
            Refusal::Failure(failure) => return failure.into(),
            Refusal::Error(text) => text,
        };
        let status = match text.split(' ').next() {
            Some("NOAUTH" | "WRONGPASS") => StatusCode::UNAUTHORIZED,
            Some("DENIED") => StatusCode::FORBIDDEN,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Excuse(status, text)
    }
}

/// Returns the response to a request for data.
async fn data(
    head: &Parts,
    body: &mut Incoming,
    path: &str,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Response<Full<Bytes>>, Excuse> {
    let wish = match path {
        "commands" => Wish::Commands,
        "permitted" => Wish::Permitted,
        "overview" => Wish::Overview,
        "history" => Wish::LastHour,
        "configuration" => Wish::Configuration,
        _ => return Err(Excuse::new(StatusCode::NOT_FOUND, "not found")),
    };
    if head.method != Method::POST {
        return Ok(not_allowed("POST"));
    }
    let credentials = admit(head, server)?;
    let opened = connection::open(server, visitor.into_peer());
    // Keeping the lifeline ties the connection to this future: it is closed when the request is dropped.
    let (socket, _lifeline) = opened.map_err(|error| Excuse::from(Failure::Closed(error)))?;
    // Authentication precedes reading the body, so that unauthenticated requests use no memory for a body.
    let introduced = run_blocking(move || socket.introduce(credentials.as_ref())).await?;
    let mut connection = match introduced.map_err(Excuse::from) {
        Ok(connection) => connection,
        Err(excuse) => {
            if excuse.1.starts_with("WRONGPASS") {
                tokio::time::sleep(WRONG_PASSWORD_COSTS).await;
            }
            return Err(excuse);
        }
    };
    let commands = json::parse(&read_body(body, BODY_BYTES_MAX).await?);
    let commands = commands.map_err(|reason| Excuse::new(StatusCode::BAD_REQUEST, reason))?;
    let Ok(running) = RUNNING.acquire().await else {
        return Err(Excuse::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    };
    run_blocking(move || {
        let _running = running;
        match wish {
            Wish::Commands => run(&mut connection, &commands),
            Wish::Permitted => Ok(permitted(server, connection.id, &commands).to_string().into()),
            Wish::Overview => overview(server, &mut connection).map(|data| data.to_string().into()),
            Wish::LastHour => Ok(last_hour(server, connection.id).to_string().into()),
            Wish::Configuration => parameters(&mut connection).map(|data| data.to_string().into()),
        }
        .map(|data| of_type(StatusCode::OK, JSON, data))
    })
    .await?
}

/// Checks the header of a request for data, and returns its credentials.
fn admit(head: &Parts, server: &Server) -> Result<Option<Credentials>, Excuse> {
    let headers = &head.headers;
    if !door::is_from_our_page(headers) {
        return Err(Excuse::new(StatusCode::FORBIDDEN, "only the dashboard's own page may send requests"));
    }
    if !door::is_json(headers) {
        return Err(Excuse::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"));
    }
    if server.is_stopping() {
        return Err(Excuse::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
    }
    let malformed = |_| Excuse::new(StatusCode::UNAUTHORIZED, "the scheme of Authorization must be Basic");
    Credentials::of(headers).map_err(malformed)
}

/// Streams changes of the requested keys to the page.
async fn live(
    head: &Parts,
    body: &mut Incoming,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Response<AnswerBody>, Excuse> {
    if head.method != Method::POST {
        return Ok(whole(not_allowed("POST")));
    }
    let credentials = admit(head, server)?;
    let refused = |(status, reason)| Excuse::new(status, reason);
    let follower = following::enter(credentials.as_ref(), visitor, server).await.map_err(refused)?;
    let Commands { database, commands } = json::parse(&read_body(body, BODY_BYTES_MAX).await?)
        .map_err(|reason| Excuse::new(StatusCode::BAD_REQUEST, reason))?;
    follower.follow(database, commands).await.map_err(refused)
}

/// Streams published messages, or the commands of all clients, to the page.
async fn listen(
    head: &Parts,
    body: &mut Incoming,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Response<AnswerBody>, Excuse> {
    if head.method != Method::POST {
        return Ok(whole(not_allowed("POST")));
    }
    let credentials = admit(head, server)?;
    let refused = |(status, reason)| Excuse::new(status, reason);
    let listener = listening::enter(credentials.as_ref(), visitor, server).await.map_err(refused)?;
    let Commands { commands, .. } = json::parse(&read_body(body, BODY_BYTES_MAX).await?)
        .map_err(|reason| Excuse::new(StatusCode::BAD_REQUEST, reason))?;
    listener.listen(&commands).await.map_err(refused)
}

/// Reads a body to its end; returns it if it has at most `kept_max` bytes.
async fn read_body(body: &mut Incoming, kept_max: usize) -> Result<Vec<u8>, Excuse> {
    let (mut kept, mut count) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Excuse::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let Some(data) = frame.data_ref() else { continue };
        count += data.len();
        if count <= kept_max {
            kept.extend_from_slice(data);
        } else if count > DISCARDED_BYTES_MAX {
            break;
        }
    }
    if count <= kept_max {
        return Ok(kept);
    }
    Err(Excuse::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a request has at most {BODY_BYTES_MAX} bytes")))
}

/// Runs the commands in order. If a command has no reply, returns the earlier replies with the reason.
fn run(connection: &mut Connection, asked: &Commands) -> Result<Vec<u8>, Excuse> {
    if asked.database != 0 {
        let selected = connection.run(&["SELECT", &asked.database.to_string()])?;
        if selected.is_error() {
            return Err(Excuse::new(StatusCode::BAD_REQUEST, selected.text()));
        }
    }
    let (mut replies, mut failure) = (Vec::new(), None);
    for words in &asked.commands {
        match connection.run(words) {
            Ok(reply) => replies.push(reply),
            Err(reason) if replies.is_empty() => return Err(reason.into()),
            Err(reason) => {
                failure = Some(reason);
                break;
            }
        }
    }
    let mut text = b"{\"replies\":".to_vec();
    json::write_list(&replies, json::write_reply, &mut text);
    if let Some(reason) = failure {
        text.extend_from_slice(b",\"error\":");
        json::write_string(&reason.to_string(), &mut text);
    }
    text.push(b'}');
    Ok(text)
}

/// Returns which of the commands the client's user may run now, and which it may run at least with other keys or
/// channels.
fn permitted(server: &Server, client_id: u64, asked: &Commands) -> Json {
    // A client that has been killed since has no permissions.
    let user = server.clients.get(client_id).map(|view| Arc::clone(&view.user.lock()));
    let verdict = |words: &Words| verdict(server, user.as_ref()?, words);
    let verdicts: Vec<_> = asked.commands.iter().map(verdict).collect();
    let is_ok = |verdict: &Option<Result<(), Denial>>| matches!(verdict, Some(Ok(())));
    let is_of_keys = |verdict: &Option<Result<(), Denial>>| {
        matches!(verdict, Some(Err(Denial::Key(_) | Denial::Channel(_))))
    };
    json!({
        "permitted": verdicts.iter().map(is_ok).collect::<Vec<_>>(),
        "with_other_keys": verdicts.iter().map(|one| is_ok(one) || is_of_keys(one)).collect::<Vec<_>>(),
    })
}

/// Checks a call against the user's rules; returns `None` if it is not a valid call.
fn verdict(server: &Server, user: &User, words: &Words) -> Option<Result<(), Denial>> {
    let mut batch = OwnedBatch::new();
    batch.push(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let args = batch.command(0);
    let command = server.registry.resolve(args).ok()?;
    Some(user.check(command, args))
}

/// Returns the figures of the last hour, if the user may run INFO.
fn last_hour(server: &Server, client_id: u64) -> Json {
    let user = server.clients.get(client_id).map(|view| Arc::clone(&view.user.lock()));
    match user.is_some_and(|user| verdict(server, &user, &vec![b"INFO".to_vec()]) == Some(Ok(()))) {
        true => LastHour::of(server).shown(),
        false => json!({ "refused": "the user has no permission to run INFO" }),
    }
}

fn overview(server: &Server, connection: &mut Connection) -> Result<Json, Excuse> {
    let info = connection.run(&["INFO"])?;
    Ok(match info {
        Value::Error(_) => json!({ "refused": info.text() }),
        _ => json!({ "info": info.text(), "figures": figures::of(server) }),
    })
}

fn parameters(connection: &mut Connection) -> Result<Json, Excuse> {
    let values = connection.run(&["CONFIG", "GET", "*"])?;
    Ok(match values {
        Value::Error(_) => json!({ "refused": values.text() }),
        _ => json!({ "parameters": configuration::of(&values) }),
    })
}
