//! ACL CAT: lists the command categories, or the commands of one.

use emberkv_core::error::{CommandError, quoted};
use emberkv_core::spec::{Category, Command, Example, Spec};

use super::TEMPLATE;
use crate::acl::selector::category_named;
use crate::catalogue::registry::wrong_subcommand;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const CAT: ServerCommand = Command::new(
    Spec {
        name: "cat",
        summary: "Returns the command categories, or the commands of one.",
        complexity: "O(N) for N commands.",
        arity: -2,
        syntax: "[categoryname]",
        example: Example { given: &[], call: "ACL CAT transaction", reply: "..." },
        ..TEMPLATE
    },
    Some(cat),
);

fn cat(session: &mut Session<'_>) -> SessionResult {
    let names: Vec<&str> = match session.args.len() {
        2 => Category::NAMES.iter().map(|&(_, name)| name).collect(),
        3 => {
            let name = session.args.at(2);
            let unknown = || CommandError::quoting("ERR Unknown category '", quoted(name), "'");
            let category = category_named(name).ok_or_else(unknown)?;
            let all = session.server.registry.all().iter();
            let found = all.filter(|command| command.spec.all_categories().contains(category));
            found.map(|command| command.full_name.as_str()).collect()
        }
        _ => return Err(wrong_subcommand("ACL", session.args.at(1))),
    };
    session.reply.array(names.len());
    names.iter().for_each(|name| session.reply.bulk(name.as_bytes()));
    Ok(Outcome::Done)
}
