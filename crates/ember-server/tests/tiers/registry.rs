//! Every command in the table of reply shapes has the same reply, whether the values of its keys are resident, cold, or
//! being fetched by another client.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::time::Duration;

use ember_testkit::{RawClient, Server, becomes_true, split_arguments, wait_until};

use crate::{MODES, figure, start, texts};

const TABLE: &str = include_str!("../administration/reply_shapes.txt");

/// The first words of calls that are not compared, each with the reason. The table contains no rows for SHUTDOWN,
/// BGSAVE, BGREWRITEAOF, PSYNC and SYNC.
const LEFT_OUT: [(&str, &str); 3] = [
    ("debug object", "its reply has seconds"),
    ("tiering tier", "its reply says where the value is"),
    ("waitaof", "a checkpoint makes values durable before their demotion, which its reply shows"),
];

/// Further rows, of all types and of calls whose keys do not follow from their own arguments. Each of these calls must
/// wait for a value that is being read.
const WAITING: [&str; 12] = [
    "APPEND s w <- SET s v",
    "GET s <- SET s v",
    "LRANGE l 0 -1 <- RPUSH l a b",
    "SMEMBERS s <- SADD s a",
    "HGETALL h <- HSET h f v",
    "ZRANGE z 0 -1 WITHSCORES <- ZADD z 1 a",
    "XRANGE x - + <- XADD x 1-1 f v",
    "RENAME s t <- SET s v",
    "COPY s t <- SET s v",
    "SORT l BY w_* <- RPUSH l a b; SET w_a 2; SET w_b 1",
    "EXEC <- SET s v; RPUSH l a; MULTI; GET s; LRANGE l 0 -1",
    "EVAL \"return redis.call('GET', KEYS[1])\" 1 s <- SET s v",
];

/// A call to compare, and the calls that precede it.
struct Row {
    given: Vec<String>,
    call: String,
    has_to_wait: bool,
}

fn rows() -> Vec<Row> {
    let mut lines: Vec<String> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("      ") {
            Some(continued) => *lines.last_mut().unwrap() += &format!(" {continued}"),
            None => lines.push(line.to_owned()),
        }
    }
    let calls = lines.iter().map(String::as_str).filter(|line| !line.starts_with("    "));
    let calls = calls.map(|line| (line, false)).chain(WAITING.map(|line| (line, true)));
    let rows = calls.map(|(line, has_to_wait)| {
        let (call, given) = line.split_once(" <- ").unwrap_or((line, ""));
        let given = given.split("; ").filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Row { given, call: call.to_owned(), has_to_wait }
    });
    let is_wanted = |row: &Row| {
        let call = row.call.to_lowercase();
        !LEFT_OUT.iter().any(|(beginning, _)| call.starts_with(beginning))
    };
    rows.filter(is_wanted).collect()
}

/// The residency of the values that a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Residency {
    Resident,
    Cold,
    InFlight,
}

/// The outcome of a call.
struct Run {
    reply: Vec<u8>,
    /// The number of values that were cold.
    cold: usize,
    /// Whether the call has waited for a fetch that another client had requested.
    has_waited: bool,
}

/// Runs a row on an empty server.
fn run(server: &Server, protocol: &str, row: &Row, residency: Residency) -> Run {
    let (mut client, mut other) = (server.client(), server.client());
    client.command(&["HELLO", protocol]);
    client.command(&["FLUSHALL"]);
    for line in &row.given {
        client.command(&split_arguments(line).unwrap());
    }
    let mut cold = Vec::new();
    if residency != Residency::Resident && !row.given.is_empty() {
        save(&mut other);
        for key in texts(&other.command(&["KEYS", "*"])) {
            if !other.command(&["DEBUG", "TIER", "DEMOTE", &key]).is_error() {
                cold.push(key);
            }
        }
    }
    let call = split_arguments(&row.call).unwrap();
    if residency != Residency::InFlight || cold.is_empty() {
        client.send_command(&call).unwrap();
        return Run { reply: client.read_raw().unwrap(), cold: cold.len(), has_waited: false };
    }
    let mut reader = server.client();
    other.command(&["DEBUG", "TIER-HOLD-READS", "1"]);
    let dumps: Vec<u8> = cold.iter().flat_map(|key| ember_testkit::encode(&["DUMP", key])).collect();
    reader.send(&dumps).unwrap();
    let reads = cold.len() as u64;
    wait_until("the values are requested", || figure(&mut other, "reads_waiting") == reads);
    let joined = figure(&mut other, "fetches_joined");
    client.send_command(&call).unwrap();
    let mut has_waited = false;
    let is_known = becomes_true(|| {
        has_waited = figure(&mut other, "fetches_joined") > joined;
        has_waited || has_reply(&mut client)
    });
    assert!(is_known, "{} has neither replied nor requested a value", row.call);
    assert!(!has_waited || !has_reply(&mut client), "{} has not waited for the value", row.call);
    other.command(&["DEBUG", "TIER-HOLD-READS", "0"]);
    let reply = client.read_raw().unwrap();
    cold.iter().for_each(|_| _ = reader.read_value().unwrap());
    Run { reply, cold: cold.len(), has_waited }
}

