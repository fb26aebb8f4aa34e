//! PFDEBUG DECODE, ENCODING, GETREG, TODENSE.

use super::value::bytes;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::commands::string::value::set_raw;
use crate::error::CommandError;
use crate::spec::{Category, Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hyperloglog::{self, Encoding, Opcode, Union};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "pfdebug",
        summary: "Shows the representation of a HyperLogLog: DECODE, ENCODING, GETREG; TODENSE changes it.",
        since: "2.8.9",
        group: Group::HyperLogLog,
        complexity: "O(1) with 16384 registers",
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::ADMIN),
        categories: Category::HYPERLOGLOG,
        keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::ACCESS))],
        syntax: "subcommand key",
        is_system: true,
        example: Example {
            given: &["PFADD visitors ann"],
            call: "PFDEBUG ENCODING visitors",
            reply: "sparse",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(pfdebug),
)];

fn pfdebug(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let Call { keys, reply, .. } = call;
    let mut key = keys.key(2);
    let bytes = bytes(key.entry())?.ok_or("ERR The specified key does not exist")?;
    let is_sparse = hyperloglog::encoding(bytes) == Some(Encoding::Sparse);
    if is_word(args, 1, "DECODE") {
        if !is_sparse {
            return Err("ERR HLL encoding is not sparse".into());
        }
        reply.bulk(decoded(bytes)?.as_bytes());
        return Ok(());
    }
    if is_word(args, 1, "ENCODING") {
        reply.simple(if is_sparse { "sparse" } else { "dense" });
        return Ok(());
    }
    let gets_registers = is_word(args, 1, "GETREG");
    if !gets_registers && !is_word(args, 1, "TODENSE") {
        return Err(CommandError::quoting("ERR Unknown PFDEBUG subcommand '", args.at(1), "'"));
    }
    let mut union = Union::default();
    union.add(bytes)?;
    if is_sparse {
        let mut dense = bytes.to_vec();
        hyperloglog::convert_to_dense(&mut dense)?;
        let expire_at_ms = key.expire_at_ms();
        set_raw(&mut key, dense, expire_at_ms);
    }
    if gets_registers {
        reply.array(union.registers().len());
        union.registers().iter().for_each(|&value| reply.integer(value.into()));
    } else {
        reply.integer(i64::from(is_sparse));
    }
    Ok(())
}

/// Returns the run-length encoding of a sparse HyperLogLog's registers as text.
fn decoded(bytes: &[u8]) -> Result<String, CommandError> {
    let mut runs = Vec::new();
    for opcode in hyperloglog::opcodes(bytes) {
        runs.push(match opcode? {
            Opcode::Zeros(len) => format!("z:{len}"),
            Opcode::ManyZeros(len) => format!("Z:{len}"),
            Opcode::Value { value, len } => format!("v:{value},{len}"),
        });
    }
    Ok(runs.join(" "))
}
