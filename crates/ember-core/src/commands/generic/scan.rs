//! SCAN.
//!
//! A cursor is a shard's number above a hash tag ([`TAG_BITS`] bits): the iteration has returned all keys before that
//! place. Neither part changes its meaning when tables grow or shrink or keys move between groups, so a key that exists
//! from the first call to the last is returned exactly once, and the server keeps no state for cursors.

use ember_protocol::{Args, Mark, Reply};

use crate::algorithms::glob::{self, Case};
use crate::call::{CommandResult, DataCommand, KeyspaceCall, Run};
use crate::commands::arguments::{self, integer, is_word};
use crate::entries::entry::EntryRef;
use crate::entries::hash::TAG_BITS;
use crate::error::CommandError;
use crate::keyspace::SHARDS;
use crate::spec::{Command, Example, Flags, Group, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "scan",
        summary: "Returns some of the keys and a cursor to continue from; a whole iteration returns each key \
                  that existed throughout exactly once.",
        since: "2.8.0",
        group: Group::Generic,
        complexity: "O(COUNT) for a call, O(N) for a whole iteration over N keys.",
        arity: -2,
        flags: Flags::READONLY,
        tips: &["nondeterministic_output", "request_policy:special"],
        syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]@6.0.0",
        history: &[("6.0.0", "Option `TYPE`.")],
        example: Example { given: &["SET one 1"], call: "SCAN 0", reply: "1) \"0\"\n2) 1) \"one\"" },
        ..Spec::DEFAULT
    },
    Run::Keyspace(scan),
)];

/// The default value of `COUNT`.
const COUNT_DEFAULT: u64 = 10;

/// The maximum number of visited entries per requested key: a call whose pattern matches few keys returns fewer keys
/// than `COUNT` instead of taking long. Redis uses the same factor.
const VISITS_PER_COUNT: u64 = 10;

struct Options<'a> {
    pattern: Option<&'a [u8]>,
    count: u64,
    type_name: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options = Options { pattern: None, count: COUNT_DEFAULT, type_name: None };
        for arg in (2..args.len()).step_by(2) {
            if arg + 1 == args.len() {
                return Err(CommandError::Syntax);
            } else if is_word(args, arg, "COUNT") {
                let count = integer(args, arg + 1)?;
                options.count =
                    u64::try_from(count).ok().filter(|&count| count > 0).ok_or(CommandError::Syntax)?;
            } else if is_word(args, arg, "MATCH") {
                options.pattern = Some(args.at(arg + 1)).filter(|pattern| !glob::matches_all(pattern));
            } else if is_word(args, arg, "TYPE") {
                options.type_name = Some(args.at(arg + 1));
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }

    fn accept(&self, entry: EntryRef<'_>) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, entry.key(), Case::Sensitive))
            && self
                .type_name
                .is_none_or(|name| name.eq_ignore_ascii_case(entry.value_type().name().as_bytes()))
    }
}

/// The place at which an iteration continues: a shard and a hash tag.
#[derive(Clone, Copy)]
struct Cursor {
    shard: usize,
    tag: u32,
}

impl Cursor {
    fn of(number: u64) -> Cursor {
        // A cursor after the last shard means that the iteration is complete.
        let shard = usize::try_from(number >> TAG_BITS).map_or(SHARDS, |shard| shard.min(SHARDS));
        Cursor { shard, tag: number as u32 & ((1 << TAG_BITS) - 1) }
    }

    /// Returns the number of the cursor; 0 is the end.
    fn number(self) -> i64 {
        if self.shard >= SHARDS { 0 } else { (self.shard as i64) << TAG_BITS | i64::from(self.tag) }
    }
}

fn scan(call: &mut KeyspaceCall<'_>) -> CommandResult {
    let mut cursor = Cursor::of(arguments::cursor(call.args, 1)?);
    let options = Options::parse(call.args)?;
    let mut keys = Reply::new(call.reply.protocol());
    let (mut returned, mut examined) = (0, 0);
    let visits_max = options.count.saturating_mul(VISITS_PER_COUNT);
    // Empty shards cost one lock each and do not count as visits: an iteration visits at most SHARDS of them.
    while cursor.shard < SHARDS && returned < options.count && examined < visits_max {
        let mut data = call.keyspace.lock(cursor.shard);
        let table = data.database(call.database).table();
        let mut expired = Vec::new();
        let mut next = Some(cursor.tag);
        while let Some(tag) = next
            && returned < options.count
            && examined < visits_max
        {
            next = table.scan(tag, |entry| {
                examined += 1;
                if entry.is_expired(call.turn.expired_ms()) {
                    if !call.turn.keeps_expired {
                        expired.push(entry.key().to_vec());
                    }
                } else if options.accept(entry) {
                    keys.bulk(entry.key());
                    returned += 1;
                }
            });
        }
        for key in expired {
            data.expire_key(call.database, call.keyspace.hash(&key), &key, call.turn);
        }
        call.turn.growth_bytes += call.keyspace.release(cursor.shard, data);
        cursor = match next {
            Some(tag) => Cursor { tag, ..cursor },
            None => Cursor { shard: cursor.shard + 1, tag: 0 },
        };
    }
    call.reply.array(2);
    call.reply.bulk_integer(cursor.number());
    call.reply.array(returned as usize);
    call.reply.append_from(&keys, Mark::default(), keys.mark());
    Ok(())
}