/// Whether a reply has begun to arrive.
fn has_reply(client: &mut RawClient) -> bool {
    client.set_timeout(Duration::from_millis(1)).unwrap();
    let found = client.is_closed();
    client.set_timeout(Duration::from_secs(60)).unwrap();
    match found {
        Ok(is_closed) => !is_closed,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
            false
        }
    }
}

/// Writes a checkpoint of all values to a store, if there is one: a server with a store demotes only stored values.
fn save(client: &mut RawClient) {
    if client.info("ember_store") == "map" {
        return;
    }
    let is_over = |client: &mut RawClient| {
        client.run("INFO persistence").text().contains("\r\naof_rewrite_in_progress:0\r\n")
    };
    // The server writes checkpoints of its own, too.
    wait_until("a checkpoint can begin", || !client.run("BGREWRITEAOF").is_error());
    wait_until("the checkpoint has ended", || is_over(client));
}

/// Whether the reply to a call depends on chance or time.
fn depends_on_chance(client: &mut RawClient, call: &str) -> bool {
    let words = split_arguments(call).unwrap();
    let name = String::from_utf8_lossy(&words[0]).to_lowercase();
    let with_next =
        words.get(1).map(|next| format!("{name}|{}", String::from_utf8_lossy(next).to_lowercase()));
    let names = [Some(name), with_next].into_iter().flatten();
    names.into_iter().any(|name| {
        let facts = client.command(&["COMMAND", "INFO", &name]);
        ember_testkit::render(&facts).contains("nondeterministic_output")
    })
}

// One test for each mode and protocol, so that they run at the same time.

#[test]
fn every_command_gives_the_same_reply_on_cold_values_in_concurrent_resp2() {
    compare(&start(MODES[0]), &[("2", rows())]);
}

#[test]
fn every_command_gives_the_same_reply_on_cold_values_in_concurrent_resp3() {
    compare(&start(MODES[0]), &[("3", rows())]);
}

#[test]
fn every_command_gives_the_same_reply_on_cold_values_in_sharded_resp2() {
    compare(&start(MODES[1]), &[("2", rows())]);
}

#[test]
fn every_command_gives_the_same_reply_on_cold_values_in_sharded_resp3() {
    compare(&start(MODES[1]), &[("3", rows())]);
}

#[test]
fn every_command_gives_the_same_reply_on_cold_values_in_redb() {
    compare_in_store("redb", 0);
}

#[test]
fn every_command_gives_the_same_reply_on_cold_values_in_lmdb() {
    compare_in_store("lmdb", 1);
}

#[test]
fn every_command_gives_the_same_reply_on_cold_values_in_fjall() {
    compare_in_store("fjall", 2);
}

/// Compares the part of the rows that `first` selects, in one mode and protocol; all rows with `REGISTRY_ROWS=all`.
fn compare_in_store(store: &str, first: usize) {
    let runs_all = std::env::var("REGISTRY_ROWS").is_ok_and(|rows| rows == "all");
    for (number, mode) in MODES.into_iter().enumerate() {
        let more = ["--store", store, "--fsync", "no", "--maxmemory", "1gb", "--enable-debug-command", "yes"];
        let server = Server::builder(env!("CARGO_BIN_EXE_ember-server")).arguments(mode).arguments(&more);
        let server = server.start();
        let protocols = [("2", first + 2 * number), ("3", first + 2 * number + 1)];
        let chosen = protocols.map(|(protocol, kind)| {
            let rows = rows().into_iter().enumerate();
            let is_run =
                |(number, row): &(usize, Row)| runs_all || row.has_to_wait || (number + kind) % 4 == 0;
            (protocol, rows.filter(is_run).map(|(_, row)| row).collect::<Vec<_>>())
        });
        compare(&server, &chosen);
    }
}

/// Compares the replies of rows in a protocol with values resident, cold and being fetched.
fn compare(server: &Server, chosen: &[(&str, Vec<Row>)]) {
    let mut differences = String::new();
    let (mut cold, mut runs) = (0, 0);
    let mut waiting = BTreeSet::new();
    for (protocol, rows) in chosen {
        for row in rows {
            let first = run(server, protocol, row, Residency::Resident).reply;
            let second = run(server, protocol, row, Residency::Resident).reply;
            let is_certain = first == second && !depends_on_chance(&mut server.client(), &row.call);
            for residency in [Residency::Cold, Residency::InFlight] {
                let found = run(server, protocol, row, residency);
                cold += found.cold;
                runs += 1;
                if found.has_waited {
                    waiting.insert(row.call.split(' ').next().unwrap().to_lowercase());
                } else if row.has_to_wait && residency == Residency::InFlight {
                    differences += &format!("{} of RESP{protocol} has not waited for a read\n", row.call);
                }
                let is_error = found.reply.first() == Some(&b'-') && first.first() != Some(&b'-');
                if is_error || is_certain && found.reply != first {
                    differences += &format!(
                        "{} of RESP{protocol}, {residency:?}\n  {}\n  {}\n",
                        row.call,
                        first.escape_ascii(),
                        found.reply.escape_ascii(),
                    );
                }
            }
        }
    }
    assert!(differences.is_empty(), "resident and cold:\n{differences}");
    assert!(cold > runs / 4, "only {cold} values have been cold in {runs} runs");
    println!("{} commands have waited for reads, in {runs} runs with {cold} values away", waiting.len());
    assert!(waiting.len() > 20, "only these have waited for a read: {waiting:?}");
}
