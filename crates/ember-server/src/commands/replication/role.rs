//! ROLE.

use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "role",
        summary: "Tells that this server is a primary, its replication offset, and its replicas: none.",
        since: "2.8.12",
        group: Group::Server,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::FAST),
        categories: Category::ADMIN.union(Category::DANGEROUS),
        example: Example {
            given: &[],
            call: "ROLE",
            reply: "1) \"master\"\n2) (integer) 0\n3) (empty array)",
        },
        ..Spec::DEFAULT
    },
    Some(|session| {
        session.reply.array(3);
        session.reply.bulk(b"master");
        session.reply.integer(0);
        session.reply.array(0);
        Ok(Outcome::Done)
    }),
)];
