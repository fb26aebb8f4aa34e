//! DEBUG settings for tests, which stay in effect until the server exits.

use std::sync::atomic::{AtomicBool, Ordering};

use ember_protocol::number;
use emberkv_core::types::list;

use crate::executor::session::{Outcome, Session, SessionResult};
use crate::replication::primary::Primary;
use crate::server::debug_switches::DebugSwitches;
use crate::system::random_name::random_name;
use crate::tiers::Tiers;

/// The maximum threshold in bytes for large elements that Redis accepts.
const PACKED_THRESHOLD_MAX: u64 = (1 << 32) - (1 << 20);

fn switch(
    session: &mut Session<'_>,
    which: fn(&DebugSwitches) -> &AtomicBool,
    is_inverse: bool,
) -> SessionResult {
    let is_on = number::parse_i64(session.args.at(2)).is_some_and(|number| number != 0);
    which(&session.server.debug).store(is_on != is_inverse, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}

pub(super) fn set_active_expire(session: &mut Session<'_>) -> SessionResult {
    switch(session, |switches| &switches.keeps_expired, true)
}

pub(super) fn pause_cron(session: &mut Session<'_>) -> SessionResult {
    switch(session, |switches| &switches.pauses_periodic_work, false)
}

pub(super) fn set_disable_deny_scripts(session: &mut Session<'_>) -> SessionResult {
    switch(session, |switches| &switches.opens_scripts, false)
}

pub(super) fn set_skip_checksum_validation(session: &mut Session<'_>) -> SessionResult {
    let outcome = switch(session, |switches| &switches.skips_checksums, false);
    // The setting also applies to the next command of the same pipeline.
    session.turn.settings.payload_checks.checksum =
        !session.server.debug.skips_checksums.load(Ordering::Relaxed);
    outcome
}

pub(super) fn tier_cached_reads(session: &mut Session<'_>) -> SessionResult {
    switch(session, |switches| &switches.leaves_cached_reads, true)
}

pub(super) fn tier_hold_reads(session: &mut Session<'_>) -> SessionResult {
    let is_held = number::parse_i64(session.args.at(2)).is_some_and(|number| number != 0);
    Tiers::of(session.server).hold_reads(is_held);
    session.reply.ok();
    Ok(Outcome::Done)
}

pub(super) fn change_repl_id(session: &mut Session<'_>) -> SessionResult {
    let name =
        random_name().map_err(|error| format!("ERR the system provides no random numbers: {error}"))?;
    Primary::of(session.server).rename_history(name);
    session.reply.ok();
    Ok(Outcome::Done)
}

pub(super) fn aof_flush_sleep(session: &mut Session<'_>) -> SessionResult {
    let delay_us = number::parse_i64(session.args.at(2)).and_then(|delay_us| u64::try_from(delay_us).ok());
    let delay_us = delay_us.ok_or("ERR value is not an integer or out of range")?;
    session.server.debug.aof_write_delay_us.store(delay_us, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}

pub(super) fn quicklist_packed_threshold(session: &mut Session<'_>) -> SessionResult {
    let wrong = "ERR argument must be a memory value bigger than 1 and smaller than 4gb";
    let bytes = size(session.args.at(2)).filter(|&bytes| bytes <= PACKED_THRESHOLD_MAX).ok_or(wrong)?;
    list::set_large_element_bytes(if bytes == 0 {
        usize::MAX
    } else {
        usize::try_from(bytes).map_err(|_| wrong)?
    });
    session.reply.ok();
    Ok(Outcome::Done)
}

/// Parses a size in bytes, with or without a unit as in the configuration.
fn size(text: &[u8]) -> Option<u64> {
    let unit_at = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let unit = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    number::parse_u64(digits)?.checked_mul(unit)
}
