//! READONLY, READWRITE and ASKING.

use std::sync::atomic::Ordering;

use super::node_of;
use crate::executor::session::{Outcome, Session, SessionResult};

pub(super) fn readonly(session: &mut Session<'_>) -> SessionResult {
    set(session, true)
}

pub(super) fn readwrite(session: &mut Session<'_>) -> SessionResult {
    set(session, false)
}

fn set(session: &mut Session<'_>, is_readonly: bool) -> SessionResult {
    node_of(session.server)?;
    session.client.view.is_readonly.store(is_readonly, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Handles ASKING. It has no effect, because a slot is never imported while another node serves it.
pub(super) fn asking(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    session.reply.ok();
    Ok(Outcome::Done)
}
