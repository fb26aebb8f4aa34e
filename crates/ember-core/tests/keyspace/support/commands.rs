//! Random commands of all types, and a complete comparison of their results.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use emberkv_core::local::Local;
use emberkv_core::turn::Random;

/// Returns the words of a line, without the quotes around them.
fn words(line: &str) -> Vec<Vec<u8>> {
    line.split_whitespace().map(|word| word.trim_matches('"').as_bytes().to_vec()).collect()
}

/// Runs a command line and returns its reply as text.
pub(crate) fn run(local: &mut Local, line: &str) -> String {
    let words = words(line);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    String::from_utf8_lossy(&local.run(&words)).into_owned()
}

/// Returns the contents of all databases as commands show them, in a deterministic order. Reading removes expired data,
/// which the journal records.
pub(crate) fn contents(local: &mut Local) -> Vec<String> {
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
                "+vectorset" => vector_set(local, key),
                "+ReJSON-RL" => run(local, &format!("JSON.GET {key}")),
                "+MBbloom--" | "+MBbloomCF" | "+CMSk-TYPE" | "+TopK-TYPE" => {
                    run(local, &format!("DUMP {key}"))
                }
                "+TDIS-TYPE" => t_digest(local, key),
                other => panic!("{key}: {other}"),
            };
            let expiry = run(local, &format!("PEXPIRETIME {key}"));
            all.push(format!("{database} {key} {kind}{value}{expiry}"));
        }
    }
    local.database = 0;
    all
}

/// Returns the elements of an array, sorted in groups of `stride` consecutive elements.
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

/// Returns the entries, groups and pending entries of a stream, without the times at which consumers were seen.
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
    // Skips the numbers of blocks, because the sizes of blocks may depend on how the stream was trimmed.
    let facts: Vec<&str> = facts.split("\r\n").collect();
    let first = facts.iter().position(|line| *line == "last-generated-id").unwrap_or(0);
    format!("{entries}{}{groups}{pending}", facts[first..].join(" "))
}

/// Returns the elements of a vector set with their stored vectors and attributes, the results of an exact search, and
/// the size of the graph. Equal graphs are not guaranteed, so their links are not compared.
fn vector_set(local: &mut Local, key: &str) -> String {
    // The memory of an index may differ by unused capacity.
    let index = |local: &mut Local, key: &str| {
        let info = run(local, &format!("VECTOR.INFO {key}"));
        let lines = info.split("\r\n").map(str::to_owned).collect::<Vec<_>>();
        let memory = lines.iter().position(|line| line == "memory").unwrap_or(lines.len());
        lines[..memory].join(" ")
    };
    let names = run(local, &format!("VRANGE {key} - +"));
    let mut all = run(local, &format!("VSIM {key} ELE v0 TRUTH WITHSCORES WITHATTRIBS COUNT 100 FILTER .v0"));
    for name in names.split("\r\n").filter(|line| line.starts_with('v')) {
        all += &run(local, &format!("VEMB {key} {name} RAW"));
        all += &run(local, &format!("VGETATTR {key} {name}"));
    }
    let facts = run(local, &format!("VINFO {key}"));
    let facts: Vec<&str> = facts.split("\r\n").collect();
    all += &index(local, key);
    let number = facts.iter().position(|line| *line == "+max-level").unwrap_or(facts.len());
    format!("{names}{all}{}{}", run(local, &format!("VCARD {key}")), facts[..number].join(" "))
}

/// Returns the facts of a t-digest that do not depend on when its nodes were merged: that happens when it is saved, too.
fn t_digest(local: &mut Local, key: &str) -> String {
    let info = run(local, &format!("TDIGEST.INFO {key}"));
    let lines: Vec<&str> = info.split("\r\n").collect();
    let number = |name: &str| {
        let at = lines.iter().position(|line| line.trim_start_matches('+') == name).unwrap();
        lines[at + 1].to_owned()
    };
    let extremes = run(local, &format!("TDIGEST.MIN {key}")) + &run(local, &format!("TDIGEST.MAX {key}"));
    format!("{} {} {extremes}", number("Compression"), number("Observations"))
}

/// The number of different names of fields.
const FIELDS: usize = 6;

/// First letters of keys, by the type that they usually hold.
const KEYS: [&str; 13] = ["S", "L", "E", "H", "Z", "X", "W", "J", "Bf", "Cf", "Cm", "Tk", "Td"];

