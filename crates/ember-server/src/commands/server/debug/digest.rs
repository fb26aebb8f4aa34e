//! DEBUG DIGEST and DIGEST-VALUE: signatures of all data, and of the values of keys.

use super::keys::with_entry;
use super::signature::Digest;
use crate::executor::session::{Outcome, Session, SessionResult};

/// The number of a database that has keys comes before them; the order of the keys says nothing.
pub(super) fn digest(session: &mut Session<'_>) -> SessionResult {
    let keyspace = &session.server.keyspace;
    let now_ms = session.turn.now_ms;
    let mut all = Digest::default();
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
            one.add_value(entry, now_ms);
            all.combine_digest(&one);
        }
    }
    keyspace.release_all(guards);
    session.reply.simple(&all.text());
    Ok(Outcome::Done)
}

pub(super) fn digest_value(session: &mut Session<'_>) -> SessionResult {
    let keys = session.args.skip(2);
    let now_ms = session.turn.now_ms;
    session.reply.array(keys.len());
    for key in keys.iter() {
        let mut digest = Digest::default();
        with_entry(session, key, |entry| digest.add_value(entry, now_ms));
        session.reply.simple(&digest.text());
    }
    Ok(Outcome::Done)
}
