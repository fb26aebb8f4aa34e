//! OBJECT ENCODING, FREQ, HELP, IDLETIME, REFCOUNT.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::entries::entry::EntryRef;
use crate::keys::Lookup;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec, Values};
use crate::types::value::{StringValue, ValueType};

const TEMPLATE: Spec = Spec {
    group: Group::Generic,
    complexity: "O(1)",
    arity: 3,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(2, KeyFlags::RO)],
    tips: &["nondeterministic_output"],
    syntax: "key",
    values: Values::Unneeded,
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::container(
    Spec {
        name: "object",
        summary: "Contains subcommands that describe how a value is stored.",
        since: "2.2.3",
        group: Group::Generic,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    Run::Container,
    SUBCOMMANDS,
)];

const SUBCOMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "encoding",
            summary: "Returns the encoding of a key's value.",
            since: "2.2.3",
            example: Example { given: &["SET number 42"], call: "OBJECT ENCODING number", reply: "\"int\"" },
            ..TEMPLATE
        },
        Run::Keys(encoding),
    ),
    Command::new(
        Spec {
            name: "freq",
            summary: "Returns the logarithmic access counter of a key under an LFU policy.",
            since: "4.0.0",
            example: Example { given: &[], call: "OBJECT FREQ hello", reply: "(nil)" },
            ..TEMPLATE
        },
        Run::Keys(freq),
    ),
    Command::new(
        Spec {
            name: "help",
            summary: "Describes the subcommands.",
            since: "6.2.0",
            group: Group::Generic,
            arity: 2,
            flags: Flags::LOADING.union(Flags::STALE),
            example: Example {
                given: &[],
                call: "OBJECT HELP",
                reply: " 1) OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n 2) ENCODING <key>\n 3)     Return the encoding of the value of <key>.\n 4) FREQ <key>\n 5)     Return the access counter of <key>, which grows with the logarithm of their\n 6)     number. Only under an LFU policy.\n 7) IDLETIME <key>\n 8)     Return the seconds since the last access of <key>. Not under an LFU policy.\n 9) REFCOUNT <key>\n10)     Return the number of references to the value of <key>.\n11) HELP\n12)     Print this help.",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(help),
    ),
    Command::new(
        Spec {
            name: "idletime",
            summary: "Returns the seconds since the last access of a key, unless the policy is LFU.",
            since: "2.2.3",
            example: Example { given: &["SET hello 1"], call: "OBJECT IDLETIME hello", reply: "(integer) 0" },
            ..TEMPLATE
        },
        Run::Keys(idletime),
    ),
    Command::new(
        Spec {
            name: "refcount",
            values: Values::Needed,
            summary: "Returns the reference count of a key's value.",
            since: "2.2.3",
            example: Example {
                given: &["SET hello world"],
                call: "OBJECT REFCOUNT hello",
                reply: "(integer) 1",
            },
            ..TEMPLATE
        },
        Run::Keys(refcount),
    ),
];

const HELP: [&str; 12] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Return the encoding of the value of <key>.",
    "FREQ <key>",
    "    Return the access counter of <key>, which grows with the logarithm of their",
    "    number. Only under an LFU policy.",
    "IDLETIME <key>",
    "    Return the seconds since the last access of <key>. Not under an LFU policy.",
    "REFCOUNT <key>",
    "    Return the number of references to the value of <key>.",
    "HELP",
    "    Print this help.",
];

/// Redis stores one shared value for each of these integers, and reports this reference count for it.
const SHARED_INTEGERS: std::ops::Range<i64> = 0..10_000;
const SHARED_REFERENCES: i64 = i32::MAX as i64;

fn help(call: &mut Call<'_, '_>) -> CommandResult {
    call.reply.array(HELP.len());
    HELP.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}

fn entry<'x>(call: &'x mut Call<'_, '_>) -> Option<EntryRef<'x>> {
    call.keys.read_as(2, Lookup::Peek)
}

fn encoding(call: &mut Call<'_, '_>) -> CommandResult {
    match entry(call).map(EntryRef::encoding_name) {
        Some(name) => call.reply.bulk(name.as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}

fn reply_number(call: &mut Call<'_, '_>, number: Option<i64>) -> CommandResult {
    match number {
        Some(number) => call.reply.integer(number),
        None => call.reply.null(),
    }
    Ok(())
}

fn refcount(call: &mut Call<'_, '_>) -> CommandResult {
    let references = entry(call).map(|entry| match entry.value_type() {
        ValueType::String => match entry.string() {
            StringValue::Int(number) if SHARED_INTEGERS.contains(&number) => SHARED_REFERENCES,
            StringValue::Int(_) | StringValue::Inline(_) | StringValue::Large(_) => 1,
        },
        ValueType::List
        | ValueType::Set
        | ValueType::SortedSet
        | ValueType::Hash
        | ValueType::Stream
        | ValueType::VectorSet
        | ValueType::Json
        | ValueType::Bloom
        | ValueType::Cuckoo
        | ValueType::CountMin
        | ValueType::TopK
        | ValueType::TDigest => 1,
    });
    reply_number(call, references)
}

fn freq(call: &mut Call<'_, '_>) -> CommandResult {
    let clock = entry(call).map(EntryRef::clock);
    if clock.is_some() && !call.keys.turn.settings.policy.counts_uses() {
        return Err("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
                    switching between policies at runtime LRU and LFU data will take some time to adjust."
            .into());
    }
    let counter = clock.map(|clock| call.keys.turn.frequency(clock).into());
    reply_number(call, counter)
}

fn idletime(call: &mut Call<'_, '_>) -> CommandResult {
    let clock = entry(call).map(EntryRef::clock);
    if clock.is_some() && call.keys.turn.settings.policy.counts_uses() {
        return Err("ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching \
                    between policies at runtime LRU and LFU data will take some time to adjust."
            .into());
    }
    let seconds = clock.map(|clock| call.keys.turn.idle_seconds(clock) as i64);
    reply_number(call, seconds)
}
