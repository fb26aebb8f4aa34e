//! The sorted set commands.
//!
//! If scores differ, ranges of members depend on the levels of Redis's skip list, which are random. So such ranges are
//! requested only for separate keys, which no other generator uses: sorted sets in which all scores are equal, and
//! small ones.

use super::{Draw, Generator, Step, Words};

pub(super) const COMMANDS: &[Generator] = &[
    Generator { name: "ZADD", weight: 80, make: zadd },
    Generator { name: "ZINCRBY", weight: 20, make: |draw| one(draw, "ZINCRBY {zkey} {score} {member}") },
    Generator { name: "ZREM", weight: 15, make: |draw| one(draw, "ZREM {zkey} {members}") },
    Generator { name: "ZCARD", weight: 8, make: |draw| one(draw, "ZCARD {zkey}") },
    Generator { name: "ZCOUNT", weight: 10, make: |draw| one(draw, "ZCOUNT {zkey} {bound} {bound}") },
    Generator { name: "ZLEXCOUNT", weight: 10, make: |draw| one(draw, "ZLEXCOUNT {lexkey} {lex} {lex}") },
    Generator { name: "ZSCORE", weight: 10, make: |draw| one(draw, "ZSCORE {zkey} {member}") },
    Generator { name: "ZMSCORE", weight: 8, make: |draw| one(draw, "ZMSCORE {zkey} {members}") },
    Generator { name: "ZRANK", weight: 10, make: |draw| rank(draw, "ZRANK {zkey} {member}") },
    Generator { name: "ZREVRANK", weight: 10, make: |draw| rank(draw, "ZREVRANK {zkey} {member}") },
    Generator { name: "ZRANGE", weight: 40, make: |draw| range(draw, "ZRANGE") },
    Generator { name: "ZRANGESTORE", weight: 15, make: zrangestore },
    Generator { name: "ZRANGEBYSCORE", weight: 12, make: |draw| by_score(draw, "ZRANGEBYSCORE") },
    Generator { name: "ZREVRANGEBYSCORE", weight: 12, make: |draw| by_score(draw, "ZREVRANGEBYSCORE") },
    Generator { name: "ZRANGEBYLEX", weight: 12, make: |draw| by_lex(draw, "ZRANGEBYLEX") },
    Generator { name: "ZREVRANGEBYLEX", weight: 12, make: |draw| by_lex(draw, "ZREVRANGEBYLEX") },
    Generator { name: "ZREVRANGE", weight: 12, make: zrevrange },
    Generator {
        name: "ZREMRANGEBYRANK",
        weight: 6,
        make: |draw| one(draw, "ZREMRANGEBYRANK {zkey} {index} {index}"),
    },
    Generator {
        name: "ZREMRANGEBYSCORE",
        weight: 6,
        make: |draw| one(draw, "ZREMRANGEBYSCORE {zkey} {bound} {bound}"),
    },
    Generator {
        name: "ZREMRANGEBYLEX",
        weight: 6,
        make: |draw| one(draw, "ZREMRANGEBYLEX {lexkey} {lex} {lex}"),
    },
    Generator { name: "ZPOPMIN", weight: 8, make: |draw| pop(draw, "ZPOPMIN {zkey}") },
    Generator { name: "ZPOPMAX", weight: 8, make: |draw| pop(draw, "ZPOPMAX {zkey}") },
    Generator { name: "ZMPOP", weight: 10, make: |draw| mpop(draw, "ZMPOP") },
    Generator { name: "BZPOPMIN", weight: 4, make: |draw| blocking_pop(draw, "BZPOPMIN") },
    Generator { name: "BZPOPMAX", weight: 4, make: |draw| blocking_pop(draw, "BZPOPMAX") },
    Generator { name: "BZMPOP", weight: 4, make: bzmpop },
    Generator { name: "ZUNION", weight: 12, make: |draw| combine(draw, "ZUNION", true, true) },
    Generator { name: "ZINTER", weight: 12, make: |draw| combine(draw, "ZINTER", true, true) },
    Generator { name: "ZDIFF", weight: 12, make: |draw| combine(draw, "ZDIFF", false, true) },
    Generator {
        name: "ZUNIONSTORE",
        weight: 12,
        make: |draw| combine(draw, "ZUNIONSTORE {zkey}", true, false),
    },
    Generator {
        name: "ZINTERSTORE",
        weight: 10,
        make: |draw| combine(draw, "ZINTERSTORE {zkey}", true, false),
    },
    Generator {
        name: "ZDIFFSTORE",
        weight: 10,
        make: |draw| combine(draw, "ZDIFFSTORE {zkey}", false, false),
    },
    Generator { name: "ZINTERCARD", weight: 10, make: zintercard },
    Generator { name: "ZRANDMEMBER", weight: 8, make: zrandmember },
    Generator { name: "ZSCAN", weight: 10, make: zscan },
];

