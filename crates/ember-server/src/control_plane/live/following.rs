//! Streams of key changes for the dashboard.

use std::time::Duration;

use hyper::{Response, StatusCode};

use super::session::Session;
use super::stream_place::{StreamPlace, Streams};
use super::wish::{Watched, Wish};
use super::{Excuse, begin, introduce};
use crate::control_plane::answer::AnswerBody;
use crate::control_plane::door::Credentials;
use crate::control_plane::visitor::Visitor;
use crate::server::Server;

/// The maximum number of concurrent streams; each page has one.
const STREAMS_MAX: u64 = 32;

static STREAMS: Streams = Streams::new();

/// The streams' connection name in `CLIENT LIST`.
const CLIENT_NAME: &str = "dashboard-live";

/// The minimum time between events, because the page reads the key again for each event.
const INTERVAL: Duration = Duration::from_millis(250);

/// An authenticated stream that does not watch any command yet.
pub(crate) struct Follower(Session, StreamPlace);

/// The HTTP status and the reason with which a stream was refused.
pub(crate) type Refused = (StatusCode, String);

/// Authenticates a user for a stream.
///
/// # Errors
/// Returns the server's error.
pub(crate) async fn enter(
    credentials: Option<&Credentials>,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Follower, Refused> {
    let too_many = || {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the limit of {STREAMS_MAX} pages with live keys is reached"),
        )
    };
    let place = STREAMS.take(STREAMS_MAX).ok_or_else(too_many)?;
    let session = introduce(credentials, CLIENT_NAME, visitor, server).await.map_err(refused)?;
    Ok(Follower(session, place))
}

impl Follower {
    /// Streams each change of the commands' keys, even if the result of the command is unchanged.
    ///
    /// # Errors
    /// Returns the server's error for one of the commands.
    pub(crate) async fn follow(
        self,
        database: u64,
        commands: Vec<Vec<Vec<u8>>>,
    ) -> Result<Response<AnswerBody>, Refused> {
        let watched = |(number, words): (usize, _)| Watched { line: number.to_string(), words, since: None };
        let wish = Wish {
            commands: commands.into_iter().enumerate().map(watched).collect(),
            database: Some(database.to_string()),
            interval: Some(INTERVAL.as_millis().to_string()),
            sends_equal: true,
            ticket: None,
        };
        begin(self.0, wish, self.1).await.map_err(refused)
    }
}

/// Returns the status and the reason of an error response.
pub(super) fn refused(Excuse(status, reason): Excuse) -> Refused {
    (status, reason)
}
