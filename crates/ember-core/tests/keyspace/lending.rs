//! Calls that run on borrowed values have the same replies, changes, events and records as under the locks.

use std::sync::Arc;

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::{Attempt, DataCommand};
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::loan::Loan;
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::events::EventClass;
use emberkv_core::journal::Journal;
use emberkv_core::keys::Guards;
use emberkv_core::linking::{self, Next};
use emberkv_core::local::Local;
use emberkv_core::spec::Flags;
use emberkv_core::turn::Random;

use crate::support::commands::{contents, draw, run, run_random};

fn command(name: &str) -> &'static DataCommand {
    let mut all = FAMILIES.iter().copied().flatten().copied().flatten();
    all.find(|command| command.spec.name == name).unwrap()
}

/// Returns the command, or subcommand, that a line calls.
fn command_of(line: &str) -> &'static DataCommand {
    let mut words = line.split(' ').map(str::to_ascii_lowercase);
    let found = command(&words.next().unwrap());
    if found.subcommands.is_empty() {
        return found;
    }
    let name = words.next().unwrap();
    found.subcommands.iter().find(|subcommand| subcommand.spec.name == name).unwrap()
}

fn batch(line: &str) -> OwnedBatch {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let mut call = OwnedBatch::new();
    call.push(&words);
    call
}

/// Runs a call; if it is long-running, borrows its values instead and returns the loan.
fn take_if_long(local: &mut Local, line: &str) -> Option<Loan> {
    let call = batch(line);
    let command = command_of(line);
    let keyspace = Arc::clone(&local.keyspace);
    let mut guards = Guards::None;
    let (turn, database, waiting) = (&mut local.turn, local.database, Waiting::Allowed);
    let mut context = Context { keyspace: &keyspace, guards: &mut guards, turn, database, waiting };
    let access = Access::of(&command.spec);
    let mut reply = Reply::new(Protocol::Resp2);
    let attempt = dispatch::run(command, access, None, &mut context, call.command(0), &mut reply);
    let is_long = matches!(attempt.unwrap_or_else(|_| panic!("{line} is a call")), Attempt::Offload);
    assert!(!is_long || reply.len_bytes() == 0, "no reply is written");
    let loan = is_long.then(|| Loan::take(command, &mut context, call.command(0)));
    guards.release(&keyspace, &mut local.turn);
    loan
}

/// Borrows the values of a call, which must be long-running.
fn take(local: &mut Local, line: &str) -> Loan {
    take_if_long(local, line).unwrap_or_else(|| panic!("{line} is short"))
}

