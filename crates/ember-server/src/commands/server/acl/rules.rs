//! ACL SETUSER, GETUSER and DRYRUN: change, show and test the rules of one user.

use ember_protocol::Reply;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::ADMIN;
use crate::acl::rule::has_spaces;
use crate::acl::users::Revocation;
use crate::clients::ending::EndReason;
use crate::clients::subscriptions::Kind;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const SETUSER: ServerCommand = Command::new(
    Spec {
        name: "setuser",
        summary: "Creates a user or changes its rules, either all given rules or none.",
        complexity: "O(N) for N rules.",
        arity: -3,
        syntax: "username [rule [rule ...]]",
        history: &[("6.2.0", "Patterns of channels."), ("7.0.0", "Selectors, and permissions for keys.")],
        is_secret: Some(|_, arg| arg >= 2),
        example: Example { given: &[], call: "ACL SETUSER alice on >secret ~shop:* +@read", reply: "OK" },
        ..ADMIN
    },
    Some(setuser),
);

pub(super) const GETUSER: ServerCommand = Command::new(
    Spec {
        name: "getuser",
        summary: "Returns the rules of a user.",
        complexity: "O(N) for N rules.",
        arity: 3,
        syntax: "username",
        history: &[
            ("6.2.0", "Patterns of channels."),
            ("7.0.0", "Selectors; patterns of keys and channels as rules instead of a list."),
        ],
        is_secret: Some(|_, arg| arg == 2),
        example: Example { given: &[], call: "ACL GETUSER nobody", reply: "(nil)" },
        ..ADMIN
    },
    Some(getuser),
);

pub(super) const DRYRUN: ServerCommand = Command::new(
    Spec {
        name: "dryrun",
        summary: "Returns whether a user may run a command, without running it.",
        since: "7.0.0",
        complexity: "O(N) for N rules.",
        arity: -4,
        syntax: "username command [arg [arg ...]]",
        example: Example {
            given: &["ACL SETUSER bob +get ~shop:*"],
            call: "ACL DRYRUN bob GET stock",
            reply: "\"User bob has no permissions to access the 'stock' key\"",
        },
        ..ADMIN
    },
    Some(dryrun),
);

fn setuser(session: &mut Session<'_>) -> SessionResult {
    let name = session.args.at(2);
    if has_spaces(name) {
        return Err("ERR Usernames can't contain spaces or null characters".into());
    }
    let (server, rules) = (session.server, session.args.skip(3));
    let set = server.acl.set_user(name, rules.iter(), server.grammar());
    let revocation = set.map_err(|error| [b"ERR ", &*error].concat())?;
    session.reply.ok();
    Ok(revocation.map_or(Outcome::Done, |revocation| close_listeners(session, &revocation)))
}

/// Closes the connections whose user has lost access to channels of their subscriptions. The caller's own connection is
/// closed after its reply.
fn close_listeners(session: &Session<'_>, revocation: &Revocation) -> Outcome {
    let server = session.server;
    let is_revoked = |kind, name: &[u8]| !revocation.allows(name, kind == Kind::Pattern);
    let mut outcome = Outcome::Done;
    for address in server.pubsub.subscribers(is_revoked) {
        let Some(view) = server.clients.get(address.client_id) else { continue };
        if !revocation.concerns(&view.user.lock()) {
            continue;
        }
        if view.id == session.client.view.id {
            server.begin_ending(&view, EndReason::AfterReplies);
            outcome = Outcome::Close;
        } else {
            server.kill(&view, EndReason::Killed);
        }
    }
    outcome
}

fn getuser(session: &mut Session<'_>) -> SessionResult {
    let Some(user) = session.server.acl.find(session.args.at(2)) else {
        session.reply.null();
        return Ok(Outcome::Done);
    };
    let reply = &mut *session.reply;
    reply.map(6);
    reply.bulk(b"flags");
    let flags: Vec<&str> = user.flags().collect();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords().len());
    user.passwords().for_each(|digits| reply.bulk(digits.as_bytes()));
    let mut selectors = user.selectors();
    let describe = |reply: &mut Reply, facts: [(&str, Vec<u8>); 3]| {
        for (name, rules) in facts {
            reply.bulk(name.as_bytes());
            reply.bulk(&rules);
        }
    };
    describe(reply, selectors.next().expect("every user has a root selector"));
    reply.bulk(b"selectors");
    reply.array(selectors.len());
    for facts in selectors {
        reply.map(facts.len());
        describe(reply, facts);
    }
    Ok(Outcome::Done)
}

fn dryrun(session: &mut Session<'_>) -> SessionResult {
    let name = session.args.at(2);
    let user = session.server.acl.find(name);
    let user = user.ok_or_else(|| CommandError::quoting("ERR User '", name, "' not found"))?;
    let (registry, call) = (&session.server.registry, session.args.skip(3));
    let command = registry.find(call.at(0)).and_then(|command| match call.get(1) {
        Some(name) if !command.subcommands.is_empty() => registry.find_in(command, name),
        _ => Some(command),
    });
    let unknown = || CommandError::quoting("ERR Command '", call.at(0), "' not found");
    let command = command.ok_or_else(unknown)?;
    if !command.spec.accepts(call.len()) {
        return Err(CommandError::WrongArity(command.full_name.clone().into()));
    }
    match user.check(command, call) {
        Ok(()) => session.reply.ok(),
        Err(denial) => session.reply.bulk(&denial.explain(&user, command, call)),
    }
    Ok(Outcome::Done)
}