/// Templates of commands: `K` is a key of any type, one of [`KEYS`] a key that usually holds the type of these letters,
/// `F` a field, `V` a value, `N` a small number, `M` a number of ms, `I` the ID of an entry, `G` a group, `C` a
/// consumer, `R` a real number.
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
    "INCREX S BYINT N UBOUND 9 SATURATE PX M",
    "INCREX S BYFLOAT R LBOUND 0 EX 1 ENX",
    "INCREX S PERSIST",
    "DECRBY S N",
    "SETRANGE S N V",
    "MSET S V S V",
    "MSETNX S V S V",
    "MSETEX 2 S V S V",
    "MSETEX 2 S V S V PX M",
    "MSETEX 2 S V S V XX KEEPTTL",
    "SETBIT S N 1",
    "BITFIELD S INCRBY u8 #N N",
    "BITOP OR S S S",
    "BITOP DIFF S S S",
    "BITOP DIFF1 S S S",
    "BITOP ANDOR S S S",
    "BITOP ONE S S S",
    "GET K",
    "PFADD S V V",
    "PFCOUNT S",
    "PFMERGE S S",
    "DEL K",
    "UNLINK K K",
    "EXPIRE K 1",
    "EXPIRE K 100",
    "PEXPIRE K M",
    "PEXPIRE K M NX",
    "PEXPIREAT K N",
    "PERSIST K",
    "RENAME K K",
    "RENAMENX K K",
    "COPY K K",
    "COPY K K REPLACE",
    "COPY K K DB 1",
    "COPY K K REPLACE DB 1",
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
    "HSETEX H KEEPTTL FIELDS 3 F V F V F V",
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
    "XTRIM X MINID I ACKED",
    "XTRIM X MAXLEN N DELREF",
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
    "XDELEX X DELREF IDS 2 I I",
    "XACKDEL X G DELREF IDS 1 I",
    "XACKDEL X G ACKED IDS 2 I I",
    "VADD W VALUES 2 R R V",
    "VADD W VALUES 2 R R V M 4 EF 3 SETATTR {\"v0\":N}",
    "VADD W VALUES 3 R R R V NOQUANT CAS",
    "VADD W REDUCE 2 VALUES 3 R R R V BIN",
    "VREM W V",
    "VREM W V",
    "VSETATTR W V {\"v0\":N}",
    "VSIM W ELE V WITHSCORES",
    "VADD W V R R METRIC L2",
    "VADD_BATCH W DIM 2 V R R V R R QUANT F16",
    "VECTOR.CREATE W DIM 2 DISTANCE L2 QUANT BF16",
    "VECTOR.CREATE W DIM 2 TYPE FLAT",
    "VECTOR.ADD W V VALUES R R",
    "VECTOR.ADD W V VALUES R R {\"v0\":N}",
    "VECTOR.UPDATE W V PAYLOAD {\"v0\":N}",
    "VECTOR.DEL W V V",
    "VECTOR.DROP W",
    "VECTOR.REINDEX W",
    "VECTOR.SEARCH W VALUES R R WITHSCORES",
    "JSON.SET J $ {\"v0\":N,\"v1\":[N,{\"v0\":[]}],\"v2\":\"N\",\"v3\":true}",
    "JSON.SET J $.V {\"v0\":[N]}",
    "JSON.SET J $.v1[0] {\"v0\":N}",
    "JSON.SET J $..v0 N NX",
    "JSON.MSET J $ {\"v1\":[]} J $ [N] J $[0] N",
    "JSON.MERGE J $ {\"v0\":null,\"v1\":{\"v2\":[N]}}",
    "JSON.MERGE J $..v1 {\"v0\":N}",
    "JSON.DEL J $..V",
    "JSON.FORGET J $.v1[N]",
    "JSON.DEL J",
    "JSON.CLEAR J $.V",
    "JSON.TOGGLE J $..v3",
    "JSON.NUMINCRBY J $..v0 R",
    "JSON.NUMMULTBY J $..* R",
    "JSON.STRAPPEND J $..v2 \"N\"",
    "JSON.ARRAPPEND J $..* N {\"v0\":N}",
    "JSON.ARRINSERT J $..v1 0 N",
    "JSON.ARRPOP J $..v1 N",
    "JSON.ARRTRIM J $..* 0 N",
    "JSON.GET J $..V",
    "BF.RESERVE Bf 0.1 N",
    "BF.RESERVE Bf 0.01 3 NONSCALING",
    "BF.ADD Bf V",
    "BF.MADD Bf V V V",
    "BF.INSERT Bf CAPACITY 2 ERROR 0.3 EXPANSION 1 ITEMS V V",
    "BF.INSERT Bf NONSCALING CAPACITY 2 ITEMS V V V",
    "BF.LOADCHUNK Bf 9 abcdefgh",
    "BF.EXISTS Bf V",
    "CF.RESERVE Cf 4 BUCKETSIZE 1",
    "CF.RESERVE Cf 4 EXPANSION 0",
    "CF.ADD Cf V",
    "CF.ADDNX Cf V",
    "CF.INSERT Cf CAPACITY 4 ITEMS V V V",
    "CF.INSERTNX Cf ITEMS V V",
    "CF.DEL Cf V",
    "CF.COMPACT Cf",
    "CF.LOADCHUNK Cf 5 abcd",
    "CMS.INITBYDIM Cm 4 2",
    "CMS.INITBYPROB Cm 0.5 0.3",
    "CMS.INCRBY Cm V N V N",
    "CMS.MERGE Cm 2 Cm Cm WEIGHTS N 1",
    "TOPK.RESERVE Tk 2 2 2 0.9",
    "TOPK.RESERVE Tk 2",
    "TOPK.ADD Tk V V V",
    "TOPK.INCRBY Tk V 30 V N",
    "TDIGEST.CREATE Td COMPRESSION 2",
    "TDIGEST.CREATE Td",
    "TDIGEST.ADD Td R R R R",
    "TDIGEST.MERGE Td 2 Td Td",
    "TDIGEST.MERGE Td 1 Td OVERRIDE COMPRESSION 1",
    "TDIGEST.QUANTILE Td 0.5",
    "TDIGEST.RESET Td",
    "SWAPDB 0 1",
    "FLUSHDB",
];

