//! Random writes of all kinds, and random commands to watch.

use ember_testkit::Random;

/// The number of keys of each type; the next constant is the number of databases.
const KEYS: usize = 4;
pub(crate) const DATABASES: usize = 3;

/// First letters of keys by type.
const TYPES: [&str; 16] = ["s", "h", "l", "t", "z", "x", "p", "g", "v", "w", "b", "c", "m", "k", "d", "j"];

/// The functions that the writes call.
pub(crate) const LIBRARY: &str = "#!lua name=acts
    redis.register_function('both', function(keys, args)
        redis.call('SET', keys[1], args[1])
        return redis.call('LPUSH', keys[2], args[1])
    end)";

fn key(random: &mut Random, kind: &str) -> String {
    format!("{kind}{}", random.below(KEYS))
}

/// Returns the names of all keys that the writes name.
pub(crate) fn names() -> impl Iterator<Item = String> {
    TYPES.iter().flat_map(|kind| (0..KEYS).map(move |number| format!("{kind}{number}")))
}

fn any_key(random: &mut Random) -> String {
    let kind = random.pick(&TYPES).to_owned();
    key(random, &kind)
}

/// Fills in a command line: a key of the type for each `{letter}`, a small number for each `#`, and the same number for
/// all `@`. JSON objects are unchanged.
fn filled(random: &mut Random, line: &str) -> String {
    let mut text = String::new();
    let same = random.below(20).to_string();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '{' if !letters.as_str().starts_with('"') => {
                let kind: String = letters.by_ref().take_while(|&letter| letter != '}').collect();
                text += &if kind == "any" { any_key(random) } else { key(random, &kind) };
            }
            '#' => text += &random.below(20).to_string(),
            '@' => text += &same,
            letter => text.push(letter),
        }
    }
    text
}

const WRITES: &[&str] = &[
    "SET {s} #",
    "INCRBY {s} #",
    "APPEND {s} x#",
    "SETRANGE {s} # y",
    "SET {s} # PX 1#",
    "GETEX {s} PX 3#",
    "GETDEL {s}",
    "MSET {s} # {s} #",
    "PEXPIRE {any} 2#",
    "PERSIST {any}",
    "SETBIT {s} # 1",
    "HSET {h} f# # g# #",
    "HDEL {h} f#",
    "HINCRBY {h} f# #",
    "HPEXPIRE {h} 1# FIELDS 2 f# g#",
    "HPERSIST {h} FIELDS 1 f#",
    "HGETDEL {h} FIELDS 1 g#",
    "RPUSH {l} # #",
    "LPUSH {l} a#",
    "LPOP {l} 2",
    "RPOPLPUSH {l} {l}",
    "LREM {l} 0 #",
    "LTRIM {l} 0 15",
    "LINSERT {l} BEFORE # b",
    "SADD {t} # m#",
    "SREM {t} #",
    "SPOP {t}",
    "SMOVE {t} {t} #",
    "SINTERSTORE {t} {t} {t}",
    "SUNIONSTORE {t} {t} {t}",
    "ZADD {z} # a# # b#",
    "ZINCRBY {z} # a#",
    "ZREM {z} a#",
    "ZPOPMIN {z}",
    "ZREMRANGEBYSCORE {z} # 9",
    "ZUNIONSTORE {z} 2 {z} {z}",
    "XADD {x} * f #",
    "XTRIM {x} MAXLEN 5",
    "XADD {x} MAXLEN 3 * g #",
    "PFADD {p} # #",
    "PFMERGE {p} {p} {p}",
    "DEL {any}",
    "UNLINK {any} {any}",
    "RENAME {any} {any}",
    "COPY {any} {any} REPLACE",
    "COPY {s} {s} DB 1 REPLACE",
    "MOVE {any} 1",
    "SWAPDB 0 1",
    "SORT {l} ALPHA STORE {l}",
    "BITOP OR {s} {s} {s}",
    "GEOADD {g} #.# #.# a# #.# #.# b#",
    "ZREM {g} a#",
    "BLPOP {l} {l} 0.001",
    "BRPOP {l} 0.001",
    "BLMOVE {l} {l} LEFT RIGHT 0.001",
    "BZPOPMIN {z} {z} 0.001",
    "BZMPOP 0.001 1 {z} MAX COUNT 2",
    "LMOVE {l} {l} RIGHT LEFT",
    "LMPOP 2 {l} {l} LEFT COUNT 2",
    "LSET {l} 0 c#",
    "ZMPOP 2 {z} {z} MAX",
    "ZRANGESTORE {z} {z} 0 5",
    "XGROUP CREATE {x} group $ MKSTREAM",
    "XREADGROUP GROUP group c# COUNT 2 STREAMS {x} >",
    "XACK {x} group 1-1",
    "XDEL {x} 1-#",
    "XADD {x} 1-# f #",
    "BITFIELD {s} SET u8 # # INCRBY i5 # 1",
    "BF.RESERVE {b} 0.1 5",
    "BF.MADD {b} # # #",
    "BF.INSERT {b} ITEMS #",
    "CF.RESERVE {c} 4",
    "CF.INSERT {c} ITEMS # #",
    "CF.DEL {c} #",
    "CMS.INITBYDIM {m} 5 2",
    "CMS.INCRBY {m} # #",
    "CMS.MERGE {m} 1 {m}",
    "TOPK.RESERVE {k} 3 4 2 0.9",
    "TOPK.ADD {k} # # #",
    "TOPK.INCRBY {k} # 1#",
    "TDIGEST.CREATE {d}",
    "TDIGEST.ADD {d} # #.5 #",
    "TDIGEST.MERGE {d} 2 {d} {d}",
    "TDIGEST.RESET {d}",
    // No two of these vectors are at the same distance from a query, so the order of results is defined.
    "VADD {v} VALUES 2 1# 2@.1 e@ NOQUANT",
    "VADD {v} VALUES 2 1# 2@.1 e@ NOQUANT SETATTR '{\"n\":#}'",
    "VREM {v} e#",
    "VSETATTR {v} e# '{\"n\":#}'",
    "VSETATTR {v} e# b#",
    "VECTOR.CREATE {w} DIM 2 DISTANCE L2",
    "VECTOR.ADD {w} e@ VALUES 1# 2@.1",
    "VECTOR.ADD {w} e@ [1#,2@.1] PAYLOAD '{\"n\":#}'",
    "VECTOR.UPDATE {w} e# PAYLOAD '{\"n\":#}'",
    "VECTOR.DEL {w} e# e#",
    "VECTOR.DROP {w}",
    "JSON.SET {j} $ '{\"a\":#,\"b\":[#,{\"a\":#}],\"c\":\"x\",\"d\":true}'",
    "JSON.SET {j} $.b[0] #",
    "JSON.MERGE {j} $ '{\"c\":null,\"e\":[#]}'",
    "JSON.NUMINCRBY {j} $..a #",
    "JSON.ARRAPPEND {j} $.b #",
    "JSON.ARRPOP {j} $.b",
    "JSON.STRAPPEND {j} $.c '\"y\"'",
    "JSON.TOGGLE {j} $.d",
    "JSON.DEL {j} $.b[#]",
    "JSON.DEL {j}",
    "FCALL both 2 {s} {l} #",
    "EVAL \"local d = redis.call('DUMP', KEYS[1]) \
     if d then redis.call('RESTORE', KEYS[2], 0, d, 'REPLACE') end\" 2 {any} {any}",
    "EVAL \"for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1]) end\" 2 {s} {s} #",
    // Writes are refused until this command, after all keys are evicted.
    "CONFIG SET maxmemory 0",
    "EVAL \"redis.call('INCR', 's0') redis.call('HSET', 'h0', 'f', '1') redis.call('RPUSH', 'l0', 'e')\" 0",
];

