//! The reasons for which a call is denied.

use ember_protocol::Args;

use super::user::User;
use crate::catalogue::registry::Command;

/// The part of a call that is denied, with the index of its argument. Later variants take precedence: a selector that
/// denies a call with a later variant allows more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denial {
    /// The command is not allowed.
    Command,
    /// The key at this argument index is not allowed.
    Key(usize),
    /// The channel at this argument index is not allowed.
    Channel(usize),
}

impl Denial {
    /// Returns the sentence of ACL DRYRUN about a call of `user`, including the denied key or channel.
    pub(crate) fn explain(self, user: &User, command: &Command, args: Args<'_>) -> Vec<u8> {
        let (verb, what, kind) = match self {
            Denial::Command => (&b"run"[..], command.full_name.as_bytes(), &b"command"[..]),
            Denial::Key(at) => (&b"access"[..], args.at(at), &b"key"[..]),
            Denial::Channel(at) => (&b"access"[..], args.at(at), &b"channel"[..]),
        };
        [b"User ", &*user.name, b" has no permissions to ", verb, b" the '", what, b"' ", kind].concat()
    }
}
