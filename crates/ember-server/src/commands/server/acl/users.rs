//! ACL DELUSER, LIST, USERS and WHOAMI: delete and list users.

use emberkv_core::spec::{Command, Example, Spec};

use super::{ADMIN, TEMPLATE, close_connections};
use crate::acl::user::DEFAULT_NAME;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const DELUSER: ServerCommand = Command::new(
    Spec {
        name: "deluser",
        summary: "Removes users and closes their connections.",
        complexity: "O(N) for N users named, and O(C) for C connections.",
        arity: -3,
        syntax: "username [username ...]",
        is_secret: Some(|_, arg| arg >= 2),
        example: Example {
            given: &["ACL SETUSER bob"],
            call: "ACL DELUSER bob nobody",
            reply: "(integer) 1",
        },
        ..ADMIN
    },
    Some(deluser),
);

pub(super) const LIST: ServerCommand = Command::new(
    Spec {
        name: "list",
        summary: "Returns all users with their rules, in the form of the ACL file.",
        complexity: "O(N) for N users.",
        arity: 2,
        example: Example { given: &[], call: "ACL LIST", reply: "..." },
        ..ADMIN
    },
    Some(|session| {
        let users = session.server.acl.all();
        session.reply.array(users.len());
        users.iter().for_each(|user| session.reply.bulk(&user.line()));
        Ok(Outcome::Done)
    }),
);

pub(super) const USERS: ServerCommand = Command::new(
    Spec {
        name: "users",
        summary: "Returns the names of all users.",
        complexity: "O(N) for N users.",
        arity: 2,
        example: Example { given: &[], call: "ACL USERS", reply: "..." },
        ..ADMIN
    },
    Some(|session| {
        let users = session.server.acl.all();
        session.reply.array(users.len());
        users.iter().for_each(|user| session.reply.bulk(&user.name));
        Ok(Outcome::Done)
    }),
);

pub(super) const WHOAMI: ServerCommand = Command::new(
    Spec {
        name: "whoami",
        summary: "Returns the user of the connection.",
        complexity: "O(1)",
        arity: 2,
        example: Example { given: &[], call: "ACL WHOAMI", reply: "\"default\"" },
        ..TEMPLATE
    },
    Some(|session| {
        session.reply.bulk(&session.client.identity.user().name);
        Ok(Outcome::Done)
    }),
);

fn deluser(session: &mut Session<'_>) -> SessionResult {
    let names = session.args.skip(2);
    if names.iter().any(|name| name == DEFAULT_NAME) {
        return Err("ERR The 'default' user cannot be removed".into());
    }
    let removed: Vec<_> = names.iter().filter_map(|name| session.server.acl.remove(name)).collect();
    session.reply.integer(removed.len() as i64);
    close_connections(session, &removed);
    Ok(Outcome::Done)
}
