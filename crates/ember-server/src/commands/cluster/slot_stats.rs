//! CLUSTER SLOT-STATS: the number of keys of the slots of this node.

use ember_cluster::slots::SLOTS;
use ember_protocol::Args;
use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;

use super::{node_of, slot};
use crate::catalogue::registry::wrong_subcommand;
use crate::executor::session::{Outcome, Session, SessionResult};

/// The order of the slots in the reply.
struct Order {
    is_descending: bool,
    limit: usize,
}

pub(super) fn slot_stats(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    let args = session.args;
    let (range, order) = if args.len() == 5 && is_word(args, 2, "SLOTSRANGE") {
        let (first, last) = (slot(args, 3)?, slot(args, 4)?);
        if first > last {
            let error = format!("ERR Start slot number {first} is greater than end slot number {last}");
            return Err(error.into());
        }
        (first..=last, None)
    } else if is_word(args, 2, "ORDERBY") {
        if !is_word(args, 3, "KEY-COUNT") {
            return Err("ERR Unrecognized sort metric for ORDERBY.".into());
        }
        (0..=SLOTS as u16 - 1, Some(order(args)?))
    } else {
        return Err(wrong_subcommand("CLUSTER", args.at(1)));
    };
    let counts = session.server.keyspace.slot_counts();
    let mine = range.filter(|&slot| view.topology.owns(slot));
    let mut found: Vec<(u16, usize)> = mine.map(|slot| (slot, counts[usize::from(slot)])).collect();
    if let Some(Order { is_descending, limit }) = order {
        // Slots with equal counts stay in ascending order.
        match is_descending {
            true => found.sort_by_key(|&(_, count)| std::cmp::Reverse(count)),
            false => found.sort_by_key(|&(_, count)| count),
        }
        found.truncate(limit);
    }
    session.reply.array(found.len());
    for (slot, count) in found {
        session.reply.array(2);
        session.reply.integer(slot.into());
        session.reply.map(1);
        session.reply.bulk(b"key-count");
        session.reply.integer(count as i64);
    }
    Ok(Outcome::Done)
}

fn order(args: Args<'_>) -> Result<Order, CommandError> {
    let (mut limit, mut is_descending) = (None, None);
    let mut arg = 4;
    while arg < args.len() {
        if is_word(args, arg, "LIMIT") && arg + 1 < args.len() && limit.is_none() {
            arg += 1;
            let count = parse_i64(args.at(arg)).and_then(|count| usize::try_from(count).ok());
            let count = count.filter(|count| (1..=SLOTS).contains(count));
            let wrong = "ERR Limit has to lie in between 1 and 16384 (maximum number of slots).";
            limit = Some(count.ok_or(wrong)?);
        } else if is_word(args, arg, "ASC") && is_descending.is_none() {
            is_descending = Some(false);
        } else if is_word(args, arg, "DESC") && is_descending.is_none() {
            is_descending = Some(true);
        } else {
            return Err(CommandError::Syntax);
        }
        arg += 1;
    }
    Ok(Order { is_descending: is_descending.unwrap_or(true), limit: limit.unwrap_or(SLOTS) })
}