/// Keys that mostly contain sorted sets, because these commands prefer them.
const SORTED_SET_KEYS: &[&[u8]] = &[b"user:1", b"user:2", b"{tag}x", b"{tag}y", b"UPPER"];

/// Members of sorted sets; few, so that commands find existing ones.
const MEMBERS: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"d",
    b"m1",
    b"m2",
    b"10",
    b"-7",
    b"007",
    b"",
    b"\xff\x00",
    b"with space",
    b"sixty-four-bytes-are-the-most-that-a-listpack-takes-of-a-member-",
];

/// Scores. None has a magnitude below the smallest normal number: Redis's SORT fails when it reads such a score from a
/// listpack.
const SCORES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "1.5",
    "-2.25",
    "0.1",
    "1e3",
    "1e-5",
    "inf",
    "-inf",
    "+inf",
    "3.0",
    "1e17",
    "1e300",
    "-0",
    "0x10",
    "9007199254740993",
    "4503599627370497",
    "123456789012",
    "1e-290",
];

const NOT_SCORES: &[&str] = &["nan", "abc", "", " 1", "1 ", "1e400", "--1", "(1", "1_0"];

/// Fills a template with the placeholders of sorted sets and those of [`Draw::line`].
fn line(draw: &mut Draw, template: &str) -> Words {
    let mut words = Words::new();
    for word in template.split(' ') {
        match word {
            "{zkey}" => words.push(sorted_set_key(draw)),
            "{lexkey}" => words.push(lex_key(draw)),
            "{member}" => words.push(member(draw)),
            "{members}" => {
                for _ in 0..=draw.random.below(4) {
                    words.push(member(draw));
                }
            }
            "{score}" => words.push(score(draw).into_bytes()),
            "{bound}" => words.push(bound(draw)),
            "{lex}" => words.push(lex(draw)),
            _ => words.extend(draw.line(word)),
        }
    }
    words
}

fn one(draw: &mut Draw, template: &str) -> Vec<Step> {
    vec![Step::reply(line(draw, template))]
}

fn any(draw: &mut Draw, templates: &[&str]) -> Vec<Step> {
    let template = draw.random.pick(templates);
    one(draw, template)
}

/// Fills a template with options, and sometimes removes a word.
fn with_options(draw: &mut Draw, template: &str, options: &[&str], count_max: usize) -> Vec<Step> {
    let mut words = line(draw, template);
    for _ in 0..draw.random.below(count_max + 1) {
        let option = draw.random.pick(options);
        words.extend(line(draw, option));
    }
    vec![Step::reply(words)]
}

fn sorted_set_key(draw: &mut Draw) -> Vec<u8> {
    if draw.random.chance(8) { draw.key() } else { draw.random.pick(SORTED_SET_KEYS).to_vec() }
}

/// Returns one of the keys whose scores are all 0, or a small sorted set; see the module's documentation.
fn lex_key(draw: &mut Draw) -> Vec<u8> {
    draw.random.pick(&[&b"lex:equal:1"[..], b"lex:equal:2", b"lex:small"]).to_vec()
}

