//! TIME: returns the server's clock.

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "time",
        summary: "Returns the server's time: Unix time in seconds, and the microseconds of that second.",
        since: "2.6.0",
        group: Group::Server,
        arity: 1,
        flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
        tips: &["nondeterministic_output"],
        example: Example { given: &[], call: "TIME", reply: "..." },
        ..Spec::DEFAULT
    },
    Some(time),
)];

fn time(session: &mut Session<'_>) -> SessionResult {
    let now = session.turn.system_time();
    session.reply.array(2);
    session.reply.bulk(now.as_secs().to_string().as_bytes());
    session.reply.bulk(now.subsec_micros().to_string().as_bytes());
    Ok(Outcome::Done)
}
