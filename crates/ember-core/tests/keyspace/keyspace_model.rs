//! The keyspace compared with a safe model: random commands in several databases produce the same replies, and every
//! byte, count and table stays consistent.

use std::collections::BTreeMap;

use ember_protocol::Protocol;
use emberkv_core::keyspace::SHARDS;
use emberkv_core::keyspace::expiry::TICK_MS;
use emberkv_core::local::Local;
use proptest::prelude::*;

const DATABASES: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Value {
    Int(i64),
    /// A string of this many bytes, all with the same value.
    Bytes(usize, u8),
}

impl Value {
    fn bytes(self) -> Vec<u8> {
        match self {
            Value::Int(number) => number.to_string().into_bytes(),
            Value::Bytes(len, byte) => vec![byte; len],
        }
    }

    fn encoding(self) -> &'static str {
        match self {
            Value::Int(_) => "int",
            Value::Bytes(0..=44, _) => "embstr",
            Value::Bytes(..) => "raw",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    None,
    IfNone,
    IfSome,
    Greater,
    Less,
}

#[derive(Clone, Debug)]
enum Step {
    Select(usize),
    Set(u8, Value, Option<i64>),
    SetKeepTtl(u8, Value),
    Get(u8),
    Del(u8, u8),
    Unlink(u8, u8),
    Exists(u8, u8),
    PExpire(u8, i64, Condition),
    Persist(u8),
    PTtl(u8),
    Rename(u8, u8),
    RenameNx(u8, u8),
    Copy(u8, u8, usize, bool),
    Move(u8, usize),
    FlushDb(bool),
    FlushAll(bool),
    SwapDb(usize, usize),
    Advance(i64),
    ExpireDue(usize),
    /// Sets a number of bulk keys, every second one with an expiry.
    Fill(usize, i64),
    /// Removes a number of bulk keys.
    Drain(usize),
}

fn value() -> impl Strategy<Value = Value> {
    let len = prop_oneof![6 => 0usize..60, 2 => 200usize..4000, 1 => 32_000usize..33_500];
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (len, b'a'..=b'z').prop_map(|(len, byte)| Value::Bytes(len, byte))
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0u8..7;
    let database = 0..DATABASES;
    let condition = prop_oneof![
        Just(Condition::None),
        Just(Condition::IfNone),
        Just(Condition::IfSome),
        Just(Condition::Greater),
        Just(Condition::Less),
    ];
    prop_oneof![
        3 => database.clone().prop_map(Step::Select),
        9 => (key.clone(), value(), prop::option::of(1i64..2000)).prop_map(|(k, v, e)| Step::Set(k, v, e)),
        2 => (key.clone(), value()).prop_map(|(k, v)| Step::SetKeepTtl(k, v)),
        3 => key.clone().prop_map(Step::Get),
        2 => (key.clone(), key.clone()).prop_map(|(a, b)| Step::Del(a, b)),
        1 => (key.clone(), key.clone()).prop_map(|(a, b)| Step::Unlink(a, b)),
        1 => (key.clone(), key.clone()).prop_map(|(a, b)| Step::Exists(a, b)),
        5 => (key.clone(), -50i64..3000, condition).prop_map(|(k, ms, c)| Step::PExpire(k, ms, c)),
        2 => key.clone().prop_map(Step::Persist),
        2 => key.clone().prop_map(Step::PTtl),
        3 => (key.clone(), key.clone()).prop_map(|(a, b)| Step::Rename(a, b)),
        2 => (key.clone(), key.clone()).prop_map(|(a, b)| Step::RenameNx(a, b)),
        4 => (key.clone(), key.clone(), database.clone(), any::<bool>())
            .prop_map(|(a, b, d, r)| Step::Copy(a, b, d, r)),
        3 => (key, database.clone()).prop_map(|(k, d)| Step::Move(k, d)),
        1 => any::<bool>().prop_map(Step::FlushDb),
        1 => any::<bool>().prop_map(Step::FlushAll),
        2 => (database.clone(), database).prop_map(|(a, b)| Step::SwapDb(a, b)),
        4 => (0i64..1500).prop_map(Step::Advance),
        3 => (1usize..400).prop_map(Step::ExpireDue),
        1 => (1usize..4000, 1i64..3000).prop_map(|(n, ms)| Step::Fill(n, ms)),
        1 => (1usize..4000).prop_map(Step::Drain),
    ]
}

fn name(key: u8) -> Vec<u8> {
    // Names whose lengths cover all widths of the length field, and the empty name.
    vec![b'a' + key; [0, 1, 2, 30, 254, 255, 300][usize::from(key)]]
}

fn bulk_name(number: usize) -> Vec<u8> {
    format!("bulk:{number}").into_bytes()
}

type Database = BTreeMap<Vec<u8>, (Value, Option<i64>)>;

/// A model of a keyspace: databases of keys, values and expiry times. Expired keys are removed at once.
struct Model {
    databases: [Database; DATABASES],
    selected: usize,
    now_ms: i64,
}

impl Model {
    fn here(&mut self) -> &mut Database {
        &mut self.databases[self.selected]
    }