fn member(draw: &mut Draw) -> Vec<u8> {
    match draw.random.below(20) {
        0 => draw.value(),
        1..=5 => format!("m{}", draw.random.below(200)).into_bytes(),
        _ => draw.random.pick(MEMBERS).to_vec(),
    }
}

fn score(draw: &mut Draw) -> String {
    match draw.random.below(30) {
        0 => draw.random.pick(NOT_SCORES).to_owned(),
        1..=8 => draw.random.pick(SCORES).to_owned(),
        9..=12 => format!("{}", draw.random.between(-1_000_000, 1_000_000) as f64 / 1000.0),
        _ => draw.random.between(-10, 10).to_string(),
    }
}

/// Returns a score for one of many members. It seldom makes the command fail, and is never -0: Redis 7.0.15 loses the
/// sign in a listpack, whereas 7.2 creates no listpack if a command has more members than fit.
fn score_of_many(draw: &mut Draw) -> String {
    loop {
        let score = score(draw);
        if score != "-0" && (!NOT_SCORES.contains(&&*score) || draw.random.below(20) == 0) {
            return score;
        }
    }
}

fn bound(draw: &mut Draw) -> Vec<u8> {
    let number = match draw.random.below(40) {
        0 => return draw.random.pick(&["", "(", " 1", "1 ", "nan", "((1", "[1", "1e400", "(-1e400"]).into(),
        1..=6 => draw.random.pick(&["-inf", "+inf", "inf"]).to_owned(),
        _ => score(draw),
    };
    let mark = if draw.random.chance(25) { "(" } else { "" };
    format!("{mark}{number}").into_bytes()
}

fn lex(draw: &mut Draw) -> Vec<u8> {
    match draw.random.below(20) {
        0 => draw.random.pick(&["", "a", "--", "+x", "-\0x", "[", "("]).into(),
        1..=6 => draw.random.pick(&["-", "+"]).into(),
        _ => {
            let mut bound = draw.random.pick(&["[", "("]).as_bytes().to_vec();
            bound.extend(member(draw));
            bound
        }
    }
}

fn zadd(draw: &mut Draw) -> Vec<Step> {
    let mut words;
    match draw.random.below(20) {
        0 => {
            // Enough members to exceed the limits of a listpack.
            words = line(draw, "ZADD {zkey}");
            let first = draw.random.below(100);
            for number in first..first + 90 + draw.random.below(60) {
                words.push(score_of_many(draw).into_bytes());
                words.push(format!("m{number}").into_bytes());
            }
        }
        1..=4 => {
            words = line(draw, "ZADD");
            words.push(draw.random.pick(&[&b"lex:equal:1"[..], b"lex:equal:2"]).to_vec());
            for _ in 0..=draw.random.below(40) {
                words.push(b"0".to_vec());
                words.push(member(draw));
            }
        }
        5 => {
            words = line(draw, "ZADD lex:small");
            words[1] = b"lex:small".to_vec();
            for _ in 0..=draw.random.below(4) {
                words.push(draw.random.between(-3, 3).to_string().into_bytes());
                words.push(vec![b"abcdefghijklmnop"[draw.random.below(16)]]);
            }
        }
        _ => {
            words = line(draw, "ZADD {zkey}");
            for _ in 0..draw.random.below(4) * draw.random.below(2) {
                let option = draw.random.pick(&["NX", "XX", "GT", "LT", "CH", "INCR", "CH", "{word}"]);
                words.extend(draw.line(option));
            }
            for _ in 0..=draw.random.below(4) / 2 * draw.random.below(6) {
                words.push(score(draw).into_bytes());
                words.push(member(draw));
            }
            if draw.random.chance(3) {
                words.pop().filter(|_| words.len() > 1);
            }
        }
    }
    vec![Step::reply(words)]
}

fn rank(draw: &mut Draw, template: &str) -> Vec<Step> {
    let count_max = usize::from(draw.random.chance(20));
    with_options(draw, template, &["WITHSCORE"], count_max)
}

const LIMITS: &[&str] =
    &["LIMIT {index} {index}", "LIMIT 0 {index}", "LIMIT 1 3", "LIMIT 2 -1", "LIMIT {integer}"];

