//! Compares the data of a server after a crash with the histories of its connections.

use ember_testkit::{RawClient, Server, Value, encode_command, render};

use crate::history::{Book, Expiring, Kind, Unit, Words, shown};
use crate::program;
use crate::random_writes::{FIELDS, NAMES, NUMBERS, POOL, SHARED, unix_ms};

/// The number of calls in one pipeline: their requests and replies must fit in the socket buffers.
const CALLS_AT_ONCE: usize = 50;

/// A server without persistence that has executed all units that are known to have been executed by the killed servers.
pub(crate) struct Reference {
    _server: Server,
    client: RawClient,
}

impl Reference {
    pub(crate) fn start() -> Reference {
        let arguments = ["--shards", "1", "--enable-debug-command", "yes", "--save", ""];
        let server = Server::start(program(), &arguments);
        let client = server.client();
        Reference { _server: server, client }
    }

    /// Runs units of a connection, whose replies must equal those that it received.
    fn run(&mut self, book: &Book, units: &[Unit], survivor: &mut RawClient) {
        select(&mut self.client, book.database());
        for unit in units {
            let calls = match &unit.kind {
                Kind::Expiring(..) => vec![vec![b"INCR".to_vec(), book.key("seen")]],
                Kind::Pop(key) => vec![self.removal(key, unit, survivor)],
                Kind::Usual | Kind::Shared | Kind::Mark | Kind::Flush => unit.calls.clone(),
            };
            let reply = exchange(&mut self.client, &calls).pop();
            if unit.kind == Kind::Usual && unit.reply.is_some() {
                assert_eq!(unit.reply, reply, "connection {}: {}", book.me, shown(unit));
            }
        }
    }

    /// Returns the removal that corresponds to the pop of a random member. If the reply to the pop was lost, the
    /// removed member is the one that the restarted server lacks.
    fn removal(&mut self, key: &[u8], unit: &Unit, survivor: &mut RawClient) -> Words {
        let mut call = vec![b"SREM".to_vec(), key.to_vec()];
        match &unit.reply {
            Some(reply) => call.push(reply.bytes().unwrap_or_default().to_vec()),
            None => {
                let [mine, its] = [&mut self.client, survivor].map(|client| {
                    let members = client.command(&[b"SMEMBERS", key]);
                    let elements = members.elements().unwrap_or_default().to_vec();
                    elements.iter().map(|member| member.bytes().unwrap().to_vec()).collect::<Vec<_>>()
                });
                call.push(mine.into_iter().find(|member| !its.contains(member)).unwrap_or_default());
            }
        }
        call
    }
}

fn select(client: &mut RawClient, database: usize) {
    assert_eq!(client.command(&["SELECT", &database.to_string()]), Value::ok());
}

fn exchange(client: &mut RawClient, calls: &[Words]) -> Vec<Value> {
    let mut replies = Vec::new();
    for some in calls.chunks(CALLS_AT_ONCE) {
        let mut bytes = Vec::new();
        some.iter().for_each(|call| encode_command(call, &mut bytes));
        client.send(&bytes).unwrap();
        replies.extend(some.iter().map(|_| client.read_value().unwrap()));
    }
    replies
}

/// Returns a full description of a connection's keys.
fn description(client: &mut RawClient, book: &Book) -> Vec<(String, Value)> {
    select(client, book.database());
    let mut calls = Vec::new();
    let mut ask = |words: &[&str], key: &[u8], more: &[&str]| {
        let mut call: Words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        call.push(key.to_vec());
        call.extend(more.iter().map(|word| word.as_bytes().to_vec()));
        calls.push(call);
    };
    let fields = [&["FIELDS", "6"][..], &FIELDS].concat();
    for name in NAMES.iter().chain(&[POOL]) {
        let key = book.key(name);
        ask(&["DEBUG", "DIGEST-VALUE"], &key, &[]);
        ask(&["PEXPIRETIME"], &key, &[]);
        ask(&["HPEXPIRETIME"], &key, &fields);
        ask(&["XINFO", "STREAM"], &key, &[]);
        ask(&["XINFO", "GROUPS"], &key, &[]);
        ask(&["XPENDING"], &key, &["g"]);
    }
    for name in NUMBERS {
        ask(&["GET"], &book.key(name), &[]);
    }
    let replies = exchange(client, &calls).into_iter().map(without_nodes);
    let shown = calls.iter().map(|call| {
        let words: Vec<_> = call.iter().take(3).map(|word| String::from_utf8_lossy(word)).collect();
        words.join(" ")
    });
    shown.zip(replies).collect()
}

