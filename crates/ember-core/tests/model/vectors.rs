//! Vector sets and indexes whose links and lists are built by threads while calls change them, under a model checker:
//! searches find acknowledged elements and no removed ones, and no slot in use is released. Runs with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p emberkv-core --test model vectors`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use ember_protocol::Protocol;
use emberkv_core::keyspace::Keyspace;
use emberkv_core::linking::{self, Next};
use emberkv_core::local::Local;
use emberkv_core::turn::Turn;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use crate::locks::keyspace;

const SCHEDULES: usize = 1000;
const KEY: &[u8] = b"key";

/// The number of dimensions, which is so high that searches of this test do not scan the index exactly.
const DIM: usize = 1024;

/// The number of elements that exist before the threads begin, and the number of calls of each thread that changes
/// elements.
const FIRST: usize = 90;
const CALLS: usize = 4;

/// Returns the state of a thread that runs calls.
fn caller(keyspace: &Arc<Keyspace>) -> Local {
    let mut turn = Turn::new(0, 1);
    turn.settings.links_vectors_later = true;
    Local::sharing(Arc::clone(keyspace), turn, Protocol::Resp2)
}

/// Returns the vector with this number.
fn vector(number: usize) -> Vec<u8> {
    let mut numbers = vec![0.0f32; DIM];
    numbers[0] = (number * 37 % 101) as f32 / 50.0 - 1.0;
    numbers[DIM / 2] = (number * 53 % 103) as f32 / 50.0 - 1.03;
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn add(local: &mut Local, name: &str, number: usize) {
    let reply = local.run(&[b"VECTOR.ADD", KEY, name.as_bytes(), b"FP32", &vector(number)]);
    assert_eq!(reply[0], b':', "{}", reply.escape_ascii());
}

/// Returns the names of all elements that a search returns.
fn found(local: &mut Local) -> BTreeSet<String> {
    let reply = local.run(&[b"VECTOR.SEARCH", KEY, b"FP32", &vector(7), b"K", b"1000"]);
    let reply = String::from_utf8(reply).unwrap();
    assert!(reply.starts_with('*'), "{reply}");
    let names: Vec<String> = reply.lines().filter(|line| line.starts_with('e')).map(str::to_owned).collect();
    let set: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(set.len(), names.len(), "no element is found twice");
    set
}

/// Links vectors, repairs graphs and trains lists as the threads of a server do, in `turns` rounds over the pending
/// work.
fn link(keyspace: &Keyspace, turns: usize) {
    let mut training = None;
    for _ in 0..turns {
        linking::bury(keyspace, 0, KEY);
        if let Next::Linking(batch) = linking::begin(keyspace, 0, KEY) {
            let plans = linking::plan(&batch);
            drop(batch);
            linking::commit(keyspace, 0, KEY, &plans);
        }
        training = match training.or_else(|| linking::begin_training(keyspace, 0, KEY)) {
            Some(mut lists) => {
                lists.step(usize::MAX);
                linking::advance_training(keyspace, 0, KEY, &mut lists).then_some(lists)
            }
            None => None,
        };
    }
}

/// For each element, the number of begun and ended calls on it, and the number of its vector after the last call.
type Book = BTreeMap<String, (usize, Option<usize>)>;

/// Records that a call on an element begins, or that it ends with this vector or without one.
fn record(book: &Mutex<Book>, name: &str, ended: Option<Option<usize>>) {
    let mut book = book.lock().unwrap();
    let (moments, number) = book.entry(name.to_owned()).or_default();
    *moments += 1;
    *number = ended.unwrap_or(*number);
}

/// Adds, replaces and removes elements that only this thread changes.
fn change(keyspace: &Arc<Keyspace>, book: &Mutex<Book>, thread: usize) {
    let mut local = caller(keyspace);
    for call in 0..CALLS {
        let number = thread_rng().gen_range(0..FIRST / 2) * 2 + thread;
        let name = if call == 1 { format!("e{}", FIRST + thread) } else { format!("e{number}") };
        let removes = call != 1 && thread_rng().gen_range(0..2) == 0;
        record(book, &name, None);
        if removes {
            local.run(&[b"VECTOR.DEL", KEY, name.as_bytes()]);
        } else {
            add(&mut local, &name, number + call);
        }
        record(book, &name, Some((!removes).then_some(number + call)));
    }
}

/// Searches, and checks that elements that no call has changed during the search are found if they exist.
fn search(keyspace: &Arc<Keyspace>, book: &Mutex<Book>) {
    let mut local = caller(keyspace);
    for _ in 0..3 {
        let before = book.lock().unwrap().clone();
        let found = found(&mut local);
        let after = book.lock().unwrap().clone();
        for (name, &(moments, number)) in &before {
            if moments % 2 == 0 && after[name].0 == moments {
                assert_eq!(found.contains(name), number.is_some(), "{name}");
            }
        }
    }
}

/// What a thread does to the keyspace and to the record of its elements.
type Work = dyn Fn(&Arc<Keyspace>, &Mutex<Book>) + Send;

/// Concurrently runs threads that change an index, threads that link, and a thread that searches.
fn check(kind: &'static str) {
    let run = move || {
        let (keyspace, _) = keyspace();
        let mut local = caller(&keyspace);
        let create = format!("VECTOR.CREATE key DIM {DIM} DISTANCE L2 {kind}");
        local.run(&create.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        let book = Arc::new(Mutex::new(Book::new()));
        for number in 0..FIRST {
            let name = format!("e{number}");
            add(&mut local, &name, number);
            if number == FIRST / 2 {
                // Links some of the elements, which are too few for lists.
                link(&keyspace, FIRST);
            }
            book.lock().unwrap().insert(name, (0, Some(number)));
        }
        let spawn = |run: Box<Work>| {
            let (keyspace, book) = (Arc::clone(&keyspace), Arc::clone(&book));
            thread::spawn(move || run(&keyspace, &book))
        };
        let threads = [
            spawn(Box::new(|keyspace, book| change(keyspace, book, 0))),
            spawn(Box::new(|keyspace, book| change(keyspace, book, 1))),
            spawn(Box::new(|keyspace, _| link(keyspace, 4))),
            spawn(Box::new(|keyspace, _| link(keyspace, 4))),
            spawn(Box::new(search)),
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        keyspace.check_invariants();
        let book = book.lock().unwrap();
        let there = book.iter().filter(|(_, (_, number))| number.is_some()).map(|(name, _)| name.clone());
        let there: BTreeSet<String> = there.collect();
        assert_eq!(found(&mut local), there, "acknowledged elements are found");
        link(&keyspace, 64);
        keyspace.check_invariants();
        assert_eq!(found(&mut local), there, "and when all is linked, too");
        let info = String::from_utf8(local.run(&[b"VECTOR.INFO", KEY])).unwrap();
        assert!(info.contains("pending\r\n:0\r\n"), "{info}");
        if info.contains("IVF") {
            // Each vector is in the list with the nearest centroid, so a search for the vector in one list finds an
            // element at the same distance as itself.
            for number in book.values().filter_map(|(_, number)| *number) {
                let query = vector(number);
                let mut words = vec![&b"VECTOR.SEARCH"[..], KEY, b"FP32", &query];
                words.extend([&b"K"[..], b"1", b"NPROBE", b"1", b"WITHSCORES"]);
                let reply = String::from_utf8(local.run(&words)).unwrap();
                assert!(reply.ends_with("\r\n$1\r\n0\r\n"), "{number}: {reply}");
            }
        }
    };
    shuttle::check_random(run, SCHEDULES);
}

#[test]
fn graphs_are_repaired_during_calls() {
    check("TYPE HNSW M 4 EF_CONSTRUCTION 20");
}

#[test]
fn lists_are_built_during_calls() {
    check("TYPE IVF NLIST 2 NPROBE 2");
}
