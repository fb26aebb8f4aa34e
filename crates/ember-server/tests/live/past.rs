//! The history compared with the append-only file: every answer about a moment is the command's result after exactly
//! the records up to that moment.
//!
//! Random writers run concurrently with connections that read the present moment twice. Afterwards random moments are
//! read. `PAST_CHANGES`, `PAST_ANSWERS` and `LIVE_SEED` change the numbers of writes and answers, and the seed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ember_protocol::Protocol;
use ember_protocol::client::read_value;
use ember_testkit::{Random, RawClient, Server, Value, encode, split_arguments};
use emberkv_core::local::Local;
use emberkv_core::turn::Turn;

use super::oracle::{Kind, Query, comparable, units};
use super::{WRITERS, random_commands, setting, write};

/// The number of questions that are sent together.
const TOGETHER: usize = 100;

/// An answer: the moment, the question, and the result.
type Answer = (i64, Query, String);

fn query(random: &mut Random) -> Query {
    let (line, is_unordered) = random_commands::read(random);
    Query { database: random.below(random_commands::DATABASES), line, is_unordered, kind: Kind::Resp2 }
}

/// Requests results at moments.
fn ask(client: &mut RawClient, questions: Vec<(i64, Query)>) -> Vec<Answer> {
    let mut bytes = Vec::new();
    for (at_ms, query) in &questions {
        bytes.extend(encode(&["SELECT".to_owned(), query.database.to_string()]));
        let mut words = vec![b"ASOF".to_vec(), at_ms.to_string().into_bytes()];
        words.extend(split_arguments(&query.line).unwrap());
        bytes.extend(encode(&words));
    }
    client.send(&bytes).unwrap();
    let answers = questions.into_iter().map(|(at_ms, query)| {
        client.read_value().unwrap();
        let value = client.read_value().unwrap();
        let result = comparable(&value, &query);
        (at_ms, query, result)
    });
    answers.collect()
}

fn now_ms(client: &mut RawClient) -> i64 {
    let time = client.run("TIME");
    let part = |at: usize| time.elements().unwrap()[at].text().parse::<i64>().unwrap();
    part(0) * 1000 + part(1) / 1000
}

/// Reads the present moment repeatedly, each time twice: both answers must be equal.
fn read_present(server: &Server, random: &mut Random, is_over: &AtomicBool) -> Vec<Answer> {
    let mut client = server.client();
    let mut all = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        let at_ms = now_ms(&mut client);
        let question = query(random);
        let answers = ask(&mut client, vec![(at_ms, question.clone()), (at_ms, question)]);
        assert_eq!(answers[0], answers[1], "a moment that was read does not change");
        all.extend(answers.into_iter().take(1));
    }
    all
}

/// Returns the times of all changes by their numbers.
fn timeline(client: &mut RawClient) -> BTreeMap<u64, i64> {
    let mut all = BTreeMap::new();
    for database in 0..random_commands::DATABASES {
        client.run(&format!("SELECT {database}"));
        for name in random_commands::names() {
            let versions = client.command(&["HISTORY", &name]);
            let count = client.command(&["HISTORY.COUNT", &name]);
            let versions = versions.elements().unwrap_or_else(|| panic!("{name}: {versions:?}"));
            assert_eq!(count, Value::Integer(versions.len() as i64));
            let mut last = 0;
            for version in versions {
                let number = |at: usize| version.elements().unwrap()[at].integer().unwrap();
                let (at_ms, number) = (number(1), number(3).unsigned_abs());
                assert!(number > last, "versions are in order, and each record is one");
                last = number;
                let other = all.insert(number, at_ms);
                assert!(other.is_none_or(|other| other == at_ms), "a record has one time");
            }
        }
    }
    assert!(all.values().is_sorted(), "times rise with numbers");
    all
}

