//! Keyspace events of commands: name, class, key, database and order.

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;
use emberkv_core::local::Local;

use crate::support::words::words_of;

/// The letters of the event classes in `notify-keyspace-events`.
const LETTERS: [(EventClass, char); 12] = [
    (EventClass::GENERIC, 'g'),
    (EventClass::STRING, '$'),
    (EventClass::LIST, 'l'),
    (EventClass::SET, 's'),
    (EventClass::HASH, 'h'),
    (EventClass::SORTED_SET, 'z'),
    (EventClass::EXPIRED, 'x'),
    (EventClass::EVICTED, 'e'),
    (EventClass::STREAM, 't'),
    (EventClass::KEY_MISS, 'm'),
    (EventClass::MODULE, 'd'),
    (EventClass::NEW, 'n'),
];

/// Runs each line and compares its events, written as `class:name key`, followed by `@number` in databases other than
/// 0. `PASS ms` advances the clock.
fn check(steps: &[(&str, &str)]) {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.notices.classes = EventClass::all();
    for (line, expected) in steps {
        if let Some(ms) = line.strip_prefix("PASS ") {
            local.turn.now_ms += ms.parse::<i64>().expect("PASS takes a number of ms");
            continue;
        }
        let words = words_of(line);
        let reply = local.run(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert!(!reply.starts_with(b"-ERR unknown"), "{line}");
        let notices = std::mem::take(&mut local.turn.notices.events);
        let published: Vec<String> = notices
            .iter()
            .map(|notice| {
                let letter = LETTERS.iter().find(|(class, _)| *class == notice.event.class);
                let (_, letter) = letter.expect("an event is of one class");
                let key = notice.key.escape_ascii();
                let database =
                    if notice.database == 0 { String::new() } else { format!("@{}", notice.database) };
                format!("{letter}:{} {key}{database}", notice.event.name)
            })
            .collect();
        assert_eq!(published.join(", "), *expected, "{line}");
    }
}

#[test]
fn commands_on_json_documents_publish_events() {
    check(&[
        ("JSON.SET k $ {\"a\":[1,2],\"b\":true,\"s\":\"x\"}", "n:new k, d:json.set k"),
        ("JSON.SET k $.a[0] 3", "d:json.set k"),
        ("JSON.SET k $.a 3 NX", ""),
        ("JSON.MSET k $.a[0] 1 l $ 2", "d:json.mset k, n:new l, d:json.mset l"),
        ("JSON.MERGE k $ {\"c\":1}", "d:json.merge k"),
        ("JSON.NUMINCRBY k $.c 1", "d:json.numincrby k"),
        ("JSON.NUMINCRBY k $.s 1", ""),
        ("JSON.NUMMULTBY k $.c 2", "d:json.nummultby k"),
        ("JSON.TOGGLE k $.b", "d:json.toggle k"),
        ("JSON.STRAPPEND k $.s '\"y\"'", "d:json.strappend k"),
        ("JSON.ARRAPPEND k $.a 9", "d:json.arrappend k"),
        ("JSON.ARRINSERT k $.a 0 9", "d:json.arrinsert k"),
        ("JSON.ARRTRIM k $.a 0 0", "d:json.arrtrim k"),
        ("JSON.ARRTRIM k $.a 0 0", ""),
        ("JSON.ARRPOP k $.a", "d:json.arrpop k"),
        ("JSON.ARRPOP k $.a", ""),
        ("JSON.GET k $.a", ""),
        ("JSON.GET none", "m:keymiss none"),
        ("JSON.CLEAR k $.c", "d:json.clear k"),
        ("JSON.CLEAR k $.c", ""),
        ("JSON.DEL k $.c", "d:json.del k"),
        ("JSON.DEL k $.c", ""),
        ("JSON.DEL k", "d:json.del k"),
    ]);
}

#[test]
fn commands_on_strings_publish_events() {
    check(&[
        ("SET k v", "n:new k, $:set k"),
        ("SET k v", "$:set k"),
        ("SET k v EX 10", "$:set k, g:expire k"),
        ("SET k v KEEPTTL", "$:set k"),
        ("SET k v NX", ""),
        ("SET k v GET", "$:set k"),
        ("SET none v XX", ""),
        ("SET none v XX GET", "m:keymiss none"),
        ("SETEX k 10 v", "$:set k, g:expire k"),
        ("PSETEX k 10000 v", "$:set k, g:expire k"),
        ("SETNX k v", ""),
        ("SETNX fresh v", "n:new fresh, $:set fresh"),
        ("GETSET k v", "$:set k"),
        ("GETSET other v", "m:keymiss other, n:new other, $:set other"),
        ("MSET a 1 b 2", "n:new a, $:set a, n:new b, $:set b"),
        ("MSETNX c 1 d 2", "n:new c, $:set c, n:new d, $:set d"),
        ("MSETNX c 1 e 2", ""),
        ("MSETEX 2 c 3 x 4 EX 9", "$:set c, g:expire c, n:new x, $:set x, g:expire x"),
        ("MSETEX 2 c 5 x 6 KEEPTTL", "$:set c, $:set x"),
        ("MSETEX 1 x 6 PXAT 1", "$:set x, g:expire x, x:expired x"),
        ("MSETEX 2 c 5 x 6 XX", ""),
        ("APPEND a 1", "$:append a"),
        ("APPEND made x", "n:new made, $:append made"),
        ("SETRANGE made 2 x", "$:setrange made"),
        ("SETRANGE made 2 \"\"", ""),
        ("INCR a", "$:incrby a"),
        ("INCRBY a 3", "$:incrby a"),
        ("DECR a", "$:incrby a"),
        ("DECRBY counter 3", "n:new counter, $:incrby counter"),
        ("INCR k", ""),
        ("INCRBYFLOAT a 1.5", "$:incrbyfloat a"),
        ("INCREX counted BYINT 5 EX 9", "n:new counted, $:incrby counted, g:expire counted"),
        ("INCREX counted BYFLOAT 0.5 EX 9 ENX", "$:incrbyfloat counted"),
        ("INCREX counted BYFLOAT 1 PERSIST", "$:incrbyfloat counted, g:persist counted"),
        ("INCREX counted BYFLOAT 1 PERSIST", "$:incrbyfloat counted"),
        ("INCREX counted BYFLOAT 1 UBOUND 0", ""),
        ("INCREX counted BYFLOAT 1 EXAT 1", "g:del counted"),
        ("GET a", ""),
        ("GET nothing", "m:keymiss nothing"),
        ("MGET a nothing", "m:keymiss nothing"),
        ("GETEX a", ""),
        ("GETEX a EX 100", "g:expire a"),
        ("GETEX a PERSIST", "g:persist a"),
        ("GETEX a PERSIST", ""),
        ("GETEX a EXAT 1", "g:del a"),
        ("GETEX a EX 100", "m:keymiss a"),
        ("GETDEL b", "g:del b"),
        ("GETDEL b", "m:keymiss b"),
        ("STRLEN b", "m:keymiss b"),
        ("GETRANGE b 0 1", "m:keymiss b"),
    ]);
}

#[test]
fn commands_on_bits_publish_events() {
    check(&[
        ("SETBIT bits 7 1", "n:new bits, $:setbit bits"),
        ("SETBIT bits 7 1", ""),
        ("SETBIT bits 7 0", "$:setbit bits"),
        ("SETBIT bits 17 0", "$:setbit bits"),
        ("BITFIELD bits GET u8 0", ""),
        ("BITFIELD bits SET u8 0 0", ""),
        ("BITFIELD bits SET u8 0 1 GET u8 0", "$:setbit bits"),
        ("BITFIELD bits OVERFLOW FAIL INCRBY u8 0 300", ""),
        ("BITFIELD bits SET u8 32 0", "$:setbit bits"),
        ("BITFIELD made INCRBY u8 0 1", "n:new made, $:setbit made"),
        ("BITFIELD none GET u8 0", "m:keymiss none"),
        ("BITOP NOT inverse bits", "n:new inverse, $:set inverse"),
        ("BITOP AND inverse none", "m:keymiss none, g:del inverse"),
        ("BITOP AND inverse none", "m:keymiss none"),
        ("GETBIT none 1", "m:keymiss none"),
        ("BITCOUNT none", "m:keymiss none"),
        ("BITPOS none 1", "m:keymiss none"),
    ]);
}

#[test]
fn commands_on_any_type_publish_events() {
    check(&[
        ("MSET a 1 b 2 c 3", "n:new a, $:set a, n:new b, $:set b, n:new c, $:set c"),
        ("EXPIRE a 100", "g:expire a"),
        ("PEXPIRE a 100000 NX", ""),
        ("EXPIREAT a 33177117420", "g:expire a"),
        ("PERSIST a", "g:persist a"),
        ("PERSIST a", ""),
        ("EXPIRE a 0", "g:del a"),
        ("PEXPIRE a 10", ""),
        ("RENAME b a", "n:new a, g:rename_from b, g:rename_to a"),
        ("RENAME a a", ""),
        ("RENAME a c", "g:rename_from a, g:rename_to c"),
        ("RENAMENX c a", "n:new a, g:rename_from c, g:rename_to a"),
        ("RENAMENX a a", ""),
        ("RENAME none a", ""),
        ("COPY a b", "n:new b, g:copy_to b"),
        ("COPY a b", ""),
        ("COPY none b", "m:keymiss none"),
        ("COPY a b DB 2", "n:new b@2, g:copy_to b@2"),
        ("MOVE a 1", "n:new a@1, g:move_from a, g:move_to a@1"),
        ("MOVE b 2", ""),
        ("DEL b none", "g:del b"),
        ("MSET a 1 b 2", "n:new a, $:set a, n:new b, $:set b"),
        ("UNLINK a b c", "g:del a, g:del b"),
        ("TYPE none", "m:keymiss none"),
        ("TTL none", "m:keymiss none"),
        ("EXISTS none", "m:keymiss none"),
        ("OBJECT ENCODING none", ""),
        ("RPUSH l 2 1", "n:new l, l:rpush l"),
        ("SORT l STORE t", "n:new t, l:sortstore t"),
        ("SORT none STORE t", "m:keymiss none, g:del t"),
        ("SORT none STORE t", "m:keymiss none"),
        ("RESTORE r 0 \"\\x00\\xc0\\n\\x06\\x00\\xf8r?\\xc5\\xfb\\xfb_(\"", "n:new r, g:restore r"),
        ("DELEX r IFEQ 11", ""),
        ("DELEX r IFNE 11", "g:del r"),
        ("DELEX r", ""),
        ("SET r 10 IFNE 10", "n:new r, $:set r"),
        ("SET r 10 IFNE 10", ""),
        ("DELIFEQ r 10", "g:del r"),
        ("TOUCH none", "m:keymiss none"),
    ]);
}

#[test]
fn a_due_key_expires_before_any_other_event() {
    check(&[
        ("SET k v PX 10", "n:new k, $:set k, g:expire k"),
        ("PASS 10", ""),
        ("GET k", "x:expired k, m:keymiss k"),
        ("SET k v PX 10", "n:new k, $:set k, g:expire k"),
        ("PASS 10", ""),
        ("INCR k", "x:expired k, n:new k, $:incrby k"),
    ]);
}

/// Calls that store a value at the key `d`, each with whether it replaces a value of any type; the other calls only
/// change a value of the same type.
const STORING: [(&str, bool); 34] = [
    ("SET d v", true),
    ("SET d v EX 10 GET", false),
    ("GETSET d v", false),
    ("SETEX d 10 v", true),
    ("MSET d v", true),
    ("MSETEX 1 d v", true),
    ("APPEND d v", false),
    ("INCR d", false),
    ("SETRANGE d 0 v", false),
    ("SETBIT d 1 1", false),
    ("BITOP NOT d t", true),
    ("BITOP AND d t t", true),
    ("PFADD d a", false),
    ("PFMERGE d p", false),
    ("SADD d a", false),
    ("SUNIONSTORE d s", true),
    ("SINTERSTORE d s s", true),
    ("SDIFFSTORE d s none", true),
    ("ZUNIONSTORE d 1 z", true),
    ("ZINTERSTORE d 1 z", true),
    ("ZDIFFSTORE d 1 z", true),
    ("ZRANGESTORE d z 0 -1", true),
    ("GEOSEARCHSTORE d g FROMLONLAT 1 1 BYRADIUS 10 km", true),
    ("GEOSEARCHSTORE d g FROMLONLAT 1 1 BYRADIUS 10 km STOREDIST", true),
    ("GEORADIUS g 1 1 10 km STORE d", true),
    ("GEORADIUSBYMEMBER g a 10 km STOREDIST d", true),
    ("SORT l STORE d", true),
    ("SORT l BY nosort GET # STORE d", true),
    ("LMOVE l d LEFT RIGHT", false),
    ("SMOVE s d a", false),
    ("COPY t d REPLACE", true),
    ("RENAME t d", true),
    ("RESTORE d 0 \"\\x00\\xc0\\n\\x06\\x00\\xf8r?\\xc5\\xfb\\xfb_(\" REPLACE", true),
    ("XADD d 1-1 a b", false),
];

/// Runs lines on an empty database, and returns the keys that the last line has reported as new.
fn new_keys(lines: &[&str]) -> Vec<String> {
    let mut local = Local::new(Protocol::Resp2);
    local.turn.notices.classes = EventClass::NEW;
    let given = ["SET t text", "PFADD p a", "SADD s a b", "ZADD z 1 a 2 b", "GEOADD g 1 1 a", "RPUSH l 1 2"];
    for line in given.iter().chain(lines) {
        local.turn.notices.events.clear();
        if let Some(ms) = line.strip_prefix("PASS ") {
            local.turn.now_ms += ms.parse::<i64>().expect("PASS takes a number of ms");
            continue;
        }
        let words = words_of(line);
        let reply = local.run(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert!(!reply.starts_with(b"-"), "{line}: {}", reply.escape_ascii());
    }
    local.turn.notices.events.iter().map(|notice| notice.key.escape_ascii().to_string()).collect()
}

#[test]
fn only_an_absent_key_counts_as_new() {
    for (line, replaces_any) in STORING {
        assert_eq!(new_keys(&[line]), ["d"], "{line}");
        // The call runs again on the value that it has stored. Its source is created again, and an entry of a stream
        // has a higher ID.
        let again = line.replace("1-1", "2-1");
        let given = ["SET t text", "SADD s a", "RPUSH l 1", &again];
        assert_eq!(new_keys(&[&[line][..], &given].concat()), [""; 0], "{line}");
        if replaces_any {
            for other in ["SET d text", "RPUSH d a", "HSET d f v"] {
                assert_eq!(new_keys(&[other, line]), [""; 0], "{other}, {line}");
            }
            assert_eq!(new_keys(&["SET d v PX 5", "PASS 5", line]), ["d"], "{line}: the key has expired");
        }
    }
    assert_eq!(new_keys(&["COPY t d DB 2"]), ["d"]);
    assert_eq!(new_keys(&["COPY t d DB 2", "COPY t d DB 2 REPLACE"]), [""; 0]);
    assert_eq!(new_keys(&["MOVE t 2"]), ["t"]);
    // A call that stores nothing reports no new key.
    assert_eq!(new_keys(&["SUNIONSTORE d none"]), [""; 0]);
    assert_eq!(new_keys(&["SET d v", "SUNIONSTORE d none"]), [""; 0]);
}

#[test]
fn commands_on_sketches_publish_events() {
    check(&[
        ("BF.ADD b a", "n:new b, d:bf.add b"),
        ("BF.ADD b a", ""),
        ("BF.MADD b a c", "d:bf.madd b"),
        ("BF.INSERT b ITEMS a d", "d:bf.insert b"),
        ("BF.RESERVE r 0.5 10", "n:new r, d:bf.reserve r"),
        ("BF.RESERVE r 0.5 10", ""),
        ("BF.LOADCHUNK r 9 abcdefgh", "d:bf.loadchunk r"),
        ("BF.LOADCHUNK r 9 abcdefgh", ""),
        ("BF.EXISTS none a", "m:keymiss none"),
        ("CF.ADD c a", "n:new c, d:cf.add c"),
        ("CF.ADDNX c a", ""),
        ("CF.INSERT c ITEMS a", "d:cf.insert c"),
        ("CF.INSERTNX c ITEMS b", "d:cf.insertnx c"),
        ("CF.DEL c b", "d:cf.del c"),
        ("CF.DEL c none", ""),
        ("CF.COMPACT c", "d:cf.compact c"),
        ("CF.RESERVE l 4", "n:new l, d:cf.reserve l"),
        ("CF.LOADCHUNK l 5 abcd", "d:cf.loadchunk l"),
        ("CMS.INITBYDIM m 10 2", "n:new m, d:cms.initbydim m"),
        ("CMS.INITBYPROB n 0.1 0.1", "n:new n, d:cms.initbyprob n"),
        ("CMS.INCRBY m a 1", "d:cms.incrby m"),
        ("CMS.INCRBY m a 0", ""),
        ("CMS.MERGE m 1 m", "d:cms.merge m"),
        ("TOPK.RESERVE t 3", "n:new t, d:topk.reserve t"),
        ("TOPK.ADD t a", "d:topk.add t"),
        ("TOPK.INCRBY t a 2", "d:topk.incrby t"),
        ("TOPK.INCRBY t a x", ""),
        ("TDIGEST.CREATE d", "n:new d, d:tdigest.create d"),
        ("TDIGEST.ADD d 1", "d:tdigest.add d"),
        ("TDIGEST.MERGE e 1 d", "n:new e, d:tdigest.merge e"),
        ("TDIGEST.RESET d", "d:tdigest.reset d"),
        ("TDIGEST.MIN none", "m:keymiss none"),
    ]);
}
