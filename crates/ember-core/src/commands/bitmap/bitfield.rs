//! BITFIELD, BITFIELD_RO.

use ember_protocol::Args;
use ember_protocol::number::parse_i64;

use super::{scaled_bit_offset, value};
use crate::algorithms::bits::{FieldType, Overflow};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "bitfield",
            summary: "Reads and changes integers of any width at any bit of a string value.",
            since: "3.2.0",
            group: Group::Bitmap,
            complexity: "O(1) for each operation",
            arity: -2,
            flags: Flags::WRITE.union(Flags::DENYOOM),
            keys: &[KeySpec::one(
                1,
                KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE).union(KeyFlags::VARIABLE_FLAGS),
            )
            .with_notes("This command allows both access and modification of the key")],
            syntax: "key operation:[GET encoding offset | write:<[OVERFLOW <WRAP | SAT | FAIL>] write_operation:<SET encoding offset value | INCRBY encoding offset increment>>] ...",
            key_flags_of: Some(key_flags_of),
            example: Example {
                given: &[],
                call: "BITFIELD counters INCRBY u8 #1 250 OVERFLOW SAT INCRBY u8 #1 10 GET u4 8",
                reply: "1) (integer) 250\n2) (integer) 255\n3) (integer) 15",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(bitfield),
    ),
    Command::new(
        Spec {
            name: "bitfield_ro",
            summary: "Reads integers of any width at any bit of a string value.",
            since: "6.0.0",
            group: Group::Bitmap,
            complexity: "O(1) for each operation",
            arity: -2,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            syntax: "key [GET encoding offset [GET encoding offset ...]]",
            example: Example {
                given: &["SET letter A"],
                call: "BITFIELD_RO letter GET u8 0",
                reply: "1) (integer) 65",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(bitfield_ro),
    ),
];

/// Returns the key flags of a call: a call with only GET, with or without OVERFLOW, changes nothing; unknown operations
/// count as changes.
fn key_flags_of(args: Args<'_>) -> KeyFlags {
    let mut arg = 2;
    while arg < args.len() {
        let following = args.len() - arg - 1;
        if is_word(args, arg, "GET") && following >= 2 {
            arg += 3;
        } else if is_word(args, arg, "OVERFLOW") && following >= 1 {
            arg += 2;
        } else {
            return KeyFlags::RW | KeyFlags::ACCESS | KeyFlags::UPDATE;
        }
    }
    KeyFlags::RO | KeyFlags::ACCESS
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Get,
    Set(i64),
    Increment(i64),
}

#[derive(Clone, Copy, Debug)]
struct Step {
    field: FieldType,
    /// The offset of the field in bits.
    offset: u64,
    action: Action,
    overflow: Overflow,
}

impl Step {
    /// Runs the step. Returns the reply of the step (`None` if the number has overflowed under FAIL), and whether the
    /// string has changed: writing the same value is not a change, unless the string `has_grown` for this step.
    fn run(self, bytes: &mut [u8], has_grown: bool) -> (Option<i64>, bool) {
        let old = self.field.get(bytes, self.offset);
        let (wanted, reply_old) = match self.action {
            Action::Get => return (Some(old), false),
            Action::Set(number) => (self.field.argument(number), true),
            Action::Increment(number) => (i128::from(old) + i128::from(number), false),
        };
        let Some(new) = self.field.fit(wanted, self.overflow) else { return (None, false) };
        self.field.set(bytes, self.offset, new);
        (Some(if reply_old { old } else { new }), has_grown || new != old)
    }
}

fn bitfield(call: &mut Call<'_, '_>) -> CommandResult {
    let steps = read_steps(call)?;
    let len_written = steps.iter().filter(|step| !matches!(step.action, Action::Get));
    let Some(len_min) = len_written.map(|step| step.field.end_bytes(step.offset)).max() else {
        return reply_fields(call, &steps);
    };
    let mut key = call.keys.key(1);
    let has_grown = value::len(value::string(key.entry())?) < len_min;
    let reply = &mut *call.reply;
    reply.array(steps.len());
    let is_change = value::edit_bytes_maybe(&mut key, len_min, |bytes| {
        let mut is_change = false;
        for step in steps {
            let (number, is_step_change) = step.run(bytes, has_grown);
            is_change |= is_step_change;
            match number {
                Some(number) => reply.integer(number),
                None => reply.null(),
            }
        }
        is_change
    });
    if is_change {
        key.notify(super::SETBIT);
    }
    Ok(())
}

fn bitfield_ro(call: &mut Call<'_, '_>) -> CommandResult {
    let steps = read_steps(call)?;
    if steps.iter().any(|step| !matches!(step.action, Action::Get)) {
        return Err("ERR BITFIELD_RO only supports the GET subcommand".into());
    }
    reply_fields(call, &steps)
}

/// Writes the replies of steps that only read the string.
fn reply_fields(call: &mut Call<'_, '_>, steps: &[Step]) -> CommandResult {
    let mut digits = itoa::Buffer::new();
    let bytes = value::bytes_or_empty(value::string(call.keys.read(1))?, &mut digits);
    call.reply.array(steps.len());
    for step in steps {
        call.reply.integer(step.field.get(bytes, step.offset));
    }
    Ok(())
}

fn read_steps(call: &Call<'_, '_>) -> Result<Vec<Step>, CommandError> {
    let args = call.args;
    let mut steps = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut arg = 2;
    while arg < args.len() {
        let following = args.len() - arg - 1;
        if is_word(args, arg, "OVERFLOW") && following >= 1 {
            overflow = read_overflow(call, arg + 1)?;
            arg += 2;
            continue;
        }
        let is_get = is_word(args, arg, "GET") && following >= 2;
        let is_set = is_word(args, arg, "SET") && following >= 3;
        let is_increment = is_word(args, arg, "INCRBY") && following >= 3;
        if !is_get && !is_set && !is_increment {
            return Err(CommandError::Syntax);
        }
        let field = read_field_type(args.at(arg + 1))?;
        let offset = read_offset(call, arg + 2, field)?;
        let action = if is_get {
            Action::Get
        } else if is_set {
            Action::Set(integer(args, arg + 3)?)
        } else {
            Action::Increment(integer(args, arg + 3)?)
        };
        steps.push(Step { field, offset, action, overflow });
        arg += if is_get { 3 } else { 4 };
    }
    Ok(steps)
}

fn read_overflow(call: &Call<'_, '_>, arg: usize) -> Result<Overflow, CommandError> {
    let words = [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
    let found = words.into_iter().find(|(word, _)| is_word(call.args, arg, word));
    found.map(|(_, overflow)| overflow).ok_or_else(|| "ERR Invalid OVERFLOW type specified".into())
}

/// Parses a field type: `i` or `u` in lower case, followed by the width in bits.
fn read_field_type(text: &[u8]) -> Result<FieldType, CommandError> {
    let field = match text {
        [b'i', bits @ ..] => parse_i64(bits).and_then(|bits| FieldType::new(true, bits)),
        [b'u', bits @ ..] => parse_i64(bits).and_then(|bits| FieldType::new(false, bits)),
        _ => None,
    };
    field.ok_or_else(|| {
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
            .into()
    })
}

/// Parses an offset in bits or, after `#`, in multiples of the field's width.
fn read_offset(call: &Call<'_, '_>, arg: usize, field: FieldType) -> Result<u64, CommandError> {
    match call.args.at(arg) {
        [b'#', index @ ..] => scaled_bit_offset(call.keys.turn, index, field.bits()),
        offset => scaled_bit_offset(call.keys.turn, offset, 1),
    }
}
