//! LCS.

use super::value;
use crate::algorithms::lcs::CommonSubsequence;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "lcs",
        summary: "Finds the longest common subsequence of two string values.",
        since: "7.0.0",
        group: Group::String,
        complexity: "O(N*M/64), N and M being the lengths of the strings",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::range(1, 2, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]",
        example: Example {
            given: &["MSET key1 ohmytext key2 mynewtext"],
            call: "LCS key1 key2",
            reply: "\"mytext\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(lcs),
)];

/// The size in bytes of a cell in Redis's table of lengths. ember's table takes one bit per cell, but the limit on the
/// work of one call is the same as in Redis: `proto-max-bulk-len` bytes of Redis's table.
const CELL_BYTES: usize = 4;

/// The number of cells of the table that are computed in the time of one step of a long-running call.
const CELLS_PER_STEP: usize = 2048;

#[derive(Default)]
struct Options {
    len: bool,
    idx: bool,
    with_match_len: bool,
    match_len_min: i64,
}

fn lcs(call: &mut Call<'_, '_>) -> AttemptResult {
    for arg in [1, 2] {
        let value = value::string(call.keys.read(arg));
        value.map_err(|_| "ERR The specified keys must contain string values")?;
    }
    let options = read_options(call)?;
    let (mut digits_a, mut digits_b) = (itoa::Buffer::new(), itoa::Buffer::new());
    let a = value::bytes_or_empty(value::string(call.keys.entry(1))?, &mut digits_a);
    let b = value::bytes_or_empty(value::string(call.keys.entry(2))?, &mut digits_b);
    let table_bytes = ((a.len() + 1) as u128) * ((b.len() + 1) as u128) * CELL_BYTES as u128;
    if table_bytes > call.keys.turn.settings.string_bytes_max as u128 {
        return Err("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len".into());
    }
    if a.len().saturating_mul(b.len()) / CELLS_PER_STEP > call.steps_max() {
        return Ok(Attempt::Offload);
    }
    if options.len {
        call.reply.integer(crate::algorithms::lcs::length(a, b) as i64);
        return Ok(Attempt::Done);
    }
    let common = CommonSubsequence::new(a, b);
    if !options.idx {
        call.reply.bulk(&common.bytes());
        return Ok(Attempt::Done);
    }
    let is_long = |len: usize| options.match_len_min <= 0 || len as i64 >= options.match_len_min;
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(common.matches().filter(|found| is_long(found.len)).count());
    for found in common.matches().filter(|found| is_long(found.len)) {
        call.reply.array(2 + usize::from(options.with_match_len));
        for start in [found.a, found.b] {
            call.reply.array(2);
            call.reply.integer(start as i64);
            call.reply.integer((start + found.len - 1) as i64);
        }
        if options.with_match_len {
            call.reply.integer(found.len as i64);
        }
    }
    call.reply.bulk(b"len");
    call.reply.integer(common.len() as i64);
    Ok(Attempt::Done)
}

fn read_options(call: &Call<'_, '_>) -> Result<Options, CommandError> {
    let args = call.args;
    let mut options = Options::default();
    let mut arg = 3;
    while arg < args.len() {
        if is_word(args, arg, "IDX") {
            options.idx = true;
        } else if is_word(args, arg, "LEN") {
            options.len = true;
        } else if is_word(args, arg, "WITHMATCHLEN") {
            options.with_match_len = true;
        } else if is_word(args, arg, "MINMATCHLEN") && arg + 1 < args.len() {
            arg += 1;
            options.match_len_min = integer(args, arg)?;
        } else {
            return Err(CommandError::Syntax);
        }
        arg += 1;
    }
    if options.idx && options.len {
        return Err("ERR If you want both the length and indexes, please just use IDX.".into());
    }
    Ok(options)
}
