//! Every command that has a row in the table of replies answers the same, whether the values of its keys are here, away, or
//! being read by somebody else.

use ember_testkit::{RawClient, Server, split_arguments, wait_until};

use crate::{MODES, start, texts};

const TABLE: &str = include_str!("../administration/reply_shapes.txt");

/// Calls that are about where values are, that end the server or its connections, or that take long by themselves.
const LEFT_OUT: [&str; 13] = [
    "tiering",
    "info",
    "debug",
    "shutdown",
    "psync",
    "sync",
    "bgsave",
    "bgrewriteaof",
    "save",
    "replicaof",
    "slaveof",
    "failover",
    // What is durable is another question, and a checkpoint makes the log so.
    "waitaof",
];

/// A call, and those before it.
struct Row {
    given: Vec<String>,
    call: String,
}

fn rows() -> Vec<Row> {
    let mut lines: Vec<String> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("      ") {
            Some(continued) => *lines.last_mut().unwrap() += &format!(" {continued}"),
            None => lines.push(line.to_owned()),
        }
    }
    let calls = lines.iter().filter(|line| !line.starts_with("    "));
    let rows = calls.map(|line| {
        let (call, given) = line.split_once(" <- ").unwrap_or((line, ""));
        let given = given.split("; ").filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Row { given, call: call.to_owned() }
    });
    let is_wanted = |row: &Row| {
        let name = row.call.split(' ').next().unwrap().to_lowercase();
        !LEFT_OUT.contains(&name.as_str())
    };
    rows.filter(is_wanted).collect()
}

/// Where the values are that a call finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Residency {
    Here,
    Away,
    InFlight,
}

/// Runs a row on an empty server: the raw reply, and how many values were away.
fn run(
    client: &mut RawClient,
    other: &mut RawClient,
    protocol: &str,
    row: &Row,
    residency: Residency,
) -> (Vec<u8>, usize) {
    client.command(&["HELLO", protocol]);
    client.command(&["FLUSHALL"]);
    for line in &row.given {
        client.command(&split_arguments(line).unwrap());
    }
    let mut away = 0;
    if residency != Residency::Here {
        save(other);
        for key in texts(&other.command(&["KEYS", "*"])) {
            let reply = other.command(&["DEBUG", "TIER", "DEMOTE", &key]);
            if !reply.is_error() {
                away += 1;
                if residency == Residency::InFlight {
                    other.send_command(&["TIERING", "MIGRATE", &key, "HOT"]).unwrap();
                }
            }
        }
    }
    client.send_command(&split_arguments(&row.call).unwrap()).unwrap();
    let reply = client.read_raw().unwrap();
    if residency == Residency::InFlight {
        (0..away).for_each(|_| _ = other.read_value().unwrap());
    }
    (reply, away)
}

/// Has a store, if there is one, told of all values: others do not go away.
fn save(client: &mut RawClient) {
    if !client.run("INFO server").text().contains("\r\nember_store:redb\r\n") {
        return;
    }
    let is_over = |client: &mut RawClient| {
        client.run("INFO persistence").text().contains("\r\naof_rewrite_in_progress:0\r\n")
    };
    wait_until("no checkpoint is under way", || is_over(client));
    assert!(!client.run("BGREWRITEAOF").is_error());
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

#[test]
fn every_command_answers_as_if_no_value_were_away() {
    for mode in MODES {
        compare(&start(mode), &["2", "3"], &[Residency::Away, Residency::InFlight]);
    }
}

#[test]
fn every_command_answers_as_if_no_value_were_away_in_a_store() {
    for (mode, protocol) in MODES.into_iter().zip(["2", "3"]) {
        let more =
            ["--store", "redb", "--fsync", "no", "--maxmemory", "1gb", "--enable-debug-command", "yes"];
        let server = Server::builder(env!("CARGO_BIN_EXE_ember-server")).arguments(mode).arguments(&more);
        compare(&server.start(), &[protocol], &[Residency::Away, Residency::InFlight]);
    }
}

fn compare(server: &Server, protocols: &[&str], residencies: &[Residency]) {
    let rows = rows();
    let mut differences = String::new();
    let mut away = 0;
    for row in &rows {
        for protocol in protocols {
            let (mut client, mut other) = (server.client(), server.client());
            let (first, _) = run(&mut client, &mut other, protocol, row, Residency::Here);
            let mut client = server.client();
            let (second, _) = run(&mut client, &mut other, protocol, row, Residency::Here);
            let is_certain = first == second && !depends_on_chance(&mut other, &row.call);
            for &residency in residencies {
                let mut client = server.client();
                let (found, count) = run(&mut client, &mut other, protocol, row, residency);
                away += count;
                let is_error = found.first() == Some(&b'-') && first.first() != Some(&b'-');
                if is_error || is_certain && found != first {
                    differences += &format!(
                        "{} of RESP{protocol}, {residency:?}\n  {}\n  {}\n",
                        row.call,
                        first.escape_ascii(),
                        found.escape_ascii(),
                    );
                }
            }
        }
    }
    assert!(differences.is_empty(), "here and away:\n{differences}");
    let runs = rows.len() * protocols.len() * residencies.len();
    assert!(away > runs / 4, "only {away} values have been away in {runs} runs");
}
