//! Calls that run on what their keys lend them: the same replies, the same changes, events and records as under the locks.

use std::sync::Arc;

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::{Attempt, DataCommand};
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::loan::Loan;
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::events::EventClass;
use emberkv_core::keys::Guards;
use emberkv_core::linking::{self, Next};
use emberkv_core::local::Local;
use emberkv_core::spec::Flags;
use emberkv_core::turn::Random;

use crate::support::commands::{contents, run, run_random};

fn command(name: &str) -> &'static DataCommand {
    let mut all = FAMILIES.iter().copied().flatten().copied().flatten();
    all.find(|command| command.spec.name == name).unwrap()
}

fn batch(line: &str) -> OwnedBatch {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let mut call = OwnedBatch::new();
    call.push(&words);
    call
}

/// Takes a loan for a call, unless it is short, which makes it.
fn take_if_long(local: &mut Local, line: &str) -> Option<Loan> {
    let call = batch(line);
    let command = command(&line.split(' ').next().unwrap().to_ascii_lowercase());
    let keyspace = Arc::clone(&local.keyspace);
    let mut guards = Guards::None;
    let (turn, database, waiting) = (&mut local.turn, local.database, Waiting::Allowed);
    let mut context = Context { keyspace: &keyspace, guards: &mut guards, turn, database, waiting };
    let access = Access::of(&command.spec);
    let mut reply = Reply::new(Protocol::Resp2);
    let attempt = dispatch::run(command, access, None, &mut context, call.command(0), &mut reply);
    let is_long = matches!(attempt.unwrap_or_else(|_| panic!("{line} is a call")), Attempt::Offload);
    assert!(!is_long || reply.len_bytes() == 0, "nothing is written");
    let loan = is_long.then(|| Loan::take(command, &mut context, call.command(0)));
    guards.release(&keyspace, &mut local.turn);
    loan
}

/// Takes a loan for a call that is long.
fn take(local: &mut Local, line: &str) -> Loan {
    take_if_long(local, line).unwrap_or_else(|| panic!("{line} is short"))
}

/// Gives back what a call has stored. Whether its keys were as they had been.
fn give_back(local: &mut Local, loan: &mut Loan) -> bool {
    let keyspace = Arc::clone(&local.keyspace);
    let mut guards = Guards::None;
    let command = command(&String::from_utf8_lossy(loan.call().at(0)).to_ascii_lowercase());
    let positions = command.spec.key_positions(loan.call());
    let mut shards = positions.map(|arg| keyspace.hash(loan.call().at(arg)).shard()).collect();
    guards.hold_many(&keyspace, &mut local.turn, &mut shards);
    let (turn, database, waiting) = (&mut local.turn, local.database, Waiting::Never);
    let mut context = Context { keyspace: &keyspace, guards: &mut guards, turn, database, waiting };
    let is_given = loan.end_watch(&mut context);
    if is_given {
        loan.give_back(&mut context);
    }
    guards.release(&keyspace, &mut local.turn);
    is_given
}

fn reply_of(local: &Local, loan: &mut Loan) -> String {
    let mut reply = Reply::new(Protocol::Resp2);
    loan.run(&local.keyspace, &mut reply).unwrap();
    String::from_utf8(reply.to_vec()).unwrap()
}

fn lending() -> Local {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.short_call_steps = 0;
    local.turn.notices.classes = EventClass::all();
    local
}

#[test]
fn random_calls_answer_the_same() {
    for seed in 0..40 {
        let mut random = Random::seeded(seed);
        let mut local = lending();
        let mut ids = vec!["0-1".to_owned()];
        for _ in 0..300 {
            let (line, reply) = run_random(&mut local, &mut random, &mut ids);
            let command = command(&line.split(' ').next().unwrap().to_ascii_lowercase());
            if !command.run.may_be_long() || reply.starts_with('-') {
                continue;
            }
            // What takes its own result to begin with differs each time.
            let call = batch(&line);
            let mut keys = command.spec.key_positions(call.command(0)).map(|arg| call.command(0).at(arg));
            let target = keys.next().filter(|_| command.spec.flags.contains(Flags::WRITE));
            if target.is_some_and(|target| keys.any(|key| key == target)) {
                continue;
            }
            // Once more, under the locks and without.
            let here = run(&mut local, &line);
            // Asking removes what has expired.
            contents(&mut local);
            let contents_here = contents(&mut local);
            local.turn.notices.events.clear();
            let again = run(&mut local, &line);
            let events = std::mem::take(&mut local.turn.notices.events);
            local.lends = true;
            let lent = run(&mut local, &line);
            local.lends = false;
            assert_eq!(local.turn.notices.events, events, "seed {seed}: {line}");
            assert_eq!((&again, &lent), (&here, &here), "seed {seed}: {line}");
            assert_eq!(contents(&mut local), contents_here, "seed {seed}: {line}");
        }
        local.keyspace.check_invariants();
    }
}