/// Stores the results of a call. Returns false if its keys have changed.
fn give_back(local: &mut Local, loan: &mut Loan) -> bool {
    let keyspace = Arc::clone(&local.keyspace);
    let mut guards = Guards::None;
    let words: Vec<_> = loan.call().iter().take(2).map(String::from_utf8_lossy).collect();
    let command = command_of(&words.join(" "));
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

/// Returns the effects recorded since the last call, each with the number of its database.
fn effects(local: &mut Local) -> Vec<(usize, String)> {
    let segment = local.turn.journal.take();
    let effects = segment.records().flat_map(|(_, effects)| effects);
    effects.map(|effect| (effect.database, String::from_utf8_lossy(effect.command).into_owned())).collect()
}

/// Returns the lines of a reply, sorted, because their order may depend on that of a hash table.
fn sorted_lines(reply: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = reply.split("\r\n").collect();
    lines.sort_unstable();
    lines
}

#[test]
fn random_calls_have_the_same_effect_on_borrowed_values_as_under_locks() {
    for seed in 0..40 {
        let mut random = Random::seeded(seed);
        let (mut here, mut lent) = (lending(), lending());
        for local in [&mut here, &mut lent] {
            local.turn.journal = Journal::numbered_by(Arc::default());
        }
        let mut ids = vec!["0-1".to_owned()];
        for step in 0..300 {
            let line = draw(&mut random, &ids);
            // Random choices on borrowed values use another seed, so the results differ.
            if line.starts_with("SPOP") {
                continue;
            }
            let passed_ms = if random.below(10) == 0 { random.below(900) as i64 } else { 0 };
            let mut seen = Vec::new();
            for (local, borrows_values) in [(&mut here, false), (&mut lent, true)] {
                local.turn.now_ms += passed_ms;
                // Removes expired keys by reading all keys.
                contents(local);
                effects(local);
                local.turn.notices.events.clear();
                local.turn.random = Random::seeded(step);
                local.borrows_values = borrows_values;
                let changes = local.turn.counters.changes;
                let reply = run(local, &line);
                local.borrows_values = false;
                let events = std::mem::take(&mut local.turn.notices.events);
                let effects = effects(local);
                seen.push((reply, events, effects, local.turn.counters.changes - changes, contents(local)));
            }
            let (lent, here) = (seen.pop().unwrap(), seen.pop().unwrap());
            assert_eq!(sorted_lines(&lent.0), sorted_lines(&here.0), "seed {seed}: {line}");
            assert_eq!(lent.1, here.1, "seed {seed}: {line}");
            assert_eq!(lent.2, here.2, "seed {seed}: {line}");
            assert_eq!((lent.3, lent.4), (here.3, here.4), "seed {seed}: {line}");
            if line.starts_with("XADD")
                && let Some(id) = here.0.lines().nth(1)
            {
                ids.push(id.to_owned());
                ids = ids.split_off(ids.len().saturating_sub(20));
            }
        }
        here.keyspace.check_invariants();
        lent.keyspace.check_invariants();
    }
}

#[test]
fn random_calls_give_the_same_replies_on_borrowed_values() {
    for seed in 0..40 {
        let mut random = Random::seeded(seed);
        let mut local = lending();
        let mut ids = vec!["0-1".to_owned()];
        for _ in 0..300 {
            let (line, reply) = run_random(&mut local, &mut random, &mut ids);
            let command = command_of(&line);
            if !command.run.may_be_long() || reply.starts_with('-') {
                continue;
            }
            // Calls that read their own result have another result each time.
            let call = batch(&line);
            let mut keys = command.spec.key_positions(call.command(0)).map(|arg| call.command(0).at(arg));
            let target = keys.next().filter(|_| command.spec.flags.contains(Flags::WRITE));
            if target.is_some_and(|target| keys.any(|key| key == target)) {
                continue;
            }
            // The call runs again, first under the locks and then on borrowed values.
            let here = run(&mut local, &line);
            // Removes expired keys by reading all keys.
            contents(&mut local);
            let contents_here = contents(&mut local);
            local.turn.notices.events.clear();
            let again = run(&mut local, &line);
            let events = std::mem::take(&mut local.turn.notices.events);
            // Calls that change a value in place or choose at random also have another result each time.
            if command.spec.name.contains("rand") || again != here || contents(&mut local) != contents_here {
                continue;
            }
            local.turn.notices.events.clear();
            local.borrows_values = true;
            let lent = run(&mut local, &line);
            local.borrows_values = false;
            assert_eq!(local.turn.notices.events, events, "seed {seed}: {line}");
            assert_eq!(lent, here, "seed {seed}: {line}");
            assert_eq!(contents(&mut local), contents_here, "seed {seed}: {line}");
        }
        local.keyspace.check_invariants();
    }
}

/// Lines that create a key, each with a long-running call on the key.
const LONG_CALLS: &[(&str, &str)] = &[
    ("HSET h a 1 b 2", "COPY h to"),
    ("HSET h a 1 b 2", "COPY h to DB 1"),
    ("RPUSH l b a", "SORT l ALPHA STORE to"),
    ("ZADD z 1 b 2 a", "SORT z ALPHA STORE z"),
    ("HSET h a 1 b 2", "HRANDFIELD h -5"),
    ("HSET h a 1 b 2", "HRANDFIELD h 5 WITHVALUES"),
    ("SADD s a b", "SRANDMEMBER s -5"),
    ("SADD s a b", "SRANDMEMBER s 5"),
    ("ZADD z 1 a 2 b", "ZRANDMEMBER z -5"),
    ("ZADD z 1 a 2 b", "ZRANDMEMBER z 5 WITHSCORES"),
    ("HSET h a 1 b 2", "HSCAN h 0 COUNT 10"),
    ("SADD s a b", "SSCAN s 0 COUNT 10"),
    ("ZADD z 1 a 2 b", "ZSCAN z 0 COUNT 10"),
    ("XADD x 1-1 a 1", "XINFO STREAM x FULL"),
    ("XADD x 1-1 a 1", "XREAD STREAMS x 0"),
    ("XGROUP CREATE x g $ MKSTREAM", "XINFO GROUPS x"),
    ("ZADD z 1 a 2 b", "ZREMRANGEBYRANK z 0 0"),
    ("ZADD z 1 a 2 b", "ZREMRANGEBYSCORE z 0 5"),
    ("ZADD z 1 a 1 b", "ZREMRANGEBYLEX z - +"),
    ("ZADD z 1 a 2 b", "ZPOPMIN z 2"),
    ("ZADD z 1 a 2 b", "ZPOPMAX z 1"),
    ("ZADD z 1 a 2 b", "ZMPOP 2 none z MIN COUNT 2"),
    ("ZADD z 1 a 2 b", "BZMPOP 0 2 none z MIN COUNT 2"),
    ("SADD s a b c", "SPOP s 2"),
    ("RPUSH l a b c", "LPOP l 2"),
    ("RPUSH l a b c", "RPOP l 3"),
    ("RPUSH l a b c", "LMPOP 2 none l LEFT COUNT 2"),
    ("RPUSH l a b c", "BLMPOP 0 2 none l LEFT COUNT 2"),
    ("RPUSH l a b c", "LREM l 0 b"),
];

#[test]
fn long_calls_of_each_kind_run_on_borrowed_values() {
    for (given, call) in LONG_CALLS {
        let mut local = lending();
        assert!(!run(&mut local, given).starts_with('-'), "{given}");
        let mut loan = take(&mut local, call);
        let before = contents(&mut local);
        let mut reply = Reply::new(Protocol::Resp2);
        loan.run(&local.keyspace, &mut reply).unwrap();
        assert!(reply.len_bytes() > 0, "{call}");
        assert_eq!(contents(&mut local), before, "{call}: no change before the end");
        assert!(give_back(&mut local, &mut loan), "{call}");
        let writes = command_of(call).spec.flags;
        assert_eq!(contents(&mut local) != before, writes.contains(Flags::WRITE), "{call}");
        local.keyspace.check_invariants();
    }
}

#[test]
fn calls_that_name_many_elements_run_on_borrowed_values() {
    let names = |prefix: &str, suffix: &str| -> String {
        (1..=1100).map(|number| format!(" {prefix}{number}{suffix}")).collect()
    };
    let (members, ids) = (names("m", ""), names("", "-1"));
    for (given, call) in [
        (format!("SADD s x{members}"), format!("SREM s{members}")),
        (format!("ZADD z 5 x{}", members.replace(" m", " 1 m")), format!("ZREM z{members}")),
        (
            format!("HSET h x 1{}", members.replace(" m", " 1 m")),
            format!("HDEL h{}", members.replace('m', "")),
        ),
        ("HSET h a 1 m5 2".to_owned(), format!("HGETDEL h FIELDS 1100{members}")),
        ("XADD x 1-1 a 1".to_owned(), format!("XDEL x{ids}")),
        ("XGROUP CREATE x g 0 MKSTREAM".to_owned(), format!("XACK x g{ids}")),
        ("XGROUP CREATE x g 0 MKSTREAM".to_owned(), format!("XCLAIM x g c 0{ids}")),
    ] {
        let mut local = lending();
        assert!(!run(&mut local, &given).starts_with('-'), "{given}");
        let shown = &call[..12];
        let mut loan = take(&mut local, &call);
        let mut reply = Reply::new(Protocol::Resp2);
        loan.run(&local.keyspace, &mut reply).unwrap();
        assert!(give_back(&mut local, &mut loan), "{shown}");
        local.keyspace.check_invariants();
        // The same lines run again, under the locks.
        let mut other = lending();
        run(&mut other, &given);
        assert_eq!(String::from_utf8(reply.to_vec()).unwrap(), run(&mut other, &call), "{shown}");
        assert_eq!(contents(&mut local), contents(&mut other), "{shown}");
    }
}

#[test]
fn calls_on_consumer_groups_run_on_borrowed_values() {
    let mut local = lending();
    local.turn.settings.short_call_steps = usize::MAX;
    for id in 1..=9 {
        run(&mut local, &format!("XADD x {id}-1 a {id}"));
    }
    run(&mut local, "XGROUP CREATE x g 0");
    local.turn.settings.short_call_steps = 1;
    for (call, expected) in [
        ("XREADGROUP GROUP g c COUNT 5 STREAMS x >", true),
        ("XREADGROUP GROUP g c COUNT 1 STREAMS x >", false),
        ("XREADGROUP GROUP g c STREAMS x 0", true),
        ("XREADGROUP GROUP g c STREAMS x >", true),
        ("XREADGROUP GROUP g c STREAMS x >", false),
        ("XPENDING x g - + 10", true),
        ("XPENDING x g - + 1", false),
        ("XAUTOCLAIM x g d 0 0 COUNT 100", true),
        ("XAUTOCLAIM x g d 0 0 COUNT 1", false),
        ("XINFO STREAM x FULL COUNT 0", true),
        ("XINFO STREAM x", false),
    ] {
        match take_if_long(&mut local, call) {
            None => assert!(!expected, "{call}"),
            Some(mut loan) => {
                assert!(expected, "{call}");
                loan.run(&local.keyspace, &mut Reply::new(Protocol::Resp2)).unwrap();
                assert!(give_back(&mut local, &mut loan), "{call}");
            }
        }
    }
    let pending = run(&mut local, "XPENDING x g");
    assert!(pending.starts_with("*4\r\n:9\r\n"), "{pending}");
}

#[test]
fn a_small_part_of_a_value_is_changed_in_place() {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.short_call_steps = 10;
    for member in 0..2000 {
        run(&mut local, &format!("ZADD z {member} m{member}"));
        run(&mut local, &format!("RPUSH l m{member}"));
    }
    for (call, expected) in [
        ("ZREMRANGEBYRANK z 0 19", false),
        ("ZREMRANGEBYRANK z 0 49", false),
        ("ZREMRANGEBYRANK z 0 99", true),
        ("ZREMRANGEBYRANK z 0 -1", true),
        ("LREM l 1 m5", false),
        ("LREM l -1 m1995", false),
        ("LREM l 1 m1995", true),
        ("LREM l 0 m5", true),
    ] {
        assert_eq!(is_long(&mut local, call), expected, "{call}");
    }
}

#[test]
fn long_strings_are_changed_as_borrowed_values() {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.settings.short_call_steps = 1000;
    let long = "x".repeat(1 << 20);
    run(&mut local, "SET a abc");
    for (call, expected) in [
        (format!("APPEND a {long}"), true),
        ("APPEND a bc".to_owned(), false),
        ("SETRANGE a 1000000 x".to_owned(), true),
        ("SETRANGE a 1000 x".to_owned(), false),
    ] {
        assert_eq!(is_long(&mut local, &call), expected, "{}", &call[..20.min(call.len())]);
    }
    let mut loan = take(&mut local, &format!("APPEND a {long}"));
    loan.run(&local.keyspace, &mut Reply::new(Protocol::Resp2)).unwrap();
    assert!(give_back(&mut local, &mut loan));
    assert_eq!(run(&mut local, "STRLEN a"), format!(":{}\r\n", 1001 + (1 << 20)));
    local.keyspace.check_invariants();
}

#[test]
fn records_of_calls_on_borrowed_values_are_appended_when_they_end() {
    let mut local = lending();
    local.turn.journal = Journal::numbered_by(Arc::default());
    run(&mut local, "SADD s a b c d e");
    effects(&mut local);
    let mut loan = take(&mut local, "SPOP s 3");
    let popped = reply_of(&local, &mut loan);
    run(&mut local, "SET other x");
    assert!(give_back(&mut local, &mut loan));
    let recorded = effects(&mut local);
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    assert!(recorded[0].1.contains("SET"), "{recorded:?}");
    assert!(recorded[1].1.contains("SREM"), "{recorded:?}");
    let named = popped.lines().filter(|line| line.len() == 1).collect::<Vec<_>>();
    assert_eq!(named.len(), 3, "{popped}");
    assert!(named.iter().all(|member| recorded[1].1.contains(&format!("\r\n{member}\r\n"))), "{recorded:?}");
    assert_eq!(run(&mut local, "SCARD s"), ":2\r\n");
}

#[test]
fn a_call_is_run_again_if_the_journal_gains_its_first_reader() {
    let mut local = lending();
    run(&mut local, "SADD s a b c d e");
    let mut loan = take(&mut local, "SPOP s 3");
    reply_of(&local, &mut loan);
    local.turn.journal = Journal::numbered_by(Arc::default());
    assert!(!give_back(&mut local, &mut loan));
    assert_eq!(run(&mut local, "SCARD s"), ":5\r\n");
}

#[test]
fn borrowed_values_stay_unchanged_while_their_keys_change() {
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

/// Returns whether a call is long-running, so that it is not run under the locks.
fn is_long(local: &mut Local, line: &str) -> bool {
    take_if_long(local, line).is_some()
}

#[test]
fn the_length_of_a_search_counts_the_vectors_and_attributes_it_may_read() {
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
    // Texts that are read or written count with their own length, even if they are much longer than the mean.
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
    assert!(is_long(&mut local, "DUMP l"), "the list has few elements, but many bytes");
}

#[test]
fn no_result_is_stored_when_a_key_has_changed() {
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
        // The watch of the loan was removed.
        let observed =
            (0..emberkv_core::keyspace::SHARDS).any(|at| local.keyspace.lock(at).observers().is_some());
        assert!(!observed, "{change}");
        local.keyspace.check_invariants();
    }
}

#[test]
fn no_result_is_stored_when_a_key_has_expired() {
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
fn a_result_replaces_the_existing_key() {
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
        "COPY s to REPLACE",
        "SORT to STORE to",
        "ZREMRANGEBYRANK z 0 0",
    ] {
        let contents_after = [false, true].map(|borrows_values| {
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
            local.borrows_values = borrows_values;
            let reply = run(&mut local, call);
            assert!(!reply.starts_with('-'), "{call}: {reply}");
            local.keyspace.check_invariants();
            ["s", "z", "to", "v"].map(|key| run(&mut local, &format!("EXPIRETIME {key}")))
        });
        assert_eq!(contents_after[0], contents_after[1], "{call}");
    }
}
