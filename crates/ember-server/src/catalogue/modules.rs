//! The modules of Redis Stack whose commands are built in.

use ember_protocol::Reply;
use emberkv_core::spec::Group;

/// The modules whose commands are built in: their names, and the versions with whose commands ember is tested. Client
/// libraries use commands only if the server lists their module.
pub(crate) const BUILT_IN: [(&str, i64); 2] = [("ReJSON", 20803), ("bf", 20802)];

/// Returns the name of the module that has the commands of a group in Redis Stack.
pub(crate) fn module_of(group: Group) -> Option<&'static str> {
    match group {
        Group::Json => Some(BUILT_IN[0].0),
        Group::Bloom | Group::Cuckoo | Group::CountMin | Group::TopK | Group::TDigest => Some(BUILT_IN[1].0),
        _ => None,
    }
}

/// Replies with the list of modules.
pub(crate) fn reply_modules(reply: &mut Reply) {
    reply.array(BUILT_IN.len());
    for (name, version) in BUILT_IN {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(name.as_bytes());
        reply.bulk(b"ver");
        reply.integer(version);
        reply.bulk(b"path");
        reply.bulk(b"");
        reply.bulk(b"args");
        reply.array(0);
    }
}