/// Writes that are drawn less often than others.
const RARE: &[&str] =
    &["FLUSHDB", "FLUSHALL", "CONFIG SET maxmemory-policy allkeys-random maxmemory 1", "SWAPDB 1 2"];

/// Returns a random write as a command line.
pub(crate) fn write(random: &mut Random) -> String {
    let line = if random.below(200) == 0 { random.pick(RARE) } else { random.pick(WRITES) };
    let line = line.to_owned();
    filled(random, &line)
}

/// Returns a random write without delayed effects: no key expires or is evicted.
pub(crate) fn final_write(random: &mut Random) -> String {
    loop {
        let line = write(random);
        if !["PX", "EXPIRE", "CONFIG"].iter().any(|word| line.contains(word)) {
            return line;
        }
    }
}

/// Commands that may be watched, and whether the elements of the result are unordered.
const READS: &[(&str, bool)] = &[
    ("GET {s}", false),
    ("STRLEN {any}", false),
    ("MGET {s} {s} {any}", false),
    ("GETRANGE {s} 0 3", false),
    ("BITCOUNT {s}", false),
    ("HGETALL {h}", true),
    ("HMGET {h} f1 g1", false),
    ("HLEN {h}", false),
    ("HKEYS {h}", true),
    ("LRANGE {l} 0 -1", false),
    ("LINDEX {l} 1", false),
    ("LLEN {any}", false),
    ("SMEMBERS {t}", true),
    ("SINTER {t} {t}", true),
    ("SUNION {t} {t}", true),
    ("SDIFF {t} {t}", true),
    ("SCARD {t}", false),
    ("SISMEMBER {t} 7", false),
    ("ZRANGE {z} 0 -1 WITHSCORES", false),
    ("ZRANGE {z} 0 3 REV", false),
    ("ZRANK {z} a1", false),
    ("ZCOUNT {z} 0 9", false),
    ("XRANGE {x} - +", false),
    ("XLEN {x}", false),
    ("PFCOUNT {p} {p}", false),
    ("EXISTS {any} {any}", false),
    ("TYPE {any}", false),
    ("EXPIRETIME {any}", false),
    ("PEXPIRETIME {s}", false),
    ("HPEXPIRETIME {h} FIELDS 1 f1", false),
    ("SORT_RO {l} ALPHA", false),
    ("ZSCORE {z} b2", false),
    ("HGET {h} f2", false),
    ("ZINTER 2 {z} {z} WITHSCORES", false),
    ("ZUNION 2 {z} {z} WITHSCORES", false),
    ("ZDIFF 2 {z} {z}", false),
    ("ZINTERCARD 2 {z} {z}", false),
    ("ZRANGEBYSCORE {z} 2 9 WITHSCORES", false),
    ("ZREVRANGEBYSCORE {z} 9 2 LIMIT 0 2", false),
    ("ZRANGEBYLEX {z} - +", false),
    ("ZLEXCOUNT {z} - +", false),
    ("ZREVRANGE {z} 0 2", false),
    ("ZREVRANK {z} a1", false),
    ("ZMSCORE {z} a1 b1", false),
    ("GEOSEARCH {g} FROMLONLAT 5 5 BYBOX 2000 2000 km ASC WITHDIST", false),
    ("GEODIST {g} a1 b2", false),
    ("GEOHASH {g} a1", false),
    ("XREVRANGE {x} + - COUNT 2", false),
    ("LPOS {l} 7", false),
    ("LCS {s} {s}", false),
    ("SINTERCARD 2 {t} {t}", false),
    ("SMISMEMBER {t} 7 m7", false),
    ("SUBSTR {s} 0 2", false),
    ("BITPOS {s} 1", false),
    ("GETBIT {s} 3", false),
    ("BITFIELD_RO {s} GET u8 0", false),
    ("HEXISTS {h} f1", false),
    ("HSTRLEN {h} f1", false),
    ("HVALS {h}", true),
    ("HEXPIRETIME {h} FIELDS 1 f1", false),
    ("VCARD {v}", false),
    ("VDIM {v}", false),
    ("VISMEMBER {v} e2", false),
    ("VGETATTR {v} e1", false),
    ("VEMB {v} e1", false),
    ("VGET {v} e2", false),
    ("VRANGE {v} - + 9", false),
    ("VSIM {v} VALUES 2 1 0 COUNT 4", false),
    ("VSIM {v} VALUES 2 1 0 COUNT 3 TRUTH WITHSCORES", false),
    ("VSIM {v} VALUES 2 1 0 FILTER '.n > 9'", false),
    ("VSIM {w} VALUES 2 1 0 COUNT 3 WITHSCORES WITHATTRIBS", false),
    ("VECTOR.GET {w} e1 WITHVECTOR", false),
    ("JSON.GET {j}", false),
    ("JSON.GET {j} $..a $.b", false),
    ("JSON.MGET {j} {j} $.a", false),
    ("JSON.TYPE {j} $.*", false),
    ("JSON.ARRLEN {j} $.b", false),
    ("JSON.ARRINDEX {j} $.b 7", false),
    ("JSON.STRLEN {j} $.c", false),
    ("JSON.OBJKEYS {j} $", false),
    ("JSON.OBJLEN {j} $", false),
    ("JSON.RESP {j} $.b", false),
    ("BF.EXISTS {b} 7", false),
    ("BF.MEXISTS {b} 7 8 9", false),
    ("BF.CARD {b}", false),
    ("BF.INFO {b}", false),
    ("BF.SCANDUMP {b} 1", false),
    ("CF.EXISTS {c} 7", false),
    ("CF.MEXISTS {c} 7 8", false),
    ("CF.COUNT {c} 7", false),
    ("CF.INFO {c}", false),
    ("CF.SCANDUMP {c} 1", false),
    ("CMS.QUERY {m} 7 8", false),
    ("CMS.INFO {m}", false),
    ("TOPK.QUERY {k} 7 8", false),
    ("TOPK.COUNT {k} 7 8", false),
    ("TOPK.LIST {k} WITHCOUNT", false),
    ("TOPK.INFO {k}", false),
    ("TDIGEST.MIN {d}", false),
    ("TDIGEST.MAX {d}", false),
    ("TDIGEST.QUANTILE {d} 0.5", false),
    ("TDIGEST.CDF {d} 7", false),
    ("TDIGEST.RANK {d} 7", false),
    ("TDIGEST.REVRANK {d} 7", false),
    ("TDIGEST.BYRANK {d} 2", false),
    ("TDIGEST.BYREVRANK {d} 2", false),
    ("TDIGEST.TRIMMED_MEAN {d} 0.1 0.9", false),
];

/// Returns a random command to watch, and whether the elements of its result are unordered.
pub(crate) fn read(random: &mut Random) -> (String, bool) {
    let (line, is_unordered) = READS[random.below(READS.len())];
    (filled(random, line), is_unordered)
}
