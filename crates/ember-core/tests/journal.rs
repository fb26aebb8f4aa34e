//! The journal: whatever commands, expiry and eviction did, its effects run again on an empty keyspace lead to the same
//! contents.

use std::sync::Arc;

use ember_protocol::{Batch, Limits, ParseStatus, Parser, Protocol};
use emberkv_core::commands::FAMILIES;
use emberkv_core::journal::{Journal, Segment, Sequence};
use emberkv_core::local::Local;
use emberkv_core::turn::Random;

/// A keyspace whose changes are written down.
fn journaled() -> Local {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.journal = Journal::numbered_by(Arc::new(Sequence::default()));
    local
}

fn words(line: &str) -> Vec<Vec<u8>> {
    line.split_whitespace().map(|word| word.trim_matches('"').as_bytes().to_vec()).collect()
}

fn run(local: &mut Local, line: &str) -> String {
    let words = words(line);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    String::from_utf8_lossy(&local.run(&words)).into_owned()
}

/// The words of a command in RESP.
fn parse(command: &[u8]) -> Vec<Vec<u8>> {
    let mut batch = Batch::new();
    let status = Parser::new().parse(command, &mut batch, &Limits::default());
    assert!(matches!(status, ParseStatus::NeedMore), "{status:?}");
    assert_eq!(batch.len(), 1, "an effect is one command: {}", String::from_utf8_lossy(command));
    batch.command(0, command).iter().map(<[u8]>::to_vec).collect()
}

/// The effects of a segment as lines.
fn lines(segment: &Segment) -> Vec<String> {
    let effects = segment.records().flat_map(|(_, effects)| effects.map(|effect| parse(effect.command)));
    effects.map(|words| String::from_utf8_lossy(&words.join(&b" "[..])).into_owned()).collect()
}

/// Runs the effects on an empty keyspace.
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

/// All that can be asked of the keys in all databases, in an order that does not depend on chance. Asking removes what has
/// expired, which the journal is told.
fn contents(local: &mut Local) -> Vec<String> {
    let mut all = Vec::new();
    for database in 0..2 {
        local.database = database;
        let keys = run(local, "KEYS *");
        let mut keys: Vec<&str> = keys.split("\r\n").filter(|line| !line.starts_with(['*', '$'])).collect();
        keys.retain(|key| !key.is_empty());
        keys.sort_unstable();
        for key in keys {
            let kind = run(local, &format!("TYPE {key}"));
            let value = match kind.trim() {
                "+string" => run(local, &format!("GET {key}")),
                "+list" => run(local, &format!("LRANGE {key} 0 -1")),
                "+set" => sorted(&run(local, &format!("SMEMBERS {key}")), 1),
                "+zset" => run(local, &format!("ZRANGE {key} 0 -1 WITHSCORES")),
                "+hash" => fields(local, key),
                "+stream" => stream(local, key),
                other => panic!("{key}: {other}"),
            };
            let expiry = run(local, &format!("PEXPIRETIME {key}"));
            all.push(format!("{database} {key} {kind}{value}{expiry}"));
        }
    }
    local.database = 0;
    all
}

/// The elements of an array, sorted; each `stride` of them belong together.
fn sorted(array: &str, stride: usize) -> String {
    let elements: Vec<&str> = array.split("\r\n").skip(1).collect();
    let mut elements: Vec<String> = elements.chunks(2 * stride).map(|chunk| chunk.join(" ")).collect();
    elements.sort_unstable();
    elements.join("\n")
}

fn fields(local: &mut Local, key: &str) -> String {
    let all = sorted(&run(local, &format!("HGETALL {key}")), 2);
    let expiries: Vec<String> = (0..FIELDS)
        .map(|field| run(local, &format!("HPEXPIRETIME {key} FIELDS 1 f{field}")).replace("\r\n", " "))
        .collect();
    format!("{all} {}", expiries.concat())
}