/// Advances the clock in some calls, and runs a random command; returns the command and its reply. `ids` contains the
/// IDs of stream entries that commands may name.
pub(crate) fn run_random(local: &mut Local, random: &mut Random, ids: &mut Vec<String>) -> (String, String) {
    if random.below(10) == 0 {
        local.turn.now_ms += random.below(900) as i64;
    }
    let line = draw(random, ids);
    let reply = run(local, &line);
    if line.starts_with("XADD")
        && let Some(id) = reply.lines().nth(1)
    {
        ids.push(id.to_owned());
        *ids = ids.split_off(ids.len().saturating_sub(20));
    }
    (line, reply)
}

/// Returns a random command from a random template.
pub(crate) fn draw(random: &mut Random, ids: &[String]) -> String {
    let template = TEMPLATES[random.below(TEMPLATES.len())];
    // FLUSHALL and FLUSHDB are rare, so that keys accumulate.
    let template =
        if matches!(template, "FLUSHDB" | "SWAPDB 0 1") && random.below(20) > 0 { "DEL K" } else { template };
    let mut words = Vec::new();
    for word in template.split_whitespace() {
        let kind = KEYS[random.below(KEYS.len())];
        words.push(match word {
            "K" => format!("{kind}{}", random.below(4)),
            _ if KEYS.contains(&word) => {
                format!("{}{}", if random.below(40) == 0 { kind } else { word }, random.below(4))
            }
            "F" => format!("f{}", random.below(FIELDS)),
            "V" => format!("v{}", random.below(12)),
            "N" => random.below(6).to_string(),
            "#N" => format!("#{}", random.below(6)),
            "M" => (1 + random.below(3000)).to_string(),
            "I" => ids[random.below(ids.len())].clone(),
            "G" => format!("g{}", random.below(2)),
            "C" => format!("c{}", random.below(3)),
            "R" => (random.below(40) as f64 / 8.0 - 1.0).to_string(),
            json if json.starts_with(['{', '[', '"']) => json.replace('N', &random.below(3).to_string()),
            path if path.starts_with('$') => {
                path.replace('V', &format!("v{}", random.below(4))).replace('N', &random.below(3).to_string())
            }
            other => other.to_owned(),
        });
    }
    words.join(" ")
}
