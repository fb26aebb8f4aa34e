//! The commands that only some replicas support. A replica is never sent commands that it does not support.
//!
//! The stream uses commands of Redis 7.0, except for changes that these commands cannot express. The data of a replica
//! that received an unsupported command would differ from then on, with at most a line in the replica's own log. So the
//! stream is checked before it is sent to a replica that may not support everything. At the first unsupported command,
//! the replica is disconnected, and needs a full sync. A replica that loads a snapshot with values that need such
//! commands supports the commands: so the server determines what a Redis replica supports, because Redis does not
//! report its version.

use std::collections::BTreeMap;

use ember_persistence::rdb_file::FILE_VERSION;
use ember_protocol::Reply;
use ember_replication::command_names::{CommandNames, Part};
use emberkv_core::rdb::Features;

use crate::clients::replica::Program;

/// A set of groups of commands that not all replicas support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Words(u8);

impl Words {
    pub(super) const NONE: Words = Words(0);
    /// Commands for expiries of hash fields.
    pub(super) const FIELDS: Words = Words(1);
    /// Commands for vector sets like those of Redis.
    pub(super) const VECTORS: Words = Words(2);
    /// Commands that only ember supports.
    pub(super) const OWN: Words = Words(4);
    /// Commands for JSON documents.
    pub(super) const JSON: Words = Words(8);
    /// Commands for sketches like those of Redis Stack.
    pub(super) const SKETCHES: Words = Words(16);
    const ALL: Words = Words(31);

    pub(super) const fn and(self, other: Words) -> Words {
        Words(self.0 | other.0)
    }

    pub(super) fn without(self, other: Words) -> Words {
        Words(self.0 & !other.0)
    }

    const fn common(self, other: Words) -> Words {
        Words(self.0 & other.0)
    }

    pub(super) fn contains(self, other: Words) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the groups that a replica of this program is known to support.
    pub(super) fn of(program: Program) -> Words {
        match program {
            Program::Unknown => Words::NONE,
            Program::Redis8 => Words::FIELDS.and(Words::VECTORS),
            Program::Valkey9 => Words::FIELDS,
            Program::Ember => Words::ALL,
        }
    }

    /// Returns the group of the command with this name or payload, in either case; [`Words::NONE`] for commands that
    /// all replicas support.
    fn with(part: Part<'_>) -> Words {
        let features = match part {
            Part::Name(name) => Features::of_command(name),
            Part::Payload(begin) => Features::of_payload(begin),
        };
        match features {
            Features::FIELD_EXPIRIES => Words::FIELDS,
            Features::VECTOR_SETS => Words::VECTORS,
            Features::VECTOR_INDEXES => Words::OWN,
            Features::JSON => Words::JSON,
            Features::SKETCHES => Words::SKETCHES,
            _ => Words::NONE,
        }
    }

    /// Returns the groups that a replica proves to support by loading a snapshot of this RDB version, after the groups
    /// `missed` could not be sent to it. A replica that reports its program proves nothing further.
    pub(super) fn shown_by_copy(program: Program, version: u16, missed: Words) -> Words {
        match program {
            Program::Unknown if version > FILE_VERSION => missed.without(Words::OWN).and(Words::FIELDS),
            Program::Unknown => missed.without(Words::OWN).without(Words::FIELDS),
            // Redis 8 may be built without its modules.
            Program::Redis8 => missed.common(Words::JSON.and(Words::SKETCHES)),
            Program::Valkey9 | Program::Ember => Words::NONE,
        }
    }