/// Removes LIMIT unless all scores are equal: otherwise Redis skips members for LIMIT without checking the far bound.
fn limited_where_scores_are_equal(words: &mut Words) {
    let is_limited = words.iter().any(|word| word.eq_ignore_ascii_case(b"limit"));
    if is_limited && words[1] == b"lex:small" {
        words[1] = b"lex:equal:1".to_vec();
    }
}

fn range(draw: &mut Draw, command: &str) -> Vec<Step> {
    let (template, kind) = match draw.random.below(10) {
        0..=3 => ("{zkey} {index} {index}", ""),
        4..=6 => ("{zkey} {bound} {bound}", "BYSCORE"),
        7..=8 => ("{lexkey} {lex} {lex}", "BYLEX"),
        _ => ("{lexkey} {word} {index}", "BYLEX"),
    };
    let mut words = line(draw, &format!("{command} {template}"));
    let mut options = vec![kind];
    for _ in 0..draw.random.below(4) {
        options.push(draw.random.pick(&[
            "REV",
            "WITHSCORES",
            "REV",
            LIMITS[0],
            LIMITS[1],
            LIMITS[2],
            LIMITS[3],
            "{word}",
        ]));
    }
    draw.random.shuffle(&mut options);
    for option in options.into_iter().filter(|option| !option.is_empty()) {
        words.extend(line(draw, option));
    }
    limited_where_scores_are_equal(&mut words);
    vec![Step::reply(words)]
}

fn zrangestore(draw: &mut Draw) -> Vec<Step> {
    let mut steps = range(draw, "ZRANGESTORE");
    let target = if steps[0].words[1].starts_with(b"lex") {
        draw.random.pick(&[&b"lex:equal:2"[..], b"lex:stored"]).to_vec()
    } else {
        sorted_set_key(draw)
    };
    // Members from the small sorted set have different scores.
    let target = if steps[0].words[1] == b"lex:small" { b"lex:stored".to_vec() } else { target };
    steps[0].words.insert(1, target);
    steps
}

fn by_score(draw: &mut Draw, command: &str) -> Vec<Step> {
    let options = ["WITHSCORES", LIMITS[0], LIMITS[1], LIMITS[2], LIMITS[3], LIMITS[4], "REV"];
    with_options(draw, &format!("{command} {{zkey}} {{bound}} {{bound}}"), &options, 2)
}

fn by_lex(draw: &mut Draw, command: &str) -> Vec<Step> {
    let options = [LIMITS[0], LIMITS[1], LIMITS[2], LIMITS[3], LIMITS[0], LIMITS[1], "WITHSCORES"];
    let mut steps = with_options(draw, &format!("{command} {{lexkey}} {{lex}} {{lex}}"), &options, 1);
    limited_where_scores_are_equal(&mut steps[0].words);
    steps
}

fn zrevrange(draw: &mut Draw) -> Vec<Step> {
    with_options(
        draw,
        "ZREVRANGE {zkey} {index} {index}",
        &["WITHSCORES", "WITHSCORES", "LIMIT 1 1", "REV"],
        1,
    )
}

fn pop(draw: &mut Draw, template: &str) -> Vec<Step> {
    let options = ["{count}", "1", "2", "3", "5"];
    with_options(draw, template, &options, 1)
}

/// Returns a number of keys, which is mostly correct, and the keys.
fn counted_keys(draw: &mut Draw) -> Words {
    let count = 1 + draw.random.below(3);
    let mut words = match draw.random.below(25) {
        0 => line(draw, "{integer}"),
        _ => vec![count.to_string().into_bytes()],
    };
    words.extend((0..count).map(|_| sorted_set_key(draw)));
    words
}

fn mpop(draw: &mut Draw, template: &str) -> Vec<Step> {
    let mut words = line(draw, template);
    words.extend(counted_keys(draw));
    let end = draw.random.pick(&["MIN", "MAX", "MIN", "MAX", "MIN", "MAX", "{word}"]);
    words.extend(line(draw, end));
    for _ in 0..draw.random.below(3) / 2 + draw.random.below(2) {
        let option = draw.random.pick(&["COUNT 2", "COUNT {count}", "COUNT {integer}", "COUNT 10", "COUNT"]);
        words.extend(line(draw, option));
    }
    vec![Step::reply(words)]
}

