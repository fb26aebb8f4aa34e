//! The user as which a connection makes its calls.

use std::fmt;
use std::sync::Arc;

use super::user::{DEFAULT_NAME, User};
use super::users::{Acl, Standing};

/// The user of a connection, and whether the connection has authenticated.
pub(crate) struct Identity {
    pub(crate) acl: &'static Acl,
    pub(crate) user: Arc<User>,
    /// The generation of the user table at the last lookup of `user`.
    pub(crate) generation: u64,
    /// Whether the connection has authenticated, or needed no password when it connected.
    pub(crate) has_authenticated: bool,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Identity {
    /// Returns the identity of a connection that has not authenticated: the default user.
    pub(crate) fn unknown(acl: &'static Acl) -> Identity {
        let Standing { user, is_open, generation } = acl.look_up(DEFAULT_NAME);
        let user = user.expect("the default user cannot be removed");
        Identity { acl, user, generation, has_authenticated: is_open }
    }

    /// Returns the user.
    pub(crate) fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Whether the user may make all calls, so that no call needs a check.
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.user.is_unrestricted()
    }

    /// Whether the connection has authenticated, or needed no password when it connected.
    pub(crate) fn has_authenticated(&self) -> bool {
        self.has_authenticated
    }
}
