//! The filters by which CLIENT LIST and CLIENT KILL select connections: those of Redis, and those of Valkey 9.

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

/// The letter of `CLIENT CAPA redirect`, the only capability.
const REDIRECT_LETTER: u8 = b'r';

/// A selection of connections: those that fulfil every condition.
pub(super) struct Filters<'a> {
    /// Conditions, and whether each is wanted: `false` if it has the prefix `NOT-`.
    conditions: Vec<(Condition<'a>, bool)>,
    /// Whether the caller's own connection is excluded.
    pub(super) spares_caller: bool,
}

/// A condition on a connection.
pub(super) enum Condition<'a> {
    /// It has one of these IDs.
    Ids(Vec<u64>),
    /// It is of this type.
    Type(ClientType),
    /// It comes from this address and port.
    Address(&'a [u8]),
    /// It is connected to this address and port of the server.
    LocalAddress(&'a [u8]),
    /// It comes from this address and any port.
    Ip(&'a [u8]),
    /// It is authenticated as this user.
    User(Arc<User>),
    /// It has all these flags, as the field `flags` shows them.
    Flags(&'a [u8]),
    /// It follows redirections.
    FollowsRedirects,
    /// Its client has set this name.
    Name(&'a [u8]),
    /// Its library has this name.
    LibraryName(&'a [u8]),
    /// Its library has this version.
    LibraryVersion(&'a [u8]),
    /// It has selected this database.
    Database(i64),
    /// It has sent no command for this number of seconds.
    Idle(i64),
    /// It was opened at least this number of seconds ago.
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
    /// Selects the connections that fulfil one condition, the caller's included.
    pub(super) fn one(condition: Condition<'a>) -> Filters<'a> {
        Filters { conditions: vec![(condition, true)], spares_caller: false }
    }

    /// Parses the filters after the name of the subcommand. A later one replaces an earlier one of its kind. `bad_id`
    /// is the error for an invalid ID.
    ///
    /// # Errors
    /// A filter is unknown, lacks its value, or has an invalid one.
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

    /// Returns the selected connections: in the order of the IDs if they are listed, else the oldest first. Connections
    /// that their workers are about to close do not count.
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

/// Reads IDs from `first` on, up to the first argument that is not a number, which is another filter.
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
