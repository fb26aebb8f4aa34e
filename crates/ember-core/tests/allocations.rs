//! A GET, and a SET or INCR that fits the entry, allocates nothing between the request's bytes and the reply's. The
//! accounted memory of a value equals the memory that the allocator reserves for it.

#![allow(unsafe_code, reason = "an allocator that counts")]
#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ember_protocol::{Batch, Limits, ParseStatus, Parser, Protocol, Reply};
use emberkv_core::call::DataCommand;
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::memory::size_class;
use emberkv_core::turn::{Random, Turn};

/// An allocator that counts the allocations and bytes of each thread separately, so that tests may run at the same
/// time.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// The bytes that jemalloc would reserve for the current allocations of this thread.
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

// A thread that is ending has no counter any more, and is not counted.
fn count() {
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

fn count_bytes(got: usize, given_back: usize) {
    let class = |bytes: usize| if bytes == 0 { 0 } else { size_class(bytes) as i64 };
    let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + class(got) - class(given_back)));
}

// SAFETY: every call is passed to the system's allocator unchanged; the counter allocates nothing, because it is
// constant and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        count_bytes(layout.size(), 0);
        // SAFETY: the caller guarantees what the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count_bytes(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        count_bytes(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A minimal worker: a keyspace, and buffers that are reused from one pipeline to the next.
struct Bench {
    keyspace: Keyspace,
    turn: Turn,
    parser: Parser,
    batch: Batch,
    reply: Reply,
    /// Whether commands may fail.
    allows_errors: bool,
}

impl Bench {
    fn new() -> Bench {
        let now_ms = 1_000_000_000_000;
        let options = KeyspaceOptions { now_ms, ..KeyspaceOptions::default() };
        Bench {
            keyspace: Keyspace::new(&options).unwrap(),
            turn: Turn::new(now_ms, 1),
            parser: Parser::new(),
            batch: Batch::new(),
            reply: Reply::new(Protocol::Resp2),
            allows_errors: false,
        }
    }

    /// Parses and runs a pipeline, whose replies `reply` contains afterwards.
    fn run(&mut self, input: &[u8]) {
        self.reply.clear();
        let mut guards = Guards::None;
        loop {
            let status = self.parser.parse(input, &mut self.batch, &Limits::default());
            for number in 0..self.batch.len() {
                let args = self.batch.command(number, input);
                let command = find(args.at(0));
                let mut context = Context {
                    keyspace: &self.keyspace,
                    guards: &mut guards,
                    turn: &mut self.turn,
                    database: 0,
                    waiting: Waiting::Never,
                };
                let access = Access::of(&command.spec);
                let hash = match access {
                    Access::One(arg) => Some(self.keyspace.hash(args.at(arg))),
                    _ => None,
                };
                let result = dispatch::run(command, access, hash, &mut context, args, &mut self.reply);
                assert!(result.is_ok() || self.allows_errors, "{}", command.spec.name);
            }
            self.batch.clear();
            if status != ParseStatus::Full {
                assert_eq!(status, ParseStatus::NeedMore);
                break;
            }
        }
        self.parser.discard(self.parser.consumed());
        guards.release(&self.keyspace, &mut self.turn);
        self.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
    }

    /// Returns the number of allocations of the third run of the same pipeline; the first two runs fill the keyspace
    /// and the buffers.
    fn allocations(&mut self, input: &[u8]) -> u64 {
        self.run(input);
        self.run(input);
        let before = ALLOCATIONS.get();
        self.run(input);
        ALLOCATIONS.get() - before
    }
}

fn find(name: &[u8]) -> &'static DataCommand {
    let mut commands = FAMILIES.iter().copied().flatten().copied().flatten();
    commands.find(|command| name.eq_ignore_ascii_case(command.spec.name.as_bytes())).unwrap()
}

/// Returns a pipeline of a thousand calls on keys of all shards; the number of the call replaces `#` in a word.
fn pipeline(words: &str) -> Vec<u8> {
    pipeline_of(1000, words)
}

fn pipeline_of(calls: usize, words: &str) -> Vec<u8> {
    let command = |number: usize| {
        let words: Vec<String> =
            words.split(' ').map(|word| word.replace('#', &format!("{number:04}"))).collect();
        let bulks: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        format!("*{}\r\n{bulks}", words.len()).into_bytes()
    };
    (0..calls).flat_map(command).collect()
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    let mut bytes = Vec::<u8>::with_capacity(10);
    std::hint::black_box(&mut bytes).reserve(1000);
    assert_eq!(ALLOCATIONS.get() - before, 2);
}

#[test]
fn reading_and_overwriting_small_strings_allocates_nothing() {
    let mut bench = Bench::new();
    bench.run(&pipeline("SET key# value#"));
    for words in [
        "GET key#",
        "GET missing#",
        "SET key# VALUE#",
        "SET key# 12",
        "INCR key#",
        "DECRBY key# 7",
        "STRLEN key#",
        "TTL key#",
        "TYPE key#",
        "SET key# value# XX",
        "SET key# value# GET",
        "SETRANGE key# 2 xyz",
        "GETRANGE key# 1 3",
    ] {
        assert_eq!(bench.allocations(&pipeline(words)), 0, "{words}");
    }
    bench.keyspace.check_invariants();
}

