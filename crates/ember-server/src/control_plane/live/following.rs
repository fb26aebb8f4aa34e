//! Streams for the dashboard: it shows a key as it changes, and is told when it does.

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

/// Streams at a time: a page has one.
const STREAMS_MAX: u64 = 32;

static STREAMS: Streams = Streams::new();

/// The name that `CLIENT LIST` shows.
const CLIENT_NAME: &str = "dashboard-live";

/// The page reads the key again each time it is told.
const INTERVAL: Duration = Duration::from_millis(250);

/// Somebody who was let in.
pub(crate) struct Follower(Session, StreamPlace);

/// Why somebody is told nothing.
pub(crate) type Refused = (StatusCode, String);

/// Lets a user in, who may follow something then.
///
/// # Errors
/// What the server has against it.
pub(crate) async fn enter(
    credentials: Option<&Credentials>,
    visitor: Visitor,
    server: &'static Server,
) -> Result<Follower, Refused> {
    let too_many = || (StatusCode::SERVICE_UNAVAILABLE, format!("{STREAMS_MAX} pages show live keys"));
    let place = STREAMS.take(STREAMS_MAX).ok_or_else(too_many)?;
    let session = introduce(credentials, CLIENT_NAME, visitor, server).await.map_err(refused)?;
    Ok(Follower(session, place))
}

impl Follower {
    /// Tells each change of the keys of commands, whether or not the result is another one.
    ///
    /// # Errors
    /// What the server has against the commands.
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
            wants_equal: true,
            ticket: None,
        };
        begin(self.0, wish, self.1).await.map_err(refused)
    }
}

fn refused(Excuse(status, reason): Excuse) -> Refused {
    (status, reason)
}
