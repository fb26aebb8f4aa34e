//! Prints a line of statistics every second (`--stat`).

use std::time::Duration;

use super::failure::Failure;
use super::key_scan::answered;
use crate::pause::pause;
use ember_client::Connection;
use ember_client::put;

/// Lines between two headers.
const LINES: u64 = 20;

const HEAD: &str = "------- data ------ --------------------- load -------------------- - child -\n\
                    keys       mem      clients blocked requests            connections          \n";

/// Prints lines until the connection ends.
pub(super) fn run(connection: &mut Connection, interval: Duration) -> Result<(), Failure> {
    let interval = if interval.is_zero() { Duration::from_secs(1) } else { interval };
    let mut last_requests = None;
    for number in 0u64.. {
        let info = answered(connection.ask(&["INFO"])?)?.text();
        if number.is_multiple_of(LINES) {
            put(HEAD.as_bytes());
        }
        let requests = field(&info, "total_commands_processed");
        put(line(&info, requests, requests - last_requests.unwrap_or(requests)).as_bytes());
        last_requests = Some(requests);
        pause(interval);
    }
    Ok(())
}

/// Returns the number in a field of INFO.
fn field(info: &str, name: &str) -> i64 {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

fn line(info: &str, requests: i64, more: i64) -> String {
    let databases = info.lines().filter(|line| line.starts_with("db"));
    let keys =
        databases.filter_map(|line| line.split_once("keys=")?.1.split(',').next()?.parse::<i64>().ok());
    let keys: i64 = keys.sum();
    let memory = human(field(info, "used_memory"));
    let requests = format!("{requests} (+{more})");
    let child = match (
        field(info, "rdb_bgsave_in_progress") != 0,
        field(info, "aof_rewrite_in_progress") != 0,
        field(info, "loading") != 0,
    ) {
        (_, _, true) => "LOAD",
        (true, true, _) => "SAVE+AOF",
        (true, false, _) => "SAVE",
        (false, true, _) => "AOF",
        _ => "",
    };
    format!(
        "{keys:<11}{memory:<9}{:<8}{:<8}{requests:<20}{:<12}{child}\n",
        field(info, "connected_clients"),
        field(info, "blocked_clients"),
        field(info, "total_connections_received")
    )
}

/// Formats a number of bytes in the largest unit in which it is at least 1.
fn human(bytes: i64) -> String {
    let bytes = bytes as f64;
    for (unit, letter) in [(1u64 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')] {
        if bytes >= unit as f64 {
            return format!("{:.2}{letter}", bytes / unit as f64);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_columns_of_redis_cli() {
        let info = "used_memory:1761607\r\nconnected_clients:1\r\nblocked_clients:0\r\ntotal_connections_received:114\r\n\
                    db0:keys=40,expires=0,avg_ttl=0\r\ndb3:keys=2,expires=0,avg_ttl=0\r\nrdb_bgsave_in_progress:1\r\n";
        assert_eq!(
            line(info, 1064, 0),
            "42         1.68M    1       0       1064 (+0)           114         SAVE\n"
        );
    }
}