    fn expire(&mut self) {
        let now_ms = self.now_ms;
        for database in &mut self.databases {
            database.retain(|_, (_, expire_at_ms)| expire_at_ms.is_none_or(|at| at > now_ms));
        }
    }

    fn remove(&mut self, keys: [u8; 2]) -> Reply {
        Reply::Integer(keys.iter().filter(|&&key| self.here().remove(&name(key)).is_some()).count() as i64)
    }

    fn rename(&mut self, from: u8, to: u8) {
        let moved = self.here().remove(&name(from)).unwrap();
        self.here().insert(name(to), moved);
    }

    fn expire_key(&mut self, key: u8, ms: i64, condition: Condition) -> i64 {
        let at = self.now_ms + ms;
        let Some((_, expiry)) = self.here().get_mut(&name(key)) else { return 0 };
        let allowed = match condition {
            Condition::None => true,
            Condition::IfNone => expiry.is_none(),
            Condition::IfSome => expiry.is_some(),
            Condition::Greater => expiry.is_some_and(|old| at > old),
            Condition::Less => expiry.is_none_or(|old| at < old),
        };
        if allowed {
            *expiry = Some(at);
            self.expire();
        }
        allowed.into()
    }
}

#[derive(Debug, PartialEq)]
enum Reply {
    Ok,
    Null,
    Error,
    Integer(i64),
    Bulk(Vec<u8>),
}

fn read_reply(bytes: &[u8]) -> Reply {
    let line_end = bytes.iter().position(|&byte| byte == b'\r').unwrap();
    let line = std::str::from_utf8(&bytes[1..line_end]).unwrap();
    match bytes[0] {
        b'+' => Reply::Ok,
        b'-' => Reply::Error,
        b':' => Reply::Integer(line.parse().unwrap()),
        b'$' if line == "-1" => Reply::Null,
        b'$' => Reply::Bulk(bytes[line_end + 2..bytes.len() - 2].to_vec()),
        other => panic!("unexpected reply {other}"),
    }
}

fn run(local: &mut Local, words: &[&[u8]]) -> Reply {
    read_reply(&local.run(words))
}

/// Runs one step on the keyspace and the model, and compares the replies.
fn take_step(local: &mut Local, model: &mut Model, step: &Step) -> Result<(), TestCaseError> {
    let integer = |flag: bool| Reply::Integer(flag.into());
    let (got, expected) = match *step {
        Step::Select(database) => {
            local.database = database;
            model.selected = database;
            return Ok(());
        }
        Step::Set(key, value, ttl_ms) => {
            let expire_at_ms = ttl_ms.map(|ms| model.now_ms + ms);
            model.here().insert(name(key), (value, expire_at_ms));
            let px = ttl_ms.unwrap_or(0).to_string();
            let (name, value) = (name(key), value.bytes());
            let words: [&[u8]; 5] = [b"SET", &name, &value, b"PX", px.as_bytes()];
            (run(local, if ttl_ms.is_some() { &words } else { &words[..3] }), Reply::Ok)
        }
        Step::SetKeepTtl(key, value) => {
            let expire_at_ms = model.here().get(&name(key)).and_then(|(_, at)| *at);
            model.here().insert(name(key), (value, expire_at_ms));
            (run(local, &[b"SET", &name(key), &value.bytes(), b"KEEPTTL"]), Reply::Ok)
        }
        Step::Get(key) => {
            let value = model.here().get(&name(key)).map(|(value, _)| *value);
            if let Some(value) = value {
                let encoding = run(local, &[b"OBJECT", b"ENCODING", &name(key)]);
                prop_assert_eq!(encoding, Reply::Bulk(value.encoding().into()));
            }
            (run(local, &[b"GET", &name(key)]), value.map_or(Reply::Null, |value| Reply::Bulk(value.bytes())))
        }
        Step::Del(a, b) => (run(local, &[b"DEL", &name(a), &name(b)]), model.remove([a, b])),
        Step::Unlink(a, b) => (run(local, &[b"UNLINK", &name(a), &name(b)]), model.remove([a, b])),
        Step::Exists(a, b) => {
            let found = [a, b].iter().filter(|&&key| model.here().contains_key(&name(key))).count();
            (run(local, &[b"EXISTS", &name(a), &name(b)]), Reply::Integer(found as i64))
        }
        Step::PExpire(key, ms, condition) => {
            let option: &[u8] = match condition {
                Condition::None => b"",
                Condition::IfNone => b"NX",
                Condition::IfSome => b"XX",
                Condition::Greater => b"GT",
                Condition::Less => b"LT",
            };
            let (name, ms_text) = (name(key), ms.to_string());
            let words: [&[u8]; 4] = [b"PEXPIRE", &name, ms_text.as_bytes(), option];
            let got = run(local, if option.is_empty() { &words[..3] } else { &words });
            (got, Reply::Integer(model.expire_key(key, ms, condition)))
        }
        Step::Persist(key) => {
            let expiry = model.here().get_mut(&name(key)).and_then(|(_, expiry)| expiry.take());
            (run(local, &[b"PERSIST", &name(key)]), integer(expiry.is_some()))
        }
        Step::PTtl(key) => {
            let now_ms = model.now_ms;
            let expected = match model.here().get(&name(key)) {
                None => -2,
                Some((_, None)) => -1,
                Some((_, Some(at))) => at - now_ms,
            };
            (run(local, &[b"PTTL", &name(key)]), Reply::Integer(expected))
        }
        Step::Rename(from, to) => {
            let expected = if model.here().contains_key(&name(from)) {
                model.rename(from, to);
                Reply::Ok
            } else {
                Reply::Error
            };
            (run(local, &[b"RENAME", &name(from), &name(to)]), expected)
        }
        Step::RenameNx(from, to) => {
            let expected = if !model.here().contains_key(&name(from)) {
                Reply::Error
            } else if model.here().contains_key(&name(to)) {
                integer(false)
            } else {
                model.rename(from, to);
                integer(true)
            };
            (run(local, &[b"RENAMENX", &name(from), &name(to)]), expected)
        }
        Step::Copy(from, to, database, replace) => {
            let source = model.here().get(&name(from)).copied();
            let expected = match source {
                _ if from == to && database == model.selected => Reply::Error,
                Some(source) if replace || !model.databases[database].contains_key(&name(to)) => {
                    model.databases[database].insert(name(to), source);
                    integer(true)
                }
                _ => integer(false),
            };
            let (from, to, number) = (name(from), name(to), database.to_string());
            let words: [&[u8]; 6] = [b"COPY", &from, &to, b"DB", number.as_bytes(), b"REPLACE"];
            (run(local, if replace { &words } else { &words[..5] }), expected)
        }
        Step::Move(key, database) => {
            let expected = if database == model.selected {
                Reply::Error
            } else if model.here().contains_key(&name(key))
                && !model.databases[database].contains_key(&name(key))
            {
                let moved = model.here().remove(&name(key)).unwrap();
                model.databases[database].insert(name(key), moved);
                integer(true)
            } else {
                integer(false)
            };
            (run(local, &[b"MOVE", &name(key), database.to_string().as_bytes()]), expected)
        }
        Step::FlushDb(in_background) => {
            model.here().clear();
            (run(local, &[b"FLUSHDB", if in_background { b"ASYNC" } else { b"SYNC" }]), Reply::Ok)
        }
        Step::FlushAll(in_background) => {
            model.databases.iter_mut().for_each(BTreeMap::clear);
            (run(local, &[b"FLUSHALL", if in_background { b"ASYNC" } else { b"SYNC" }]), Reply::Ok)
        }
        Step::SwapDb(one, other) => {
            model.databases.swap(one, other);
            (run(local, &[b"SWAPDB", one.to_string().as_bytes(), other.to_string().as_bytes()]), Reply::Ok)
        }
        Step::Advance(ms) => {
            model.now_ms += ms;
            local.turn.now_ms += ms;
            model.expire();
            return Ok(());
        }
        Step::ExpireDue(budget) => {
            let (_, looked) = local.keyspace.expire_due(0..SHARDS, &mut local.turn, budget);
            prop_assert!(looked <= budget);
            return Ok(());
        }
        Step::Fill(count, ttl_ms) => {
            for number in 0..count {
                let expire_at_ms = (number % 2 == 0).then(|| model.now_ms + ttl_ms + number as i64);
                model.here().insert(bulk_name(number), (Value::Int(number as i64), expire_at_ms));
                let (name, value) = (bulk_name(number), number.to_string());
                let px = (ttl_ms + number as i64).to_string();
                let words: [&[u8]; 5] = [b"SET", &name, value.as_bytes(), b"PX", px.as_bytes()];
                run(local, if number % 2 == 0 { &words } else { &words[..3] });
            }
            return Ok(());
        }
        Step::Drain(count) => {
            for number in 0..count {
                let there = model.here().remove(&bulk_name(number)).is_some();
                prop_assert_eq!(run(local, &[b"DEL", &bulk_name(number)]), integer(there));
            }
            return Ok(());
        }
    };
    prop_assert_eq!(got, expected);
    Ok(())
}

/// Compares all contents and counts of the keyspace with those of the model.
fn compare(local: &mut Local, model: &Model) -> Result<(), TestCaseError> {
    local.keyspace.check_invariants();
    // Active expiry must remove exactly the keys that have been due for two ticks.
    local.keyspace.expire_due(0..SHARDS, &mut local.turn, usize::MAX);
    for (number, database) in model.databases.iter().enumerate() {
        let mut seen = 0;
        let mut lingering = 0;
        for shard in 0..SHARDS {
            let data = local.keyspace.lock(shard);
            for entry in data.database(number).table().iter() {
                if entry.is_expired(model.now_ms) {
                    prop_assert!(entry.expire_at_ms() > Some(model.now_ms - 2 * TICK_MS));
                    lingering += 1;
                    continue;
                }
                seen += 1;
                let (_, expire_at_ms) = database.get(entry.key()).expect("the model has the key");
                prop_assert_eq!(entry.expire_at_ms(), *expire_at_ms);
            }
        }
        prop_assert_eq!(seen, database.len());
        prop_assert_eq!(local.keyspace.len(number), seen + lingering);
        let volatile = database.values().filter(|(_, expiry)| expiry.is_some()).count();
        prop_assert_eq!(local.keyspace.volatile(number), volatile + lingering);
    }
    local.keyspace.check_invariants();
    let bytes: usize = (0..SHARDS).map(|shard| local.keyspace.lock(shard).bytes()).sum();
    prop_assert_eq!(local.keyspace.used_bytes(), bytes, "the published bytes equal the used ones");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(8) * 5))]
    #[test]
    fn random_commands_leave_the_keyspace_equal_to_a_map(
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let mut local = Local::new(Protocol::Resp2);
        let mut model = Model { databases: Default::default(), selected: 0, now_ms: local.turn.now_ms };
        for (index, step) in steps.iter().enumerate() {
            take_step(&mut local, &mut model, step)?;
            if index % 50 == 49 {
                compare(&mut local, &model)?;
            }
        }
        compare(&mut local, &model)?;
    }
}
