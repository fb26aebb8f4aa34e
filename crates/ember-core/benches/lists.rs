//! Lists without a network: pushes and pops at both ends of a queue, and reads of a list of a million elements.
//!
//! `cargo bench -p emberkv-core --bench lists`. Each figure is the time of one command; a batch is 64 commands on one
//! key.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::DataCommand;
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::turn::Turn;

const BATCH: usize = 64;
const ELEMENTS: usize = 1_000_000;

struct Bench {
    keyspace: Keyspace,
    turn: Turn,
    reply: Reply,
}

impl Bench {
    fn new() -> Bench {
        let options = KeyspaceOptions::default();
        let keyspace = Keyspace::new(&options).expect("the system gives random bytes");
        Bench { keyspace, turn: Turn::new(1, 1), reply: Reply::new(Protocol::Resp2) }
    }

    fn run(&mut self, work: &Work) {
        let Bench { keyspace, turn, reply } = self;
        let mut guards = Guards::None;
        reply.clear();
        for (number, command) in work.commands.iter().enumerate() {
            let args = work.batch.command(number);
            let mut context =
                Context { keyspace, guards: &mut guards, turn, database: 0, waiting: Waiting::Never };
            dispatch::run(command, Access::One(1), None, &mut context, args, reply)
                .expect("list commands on lists succeed");
        }
        guards.release(keyspace, turn);
        keyspace.publish_bytes(std::mem::take(&mut turn.growth_bytes));
        black_box(&*reply);
    }
}

/// A batch, and the commands that it calls.
#[derive(Default)]
struct Work {
    batch: OwnedBatch,
    commands: Vec<&'static DataCommand>,
}

impl Work {
    fn push(&mut self, line: &str) {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut commands = FAMILIES.iter().copied().flatten().copied().flatten();
        let command = commands.find(|command| words[0] == command.spec.name.as_bytes());
        self.commands.push(command.expect("the command exists"));
        self.batch.push(&words);
    }
}

fn benches(criterion: &mut Criterion) {
    let mut bench = Bench::new();
    let elements: Vec<String> = (0..ELEMENTS).map(|number| format!("element:{number:08}")).collect();
    for chunk in elements.chunks(1000) {
        let mut work = Work::default();
        work.push(&format!("rpush million {}", chunk.join(" ")));
        work.push(&format!("rpush queue {}", chunk.join(" ")));
        bench.run(&work);
    }
    let mut group = criterion.benchmark_group("lists, batches of 64");
    for (name, lines) in [
        ("RPUSH and LPOP", &["rpush queue element:12345678", "lpop queue"][..]),
        ("LPUSH and RPOP", &["lpush queue element:12345678", "rpop queue"]),
        ("LRANGE of the first 100", &["lrange million 0 99"]),
        ("LRANGE of 100 in the middle", &["lrange million 500000 500099"]),
        ("LINDEX in the middle", &["lindex million 500000"]),
        ("LSET in the middle", &["lset million 500000 element:12345678"]),
    ] {
        let mut work = Work::default();
        lines.iter().cycle().take(BATCH).for_each(|line| work.push(line));
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function(name, |bencher| bencher.iter(|| bench.run(&work)));
    }
    group.finish();
}

criterion_group!(list_benches, benches);
criterion_main!(list_benches);
