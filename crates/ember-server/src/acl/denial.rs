//! Why a call is not allowed.

use ember_protocol::Args;

use super::user::User;
use crate::catalogue::registry::Command;

/// Why a call is not allowed, with the index of the argument. Later variants have precedence: a selector that denies
/// with an earlier one allowed less of the call.
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
    /// Returns the sentence of ACL DRYRUN about a call of `user`, which names the key or channel, too.
    pub(crate) fn explain(self, user: &User, command: &Command, args: Args<'_>) -> Vec<u8> {
        let (verb, what, kind) = match self {
            Denial::Command => (&b"run"[..], command.full_name.as_bytes(), &b"command"[..]),
            Denial::Key(at) => (&b"access"[..], args.at(at), &b"key"[..]),
            Denial::Channel(at) => (&b"access"[..], args.at(at), &b"channel"[..]),
        };
        [b"User ", &*user.name, b" has no permissions to ", verb, b" the '", what, b"' ", kind].concat()
    }
}
