//! CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO: client-side caching.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ember_protocol::Args;
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::template::OWN;
use crate::clients::tracking::{Choice, Prefixes, Tracking};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::server::Server;

pub(super) const TRACKING: ServerCommand = Command::new(
    Spec {
        name: "tracking",
        summary: "Enables or disables invalidations for client-side caching.",
        since: "6.0.0",
        complexity: "O(1). Some options may introduce additional complexity.",
        arity: -3,
        syntax: "status:<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] \
                 [NOLOOP]",
        example: Example { given: &[], call: "CLIENT TRACKING ON", reply: "OK" },
        ..OWN
    },
    Some(tracking),
);

pub(super) const CACHING: ServerCommand = Command::new(
    Spec {
        name: "caching",
        summary: "Sets whether the keys of the next command are tracked.",
        since: "6.0.0",
        arity: 3,
        syntax: "mode:<YES | NO>",
        example: Example { given: &["CLIENT TRACKING ON OPTIN"], call: "CLIENT CACHING YES", reply: "OK" },
        ..OWN
    },
    Some(caching),
);

pub(super) const GETREDIR: ServerCommand = Command::new(
    Spec {
        name: "getredir",
        summary: "Returns the client that receives this connection's invalidations; 0 for none, -1 while tracking is off.",
        since: "6.0.0",
        arity: 2,
        example: Example { given: &[], call: "CLIENT GETREDIR", reply: "(integer) -1" },
        ..OWN
    },
    Some(|session| {
        let tracking = session.client.tracking.as_deref();
        session.reply.integer(tracking.map_or(-1, |tracking| tracking.redirect.unwrap_or(0) as i64));
        Ok(Outcome::Done)
    }),
);

pub(super) const TRACKINGINFO: ServerCommand = Command::new(
    Spec {
        name: "trackinginfo",
        summary: "Returns the tracking state of the connection.",
        since: "6.2.0",
        arity: 2,
        example: Example {
            given: &[],
            call: "CLIENT TRACKINGINFO",
            reply: "1) \"flags\"\n2) 1) \"off\"\n3) \"redirect\"\n4) (integer) -1\n5) \"prefixes\"\n6) (empty array)",
        },
        ..OWN
    },
    Some(trackinginfo),
);

fn tracking(session: &mut Session<'_>) -> SessionResult {
    if is_word(session.args, 2, "OFF") {
        options(session.args, session.server)?;
        session.server.trackers.end(&session.client.view);
        session.client.tracking = None;
        session.client.caching = None;
    } else if is_word(session.args, 2, "ON") {
        let wanted = options(session.args, session.server)?;
        let tracking = Arc::new(agree(wanted, session.client.tracking.as_deref())?);
        session.server.trackers.begin(&session.client.view, Arc::clone(&tracking));
        session.client.tracking = Some(tracking);
        // From the next command of the batch on, changes are collected for the client.
        session.turn.notices.collects_changes = session.server.trackers.is_broadcasting();
    } else {
        return Err(CommandError::Syntax);
    }
    session.reply.ok();
    Ok(Outcome::Done)
}

/// The options of a CLIENT TRACKING call.
#[derive(Default)]
struct Options {
    is_broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    no_loop: bool,
    redirect: Option<u64>,
    prefixes: Vec<Vec<u8>>,
}

fn options(args: Args<'_>, server: &Server) -> Result<Options, CommandError> {
    let mut options = Options::default();
    let mut arg = 3;
    while arg < args.len() {
        let has_more = arg + 1 < args.len();
        if is_word(args, arg, "REDIRECT") && has_more {
            arg += 1;
            if options.redirect.is_some() {
                return Err("ERR A client can only redirect to a single other client".into());
            }
            let id = u64::try_from(integer(args, arg)?).ok();
            let id = id.filter(|&id| server.clients.get(id).is_some_and(|view| !view.is_cut()));
            options.redirect = Some(id.ok_or("ERR The client ID you want redirect to does not exist")?);
        } else if is_word(args, arg, "BCAST") {
            options.is_broadcast = true;
        } else if is_word(args, arg, "OPTIN") {
            options.opt_in = true;
        } else if is_word(args, arg, "OPTOUT") {
            options.opt_out = true;
        } else if is_word(args, arg, "NOLOOP") {
            options.no_loop = true;
        } else if is_word(args, arg, "PREFIX") && has_more {
            arg += 1;
            options.prefixes.push(args.at(arg).to_vec());
        } else {
            return Err(CommandError::Syntax);
        }
        arg += 1;
    }
    Ok(options)
}

