//! Scripts and functions: the same replies as from redis-server, byte for byte, in both protocols.

use ember_peers::{Mode, start_ember, start_redis};
use ember_testkit::{RawClient, quote};

/// Scripts, separated by lines of four equals signs.
const SCRIPTS: &str = include_str!("scripts/evaluated.txt");

/// Calls, one per line, with words separated by `|`. `\n` in a word stands for a line end, and an indented line
/// continues the line before after a line end.
const CALLS: &str = include_str!("scripts/calls.txt");

/// Texts of redis-server 7.0, each with the corresponding text of 7.2.
const NEWER_TEXTS: [(&str, &str); 1] =
    [("redis.set_repl() requires two arguments.", "redis.set_repl() requires one argument.")];

/// Translates a reply of redis-server 7.0 to the reply of 7.2.
fn newer(answer: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(answer) {
        Ok(text) => NEWER_TEXTS.iter().fold(text, |text, (old, new)| text.replace(old, new)).into_bytes(),
        Err(answer) => answer.into_bytes(),
    }
}

/// Runs each call on both servers; returns the differences.
fn compare(calls: &[Vec<String>]) -> Vec<String> {
    let (redis_server, ember_server) = (start_redis(), start_ember(Mode::Concurrent));
    let mut differences = Vec::new();
    for protocol in [2, 3] {
        let mut clients = [redis_server.client(), ember_server.client()];
        for client in &mut clients {
            client.run("FLUSHALL");
            client.run("FUNCTION FLUSH");
            client.run("SCRIPT FLUSH");
            client.run(&format!("HELLO {protocol}"));
        }
        for call in calls {
            let ask = |client: &mut RawClient| {
                client.send_command(call).expect("the server reads");
                client.read_raw().expect("the server replies")
            };
            let [redis, ember] = &mut clients;
            let (redis, ember) = (newer(ask(redis)), ask(ember));
            if redis != ember {
                let answers = format!("redis: {}\nember: {}", quote(&redis), quote(&ember));
                differences.push(format!("RESP{protocol}: {call:?}\n{answers}"));
            }
        }
    }
    differences
}

#[test]
fn scripts_return_the_same_values_as_in_redis() {
    let scripts = SCRIPTS.trim_end_matches('\n').split("\n====\n");
    let calls: Vec<Vec<String>> =
        scripts.map(|script| ["EVAL", script, "0"].map(String::from).to_vec()).collect();
    assert!(calls.len() > 300, "only {} scripts", calls.len());
    let differences = compare(&calls);
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn calls_in_scripts_and_functions_get_the_replies_of_redis() {
    let calls: Vec<Vec<String>> =
        CALLS.lines().map(|line| line.split('|').map(|word| word.replace("\\n", "\n")).collect()).collect();
    let differences = compare(&calls);
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
