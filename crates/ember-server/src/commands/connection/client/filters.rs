//! The filters of CLIENT LIST and CLIENT KILL, which select connections: those of Redis and those of Valkey 9.

use std::mem::discriminant;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ember_protocol::Args;
use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;

use super::list::{ClientType, client_type};
use crate::acl::user::User;
use crate::clients::client::{ClientView, FLAG_LETTERS};
use crate::executor::session::Session;

/// The letter of the capability `redirect`, the only one of CLIENT CAPA, in the filter CAPA.
const REDIRECT_LETTER: u8 = b'r';

/// A selection of connections, which must match every condition.
pub(super) struct Filters<'a> {
    /// The conditions. `false` means that connections must not match (prefix `NOT-`).
    conditions: Vec<(Condition<'a>, bool)>,
    /// Whether the caller's own connection is excluded.
    pub(super) spares_caller: bool,
}

/// A condition on a connection.
pub(super) enum Condition<'a> {
    /// The connection has one of these IDs.
    Ids(Vec<u64>),
    /// The connection is of this type.
    Type(ClientType),
    /// The client's address and port are these.
    Address(&'a [u8]),
    /// The client is connected to this address and port of the server.
    LocalAddress(&'a [u8]),
    /// The client's address is this, with any port.
    Ip(&'a [u8]),
    /// The connection is authenticated as this user.
    User(Arc<User>),
    /// The connection has all these flags, with the letters of the field `flags`.
    Flags(&'a [u8]),
    /// The client has announced that it follows redirections.
    FollowsRedirects,
    /// The client has set this name.
    Name(&'a [u8]),
    /// The client has set this library name.
    LibraryName(&'a [u8]),
    /// The client has set this library version.
    LibraryVersion(&'a [u8]),
    /// The connection has selected this database.
    Database(i64),
    /// The client has sent no command for at least this number of seconds.
    Idle(i64),
    /// The connection was opened at least this number of seconds ago.
    Age(i64),
}

impl Condition<'_> {
    fn holds(&self, view: &ClientView, now_ms: i64) -> bool {
        let seconds_since = |then_ms: i64| (now_ms - then_ms) / 1000;
        match self {
            Condition::Ids(ids) => ids.contains(&view.id),
            Condition::Type(wanted) => *wanted == ClientType::of(view),
            Condition::Address(address) => view.peer.remote().as_bytes() == *address,
            Condition::LocalAddress(address) => view.peer.local().as_bytes() == *address,
            Condition::Ip(ip) => {
                view.peer.remote_ip().is_some_and(|known| known.to_string().as_bytes() == *ip)
            }
            Condition::User(user) => view.user.lock().is_same(user),
            Condition::Flags(letters) => {
                let flags = view.flags();
                letters.iter().all(|letter| flags.as_bytes().contains(letter))
            }
            Condition::FollowsRedirects => view.follows_redirects.load(Ordering::Relaxed),
            Condition::Name(name) => view.names.lock().name.as_bytes() == *name,
            Condition::LibraryName(name) => view.names.lock().library_name.as_bytes() == *name,
            Condition::LibraryVersion(version) => view.names.lock().library_version.as_bytes() == *version,
            Condition::Database(database) => i64::from(view.database.load(Ordering::Relaxed)) == *database,
            Condition::Idle(seconds) => seconds_since(view.active_ms.load(Ordering::Relaxed)) >= *seconds,
            Condition::Age(seconds) => seconds_since(view.created_ms) >= *seconds,
        }
    }
}

impl<'a> Filters<'a> {
    /// Creates a selection with one condition, which includes the caller's connection.
    pub(super) fn one(condition: Condition<'a>) -> Filters<'a> {
        Filters { conditions: vec![(condition, true)], spares_caller: false }
    }

    /// Parses the filters after the name of the subcommand. A later filter replaces an earlier filter of the same kind.
    /// `bad_id` is the error for an invalid ID.
    ///
    /// # Errors
    /// Returns the error reply if a filter is unknown, lacks its value, or has an invalid value.
    pub(super) fn parse(
        session: &Session<'a>,
        spares_caller: bool,
        bad_id: &'static str,
    ) -> Result<Filters<'a>, CommandError> {
        let args = session.args;
        let mut filters = Filters { conditions: Vec::new(), spares_caller };
        let mut arg = 2;
        while arg < args.len() {
            let value = args.get(arg + 1).ok_or(CommandError::Syntax)?;
            let word = args.at(arg).to_ascii_uppercase();
            let (name, is_wanted) =
                word.strip_prefix(b"NOT-").map_or((&word[..], true), |rest| (rest, false));
            let mut next = arg + 2;
            let condition = match name {
                b"ID" => {
                    let ids = read_ids(args, arg + 1, bad_id)?;
                    next = arg + 1 + ids.len();
                    Condition::Ids(ids)
                }
                b"TYPE" => Condition::Type(client_type(value)?),
                b"ADDR" => Condition::Address(value),
                b"LADDR" => Condition::LocalAddress(value),
                b"IP" => Condition::Ip(value),
                b"USER" => {
                    let no_such = || CommandError::quoting("ERR No such user '", value, "'");
                    Condition::User(session.server.acl.find(value).ok_or_else(no_such)?)
                }
                b"FLAGS" => {
                    if value.is_empty() || !value.iter().all(|letter| FLAG_LETTERS.contains(letter)) {
                        let text = "ERR Unknown flags found in the provided filter: ";
                        return Err(CommandError::quoting(text, value, ""));
                    }
                    Condition::Flags(value)
                }
                b"CAPA" => {
                    if value.is_empty() || value.iter().any(|&letter| letter != REDIRECT_LETTER) {
                        let text = "ERR Unknown capa found in the provided filter: ";
                        return Err(CommandError::quoting(text, value, ""));
                    }
                    Condition::FollowsRedirects
                }
                b"NAME" => Condition::Name(value),
                b"LIB-NAME" => Condition::LibraryName(value),
                b"LIB-VER" => Condition::LibraryVersion(value),
                b"DB" => {
                    let database = parse_i64(value).ok_or("ERR DB is not an integer or out of range")?;
                    let count = session.server.keyspace.databases() as i64;
                    if !(0..count).contains(&database) {
                        return Err(format!("ERR DB number should be between 0 and {}", count - 1).into());
                    }
                    Condition::Database(database)
                }
                b"IDLE" if is_wanted => Condition::Idle(read_seconds(value, "idle")?),
                b"MAXAGE" if is_wanted => Condition::Age(read_seconds(value, "maxage")?),
                b"SKIPME" if is_wanted => {
                    filters.spares_caller =
                        match (is_word(args, arg + 1, "yes"), is_word(args, arg + 1, "no")) {
                            (true, _) => true,
                            (_, true) => false,
                            _ => return Err(CommandError::Syntax),
                        };
                    arg = next;
                    continue;
                }
                _ => return Err(CommandError::Syntax),
            };
            let kind = (discriminant(&condition), is_wanted);
            filters.conditions.retain(|(other, is_wanted)| (discriminant(other), *is_wanted) != kind);
            filters.conditions.push((condition, is_wanted));
            arg = next;
        }
        Ok(filters)
    }

    /// Returns the selected connections, in the order of the IDs if IDs are listed, otherwise the oldest first.
    /// Excludes connections that their workers are about to close.
    pub(super) fn choose(&self, session: &Session<'_>) -> Vec<Arc<ClientView>> {
        let clients = &session.server.clients;
        let mut views = match self
            .conditions
            .iter()
            .find(|(it, is_wanted)| *is_wanted && matches!(it, Condition::Ids(_)))
        {
            Some((Condition::Ids(ids), _)) => ids.iter().filter_map(|&id| clients.get(id)).collect(),
            _ => clients.all(),
        };
        let (caller, now_ms) = (session.client.view.id, session.turn.now_ms);
        views.retain(|view| {
            let is_spared = self.spares_caller && view.id == caller;
            let is_meant =
                |(condition, is_wanted): &(Condition<'_>, bool)| condition.holds(view, now_ms) == *is_wanted;
            !is_spared && !view.is_cut() && self.conditions.iter().all(is_meant)
        });
        views
    }
}

/// Reads IDs from argument `first` on, up to the first argument that is not a number and so begins another filter.
fn read_ids(args: Args<'_>, first: usize, bad_id: &'static str) -> Result<Vec<u64>, CommandError> {
    let mut ids = Vec::new();
    for value in args.skip(first).iter() {
        match parse_i64(value) {
            Some(id @ 1..) => ids.push(id as u64),
            None if !ids.is_empty() => break,
            _ => return Err(bad_id.into()),
        }
    }
    Ok(ids)
}

fn read_seconds(value: &[u8], name: &str) -> Result<i64, CommandError> {
    match parse_i64(value) {
        Some(seconds @ 1..) => Ok(seconds),
        Some(_) => Err(format!("ERR {name} should be greater than 0").into()),
        None => Err(format!("ERR {name} is not an integer or out of range").into()),
    }
}