#[test]
fn flushing_an_empty_keyspace_allocates_only_the_list_of_locks() {
    let mut bench = Bench::new();
    bench.run(&pipeline("SET key# value#"));
    for words in ["FLUSHALL", "FLUSHDB", "FLUSHALL SYNC"] {
        assert_eq!(bench.allocations(&pipeline_of(1, words)), 1, "{words}");
    }
    bench.keyspace.check_invariants();
}

#[test]
fn reading_lists_allocates_nothing_and_pushing_only_for_nodes() {
    /// The maximum number of allocations for list nodes: a node of 8 KiB grows in about thirty steps and contains about
    /// 700 elements of this size.
    const ALLOCATIONS_FOR_NODES_MAX: u64 = 100;
    let mut bench = Bench::new();
    for end in ["LPUSH", "RPUSH"] {
        let pushed = bench.allocations(&pipeline(&format!("{end} list element#")));
        assert!(pushed <= ALLOCATIONS_FOR_NODES_MAX, "{end}: {pushed}");
    }
    for words in [
        "LLEN list",
        "LINDEX list -1234",
        "LRANGE list 0 9",
        "LRANGE list -10 -1",
        "LPOS list element0500",
        "LSET list 1234 ELEMENT#",
    ] {
        assert_eq!(bench.allocations(&pipeline(words)), 0, "{words}");
    }
    bench.keyspace.check_invariants();
}

#[test]
fn reading_a_value_with_a_separate_allocation_allocates_nothing() {
    let mut bench = Bench::new();
    // The replies of a thousand calls fit the reused buffer.
    for length in [100, 900] {
        let value = "v".repeat(length);
        bench.run(&pipeline(&format!("SET big# {value}")));
        assert_eq!(bench.allocations(&pipeline("GET big#")), 0, "{length} bytes");
    }
}

#[test]
fn accounted_memory_equals_allocated_memory_at_all_sizes() {
    const LENGTH_MAX: usize = 70_000;
    let lengths = || (1..3000).chain((3000..LENGTH_MAX).step_by(97));
    for words in
        ["SET key {}", "SET key {} PXAT 2000000000000", "SET a-key-of-some-forty-bytes-for-a-change- {}"]
    {
        let mut bench = Bench::new();
        let mut unaccounted = None;
        // The longest values come first, so that the buffers have their final size before the measured runs.
        for length in [LENGTH_MAX, 1].into_iter().chain(lengths()).chain([1]) {
            bench.run(&pipeline_of(1, &words.replace("{}", &"v".repeat(length))));
            if length == LENGTH_MAX {
                continue;
            }
            let difference = BYTES.get() - bench.keyspace.used_bytes() as i64;
            assert_eq!(*unaccounted.get_or_insert(difference), difference, "{words}, {length} bytes");
        }
    }
}

/// Edits of documents and sketches: `%k` is one of a few keys, `%n` a number below a thousand, `%t` a text of that
/// length.
const EDITS: [&str; 20] = [
    r#"JSON.SET j%k $ {"a":[1,2.5],"o":{"n":%n},"s":"%t"}"#,
    r#"JSON.SET j%k $.o.m%n "%t""#,
    "JSON.SET j%k $.a[0] %n.125",
    r#"JSON.ARRAPPEND j%k $.a %n {"n":[%n,"%t"]}"#,
    "JSON.ARRTRIM j%k $.a 0 %n",
    "JSON.NUMINCRBY j%k $..n %n",
    r#"JSON.STRAPPEND j%k $.s "%t""#,
    r#"JSON.MERGE j%k $ {"o":{"m%n":null,"n":%n}}"#,
    "JSON.DEL j%k $.a[1,3]",
    "JSON.CLEAR j%k $.o",
    "BF.ADD b%k item:%n",
    "BF.RESERVE b%n 0.001 100000",
    "CF.ADD c%k item:%n",
    "CMS.INITBYDIM m%k 2000 7",
    "CMS.INCRBY m%k item:%n %n",
    "TOPK.RESERVE t%k 50",
    "TOPK.ADD t%k item:%n item-%t",
    "TDIGEST.CREATE d%k",
    "TDIGEST.ADD d%k %n 1 2 3",
    "DEL j%k b%k c%k m%k t%k d%k b%n",
];

#[test]
fn accounted_memory_of_documents_and_sketches_is_that_of_the_allocator() {
    const CALLS: usize = 20_000;
    let mut bench = Bench { allows_errors: true, ..Bench::new() };
    let mut random = Random::seeded(1);
    // The buffers have their final size before the measured calls.
    bench.run(&pipeline_of(1, &format!("SET key {}", "x".repeat(100_000))));
    bench.run(&pipeline_of(1, "DEL key"));
    let unaccounted = BYTES.get() - bench.keyspace.used_bytes() as i64;
    let mut used_max = 0;
    for call in 0..CALLS {
        let number = random.below(1000);
        let words = EDITS[random.below(if call % 100 == 0 { EDITS.len() } else { EDITS.len() - 1 })];
        let words = words.replace("%k", &random.below(16).to_string()).replace("%n", &number.to_string());
        bench.run(&pipeline_of(1, &words.replace("%t", &"x".repeat(number))));
        let used = bench.keyspace.used_bytes() as i64;
        let difference = (BYTES.get() - used - unaccounted).abs();
        assert!(
            difference * 50 <= used.max(1 << 18),
            "{difference} of {used} bytes after call {call}: {words}"
        );
        used_max = used_max.max(used);
    }
    assert!(used_max > 1 << 20, "{used_max}");
}