#[test]
fn what_is_lent_stays_as_it_was_and_its_key_does_not() {
    let mut local = lending();
    run(&mut local, "RPUSH l a b");
    let mut loan = take(&mut local, "LRANGE l 0 -1");
    assert!(!loan.may_store());
    run(&mut local, "RPUSH l c");
    assert_eq!(run(&mut local, "LLEN l"), ":3\r\n");
    assert_eq!(reply_of(&local, &mut loan), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    let mut loan = take(&mut local, "LRANGE l 0 -1");
    run(&mut local, "FLUSHALL");
    assert_eq!(reply_of(&local, &mut loan), "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
    local.keyspace.check_invariants();
}

/// Whether a call is too long to be made here.
fn is_long(local: &mut Local, line: &str) -> bool {
    take_if_long(local, line).is_some()
}

#[test]
fn a_search_is_as_long_as_the_vectors_and_attributes_that_it_may_look_at() {
    const DIM: usize = 512;
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.links_vectors_later = true;
    let zeros = " 0".repeat(DIM - 2);
    for id in 0..300 {
        let line = format!("VADD v VALUES {DIM} {id} 1{zeros} e{id} NOQUANT M 4 EF 5 SETATTR {{\"a\":{id}}}");
        assert_eq!(run(&mut local, &line), ":1\r\n");
    }
    while let Next::Linking(batch) = linking::begin(&local.keyspace, 0, b"v") {
        linking::commit(&local.keyspace, 0, b"v", &linking::plan(&batch));
    }
    local.turn.settings.short_call_steps = 1000;
    let search = format!("VECTOR.SEARCH v VALUES 1 1{zeros} K 10 EF 10");
    let several = format!("VECTOR.MSEARCH v VECTORS [1{0}] [1{0}] K 10 EF 10", ",0".repeat(DIM - 1));
    for (line, expected) in [
        ("VSIM v ELE e7 EF 10", false),
        ("VSIM v ELE e7 EF 50", true),
        ("VSIM v ELE e7 TRUTH", true),
        ("VSIM v ELE e7 TRUTH NOTHREAD", true),
        ("VSIM v ELE e7 EF 10 FILTER .a==5", true),
        ("VSIM v ELE e7 EF 10 FILTER .a==5 FILTER-EF 50", false),
        ("VSIM v ELE e7 EF 10 FILTER .a==5 FILTER-EF 1000", true),
        ("VSIM v ELE e7 EF 10 FILTER .a==5 FILTER-EF 50 TRUTH", true),
        (&search, false),
        (&format!("{search} FILTER a=5"), true),
        (&several, false),
        (&format!("{several} FILTER a=5"), true),
        ("DUMP v", true),
    ] {
        assert_eq!(is_long(&mut local, line), expected, "{line}");
    }
    // The texts that are read count, also where they are much longer than in the mean, and what is written.
    local.turn.settings.short_call_steps = 5000;
    let nearest = "VSIM v ELE e7 EF 10 COUNT 1";
    let filtered = "VSIM v ELE e7 EF 10 FILTER .a==5 FILTER-EF 50";
    let one = format!("VECTOR.SEARCH v VALUES 7 1{zeros} K 1 EF 10");
    let calls = [
        (nearest.to_owned(), false),
        (format!("{nearest} WITHATTRIBS"), true),
        (filtered.to_owned(), true),
        (one.clone(), false),
        (format!("{one} RETURN a"), true),
        (format!("{one} WITHVECTORS"), false),
        (format!("{search} WITHVECTORS"), true),
        (format!("{nearest} FILTER-EF 50 FILTER .a==5{}", "&&.a==5".repeat(4000)), true),
    ];
    for (line, _) in &calls {
        assert!(!is_long(&mut local, line) || *line == calls[6].0 || *line == calls[7].0, "{line}");
    }
    let attributes = format!("{{\"a\":\"{}\"}}", "x".repeat(200_000));
    run(&mut local, &format!("VSETATTR v e7 {attributes}"));
    for (line, expected) in &calls {
        assert_eq!(is_long(&mut local, line), *expected, "{}", &line[..line.len().min(80)]);
    }
    local.turn.settings.short_call_steps = 1000;
    run(&mut local, &format!("RPUSH l {0} {0}", "x".repeat(100_000)));
    assert!(is_long(&mut local, "DUMP l"), "of few elements, but many bytes");
}

#[test]
fn nothing_is_stored_when_a_key_has_changed() {
    for change in ["SADD a 4", "DEL b", "SET to x", "FLUSHALL", "PEXPIRE a 1"] {
        let mut local = lending();
        run(&mut local, "SADD a 1 2 3");
        run(&mut local, "SADD b 3");
        let mut loan = take(&mut local, "SDIFFSTORE to a b");
        assert_eq!(reply_of(&local, &mut loan), ":2\r\n");
        run(&mut local, change);
        let before = contents(&mut local);
        assert!(!give_back(&mut local, &mut loan), "{change}");
        assert_eq!(contents(&mut local), before, "{change}");
        // The watch is gone.
        let observed =
            (0..emberkv_core::keyspace::SHARDS).any(|at| local.keyspace.lock(at).observers().is_some());
        assert!(!observed, "{change}");
        local.keyspace.check_invariants();
    }
}

#[test]
fn nothing_is_stored_when_a_key_has_expired() {
    for key in ["a", "b", "to"] {
        let mut local = lending();
        for line in ["SADD a 1 2 3", "SADD b 3", "SADD to 4"] {
            run(&mut local, line);
        }
        run(&mut local, &format!("PEXPIRE {key} 10"));
        let mut loan = take(&mut local, "SDIFFSTORE to a b to");
        assert_eq!(reply_of(&local, &mut loan), ":2\r\n");
        local.turn.now_ms += 11;
        assert!(!give_back(&mut local, &mut loan), "{key}");
        assert_eq!(run(&mut local, &format!("EXISTS {key}")), ":0\r\n");
        local.keyspace.check_invariants();
    }
}

#[test]
fn a_result_takes_the_place_of_what_is_there() {
    let mut local = lending();
    for (given, call, stored) in [
        ("SET to old EX 100", "SUNIONSTORE to a b", ":3\r\n"),
        ("SADD to 3", "SDIFFSTORE to a to", ":2\r\n"),
        ("SADD to 1 2 3", "SDIFFSTORE to to a", ":0\r\n"),
    ] {
        run(&mut local, "FLUSHALL");
        run(&mut local, "SADD a 1 2 3");
        run(&mut local, "SADD b 3");
        run(&mut local, given);
        let mut loan = take(&mut local, call);
        assert_eq!(reply_of(&local, &mut loan), stored, "{call}");
        assert!(give_back(&mut local, &mut loan), "{call}");
        assert_eq!(run(&mut local, "SCARD to"), stored, "{call}");
        assert_eq!(run(&mut local, "TTL to"), if stored == ":0\r\n" { ":-2\r\n" } else { ":-1\r\n" });
        local.keyspace.check_invariants();
    }
}

#[test]
fn a_result_expires_as_it_would_under_the_locks() {
    for call in [
        "SINTERSTORE to s to",
        "SUNIONSTORE to s to",
        "SDIFFSTORE to s t",
        "ZINTERSTORE to 2 s t",
        "ZUNIONSTORE to 2 s to",
        "ZDIFFSTORE to 2 s t",
        "ZRANGESTORE to z 0 -1",
        "GEOSEARCHSTORE to z FROMLONLAT 0 0 BYRADIUS 1 m",
        "GEORADIUS z 0 0 9000 km STORE to",
        "BITOP NOT to text",
        "SORT s STORE to",
        "VECTOR.REINDEX v",
    ] {
        let contents_after = [false, true].map(|lends| {
            let mut local = lending();
            for line in [
                "SADD s 1 2 3",
                "SADD t 3",
                "GEOADD z 1 1 a 2 2 b",
                "SET text abc",
                "SADD to 2 3 4",
                "EXPIRE to 100",
                "VECTOR.CREATE v DIM 2",
                "VECTOR.ADD v a [1,2]",
                "EXPIRE v 100",
            ] {
                assert!(!run(&mut local, line).starts_with('-'), "{line}");
            }
            local.lends = lends;
            let reply = run(&mut local, call);
            assert!(!reply.starts_with('-'), "{call}: {reply}");
            local.keyspace.check_invariants();
            ["s", "z", "to", "v"].map(|key| run(&mut local, &format!("EXPIRETIME {key}")))
        });
        assert_eq!(contents_after[0], contents_after[1], "{call}");
    }
}
