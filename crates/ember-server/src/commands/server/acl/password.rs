//! ACL GENPASS: generates a random password.

use ember_protocol::number::parse_i64;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::TEMPLATE;
use crate::catalogue::registry::wrong_subcommand;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const GENPASS: ServerCommand = Command::new(
    Spec {
        name: "genpass",
        summary: "Generates a password of random hexadecimal digits.",
        complexity: "O(N) for N bits.",
        arity: -2,
        syntax: "[bits]",
        example: Example { given: &[], call: "ACL GENPASS 32", reply: "..." },
        ..TEMPLATE
    },
    Some(genpass),
);

/// The length of a password in bits if the call specifies no length.
const BITS_DEFAULT: usize = 256;

/// The maximum length of a password, in bits.
const BITS_MAX: usize = 4096;

const BITS_WRONG: &str = "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
                          number up to 4096";

fn genpass(session: &mut Session<'_>) -> SessionResult {
    let bits = match session.args.len() {
        2 => BITS_DEFAULT,
        3 => {
            let bits = parse_i64(session.args.at(2)).ok_or(CommandError::NotInteger)?;
            let bits = usize::try_from(bits).ok().filter(|bits| (1..=BITS_MAX).contains(bits));
            bits.ok_or(BITS_WRONG)?
        }
        _ => return Err(wrong_subcommand("ACL", session.args.at(1))),
    };
    let mut random = [0; BITS_MAX / 8];
    let digits = bits.div_ceil(4);
    let random = &mut random[..digits.div_ceil(2)];
    getrandom::fill(random).map_err(|error| format!("ERR the system provides no random numbers: {error}"))?;
    let mut password: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    password.truncate(digits);
    session.reply.bulk(password.as_bytes());
    Ok(Outcome::Done)
}