    /// Returns the name of the values that only commands of this group create.
    fn values(self) -> &'static str {
        match self {
            Words::FIELDS => "a hash whose fields expire",
            Words::VECTORS => "a vector set",
            Words::JSON => "a JSON document",
            Words::SKETCHES => "a sketch",
            _ => "a value of a kind that only ember stores",
        }
    }

    /// Returns the names of the programs that support this group.
    fn supporters(self) -> &'static str {
        match self {
            Words::FIELDS => "Redis 7.4, Valkey 9 and ember",
            Words::VECTORS => "Redis 8 and ember",
            Words::JSON => "Redis 8 with its modules and ember",
            Words::SKETCHES => "Redis 8 with its modules and ember",
            _ => "ember",
        }
    }
}

/// The commands that a replica supports, in addition to those of Redis 7.0.
#[derive(Clone, Copy)]
pub(super) struct Vocabulary {
    pub(super) program: Program,
    pub(super) known: Words,
    /// Groups of which commands could not be sent to the replica, so that its next snapshot must contain their effects.
    pub(super) missed: Words,
}

/// A check of the output to a replica that does not support all groups.
pub(super) struct Reader {
    known: Words,
    names: CommandNames,
}

/// The reason why the next bytes cannot be sent to a replica.
pub(super) struct Unsent {
    /// The group of the unsupported command, if an unsupported command is the reason.
    pub(super) words: Words,
    pub(super) reason: String,
}

impl Reader {
    /// Returns the reader for a replica that supports the groups `known` in addition to the commands of Redis 7.0;
    /// `None` if it supports all. The checked output must begin at the beginning of a command.
    pub(super) fn new(known: Words) -> Option<Reader> {
        (known != Words::ALL).then(|| Reader { known, names: CommandNames::default() })
    }

    /// Checks the bytes of `output` from byte `from` on, which are sent next.
    pub(super) fn read(&mut self, output: &Reply, from: usize) -> Result<(), Unsent> {
        let known = self.known;
        for bytes in output.slices(from) {
            let found = self.names.find(bytes, |part| {
                let words = Words::with(part);
                (!known.contains(words)).then(|| {
                    let name = match part {
                        Part::Name(name) => String::from_utf8_lossy(name).into_owned(),
                        Part::Payload(_) => format!("RESTORE of {}", words.values()),
                    };
                    (words, name)
                })
            });
            let (words, reason) = match found {
                Ok(None) => continue,
                Ok(Some((words, name))) => {
                    let who = words.supporters();
                    (
                        words,
                        format!(
                            "it cannot be sent {name}, which is only supported by {who}, and needs a full sync"
                        ),
                    )
                }
                Err(_) => (Words::NONE, "its position is inside a command".to_owned()),
            };
            return Err(Unsent { words, reason });
        }
        Ok(())
    }
}

/// The maximum number of replicas about which facts are remembered.
const MANY: usize = 64;

/// Time in ms after which missed commands no longer affect the choice of the next snapshot.
const MISSED_FOR_MS: i64 = 1_800_000;

#[derive(Clone, Copy, Default)]
struct Learnt {
    /// The groups that the replica supports without reporting them.
    known: Words,
    /// The groups of which commands could not be sent to the replica since its last full sync.
    missed: Words,
    /// When `known` or `missed` last changed, Unix time in ms.
    at_ms: i64,
}

/// Facts learned about replicas, which are identified by address and port.
#[derive(Default)]
pub(super) struct LearntWords(BTreeMap<String, Learnt>);

impl LearntWords {
    fn change(&mut self, name: String, now_ms: i64, change: impl FnOnce(&mut Learnt)) {
        if self.0.len() >= MANY
            && !self.0.contains_key(&name)
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, learnt)| learnt.at_ms).map(|(name, _)| name.clone())
        {
            self.0.remove(&oldest);
        }
        let learnt = self.0.entry(name).or_default();
        learnt.at_ms = now_ms;
        change(learnt);
    }

    /// Records that a replica has loaded a snapshot, which proves that it supports these groups.
    pub(super) fn record_loaded(&mut self, name: String, words: Words, now_ms: i64) {
        self.change(name, now_ms, |learnt| {
            learnt.known = learnt.known.and(words);
            learnt.missed = Words::NONE;
        });
    }

    /// Records that commands of these groups could not be sent to a replica.
    pub(super) fn record_unsent(&mut self, name: String, words: Words, now_ms: i64) {
        self.change(name, now_ms, |learnt| learnt.missed = learnt.missed.and(words));
    }

    /// Returns the groups that a replica is known to support, and the groups whose effects its next snapshot must
    /// contain.
    pub(super) fn of(&self, name: &str, now_ms: i64) -> (Words, Words) {
        self.0.get(name).map_or_else(Default::default, |learnt| {
            let is_recent = now_ms - learnt.at_ms < MISSED_FOR_MS;
            (learnt.known, if is_recent { learnt.missed } else { Words::NONE })
        })
    }
}

