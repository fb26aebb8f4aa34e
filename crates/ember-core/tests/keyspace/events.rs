//! Keyspace events of commands: which, of which class, for which key of which database, in which order.

use ember_protocol::Protocol;
use emberkv_core::events::EventClass;
use emberkv_core::local::Local;

use crate::support::words::words_of;

/// Letters of the classes as `notify-keyspace-events` has them.
const LETTERS: [(EventClass, char); 11] = [
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
    (EventClass::NEW, 'n'),
];

/// Runs each line and compares the events it tells, as `class:name key` one after the other; those in other databases than 0
/// have `@number` behind them. `PASS ms` lets time pass.
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
        let told: Vec<String> = notices
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
        assert_eq!(told.join(", "), *expected, "{line}");
    }
}

#[test]
fn commands_on_strings_tell_what_they_do() {
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
fn commands_on_bits_tell_what_they_do() {
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
fn commands_on_any_type_tell_what_they_do() {
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
        ("RENAME a c", "n:new c, g:rename_from a, g:rename_to c"),
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
        ("DELIFEQ r 10", "g:del r"),
        ("TOUCH none", "m:keymiss none"),
    ]);
}

#[test]
fn a_key_whose_time_has_come_expires_before_all_else() {
    check(&[
        ("SET k v PX 10", "n:new k, $:set k, g:expire k"),
        ("PASS 10", ""),
        ("GET k", "x:expired k, m:keymiss k"),
        ("SET k v PX 10", "n:new k, $:set k, g:expire k"),
        ("PASS 10", ""),
        ("INCR k", "x:expired k, n:new k, $:incrby k"),
    ]);
}
