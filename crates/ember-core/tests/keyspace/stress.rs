//! Several threads on one keyspace: atomic changes are never partially visible, and all data are consistent at the end.

use std::sync::Arc;
use std::thread;

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::{Call, CommandResult, DataCommand, Run};
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::eviction::{EvictionPolicy, Evictor};
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::SHARDS;
use emberkv_core::keyspace::entry::{NewValue, StringValue};
use emberkv_core::local::Local;
use emberkv_core::spec::{Command, KeyFlags, KeySpec, Spec};
use emberkv_core::turn::{Random, Turn};

const THREADS: u64 = 4;

fn another(local: &Local, seed: u64) -> Local {
    let turn = Turn::new(local.turn.now_ms, seed + 1);
    Local::sharing(Arc::clone(&local.keyspace), turn, Protocol::Resp2)
}

fn run(local: &mut Local, command: &str) -> String {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    String::from_utf8(local.run(&words)).unwrap()
}

fn check_at_rest(local: &Local) {
    local.keyspace.check_invariants();
    let bytes: usize = (0..SHARDS).map(|shard| local.keyspace.lock(shard).bytes()).sum();
    assert_eq!(local.keyspace.used_bytes(), bytes, "the published bytes equal the used ones");
}

#[test]
fn renames_and_moves_never_lose_or_duplicate_a_key() {
    const PLACES: usize = 40;
    const TOKENS: usize = 15;
    let mut local = Local::new(Protocol::Resp2);
    for token in 0..TOKENS {
        run(&mut local, &format!("SET place:{token} {token} EX 1000"));
    }
    let all: Vec<String> = (0..PLACES).map(|place| format!("place:{place}")).collect();
    let count_all = format!("EXISTS {}", all.join(" "));
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let mut local = another(&local, seed);
            let count_all = &count_all;
            scope.spawn(move || {
                let mut random = Random::seeded(seed * 7919 + 1);
                for step in 0..30_000 {
                    let (from, to) = (random.below(PLACES), random.below(PLACES));
                    run(&mut local, &format!("RENAMENX place:{from} place:{to}"));
                    if step % 16 == 0 {
                        assert_eq!(run(&mut local, count_all), format!(":{TOKENS}\r\n"));
                    }
                }
            });
        }
    });
    let mut values: Vec<String> = all.iter().map(|place| run(&mut local, &format!("GET {place}"))).collect();
    values.retain(|value| value != "$-1\r\n");
    values.sort();
    values.dedup();
    assert_eq!(values.len(), TOKENS);
    assert_eq!(local.keyspace.volatile(0), TOKENS, "each has kept its expiry");
    check_at_rest(&local);
}

/// A command that subtracts one from the number at the first key and adds one to that at the second.
const TRANSFER: DataCommand = Command::new(
    Spec { name: "transfer", keys: &[KeySpec::range(1, 2, KeyFlags::RW)], ..Spec::DEFAULT },
    Run::Keys(transfer),
);

/// A command that replies with the sum of the numbers at all its keys.
const SUM: DataCommand = Command::new(
    Spec { name: "sum", keys: &[KeySpec::from(1, 1, KeyFlags::RO)], ..Spec::DEFAULT },
    Run::Keys(sum),
);

fn number(call: &mut Call<'_, '_>, arg: usize) -> i64 {
    match call.keys.read(arg).map(|entry| entry.string()) {
        Some(StringValue::Int(number)) => number,
        _ => 0,
    }
}

fn transfer(call: &mut Call<'_, '_>) -> CommandResult {
    for (arg, change) in [(1, -1), (2, 1)] {
        let number = number(call, arg);
        call.keys.key(arg).set(NewValue::Int(number + change), None);
    }
    Ok(())
}

fn sum(call: &mut Call<'_, '_>) -> CommandResult {
    let sum = (1..call.args.len()).map(|arg| number(call, arg)).sum();
    call.reply.integer(sum);
    Ok(())
}

