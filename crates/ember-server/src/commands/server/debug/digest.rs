//! DEBUG DIGEST and DIGEST-VALUE: digests of the data set and of the values of keys.

use ember_persistence::full_path::without_directories;
use emberkv_core::error::CommandError;
use emberkv_core::keyspace::entry::EntryRef;

use super::signature::Digest;
use super::stored_keys::with_value;
use crate::executor::session::{Outcome, Session, SessionResult};
use crate::server::Server;
use crate::tiers::Tiers;

/// Handles DEBUG DIGEST. Each database that contains keys adds its number and its keys; the order of keys does not
/// matter.
pub(super) fn digest(session: &mut Session<'_>) -> SessionResult {
    let keyspace = &session.server.keyspace;
    let now_ms = session.turn.now_ms;
    let mut all = Digest::default();
    let mut failure = None;
    let guards = keyspace.lock_all();
    for database in 0..keyspace.databases() {
        let entries = guards.iter().flat_map(|data| data.database(database).table().iter());
        let mut entries = entries.filter(|entry| !entry.is_expired(now_ms)).peekable();
        if entries.peek().is_some() {
            all.mix(&(database as u32).to_be_bytes());
        }
        for entry in entries {
            let mut one = Digest::default();
            one.mix(entry.key());
            let name = guards[keyspace.hash(entry.key()).shard()].database_name(database);
            if let Err(error) = add_value(session.server, &mut one, (name, entry), now_ms) {
                failure = Some(error);
                break;
            }
            all.combine_digest(&one);
        }
    }
    keyspace.release_all(guards);
    failure.map_or(Ok(()), Err)?;
    session.reply.simple(&all.text());
    Ok(Outcome::Done)
}

/// Adds the value of an entry, after fetching it if it is cold.
fn add_value(
    server: &Server,
    digest: &mut Digest,
    (database_name, entry): (usize, EntryRef<'_>),
    now_ms: i64,
) -> Result<(), CommandError> {
    let value = Tiers::of(server).value_of(database_name, entry);
    match value.map_err(|error| without_directories(&error))? {
        Some(value) => digest.add_value(entry, value.as_value(), now_ms),
        None => digest.add_value(entry, entry.into(), now_ms),
    }
    Ok(())
}

pub(super) fn digest_value(session: &mut Session<'_>) -> SessionResult {
    let keys = session.args.skip(2);
    let now_ms = session.turn.now_ms;
    let mut digests = Vec::with_capacity(keys.len());
    for key in keys.iter() {
        let mut digest = Digest::default();
        with_value(session, key, |entry| digest.add_value(entry, entry.into(), now_ms))?;
        digests.push(digest.text());
    }
    session.reply.array(digests.len());
    digests.iter().for_each(|digest| session.reply.simple(digest));
    Ok(Outcome::Done)
}
