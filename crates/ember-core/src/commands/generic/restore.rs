//! RESTORE.

use ember_protocol::Args;

use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Key;
use crate::rdb::{self, RestoreError};
use crate::spec::{Category, Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::turn::Turn;
use crate::types::Collection;
use crate::types::hash::Hash;

/// A Unix time in ms before all expiries, for [`Hash::for_each`] to visit all fields.
const EVER_MS: i64 = i64::MIN;

const RESTORE: Spec = Spec {
    name: "restore",
    summary: "Creates a key from a payload of DUMP.",
    since: "2.6.0",
    group: Group::Generic,
    complexity: "O(N) for a value of N bytes, O(N*log(N)) for a sorted set.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Category::DANGEROUS,
    keys: &[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))],
    syntax: "key ttl serialized-value [REPLACE]@3.0.0 [ABSTTL]@5.0.0 [IDLETIME seconds]@5.0.0 [FREQ frequency]@5.0.0",
    history: &[
        ("3.0.0", "`REPLACE` came."),
        ("5.0.0", "`ABSTTL` came."),
        ("5.0.0", "`IDLETIME` and `FREQ` came."),
    ],
    example: Example {
        given: &[],
        call: "RESTORE number 0 \"\\x00\\xc0\\n\\x06\\x00\\xf8r?\\xc5\\xfb\\xfb_(\"",
        reply: "OK",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(RESTORE, Run::KeysOrLong { long_if: may_be_long, run: restore }),
    Command::new(
        Spec {
            name: "restore-asking",
            summary: "Same as RESTORE; nodes of a cluster use it to move keys.",
            since: "3.0.0",
            group: Group::Server,
            flags: RESTORE.flags.union(Flags::ASKING),
            categories: Category::KEYSPACE.union(Category::DANGEROUS),
            is_system: true,
            example: Example {
                given: &[],
                call: "RESTORE-ASKING number 0 \"\\x00\\xc0\\n\\x06\\x00\\xf8r?\\xc5\\xfb\\xfb_(\"",
                reply: "OK",
            },
            ..RESTORE
        },
        Run::KeysOrLong { long_if: may_be_long, run: restore },
    ),
];

/// The last use of the key, as the call specifies it.
#[derive(Clone, Copy)]
enum Usage {
    Unknown,
    /// The key was not used for this number of seconds.
    Idle(u64),
    /// The LFU counter of the key has this value.
    Frequency(u8),
}

impl Usage {
    /// Returns the eviction clock for this use; that of a new key if the policy uses another kind of clock.
    fn clock(self, turn: &Turn) -> u32 {
        match self {
            Usage::Idle(seconds) if !turn.settings.policy.counts_uses() => turn.idle_clock(seconds),
            Usage::Frequency(counter) if turn.settings.policy.counts_uses() => turn.frequency_clock(counter),
            _ => turn.new_clock(),
        }
    }
}

struct Options {
    replace: bool,
    is_absolute: bool,
    usage: Usage,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Options, CommandError> {
        let mut options = Options { replace: false, is_absolute: false, usage: Usage::Unknown };
        let mut arg = 4;
        while arg < args.len() {
            let has_value = arg + 1 < args.len();
            if is_word(args, arg, "REPLACE") {
                options.replace = true;
            } else if is_word(args, arg, "ABSTTL") {
                options.is_absolute = true;
            } else if is_word(args, arg, "IDLETIME")
                && has_value
                && !matches!(options.usage, Usage::Frequency(_))
            {
                arg += 1;
                let seconds = u64::try_from(integer(args, arg)?);
                options.usage = Usage::Idle(seconds.map_err(|_| "ERR Invalid IDLETIME value, must be >= 0")?);
            } else if is_word(args, arg, "FREQ") && has_value && !matches!(options.usage, Usage::Idle(_)) {
                arg += 1;
                let counter = u8::try_from(integer(args, arg)?);
                options.usage =
                    Usage::Frequency(counter.map_err(|_| "ERR Invalid FREQ value, must be >= 0 and <= 255")?);
            } else {
                return Err(CommandError::Syntax);
            }
            arg += 1;
        }
        Ok(options)
    }
}