#[test]
fn transfers_between_counters_keep_their_sum_for_every_reader() {
    const COUNTERS: usize = 12;
    let local = Local::new(Protocol::Resp2);
    let names: Vec<Vec<u8>> = (0..COUNTERS).map(|n| format!("counter:{n}").into_bytes()).collect();
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let (keyspace, names) = (&*local.keyspace, &names);
            scope.spawn(move || {
                let mut turn = Turn::new(0, seed + 1);
                let mut random = Random::seeded(seed + 100);
                // The locks are held from one command to the next, as in a pipeline, and released at the end of each
                // batch.
                let mut guards = Guards::None;
                let mut reply = Reply::new(Protocol::Resp2);
                for step in 0..60_000 {
                    let mut words: Vec<&[u8]> = vec![b"name"];
                    let command = if step % 10 == 0 {
                        words.extend(names.iter().map(Vec::as_slice));
                        &SUM
                    } else {
                        words.push(&names[random.below(COUNTERS)]);
                        words.push(&names[random.below(COUNTERS)]);
                        &TRANSFER
                    };
                    let mut batch = OwnedBatch::new();
                    batch.push(&words);
                    let mut context = Context {
                        keyspace,
                        guards: &mut guards,
                        turn: &mut turn,
                        database: 0,
                        waiting: Waiting::Never,
                    };
                    let access = Access::of(&command.spec);
                    reply.clear();
                    dispatch::run(command, access, None, &mut context, batch.command(0), &mut reply).unwrap();
                    assert!(reply.is_empty() || reply.to_vec() == b":0\r\n");
                    if step % 8 == 7 {
                        guards.release(keyspace, &mut turn);
                    }
                }
                guards.release(keyspace, &mut turn);
                keyspace.publish_bytes(turn.growth_bytes);
            });
        }
    });
    check_at_rest(&local);
}

/// Returns a random command on a few keys of the selected database.
fn random_command(random: &mut Random) -> String {
    let (a, b) = (random.below(300), random.below(300));
    match random.below(24) {
        0..=5 => format!("SET k{a} {b}"),
        6..=8 => format!("SET k{a} {} PX {}", "v".repeat(random.below(200)), 1 + b),
        9 => format!("SET k{a} {}", "large".repeat(8000)),
        10..=11 => format!("GET k{a}"),
        12 => format!("DEL k{a} k{b} k1 k2"),
        13 => format!("UNLINK k{a} k{b}"),
        14 => format!("RENAME k{a} k{b}"),
        15 => format!("COPY k{a} k{b} DB {} REPLACE", random.below(4)),
        16 => format!("MOVE k{a} {}", random.below(4)),
        17 => format!("PEXPIRE k{a} {b}"),
        18 => format!("PERSIST k{a}"),
        19 => format!("SCAN {} COUNT 20", random.below(1 << 30)),
        20 => "RANDOMKEY".into(),
        21 => format!("EXISTS k{a} k{b} k3 k4 k5"),
        22 => format!("SET n{} 1", random.next_u64()),
        _ if a == 0 => "FLUSHDB ASYNC".into(),
        _ if a == 1 => "SWAPDB 1 2".into(),
        _ => "DBSIZE".into(),
    }
}

#[test]
fn a_storm_of_commands_with_expiry_and_eviction_leaves_the_keyspace_consistent() {
    let local = Local::new(Protocol::Resp2);
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let mut local = another(&local, seed);
            local.turn.settings.policy = EvictionPolicy::AllkeysLru;
            scope.spawn(move || {
                let mut random = Random::seeded(seed * 31 + 5);
                let mut evictor = Evictor::default();
                for step in 0..20_000 {
                    local.database = random.below(4);
                    let command = random_command(&mut random);
                    let reply = run(&mut local, &command);
                    let is_error = reply.starts_with('-');
                    assert!(
                        !is_error || reply == "-ERR no such key\r\n" || reply.contains("are the same"),
                        "{reply}"
                    );
                    if step % 64 == 0 {
                        local.turn.now_ms += 5;
                        let range = SHARDS / THREADS as usize * seed as usize..SHARDS;
                        local.keyspace.expire_due(range, &mut local.turn, 200);
                        let made = evictor.free_memory(&local.keyspace, &mut local.turn, 2_000_000, 5);
                        assert!(made.is_ok());
                    }
                }
            });
        }
    });
    check_at_rest(&local);
}
