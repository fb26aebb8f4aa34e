//! JSON.OBJKEYS and JSON.OBJLEN.

use super::access::{
    self, READ, check_reply, missing_path_or, reply_all, reply_integers, reply_to_missing_key, select,
    type_name, unexpected,
};
use crate::call::{AttemptResult, Call, DataCommand, Run};
use crate::spec::{Command, Example, Spec};
use crate::types::json::packed::{self, Children, View};
use crate::types::json::path::Path;

const OBJKEYS: Spec = Spec {
    name: "json.objkeys",
    summary: "Returns the names of the members of the objects at a path of a JSON document.",
    arity: -2,
    syntax: "key [path]",
    example: Example {
        given: &["JSON.SET user $ '{\"name\":\"Ann\",\"age\":30}'"],
        call: "JSON.OBJKEYS user",
        reply: "1) \"name\"\n2) \"age\"",
    },
    ..READ
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(OBJKEYS, Run::Long(objkeys)),
    Command::new(
        Spec {
            name: "json.objlen",
            summary: "Returns the numbers of members of the objects at a path of a JSON document.",
            example: Example { call: "JSON.OBJLEN user", reply: "(integer) 2", ..OBJKEYS.example },
            ..OBJKEYS
        },
        Run::Long(objlen),
    ),
];

fn members(doc: &[u8], at: usize) -> Option<Children<'_>> {
    match packed::view(doc, at) {
        View::Object(members) => Some(members),
        _ => None,
    }
}

fn objkeys(call: &mut Call<'_, '_>) -> AttemptResult {
    access::read(call, 1, |json, args, reply| {
        let path = access::path(args, 2);
        let is_legacy = args.get(2).is_none_or(Path::is_legacy_text);
        let Some(json) = json else { return reply_to_missing_key(args.get(2), reply) };
        let selected = path.and_then(|path| Ok((select(json, &path)?, path)));
        let (found, path) = match selected {
            // An invalid legacy path is treated like a path that selects nothing.
            Err(_) if is_legacy => {
                reply.null();
                return Ok(());
            }
            selected => selected?,
        };
        check_reply(json, &found)?;
        let doc = json.packed();
        let objects: Vec<Option<Children<'_>>> = if !is_legacy {
            found.into_iter().map(|at| members(doc, at)).collect()
        } else if let Some(&first) = found.first() {
            vec![Some(members(doc, first).ok_or_else(|| missing_path_or(&path.full, "not an object"))?)]
        } else {
            vec![None]
        };
        reply_all(reply, &path, &objects, |reply, &members| {
            reply.array(members.len());
            members.for_each(|member| reply.bulk(member.name.unwrap_or_default()));
        });
        Ok(())
    })
}

fn objlen(call: &mut Call<'_, '_>) -> AttemptResult {
    access::read(call, 1, |json, args, reply| {
        let is_legacy = args.get(2).is_none_or(Path::is_legacy_text);
        let Some(json) = json else {
            return if is_legacy {
                reply.null();
                Ok(())
            } else {
                Err(missing_path_or(args.at(2), "not an object"))
            };
        };
        let selected = access::path(args, 2).and_then(|path| Ok((select(json, &path)?, path)));
        let (found, path) = match selected {
            Err(_) if is_legacy => {
                reply.null();
                return Ok(());
            }
            selected => selected?,
        };
        let doc = json.packed();
        let lens: Vec<Option<usize>> = if !is_legacy {
            found.into_iter().map(|at| members(doc, at).map(|members| members.len())).collect()
        } else if let Some(&first) = found.first() {
            let members = members(doc, first);
            let members = members.ok_or_else(|| unexpected("object", type_name(packed::view(doc, first))))?;
            vec![Some(members.len())]
        } else {
            vec![None]
        };
        reply_integers(reply, &path, &lens);
        Ok(())
    })
}
