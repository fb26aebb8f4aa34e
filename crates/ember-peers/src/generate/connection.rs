//! Commands on the connection, which affect later commands on it.

use super::{Draw, Generator, Outcome, Step};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "AUTH", weight: 3, make: auth },
    Generator { name: "CLIENT", weight: 40, make: client },
    Generator { name: "ECHO", weight: 5, make: |draw| draw.one("ECHO {value}") },
    Generator { name: "HELLO", weight: 6, make: hello },
    Generator {
        name: "PING",
        weight: 5,
        make: |draw| draw.any(&["PING", "PING {value}", "PING {value} {value}"]),
    },
    Generator { name: "QUIT", weight: 1, make: quit },
    Generator { name: "RESET", weight: 2, make: |draw| draw.any(&["RESET", "RESET", "RESET {word}"]) },
    Generator { name: "SELECT", weight: 15, make: |draw| draw.one("SELECT {database}") },
    Generator { name: "nosuchcommand", weight: 8, make: unknown },
];

fn auth(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "AUTH {word}",
        "AUTH default {word}",
        "AUTH nobody {word}",
        "AUTH default {word} {word}",
        "AUTH {value}",
    ])
}

fn quit(draw: &mut Draw) -> Vec<Step> {
    let words = draw.line("QUIT");
    vec![Step { words, outcome: Outcome::Close }]
}

/// Generates HELLO. SETNAME is not combined with an AUTH that fails: Redis 7.0.15 sets the name nevertheless; Redis 7.2
/// and ember then change nothing.
fn hello(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "HELLO",
        "HELLO 2",
        "HELLO 3",
        "HELLO 1",
        "HELLO 4",
        "HELLO abc",
        "HELLO 3 SETNAME me",
        "HELLO 2 SETNAME bad\u{a0}name",
        "HELLO 3 AUTH default {word}",
        "HELLO 3 AUTH nobody {word}",
        "HELLO 3 AUTH default",
        "HELLO 3 SETNAME",
        "HELLO 2 {word}",
        "HELLO 3 AUTH default {word} SETNAME them",
        "HELLO 99999999999999999999",
        "HELLO 3 SETNAME {value}",
    ])
}

fn unknown(draw: &mut Draw) -> Vec<Step> {
    draw.any(&[
        "nosuchcommand",
        "nosuchcommand {value}",
        "nosuchcommand {value} {value} {value} {value}",
        "nosuchcommand {keys}",
        "{value}",
        "{key} {value}",
        "GETT {key}",
        "G {key}",
        "GET| {key}",
        "CLIENT|GETNAME",
        "OBJECT {key} {key}",
        "CLIENT {value}",
    ])
}

fn client(draw: &mut Draw) -> Vec<Step> {
    match draw.random.below(20) {
        0 => quiet(draw),
        1 => {
            // The pause is ended immediately; its mode must allow CLIENT UNPAUSE.
            let mut steps = draw.one("CLIENT PAUSE 2 WRITE");
            steps.extend(draw.one("CLIENT UNPAUSE"));
            steps
        }
        _ => draw.any(&[
            "CLIENT GETNAME",
            "CLIENT GETNAME",
            "CLIENT SETNAME {word}",
            "CLIENT SETNAME {key}",
            "CLIENT SETNAME {value}",
            "CLIENT NO-EVICT ON",
            "CLIENT NO-EVICT OFF",
            "CLIENT NO-EVICT {word}",
            "CLIENT NO-TOUCH ON",
            "CLIENT NO-TOUCH OFF",
            "CLIENT SETINFO lib-name {word}",
            "CLIENT SETINFO lib-ver {word}",
            "CLIENT REPLY ON",
            "CLIENT REPLY {word}",
            "CLIENT PAUSE abc",
            "CLIENT PAUSE -1",
            "CLIENT PAUSE 0 {word}",
            "CLIENT UNPAUSE",
            "CLIENT UNBLOCK 999999",
            "CLIENT UNBLOCK abc",
            "CLIENT UNBLOCK 999999 TIMEOUT",
            "CLIENT UNBLOCK 999999 ERROR",
            "CLIENT UNBLOCK 999999 {word}",
            "CLIENT KILL nosuch:1",
            "CLIENT KILL ADDR nosuch:1",
            "CLIENT KILL ID 999999",
            "CLIENT KILL ID abc",
            "CLIENT KILL ID 0",
            "CLIENT KILL ID -1",
            "CLIENT KILL TYPE {word}",
            "CLIENT KILL USER nobody",
            "CLIENT KILL SKIPME {word}",
            "CLIENT KILL LADDR nosuch:1",
            "CLIENT KILL TYPE pubsub SKIPME yes",
            "CLIENT KILL ID 999999 ADDR",
            "CLIENT KILL {word} {word}",
            "CLIENT HELP",
            "CLIENT LIST TYPE {word}",
            "CLIENT LIST ID abc",
            "CLIENT LIST ID",
            "CLIENT LIST {word}",
            "CLIENT LIST TYPE pubsub",
            "CLIENT LIST ID 999999",
            "CLIENT {word}",
            "CLIENT {word} {word}",
        ]),
    }
}

/// Returns commands whose replies are disabled.
fn quiet(draw: &mut Draw) -> Vec<Step> {
    let silent = |words| Step { words, outcome: Outcome::Quiet };
    if draw.random.chance(50) {
        return vec![silent(draw.line("CLIENT REPLY SKIP")), silent(draw.line("APPEND {key} {value}"))];
    }
    let mut steps = vec![silent(draw.line("CLIENT REPLY OFF"))];
    for _ in 0..draw.random.below(3) {
        steps.push(silent(draw.line("SET {key} {value}")));
        steps.push(silent(draw.line("nosuchcommand {value}")));
    }
    steps.push(Step::reply(draw.line("CLIENT REPLY ON")));
    steps
}