/// Compares answers with the results after the records up to their moments.
fn check(units: &[Vec<Vec<Vec<u8>>>], timeline: &BTreeMap<u64, i64>, answers: Vec<Answer>) {
    let mut by_number: BTreeMap<u64, Vec<Answer>> = BTreeMap::new();
    let times: Vec<(i64, u64)> = timeline.iter().map(|(number, at_ms)| (*at_ms, *number)).collect();
    for answer in answers {
        let up_to = times.partition_point(|(at_ms, _)| *at_ms <= answer.0);
        let number = up_to.checked_sub(1).map_or(0, |at| times[at].1);
        by_number.entry(number).or_default().push(answer);
    }
    let mut writer = Local::new(Protocol::Resp2);
    writer.turn = Turn::new(0, 1);
    writer.turn.replay_at(1_700_000_000_000);
    let mut reader = Local::sharing(writer.keyspace.clone(), Turn::new(0, 1), Protocol::Resp2);
    reader.turn.keeps_expired = true;
    let last = *by_number.keys().last().unwrap();
    assert!(last <= units.len() as u64, "there are {} records, and a change of {last}", units.len());
    for number in 0..=last {
        if let Some(unit) = number.checked_sub(1).map(|at| &units[at as usize]) {
            for words in unit {
                if words[0].eq_ignore_ascii_case(b"SELECT") {
                    writer.database = std::str::from_utf8(&words[1]).unwrap().parse().unwrap();
                } else if !words[0].eq_ignore_ascii_case(b"FUNCTION") {
                    let reply = writer.run(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
                    assert_ne!(reply[0], b'-', "{words:?}: {}", String::from_utf8_lossy(&reply));
                }
            }
        }
        for (at_ms, query, result) in by_number.get(&number).into_iter().flatten() {
            reader.database = query.database;
            reader.turn.now_ms = *at_ms;
            let words = split_arguments(&query.line).unwrap();
            let reply = reader.run(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let expected = comparable(&read_value(&mut &*reply).unwrap(), query);
            assert_eq!(*result, expected, "{query:?} at {at_ms}, after record {number}");
        }
    }
}

fn run(mode: &[&str]) {
    let changes = setting("PAST_CHANGES", 4000);
    let answers = setting("PAST_ANSWERS", 25_000);
    let mut random = Random::new(setting("LIVE_SEED", 1));
    let mut server = Server::builder(env!("CARGO_BIN_EXE_ember-server"))
        .arguments(mode)
        .arguments(&["--appendonly", "yes", "--auto-aof-rewrite-percentage", "0", "--save", ""])
        .arguments(&["--history-keys", "*"])
        .keeps_values()
        .start();
    let mut client = server.client();
    let started_ms = now_ms(&mut client);
    assert!(!client.command(&["FUNCTION", "LOAD", random_commands::LIBRARY]).is_error());
    let is_over = AtomicBool::new(false);
    let mut all = thread::scope(|scope| {
        let (server, is_over) = (&server, &is_over);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let mut random = Random::new(random.next_u64());
                scope.spawn(move || read_present(server, &mut random, is_over))
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                let mut random = Random::new(random.next_u64());
                scope.spawn(move || write(server, changes / WRITERS as u64, &mut random))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect::<Vec<_>>()
    });
    client.run("CONFIG SET maxmemory 0");
    let ended_ms = now_ms(&mut client);
    let present = all.len();
    while (all.len() - present) < answers as usize {
        let moment =
            |random: &mut Random| started_ms + random.below((ended_ms - started_ms + 1) as usize) as i64;
        let questions = (0..TOGETHER).map(|_| (moment(&mut random), query(&mut random))).collect();
        all.extend(ask(&mut client, questions));
    }
    let timeline = timeline(&mut client);
    server.signal("TERM");
    assert!(server.wait().success());
    println!("{mode:?}: {} records, {present} and {answers} answers", timeline.len());
    check(&units(server.directory()), &timeline, all);
}

#[test]
fn every_past_state_matches_its_record_in_the_concurrent_mode() {
    run(&["--shards", "3", "--concurrent", "yes"]);
}

#[test]
fn every_past_state_matches_its_record_in_the_sharded_mode() {
    run(&["--shards", "3", "--concurrent", "no"]);
}

#[test]
fn every_past_state_matches_its_record_where_threads_run_long_calls() {
    run(&["--shards", "3", "--concurrent", "yes", "--long-call-elements", "2"]);
}

#[test]
fn every_past_state_matches_its_record_where_threads_run_the_long_calls_of_shards() {
    run(&["--shards", "3", "--concurrent", "no", "--long-call-elements", "2"]);
}
