//! ROLE: the replication role of the server, with its replicas or its primary.

use ember_protocol::Reply;
use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::replication::link::{Link, Phase};
use crate::replication::primary::Primary;
use crate::replication::primary::replica::Stage;
use crate::server::Server;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "role",
        summary: "Returns the role of this server: for a primary the replication offset and the replicas, for a replica its \
                  primary and the state of the link.",
        since: "2.8.12",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST),
        categories: Category::ADMIN.union(Category::DANGEROUS),
        example: Example { given: &[], call: "ROLE", reply: "1) \"master\"\n..." },
        ..Spec::DEFAULT
    },
    Some(role),
)];

fn role(session: &mut Session<'_>) -> SessionResult {
    match Link::report(session.server) {
        None => primary(session.server, session.reply),
        Some(link) => {
            let reply = &mut *session.reply;
            reply.array(5);
            reply.bulk(b"slave");
            reply.bulk(link.host.as_bytes());
            reply.integer(link.port.into());
            reply.bulk(link.phase.name().as_bytes());
            let applied =
                link.offsets.filter(|_| link.phase == Phase::Connected).map(|(_, applied)| applied as i64);
            reply.integer(applied.unwrap_or(-1));
        }
    }
    Ok(Outcome::Done)
}

fn primary(server: &Server, reply: &mut Reply) {
    let primary = Primary::of(server);
    let replicas = primary.replicas();
    let online: Vec<_> = replicas.iter().filter(|view| view.stage() == Stage::Online).collect();
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(primary.end() as i64);
    reply.array(online.len());
    for view in online {
        reply.array(3);
        reply.bulk(view.address.as_bytes());
        reply.bulk_integer(view.port.into());
        reply.bulk_integer(view.acknowledged() as i64);
    }
}