/// Returns a timeout that is very short or invalid. Redis 7.0.15 treats very long timeouts as negative.
fn timeout(draw: &mut Draw) -> Vec<u8> {
    let timeouts = ["0.001", "0.002", "0.001", "0.001", "0.001", "-1", "abc", "", "nan"];
    let drawn = if draw.random.chance(80) { "0.001" } else { draw.random.pick(&timeouts) };
    drawn.as_bytes().to_vec()
}

fn blocking_pop(draw: &mut Draw, command: &str) -> Vec<Step> {
    let mut words = line(draw, command);
    for _ in 0..=draw.random.below(3) {
        words.push(sorted_set_key(draw));
    }
    words.push(timeout(draw));
    vec![Step::reply(words)]
}

fn bzmpop(draw: &mut Draw) -> Vec<Step> {
    let mut steps = mpop(draw, "BZMPOP");
    let timeout = timeout(draw);
    steps[0].words.insert(1, timeout);
    steps
}

fn combine(draw: &mut Draw, template: &str, with_weights: bool, may_have_scores: bool) -> Vec<Step> {
    let mut words = line(draw, template);
    let keys = counted_keys(draw);
    let count = keys.len() - 1;
    words.extend(keys);
    if with_weights && draw.random.chance(30) {
        words.extend(line(draw, "WEIGHTS"));
        for _ in 0..count {
            words.push(score(draw).into_bytes());
        }
    }
    if with_weights && draw.random.chance(40) {
        let option =
            draw.random.pick(&["AGGREGATE SUM", "AGGREGATE MIN", "AGGREGATE MAX", "AGGREGATE {word}"]);
        words.extend(line(draw, option));
    }
    if draw.random.chance(if may_have_scores { 60 } else { 3 }) {
        words.extend(line(draw, "WITHSCORES"));
    }
    if draw.random.chance(3) {
        words.extend(line(draw, "{word}"));
    }
    vec![Step::reply(words)]
}

fn zintercard(draw: &mut Draw) -> Vec<Step> {
    let mut words = line(draw, "ZINTERCARD");
    words.extend(counted_keys(draw));
    if draw.random.chance(40) {
        let option =
            draw.random.pick(&["LIMIT 0", "LIMIT 1", "LIMIT 3", "LIMIT {integer}", "LIMIT", "WITHSCORES"]);
        words.extend(line(draw, option));
    }
    vec![Step::reply(words)]
}

fn zrandmember(draw: &mut Draw) -> Vec<Step> {
    any(
        draw,
        &[
            "ZRANDMEMBER {zkey}",
            "ZRANDMEMBER {zkey} 3",
            "ZRANDMEMBER {zkey} -5",
            "ZRANDMEMBER {zkey} 1000 WITHSCORES",
            "ZRANDMEMBER {zkey} -3 WITHSCORES",
            "ZRANDMEMBER {zkey} {word}",
            "ZRANDMEMBER {zkey} 4611686018427387904 WITHSCORES",
            "ZRANDMEMBER {zkey} 2 {word}",
            "ZRANDMEMBER {zkey} -9223372036854775808",
        ],
    )
}

fn zscan(draw: &mut Draw) -> Vec<Step> {
    any(
        draw,
        &[
            "ZSCAN {zkey} 0 COUNT 100000",
            "ZSCAN {zkey} 0 COUNT 100000 MATCH {pattern}",
            "ZSCAN {zkey} 0 MATCH m* COUNT 100000",
            "ZSCAN {zkey} 0 COUNT {integer} COUNT 100000",
            "ZSCAN {zkey} {word} COUNT 100000",
            "ZSCAN {zkey} 0 COUNT 100000 {word}",
            "ZSCAN {zkey} 0 COUNT 0",
        ],
    )
}