/// Returns the client's new tracking options. Fails if the requested options contradict each other or the current
/// options.
fn agree(wanted: Options, now: Option<&Tracking>) -> Result<Tracking, CommandError> {
    if !wanted.prefixes.is_empty() && !wanted.is_broadcast {
        return Err("ERR PREFIX option requires BCAST mode to be enabled".into());
    }
    if now.is_some_and(|now| now.is_broadcast() != wanted.is_broadcast) {
        return Err(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then \
                    re-enabling it with a different mode."
                .into(),
        );
    }
    if wanted.is_broadcast && (wanted.opt_in || wanted.opt_out) {
        return Err("ERR OPTIN and OPTOUT are not compatible with BCAST".into());
    }
    if wanted.opt_in && wanted.opt_out {
        return Err("ERR You can't specify both OPTIN mode and OPTOUT mode".into());
    }
    let choice = match (wanted.opt_in, wanted.opt_out) {
        (true, _) => Choice::OptIn,
        (_, true) => Choice::OptOut,
        _ => Choice::All,
    };
    let switches =
        |now: &Tracking| now.choice != Choice::All && choice != Choice::All && now.choice != choice;
    if now.is_some_and(switches) {
        return Err(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
                    re-enabling it with a different mode."
                .into(),
        );
    }
    let prefixes = wanted.is_broadcast.then(|| join(wanted.prefixes, now)).transpose()?;
    Ok(Tracking {
        prefixes,
        choice,
        no_loop: wanted.no_loop,
        redirect: wanted.redirect,
        is_redirect_broken: AtomicBool::new(false),
    })
}

/// Returns the client's prefixes with the requested ones added in order; no prefix may begin with another. Without any
/// prefix, the empty prefix is used, which matches all keys.
fn join(wanted: Vec<Vec<u8>>, now: Option<&Tracking>) -> Result<Prefixes, CommandError> {
    let known = now.and_then(|now| now.prefixes.as_ref()).into_iter().flat_map(Prefixes::iter);
    // Maps each prefix to whether the client has it already.
    let mut all: BTreeMap<Vec<u8>, bool> = known.map(|prefix| (prefix.to_vec(), true)).collect();
    let wanted = if wanted.is_empty() && now.is_none() { vec![Vec::new()] } else { wanted };
    for prefix in wanted {
        if all.get(&prefix) == Some(&true) {
            continue;
        }
        // Existing prefixes do not overlap, so only the prefixes directly before and after the new one can overlap it.
        let before = all.range(..=prefix.clone()).next_back().filter(|(other, _)| prefix.starts_with(other));
        let after = || all.range(prefix.clone()..).next().filter(|(other, _)| other.starts_with(&prefix));
        if let Some((other, &is_known)) = before.or_else(after) {
            let which: &[u8] = if is_known { b"an existing" } else { b"another provided" };
            // If both prefixes are in this call, Redis's error names the earlier one first.
            let (first, second) = if is_known { (&prefix, other) } else { (other, &prefix) };
            let text = [
                b"ERR Prefix '",
                &first[..],
                b"' overlaps with ",
                which,
                b" prefix '",
                second,
                b"'. Prefixes for a single client must not overlap.",
            ];
            return Err(CommandError::Bytes(text.concat()));
        }
        all.insert(prefix, false);
    }
    Ok(Prefixes::from_sorted(all.into_keys()))
}

fn caching(session: &mut Session<'_>) -> SessionResult {
    let choice = session.client.tracking.as_deref().map_or(Choice::All, |tracking| tracking.choice);
    if choice == Choice::All {
        return Err(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT \
                    mode enabled"
                .into(),
        );
    }
    session.client.caching = if is_word(session.args, 2, "YES") {
        if choice != Choice::OptIn {
            return Err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.".into());
        }
        Some(true)
    } else if is_word(session.args, 2, "NO") {
        if choice != Choice::OptOut {
            return Err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.".into());
        }
        Some(false)
    } else {
        return Err(CommandError::Syntax);
    };
    session.reply.ok();
    Ok(Outcome::Done)
}

fn trackinginfo(session: &mut Session<'_>) -> SessionResult {
    let tracking = session.client.tracking.as_deref();
    let mut flags = vec![if tracking.is_some() { "on" } else { "off" }];
    if let Some(tracking) = tracking {
        let caching = session.client.caching;
        let flags_set = [
            (tracking.is_broadcast(), "bcast"),
            (tracking.choice == Choice::OptIn, "optin"),
            (tracking.choice == Choice::OptIn && caching == Some(true), "caching-yes"),
            (tracking.choice == Choice::OptOut, "optout"),
            (tracking.choice == Choice::OptOut && caching == Some(false), "caching-no"),
            (tracking.no_loop, "noloop"),
            (tracking.is_redirect_broken.load(Ordering::Relaxed), "broken_redirect"),
        ];
        flags.extend(flags_set.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name));
    }
    let reply = &mut *session.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.integer(tracking.map_or(-1, |tracking| tracking.redirect.unwrap_or(0) as i64));
    reply.bulk(b"prefixes");
    let prefixes = tracking.and_then(|tracking| tracking.prefixes.as_ref());
    reply.array(prefixes.map_or(0, Prefixes::len));
    prefixes.into_iter().flat_map(Prefixes::iter).for_each(|prefix| reply.bulk(prefix));
    Ok(Outcome::Done)
}
