//! Why a call is not allowed.

use ember_protocol::Args;

use super::user::User;
use crate::catalogue::registry::Command;

/// Why a call is not allowed. The positions are those of arguments. Later reasons count for more, because a selector with
/// an earlier one came less far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denial {
    /// The command.
    Command,
    /// A key.
    Key(usize),
    /// A channel.
    Channel(usize),
}

impl Denial {
    /// The sentence about a call of `user` that ACL DRYRUN answers, which names the key or channel too.
    pub(crate) fn explain(self, user: &User, command: &Command, args: Args<'_>) -> Vec<u8> {
        let (verb, what, kind) = match self {
            Denial::Command => (&b"run"[..], command.full_name.as_bytes(), &b"command"[..]),
            Denial::Key(at) => (&b"access"[..], args.at(at), &b"key"[..]),
            Denial::Channel(at) => (&b"access"[..], args.at(at), &b"channel"[..]),
        };
        [b"User ", &*user.name, b" has no permissions to ", verb, b" the '", what, b"' ", kind].concat()
    }
}