/// Entries, groups, and what is pending; without the times at which consumers were seen.
fn stream(local: &mut Local, key: &str) -> String {
    let entries = run(local, &format!("XRANGE {key} - +"));
    let facts = run(local, &format!("XINFO STREAM {key}"));
    let groups = run(local, &format!("XINFO GROUPS {key}"));
    let mut pending = String::new();
    for group in ["g0", "g1"] {
        pending += &run(local, &format!("XPENDING {key} {group} - + 1000"));
        let consumers = run(local, &format!("XINFO CONSUMERS {key} {group}"));
        pending +=
            &consumers.split("\r\n").filter(|line| line.starts_with("c")).collect::<Vec<_>>().join(" ");
    }
    // The first numbers tell of blocks, whose sizes trimming by another way may leave different.
    let facts: Vec<&str> = facts.split("\r\n").collect();
    let told = facts.iter().position(|line| *line == "last-generated-id").unwrap_or(0);
    format!("{entries}{}{groups}{pending}", facts[told..].join(" "))
}

/// Names of fields.
const FIELDS: usize = 6;

/// Lines of the history in a report.
const HISTORY_SHOWN: usize = 300;

#[test]
fn what_depends_on_time_or_chance_is_told_by_its_outcome() {
    let mut local = journaled();
    let now_ms = local.turn.now_ms;
    let at = now_ms + 10_000;
    let cases = [
        ("SET a 1 EX 10", vec![format!("SET a 1 PXAT {at}")]),
        ("SET a 2 KEEPTTL GET", vec!["SET a 2 KEEPTTL".into()]),
        ("SET a 3 NX", vec![]),
        ("PSETEX a 10000 4", vec![format!("SET a 4 PXAT {at}")]),
        ("EXPIRE a 20 GT", vec![format!("PEXPIREAT a {}", now_ms + 20_000)]),
        ("GETEX a PERSIST", vec!["PERSIST a".into()]),
        ("INCRBYFLOAT a 1.5", vec!["SET a 5.5 KEEPTTL".into()]),
        ("EXPIRE a -1", vec!["DEL a".into()]),
        ("SADD s x", vec!["SADD s x".into()]),
        ("SADD s x", vec![]),
        ("SPOP s", vec!["DEL s".into()]),
        ("SADD s x x", vec!["SADD s x x".into()]),
        ("SPOP s 5", vec!["DEL s".into()]),
        ("RPUSH l 3 1 2", vec!["RPUSH l 3 1 2".into()]),
        ("BLPOP none l 0", vec!["LPOP l".into()]),
        ("BLMPOP 0 1 l RIGHT COUNT 9", vec!["RPOP l 2".into()]),
        ("BLPOP l 0", vec![]),
        ("RPUSH l 3 1 2", vec!["RPUSH l 3 1 2".into()]),
        ("BRPOPLPUSH l m 0", vec!["LMOVE l m RIGHT LEFT".into()]),
        ("SORT l STORE sorted", vec!["DEL sorted".into(), "RPUSH sorted 1 3".into()]),
        ("ZADD z 1 a 2 b", vec!["ZADD z 1 a 2 b".into()]),
        ("BZPOPMAX z 0", vec!["ZPOPMAX z 1".into()]),
        ("HSET h f 1", vec!["HSET h f 1".into()]),
        ("HINCRBYFLOAT h f 0.5", vec!["HSET h f 1.5".into()]),
        ("HEXPIRE h 10 FIELDS 2 f g", vec![format!("HPEXPIREAT h {at} FIELDS 1 f")]),
        ("HINCRBYFLOAT h f 0.5", vec!["HSETEX h KEEPTTL FIELDS 1 f 2".into()]),
        ("HGETEX h PX 0 FIELDS 1 f", vec!["HDEL h f".into()]),
        ("XADD x * a b", vec![format!("XADD x {now_ms}-0 a b")]),
        ("XADD x MAXLEN 1 * c d", vec![format!("XADD x {now_ms}-1 c d"), "XTRIM x MAXLEN = 1".into()]),
        ("XGROUP CREATE x g 0", vec!["XGROUP CREATE x g 0".into()]),
        (
            "XREADGROUP GROUP g c STREAMS x >",
            vec![
                "XGROUP CREATECONSUMER x g c".into(),
                format!("XCLAIM x g c 0 {now_ms}-1 TIME {now_ms} RETRYCOUNT 1 FORCE JUSTID"),
                format!("XGROUP SETID x g {now_ms}-1 ENTRIESREAD 2"),
            ],
        ),
        ("GET a", vec![]),
        ("FLUSHALL", vec!["FLUSHALL".into()]),
    ];
    for (line, expected) in cases {
        let reply = run(&mut local, line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
        assert_eq!(lines(&local.turn.journal.take()), expected, "{line}");
    }
}

#[test]
fn what_expires_is_told_as_a_removal_before_what_comes_next() {
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
    let mut told = lines(&local.turn.journal.take());
    told.sort_unstable();
    assert_eq!(told, ["DEL b", "HDEL h i"]);
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

/// Commands to draw from: `K` is a key of any type, `S L E H Z X` one that has the type usually, `F` a field, `V` a value,
/// `N` a small number, `M` a number of ms, `I` an entry's ID, `G` a group, `C` a consumer, `R` a real number.
const TEMPLATES: &[&str] = &[
    "SET S V",
    "SET S V PX M",
    "SET S V EX 1 NX",
    "SET S V KEEPTTL XX",
    "SET S N",
    "SETEX S 1 V",
    "GETSET S V",
    "GETDEL S",
    "GETEX S PX M",
    "GETEX S PERSIST",
    "APPEND S V",
    "INCR S",
    "INCRBYFLOAT S R",
    "DECRBY S N",
    "SETRANGE S N V",
    "MSET S V S V",
    "MSETNX S V S V",
    "SETBIT S N 1",
    "BITFIELD S INCRBY u8 #N N",
    "BITOP OR S S S",
    "GET K",
    "PFADD S V V",
    "PFCOUNT S",
    "PFMERGE S S",
    "DEL K",
    "UNLINK K K",
    "EXPIRE K 1",
    "PEXPIRE K M",
    "PEXPIRE K M NX",
    "PEXPIREAT K N",
    "PERSIST K",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K",
    "COPY K K REPLACE",
    "MOVE K 1",
    "SORT L STORE L ALPHA",
    "SORT E BY nosort STORE L",
    "TOUCH K",
    "LPUSH L V V",
    "RPUSH L V",
    "LPUSHX L V",
    "LPOP L",
    "RPOP L 2",
    "LMOVE L L LEFT RIGHT",
    "RPOPLPUSH L L",
    "BLPOP L L 0",
    "BLMOVE L L RIGHT LEFT 0",
    "LMPOP 2 L L LEFT COUNT 2",
    "BLMPOP 0 2 L L RIGHT",
    "LREM L N V",
    "LSET L N V",
    "LTRIM L N -1",
    "LINSERT L BEFORE V V",
    "SADD E V V V",
    "SREM E V",
    "SPOP E",
    "SPOP E N",
    "SMOVE E E V",
    "SUNIONSTORE E E E",
    "SINTERSTORE E E E",
    "SDIFFSTORE E E E",
    "HSET H F V F V",
    "HSETNX H F V",
    "HDEL H F",
    "HINCRBY H F N",
    "HINCRBYFLOAT H F R",
    "HPEXPIRE H M FIELDS 2 F F",
    "HPEXPIRE H 0 FIELDS 1 F",
    "HPERSIST H FIELDS 1 F",
    "HGETEX H PX M FIELDS 1 F",
    "HGETEX H PERSIST FIELDS 1 F",
    "HSETEX H PX M FIELDS 1 F V",
    "HSETEX H FNX KEEPTTL FIELDS 1 F V",
    "HGETDEL H FIELDS 2 F F",
    "HGETALL H",
    "HGET H F",
    "ZADD Z R V R V",
    "ZADD Z GT CH R V",
    "ZINCRBY Z R V",
    "ZREM Z V",
    "ZPOPMIN Z",
    "ZPOPMAX Z 2",
    "BZPOPMIN Z Z 0",
    "ZMPOP 2 Z Z MAX COUNT 2",
    "BZMPOP 0 1 Z MIN",
    "ZREMRANGEBYRANK Z 0 0",
    "ZREMRANGEBYSCORE Z 0 R",
    "ZUNIONSTORE Z 2 Z Z",
    "ZINTERSTORE Z 2 Z Z AGGREGATE MAX",
    "ZDIFFSTORE Z 2 Z Z",
    "ZRANGESTORE Z Z 0 2",
    "GEOADD Z 13.3 38.1 V",
    "GEOSEARCHSTORE Z Z FROMLONLAT 13 38 BYRADIUS 900 km",
    "XADD X * F V",
    "XADD X MAXLEN 3 * F V",
    "XADD X MAXLEN ~ 2 * F V",
    "XADD X MINID = I * F V ",
    "XADD X DELREF MAXLEN = 2 * F V",
    "XADD X ACKED MAXLEN = 2 * F V",
    "XTRIM X MAXLEN N",
    "XTRIM X MINID I",
    "XTRIM X MAXLEN N ACKED",
    "XDEL X I",
    "XGROUP CREATE X G 0 MKSTREAM",
    "XGROUP CREATE X G $",
    "XGROUP SETID X G I",
    "XGROUP DESTROY X G",
    "XGROUP CREATECONSUMER X G C",
    "XGROUP DELCONSUMER X G C",
    "XREADGROUP GROUP G C COUNT 2 STREAMS X >",
    "XREADGROUP GROUP G C NOACK STREAMS X >",
    "XREADGROUP GROUP G C STREAMS X X > >",
    "XACK X G I",
    "XCLAIM X G C 0 I I",
    "XCLAIM X G C 0 I FORCE JUSTID",
    "XCLAIM X G C 0 I LASTID I",
    "XAUTOCLAIM X G C 0 0",
    "XSETID X 99999999999999-0",
    "XDELEX X ACKED IDS 1 I",
    "XACKDEL X G DELREF IDS 1 I",
    "SWAPDB 0 1",
    "FLUSHDB",
];

/// A command made of a template.
fn draw(random: &mut Random, ids: &[String]) -> String {
    let template = TEMPLATES[random.below(TEMPLATES.len())];
    // Emptying everything is rare, so that there is something to work on.
    let template =
        if matches!(template, "FLUSHDB" | "SWAPDB 0 1") && random.below(20) > 0 { "DEL K" } else { template };
    let mut words = Vec::new();
    for word in template.split_whitespace() {
        let kind = ["S", "L", "E", "H", "Z", "X"][random.below(6)];
        words.push(match word {
            "K" => format!("{kind}{}", random.below(4)),
            "S" | "L" | "E" | "H" | "Z" | "X" if random.below(40) == 0 => {
                format!("{kind}{}", random.below(4))
            }
            "S" | "L" | "E" | "H" | "Z" | "X" => format!("{word}{}", random.below(4)),
            "F" => format!("f{}", random.below(FIELDS)),
            "V" => format!("v{}", random.below(12)),
            "N" => random.below(6).to_string(),
            "#N" => format!("#{}", random.below(6)),
            "M" => (1 + random.below(3000)).to_string(),
            "I" => ids[random.below(ids.len())].clone(),
            "G" => format!("g{}", random.below(2)),
            "C" => format!("c{}", random.below(3)),
            "R" => (random.below(40) as f64 / 8.0 - 1.0).to_string(),
            other => other.to_owned(),
        });
    }
    words.join(" ")
}

#[test]
fn random_commands_have_the_same_effects_again() {
    let rounds = std::env::var("JOURNAL_ROUNDS").map_or(60, |rounds| rounds.parse().unwrap());
    for seed in 0..rounds {
        let mut random = Random::seeded(0x9E37_79B9 * (seed + 1));
        let mut local = journaled();
        let (mut segments, mut history, mut ids) = (Vec::new(), Vec::new(), vec!["0-1".to_owned()]);
        for step in 0..400 {
            if random.below(10) == 0 {
                local.turn.now_ms += random.below(900) as i64;
            }
            if random.below(60) == 0 {
                let keyspace = Arc::clone(&local.keyspace);
                keyspace.expire_due(0..emberkv_core::keyspace::SHARDS, &mut local.turn, 100);
            }
            let line = draw(&mut random, &ids);
            let reply = run(&mut local, &line);
            if line.starts_with("XADD")
                && let Some(id) = reply.lines().nth(1)
            {
                ids.push(id.to_owned());
                ids = ids.split_off(ids.len().saturating_sub(20));
            }
            history.push(format!("{} {line} -> {}", local.turn.now_ms, reply.replace("\r\n", " ")));
            let segment = local.turn.journal.take();
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