/// Records the call with an absolute expiry. Replicas may run Redis 7.0 or Valkey 9, each of which refuses payloads in
/// versions of the other. A payload that some replicas cannot read is recorded in a form that all replicas can read,
/// followed by the expiries of hash fields, which that form cannot contain.
fn journal(key: &mut Key<'_>, args: Args<'_>, options: &Options, expire_at_ms: Option<i64>) {
    let is_for_all = rdb::is_for_stream(args.at(3));
    let own_payload = key.entry().filter(|_| !is_for_all).map(|entry| rdb::dump_for_stream(entry.into()));
    key.journal("RESTORE", |words| {
        words.integer(expire_at_ms.unwrap_or(0)).word(own_payload.as_deref().unwrap_or(args.at(3)));
        (4..args.len()).for_each(|arg| _ = words.word(args.at(arg)));
        if expire_at_ms.is_some() && !options.is_absolute {
            words.word(b"ABSTTL");
        }
    });
    if own_payload.is_some() {
        journal_field_expiries(key);
    }
}

/// Records the expiries of a hash's fields; does nothing for other values. O(n log n) for n fields with an expiry.
fn journal_field_expiries(key: &mut Key<'_>) {
    let mut expiring = Vec::new();
    if let Ok(Some(hash)) = key.value::<Hash>()
        && hash.next_expiry_ms().is_some()
    {
        hash.for_each(EVER_MS, |field| {
            if let Some(at_ms) = field.expire_at_ms {
                expiring.push((at_ms, field.name.bytes(&mut itoa::Buffer::new()).to_vec()));
            }
        });
    }
    expiring.sort_unstable();
    for fields in expiring.chunk_by(|(at_ms, _), (other_ms, _)| at_ms == other_ms) {
        key.journal_fields_expiry(fields[0].0, fields.iter().map(|(_, name)| name.as_slice()));
    }
}

/// The approximate number of bytes of a payload that are read in one step of a call, which includes computing their
/// checksum and building elements from them.
const BYTES_PER_STEP: usize = 64;

/// The size in bytes up to which reading a payload is always short.
const SHORT_PAYLOAD_BYTES: usize = 32 * 1024;

fn may_be_long(args: Args<'_>) -> bool {
    args.get(3).is_some_and(|payload| payload.len() > SHORT_PAYLOAD_BYTES)
}

fn restore(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    let options = Options::parse(args)?;
    let was_there = call.keys.key(1).exists();
    if was_there && !options.replace {
        return Err("BUSYKEY Target key name already exists.".into());
    }
    let ttl = integer(args, 2)?;
    if ttl < 0 {
        return Err("ERR Invalid TTL value, must be >= 0".into());
    }
    if args.at(3).len() / BYTES_PER_STEP > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    let settings = &call.keys.turn.settings;
    let value = rdb::restore(args.at(3), &settings.encoding, settings.payload_checks);
    let value = value.map_err(|error| match error {
        RestoreError::Footer => CommandError::from("ERR DUMP payload version or checksum are wrong"),
        RestoreError::Format => CommandError::from("ERR Bad data format"),
    });
    let mut value = value?;
    let (now_ms, past_ms) = (call.keys.turn.now_ms, call.keys.turn.past_ms());
    let expire_at_ms = match ttl {
        0 => None,
        _ if options.is_absolute => Some(ttl),
        _ => Some(ttl.saturating_add(now_ms)),
    };
    let clock = options.usage.clock(call.keys.turn);
    let mut key = call.keys.key(1);
    if value.is_over(past_ms) || expire_at_ms.is_some_and(|at_ms| at_ms <= past_ms) {
        if key.remove().is_some() {
            key.journal_removal_by_server();
            key.notify(Event::DEL);
        }
    } else {
        let mut buffer = Vec::new();
        drop(key.put(value.into_new(&mut buffer), expire_at_ms, clock));
        if key.is_journaled() {
            journal(&mut key, args, &options, expire_at_ms);
        }
        key.notify(Event::generic("restore"));
    }
    call.reply.ok();
    Ok(Attempt::Done)
}
