//! What commands have in common that a client may call before it is known.

use emberkv_core::spec::Flags;

/// The flags of what a client may do before it is known.
pub(super) const HANDSHAKE: Flags = Flags::NOSCRIPT
    .union(Flags::LOADING)
    .union(Flags::STALE)
    .union(Flags::FAST)
    .union(Flags::NO_AUTH)
    .union(Flags::ALLOW_BUSY);