#[cfg(test)]
mod tests {
    use ember_protocol::Protocol;

    use super::*;

    #[test]
    fn commands_are_in_their_groups_in_any_case() {
        for (name, words) in [
            ("HPEXPIREAT", Words::FIELDS),
            ("hsetex", Words::FIELDS),
            ("VADD", Words::VECTORS),
            ("VADD_BATCH", Words::OWN),
            ("json.Set", Words::JSON),
            ("vector.Create", Words::OWN),
            ("bf.add", Words::SKETCHES),
            ("TDIGEST.MERGE", Words::SKETCHES),
            ("HSET", Words::NONE),
            ("VECTOR", Words::NONE),
            ("", Words::NONE),
        ] {
            assert_eq!(Words::with(Part::Name(name.as_bytes())), words, "{name}");
        }
    }

    #[test]
    fn unknown_commands_are_not_sent_and_ember_replicas_are_not_checked() {
        assert!(Reader::new(Words::of(Program::Ember)).is_none());
        let mut output = Reply::new(Protocol::Resp2);
        output.raw(b"+before\r\n*1\r\n$4\r\nVADD\r\n");
        let read =
            |known| Reader::new(known).expect("Redis 8 and Valkey lack commands").read(&output, 9).err();
        assert!(read(Words::of(Program::Redis8)).is_none());
        let unsent = read(Words::of(Program::Valkey9)).expect("Valkey lacks VADD");
        assert_eq!(unsent.words, Words::VECTORS);
        assert!(
            unsent.reason.contains("VADD, which is only supported by Redis 8 and ember"),
            "{}",
            unsent.reason
        );
    }

    #[test]
    fn payloads_are_in_the_group_of_their_values() {
        for (begin, words) in [
            (&b"\x00\x01v"[..], Words::NONE),
            (b"\x07\x81\x00\x00\x00", Words::VECTORS),
            (b"\x07\x810\x16\xe5\xa2\x89\xbe\xf8\x04", Words::SKETCHES),
            (b"\x16", Words::FIELDS),
            (b"\x18", Words::FIELDS),
            (b"\x19", Words::FIELDS),
            (b"", Words::NONE),
        ] {
            assert_eq!(Words::with(Part::Payload(begin)), words, "{}", begin.escape_ascii());
        }
    }

    #[test]
    fn missed_words_are_learned_or_forgotten() {
        let mut learnt = LearntWords::default();
        learnt.record_unsent("a:1".to_owned(), Words::FIELDS, 0);
        assert_eq!(learnt.of("a:1", 10), (Words::NONE, Words::FIELDS));
        assert_eq!(learnt.of("a:1", MISSED_FOR_MS), (Words::NONE, Words::NONE));
        learnt.record_loaded("a:1".to_owned(), Words::FIELDS, 20);
        assert_eq!(learnt.of("a:1", 30), (Words::FIELDS, Words::NONE));
        for number in 0..MANY {
            learnt.record_unsent(format!("b:{number}"), Words::OWN, 40);
        }
        assert_eq!((learnt.0.len(), learnt.of("a:1", 50)), (MANY, (Words::NONE, Words::NONE)));
    }
}
