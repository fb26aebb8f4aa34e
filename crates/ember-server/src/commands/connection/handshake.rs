//! Flags that handshake commands share.

use emberkv_core::spec::Flags;

/// The flags of commands that a client may call before authentication.
pub(super) const HANDSHAKE: Flags = Flags::NOSCRIPT
    .union(Flags::LOADING)
    .union(Flags::STALE)
    .union(Flags::FAST)
    .union(Flags::NO_AUTH)
    .union(Flags::ALLOW_BUSY);