/// Removes the facts about a stream's radix tree, which depend on how its entries were added.
fn without_nodes(reply: Value) -> Value {
    let Some(pairs) = reply.pairs() else { return reply };
    let kept = pairs.into_iter().filter(|(name, _)| !name.text().starts_with("radix-tree"));
    Value::Map(kept.collect())
}

/// Checks a restarted server, and advances the reference and the histories to its state.
pub(crate) fn recovered(client: &mut RawClient, reference: &mut Reference, books: &mut [Book]) {
    let survived: Vec<usize> = if books[0].may_be_flushed && is_empty(client, books) {
        assert_eq!(reference.client.run("FLUSHALL"), Value::ok());
        for book in &mut *books {
            book.expiring.clear();
            book.units.clear();
        }
        vec![0; books.len()]
    } else {
        books.iter().map(|book| survivors(client, reference, book)).collect()
    };
    for client in [&mut *client, &mut reference.client] {
        select(client, 0);
    }
    let shared = |client: &mut RawClient| client.command(&["MGET", SHARED[0], SHARED[1]]);
    assert_eq!(shared(client), shared(&mut reference.client), "shared counters");
    for (book, survived) in books.iter_mut().zip(survived) {
        for unit in &book.units[..survived] {
            match &unit.kind {
                Kind::Expiring(key, value, at_ms) => {
                    _ = book.expiring.insert(key.clone(), (value.clone(), *at_ms))
                }
                Kind::Flush => book.expiring.clear(),
                Kind::Usual | Kind::Shared | Kind::Pop(_) | Kind::Mark => {}
            }
        }
        select(client, book.database());
        check_expiring(client, &book.expiring);
        book.units.clear();
    }
}

fn is_empty(client: &mut RawClient, books: &[Book]) -> bool {
    books.iter().all(|book| {
        select(client, book.database());
        client.run("DBSIZE") == Value::Integer(0)
    })
}

/// Returns the number of units of a connection's history that the server has executed. These units are executed on the
/// reference.
fn survivors(client: &mut RawClient, reference: &mut Reference, book: &Book) -> usize {
    let found = description(client, book);
    let promised = book.units.iter().take_while(|unit| unit.reply.is_some()).count();
    // The mark was set in this run of the server, or in an earlier one.
    let mark: u64 = client.command(&[b"GET".to_vec(), book.mark_key()]).text().parse().unwrap_or(0);
    let first = book.next - book.units.len() as u64;
    let marked = (mark + 1).saturating_sub(first) as usize;
    let mut count = promised.max(marked);
    reference.run(book, &book.units[..count], client);
    let mut nearest: Option<Vec<String>> = None;
    loop {
        let expected = description(&mut reference.client, book);
        let differences = differences(&expected, &found);
        if differences.is_empty() {
            return count;
        }
        if nearest.as_ref().is_none_or(|nearest| differences.len() < nearest.len()) {
            nearest = Some(differences);
        }
        // Units after the next mark have not been executed: otherwise that mark would be set.
        match book.units.get(count) {
            Some(unit) if !unit.is_mark() => reference.run(book, &book.units[count..=count], client),
            _ => break,
        }
        count += 1;
    }
    let last: Vec<String> = book.units[..count].iter().rev().take(20).map(shown).collect();
    panic!(
        "connection {}: of {} units {promised} are promised, {marked} marked; the nearest state differs in\n{}\nafter\n{}",
        book.me,
        book.units.len(),
        nearest.unwrap_or_default().join("\n"),
        last.join("\n"),
    );
}

fn differences(expected: &[(String, Value)], found: &[(String, Value)]) -> Vec<String> {
    let pairs = expected.iter().zip(found).filter(|(expected, found)| expected != found);
    pairs
        .map(|((call, expected), (_, found))| {
            format!("  {call}: {} instead of {}", render(found), render(expected))
        })
        .collect()
}

/// Checks that keys that expire soon have the value to which they were set, or are removed once they have expired.
fn check_expiring(client: &mut RawClient, expiring: &Expiring) {
    for (key, (value, at_ms)) in expiring {
        let before_ms = unix_ms();
        let replies = exchange(
            client,
            &[vec![b"GET".to_vec(), key.clone()], vec![b"PEXPIRETIME".to_vec(), key.clone()]],
        );
        let is_there = replies == [Value::Bulk(value.clone()), Value::Integer(*at_ms)];
        let is_removed = replies[1] == Value::Integer(-2);
        let shown = String::from_utf8_lossy(key);
        assert!(is_there || is_removed, "{shown} is {replies:?}, not {value:?} until {at_ms}");
        assert!(is_there || unix_ms() >= *at_ms, "{shown} is removed before its time");
        assert!(!is_there || before_ms <= *at_ms, "{shown} exists after its time");
    }
}
