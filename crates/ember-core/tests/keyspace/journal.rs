//! The journal: replaying the recorded effects of commands, expiry and eviction on an empty keyspace produces the same
//! contents.

use std::sync::Arc;

use ember_protocol::{Batch, Limits, ParseStatus, Parser, Protocol};
use emberkv_core::commands::FAMILIES;
use emberkv_core::journal::{Journal, Segment, Sequence};
use emberkv_core::local::Local;
use emberkv_core::turn::Random;

use crate::support::commands::{contents, run, run_random};

/// Returns a keyspace whose changes are recorded. All calls that can run on borrowed values do so.
fn journaled() -> Local {
    let mut local = Local::new(Protocol::Resp2);
    (local.borrows_values, local.turn.settings.short_call_steps) = (true, 0);
    local.turn.journal = Journal::numbered_by(Arc::new(Sequence::default()));
    local
}

/// Returns the words of a command in RESP.
fn parse(command: &[u8]) -> Vec<Vec<u8>> {
    let mut batch = Batch::new();
    let status = Parser::new().parse(command, &mut batch, &Limits::default());
    assert!(matches!(status, ParseStatus::NeedMore), "{status:?}");
    assert_eq!(batch.len(), 1, "an effect is one command: {}", String::from_utf8_lossy(command));
    batch.command(0, command).iter().map(<[u8]>::to_vec).collect()
}

/// Returns the effects of a segment as command lines.
fn lines(segment: &Segment) -> Vec<String> {
    let effects = segment.records().flat_map(|(_, effects)| effects.map(|effect| parse(effect.command)));
    effects.map(|words| String::from_utf8_lossy(&words.join(&b" "[..])).into_owned()).collect()
}

/// Replays the effects of the segments on an empty keyspace.
fn replay(segments: &[Segment], now_ms: i64) -> Local {
    let mut copy = Local::new(Protocol::Resp2);
    copy.turn.replay_at(now_ms);
    let mut last = 0;
    for (number, effects) in segments.iter().flat_map(Segment::records) {
        assert_eq!(number, last + 1, "no number is left out");
        last = number;
        for effect in effects {
            copy.database = effect.database;
            let words = parse(effect.command);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let reply = copy.run(&words);
            let line = String::from_utf8_lossy(&words.join(&b" "[..])).into_owned();
            assert!(!reply.starts_with(b"-"), "{line}: {}", String::from_utf8_lossy(&reply));
        }
    }
    copy.turn.now_ms = now_ms;
    copy
}

/// The maximum number of lines of the history that a failure report shows.
const HISTORY_SHOWN: usize = 300;

#[test]
fn effects_of_time_or_chance_are_recorded_by_their_outcome() {
    let mut local = journaled();
    let now_ms = local.turn.now_ms;
    let at = now_ms + 10_000;
    let deletion = format!("XDELEX x DELREF IDS 1 {now_ms}-1");
    let cases = [
        ("SET a 1 EX 10", vec![format!("SET a 1 PXAT {at}")]),
        ("SET a 2 KEEPTTL GET", vec!["SET a 2 KEEPTTL".into()]),
        ("SET a 3 NX", vec![]),
        ("SET a 3 IFNE 2", vec![]),
        ("SET a 3 IFNE 4 KEEPTTL", vec!["SET a 3 KEEPTTL".into()]),
        ("SET a 4 IFDNE 0000000000000000 EX 10", vec![format!("SET a 4 PXAT {at}")]),
        ("DELEX a IFEQ 3", vec![]),
        ("DELEX a IFEQ 4", vec!["DEL a".into()]),
        ("DELEX a", vec![]),
        ("PSETEX a 10000 4", vec![format!("SET a 4 PXAT {at}")]),
        ("EXPIRE a 20 GT", vec![format!("PEXPIREAT a {}", now_ms + 20_000)]),
        ("GETEX a PERSIST", vec!["PERSIST a".into()]),
        ("INCRBYFLOAT a 1.5", vec!["SET a 5.5 KEEPTTL".into()]),
        ("INCREX a BYFLOAT 0.5", vec!["SET a 6 KEEPTTL".into()]),
        ("INCREX a EX 10", vec![format!("SET a 7 PXAT {at}")]),
        ("INCREX a EX 20 ENX", vec!["SET a 8 KEEPTTL".into()]),
        ("INCREX a UBOUND 8", vec![]),
        ("INCREX a UBOUND 8 SATURATE PERSIST", vec!["SET a 8".into()]),
        ("INCREX gone EXAT 1", vec![]),
        ("EXPIRE a -1", vec!["DEL a".into()]),
        ("INCREX a BYINT 9", vec!["SET a 9 KEEPTTL".into()]),
        ("INCREX a EXAT 1", vec!["DEL a".into()]),
        ("MSETEX 2 a 1 b 2 EX 10 NX", vec![format!("SET a 1 PXAT {at}"), format!("SET b 2 PXAT {at}")]),
        ("MSETEX 2 a 3 b 4 XX KEEPTTL", vec!["SET a 3 KEEPTTL".into(), "SET b 4 KEEPTTL".into()]),
        ("MSETEX 2 a 3 b 4", vec!["MSET a 3 b 4".into()]),
        ("MSETEX 1 a 3 NX", vec![]),
        ("MSETEX 2 a 3 b 4 EXAT 1", vec!["DEL a b".into()]),
        ("MSET one a two b", vec!["MSET one a two b".into()]),
        ("BITOP OR a one two", vec!["BITOP OR a one two".into()]),
        ("BITOP DIFF1 a one two", vec!["SET a \u{2}".into()]),
        ("BITOP ONE b one two", vec!["SET b \u{3}".into()]),
        ("BITOP ANDOR b none one", vec!["SET b \0".into()]),
        ("BITOP DIFF b none none", vec!["DEL b".into()]),
        ("BITOP DIFF b none none", vec![]),
        ("SADD s x", vec!["SADD s x".into()]),
        ("SADD s x", vec![]),
        ("SPOP s", vec!["SREM s x".into()]),
        ("SADD s x x", vec!["SADD s x x".into()]),
        ("SPOP s 5", vec!["DEL s".into()]),
        ("RPUSH l 3 1 2", vec!["RPUSH l 3 1 2".into()]),
        ("BLPOP none l 0", vec!["LPOP l".into()]),
        ("BLMPOP 0 1 l RIGHT COUNT 9", vec!["RPOP l 2".into()]),
        ("BLPOP l 0", vec![]),
        ("RPUSH l 3 1 2", vec!["RPUSH l 3 1 2".into()]),
        ("BRPOPLPUSH l m 0", vec!["RPOPLPUSH l m".into()]),
        ("SORT l STORE sorted", vec!["DEL sorted".into(), "RPUSH sorted 1 3".into()]),
        ("ZADD z 1 a 2 b", vec!["ZADD z 1 a 2 b".into()]),
        ("BZPOPMAX z 0", vec!["ZPOPMAX z 1".into()]),
        ("ZRANGESTORE y z 0 9 BYSCORE LIMIT 0 2", vec!["ZRANGESTORE y z 0 9 BYSCORE LIMIT 0 2".into()]),
        ("ZRANGESTORE y z 0 9 BYSCORE LIMIT -1 2", vec!["DEL y".into()]),
        ("ZRANGESTORE y z 0 9 BYSCORE LIMIT -1 2", vec![]),
        ("HSET h f 1", vec!["HSET h f 1".into()]),
        ("HINCRBYFLOAT h f 0.5", vec!["HSET h f 1.5".into()]),
        ("HEXPIRE h 10 FIELDS 2 f g", vec![format!("HPEXPIREAT h {at} FIELDS 1 f")]),
        ("HINCRBYFLOAT h f 0.5", vec!["HSET h f 2".into(), format!("HPEXPIREAT h {at} FIELDS 1 f")]),
        (
            "HSETEX h KEEPTTL FIELDS 2 f 2 g 3",
            vec!["HSET h f 2 g 3".into(), format!("HPEXPIREAT h {at} FIELDS 1 f")],
        ),
        (
            "HSETEX h EX 10 FIELDS 2 f 2 g 3",
            vec!["HSET h f 2 g 3".into(), format!("HPEXPIREAT h {at} FIELDS 2 f g")],
        ),
        ("HGETDEL h FIELDS 1 g", vec!["HDEL h g".into()]),
        ("HGETEX h PX 0 FIELDS 1 f", vec!["HDEL h f".into()]),
        ("XADD x * a b", vec![format!("XADD x {now_ms}-0 a b")]),
        ("XADD x MAXLEN 1 * c d", vec![format!("XADD x {now_ms}-1 c d"), "XTRIM x MAXLEN = 1".into()]),
        ("XGROUP CREATE x g 0", vec!["XGROUP CREATE x g 0".into()]),
        (
            "XREADGROUP GROUP g c STREAMS x >",
            vec![
                format!("XCLAIM x g c 0 {now_ms}-1 TIME {now_ms} RETRYCOUNT 1 FORCE JUSTID"),
                format!("XGROUP SETID x g {now_ms}-1 ENTRIESREAD 2"),
            ],
        ),
        ("XTRIM x MAXLEN 0 ACKED", vec![]),
        (&deletion, vec![format!("XDEL x {now_ms}-1"), format!("XACK x g {now_ms}-1")]),
        ("XACKDEL x g IDS 1 1-1", vec![]),
        ("BF.ADD b x", vec!["BF.RESERVE b 0.01 100 EXPANSION 2".into(), "BF.MADD b x".into()]),
        ("BF.ADD b x", vec![]),
        ("BF.MADD b x y", vec!["BF.MADD b x y".into()]),
        (
            "BF.INSERT n CAPACITY 1 ERROR 0.25 NONSCALING ITEMS x y",
            vec!["BF.RESERVE n 0.25 1 NONSCALING".into(), "BF.MADD n x y".into()],
        ),
        ("BF.INSERT n ITEMS x z", vec![]),
        ("BF.RESERVE r 0.5 8", vec!["BF.RESERVE r 0.5 8".into()]),
        ("CF.ADDNX c x", vec!["CF.RESERVE c 1024".into(), "CF.INSERTNX c ITEMS x".into()]),
        ("CF.ADD c x", vec!["CF.ADD c x".into()]),
        ("CF.DEL c none", vec![]),
        ("TOPK.RESERVE t 3", vec!["TOPK.RESERVE t 3".into()]),
        ("TOPK.INCRBY t x 1 y none", vec!["TOPK.INCRBY t x 1 y none".into()]),
        ("TDIGEST.CREATE d", vec!["TDIGEST.CREATE d".into()]),
        ("TDIGEST.QUANTILE d 0.5", vec![]),
        ("GET a", vec![]),
        ("FLUSHALL", vec!["FLUSHALL".into()]),
    ];
    for (line, expected) in cases {
        let reply = run(&mut local, line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
        assert_eq!(lines(&local.turn.journal.take()), expected, "{line}");
    }
}

/// Options that newer versions of Redis have added to commands of Redis 7.
const NEWER_OPTIONS: [&str; 13] = [
    "DELREF", "ACKED", "KEEPREF", "IFEQ", "IFNE", "IFDEQ", "IFDNE", "TIER", "FNX", "DIFF", "DIFF1", "ANDOR",
    "ONE",
];

/// Fails if Redis 7 does not support the recorded command, because replicas may be older than the commands of this
/// server.
fn assert_known_to_redis_7(line: &str) {
    let mut words = line.split(' ');
    let name = words.next().unwrap();
    let mut commands = FAMILIES.iter().copied().flatten().copied().flatten();
    let command = commands.find(|command| command.spec.name.eq_ignore_ascii_case(name)).unwrap();
    let since: Vec<u32> = command.spec.since.split('.').map(|part| part.parse().unwrap()).collect();
    // Redis 7 does not support these kinds of values: hash fields that expire, vector sets, JSON documents and sketches.
    let is_of_others =
        ["HPEXPIREAT", "HPERSIST"].contains(&name) || name.starts_with('V') || name.contains('.');
    assert!(since.as_slice() <= [7, 0, 15].as_slice() || is_of_others, "{line}");
    assert!(!words.any(|word| NEWER_OPTIONS.contains(&word)), "{line}");
}

#[test]
fn expiry_is_recorded_as_a_removal_before_the_next_record() {
    let mut local = journaled();
    run(&mut local, "SET a 1 PX 5");
    run(&mut local, "HSETEX h PX 5 FIELDS 1 f v");
    run(&mut local, "HSET h g w");
    local.turn.journal.take();
    local.turn.now_ms += 5;
    run(&mut local, "APPEND a 2");
    assert_eq!(lines(&local.turn.journal.take()), ["DEL a", "APPEND a 2"]);
    run(&mut local, "HGETALL h");
    assert_eq!(lines(&local.turn.journal.take()), ["HDEL h f"]);
    run(&mut local, "SET b 1 PX 5");
    run(&mut local, "HSETEX h PX 5 FIELDS 1 i v");
    local.turn.journal.take();
    local.turn.now_ms += 2000;
    let keyspace = Arc::clone(&local.keyspace);
    keyspace.expire_due(0..emberkv_core::keyspace::SHARDS, &mut local.turn, usize::MAX);
    let mut recorded = lines(&local.turn.journal.take());
    recorded.sort_unstable();
    assert_eq!(recorded, ["DEL b", "HDEL h i"]);
}

#[test]
fn a_unit_is_one_record() {
    let mut local = journaled();
    local.turn.journal.begin_unit();
    run(&mut local, "SET a 1");
    run(&mut local, "GET a");
    run(&mut local, "INCR a");
    local.turn.journal.end_unit();
    run(&mut local, "INCR a");
    let segment = local.turn.journal.take();
    let records: Vec<(u64, usize)> =
        segment.records().map(|(number, effects)| (number, effects.count())).collect();
    assert_eq!(records, [(1, 2), (2, 1)]);
}

#[test]
fn a_run_ends_at_a_unit_at_another_database_and_at_its_bounds() {
    let mut local = journaled();
    for line in ["SET a 1", "SET b 2", "SET c 3"] {
        run(&mut local, line);
    }
    local.database = 1;
    run(&mut local, "SET d 4");
    local.turn.journal.begin_unit();
    run(&mut local, "SET e 5");
    run(&mut local, "SET f 6");
    local.turn.journal.end_unit();
    run(&mut local, "SET g 7");
    let segment = local.turn.journal.take();
    let bytes = |at| segment.effects(at).next().unwrap().command.len();
    let run_of = |at, records, target| {
        let (count, effect) = segment.run(at, records, target);
        let expected: Vec<u8> =
            (at..at + count).flat_map(|at| segment.effects(at).next().unwrap().command.to_vec()).collect();
        assert_eq!(effect.command, expected);
        (count, effect.database)
    };
    assert_eq!(run_of(0, u64::MAX, usize::MAX), (3, 0));
    assert_eq!(run_of(1, u64::MAX, usize::MAX), (2, 0));
    assert_eq!(run_of(0, 2, usize::MAX), (2, 0));
    // The result has the requested number of bytes, plus the remainder of the last record.
    assert_eq!(run_of(0, u64::MAX, bytes(0)), (1, 0));
    assert_eq!(run_of(0, u64::MAX, bytes(0) + 1), (2, 0));
    assert_eq!(run_of(3, u64::MAX, usize::MAX), (1, 1));
    assert_eq!(run_of(4, u64::MAX, usize::MAX).0, 0, "a unit is not part of a run");
    assert_eq!(run_of(5, u64::MAX, usize::MAX), (1, 1));
}

#[test]
fn the_example_of_each_command_has_the_same_effect_again() {
    let commands = FAMILIES.iter().copied().flatten().copied().flatten();
    let commands = commands.flat_map(|command| std::iter::once(command).chain(command.subcommands));
    for command in commands {
        let example = &command.spec.example;
        let mut local = journaled();
        example.given.iter().chain([&example.call]).for_each(|line| _ = run(&mut local, line));
        let segment = local.turn.journal.take();
        let mut copy = replay(&[segment], local.turn.now_ms);
        assert_eq!(contents(&mut copy), contents(&mut local), "{}", example.call);
    }
}

#[test]
fn random_commands_have_the_same_effects_again() {
    let rounds = std::env::var("JOURNAL_ROUNDS").map_or(60, |rounds| rounds.parse().unwrap());
    for seed in 0..rounds {
        let mut random = Random::seeded(0x9E37_79B9 * (seed + 1));
        let mut local = journaled();
        let (mut segments, mut history, mut ids) = (Vec::new(), Vec::new(), vec!["0-1".to_owned()]);
        for step in 0..400 {
            if random.below(60) == 0 {
                let keyspace = Arc::clone(&local.keyspace);
                keyspace.expire_due(0..emberkv_core::keyspace::SHARDS, &mut local.turn, 100);
            }
            let (line, reply) = run_random(&mut local, &mut random, &mut ids);
            history.push(format!("{} {line} -> {}", local.turn.now_ms, reply.replace("\r\n", " ")));
            let segment = local.turn.journal.take();
            lines(&segment).iter().for_each(|line| assert_known_to_redis_7(line));
            history.extend(lines(&segment).iter().map(|effect| format!("    {effect}")));
            segments.push(segment);
            if step % 50 == 49 {
                let now_ms = local.turn.now_ms;
                let mut copy = replay(&segments, now_ms);
                let (copied, original) = (contents(&mut copy), contents(&mut local));
                segments.push(local.turn.journal.take());
                let only = |these: &[String], others: &[String]| -> String {
                    these.iter().filter(|one| !others.contains(one)).map(|one| format!("{one:?}\n")).collect()
                };
                assert!(
                    copied == original,
                    "seed {seed}, again:\n{}at first:\n{}history:\n{}",
                    only(&copied, &original),
                    only(&original, &copied),
                    history[history.len().saturating_sub(HISTORY_SHOWN)..].join("\n")
                );
            }
        }
    }
}
