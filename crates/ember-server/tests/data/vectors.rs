//! Vectors that are linked while commands run: searches find them as soon as they are acknowledged, under any load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ember_testkit::{Directory, OnDrop, Random, RawClient, Server, Value, wait_until};

use crate::blocking::shown;
use crate::{MODES, start};

/// A number of dimensions so high that sets of a few thousand vectors are not searched exactly.
const DIM: usize = 96;

fn blob(random: &mut Random) -> Vec<u8> {
    (0..DIM).flat_map(|_| (random.below(2001) as f32 / 1000.0 - 1.0).to_le_bytes()).collect()
}

fn vadd(client: &mut RawClient, name: &str, blob: &[u8]) -> Value {
    let words: [&[u8]; 9] = [b"VADD", b"v", b"FP32", blob, name.as_bytes(), b"M", b"8", b"EF", b"40"];
    client.command(&words)
}

/// Returns the number of unlinked vectors of a set, which is the last field of VECTOR.INFO; 0 if the set does not
/// exist.
fn pending(client: &mut RawClient) -> usize {
    let info = shown(&client.run("VECTOR.INFO v"));
    info.rsplit([':', ' ', ')', '\n']).find_map(|word| word.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn an_element_is_found_as_soon_as_vadd_has_replied() {
    for mode in MODES {
        let server = start(mode);
        let (mut one, mut other) = (server.client(), server.client());
        let mut random = Random::new(7);
        for id in 0..3500 {
            let (name, blob) = (format!("e{id}"), blob(&mut random));
            assert_eq!(vadd(&mut one, &name, &blob), Value::Integer(1), "{mode:?}");
            // After the first few thousand vectors, a search uses the graph.
            if id % 100 == 0 || id > 3300 {
                let found = other.command(&[&b"VSIM"[..], b"v", b"FP32", &blob, b"COUNT", b"1"]);
                assert_eq!(shown(&found).split('"').nth(1), Some(&*name), "{mode:?}: {found:?}");
            }
            if id % 7 == 6 {
                assert_eq!(one.run(&format!("VREM v e{}", id - 3)), Value::Integer(1));
            }
        }
        assert_eq!(one.run("VCARD v"), Value::Integer(3000));
        wait_until("all vectors are linked", || pending(&mut one) == 0);
        assert!(shown(&one.run("VLINKS v e3499")).contains("\"e"));
    }
}

#[test]
fn additions_beyond_the_linking_backlog_wait_and_are_answered() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut reader) = (server.client(), server.client());
        let stops = AtomicBool::new(false);
        thread::scope(|scope| {
            // Stops the reader, even if the test fails.
            let _stop = OnDrop(|| stops.store(true, Ordering::Relaxed));
            scope.spawn(|| {
                while !stops.load(Ordering::Relaxed) {
                    let left = pending(&mut reader);
                    assert!(left <= 2048, "{left} vectors wait to be linked");
                }
            });
            let mut random = Random::new(3);
            vadd(&mut client, "first", &blob(&mut random));
            for _ in 0..4 {
                let commands: Vec<Vec<Vec<u8>>> = (0..1000)
                    .map(|_| {
                        let name = random.next_u64().to_string().into_bytes();
                        vec![b"VADD".to_vec(), b"v".to_vec(), b"FP32".to_vec(), blob(&mut random), name]
                            .into_iter()
                            .chain([&b"M"[..], b"8", b"EF", b"40"].map(<[u8]>::to_vec))
                            .collect()
                    })
                    .collect();
                let replies = client.pipeline(&commands).unwrap();
                assert!(replies.iter().all(|reply| *reply == Value::Integer(1)), "{mode:?}");
            }
        });
        assert_eq!(client.run("VCARD v"), Value::Integer(4001));
        // A set that is removed while it is linked loses its links, too.
        assert_eq!(client.run("RENAME v w"), Value::Simple(b"OK".to_vec()));
        assert_eq!(client.run("VCARD w"), Value::Integer(4001));
        assert_eq!(client.run("DEL w"), Value::Integer(1));
    }
}

/// Returns one of the two vectors that an element can have.
fn vector_of(id: u64, is_second: bool) -> Vec<f32> {
    let mut random = Random::new(id * 2 + u64::from(is_second) + 1);
    (0..DIM).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect()
}

fn blob_of(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn score(a: &[f32], b: &[f32]) -> f64 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    (1.0 + product(a, b) / (product(a, a) * product(b, b)).sqrt()) / 2.0
}

/// Runs a search and returns its elements and scores, after checking that each score belongs to a vector that the
/// element can have.
fn found(client: &mut RawClient, query: &[f32], count: &str) -> Vec<(u64, f64)> {
    let blob = blob_of(query);
    let words = [&b"VSIM"[..], b"v", b"FP32", &blob, b"COUNT", count.as_bytes(), b"WITHSCORES"];
    let reply = client.command(&words);
    let reply: Vec<String> =
        reply.elements().expect("a search is answered").iter().map(Value::text).collect();
    let pairs = reply.as_chunks::<2>().0.iter();
    let hits: Vec<(u64, f64)> =
        pairs.map(|[name, score]| (name.parse().unwrap(), score.parse().unwrap())).collect();
    for &(id, score_found) in &hits {
        let is_score = |is_second| (score(query, &vector_of(id, is_second)) - score_found).abs() < 1e-4;
        assert!(is_score(false) || is_score(true), "{id} is not at the distance {score_found}");
    }
    hits
}

#[test]
fn results_during_changes_have_correct_distances() {
    let seconds = std::env::var("STRESS_SECONDS").map_or(2, |seconds| seconds.parse().unwrap());
    for mode in MODES {
        let server = start(mode);
        let stops = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stop = OnDrop(|| stops.store(true, Ordering::Relaxed));
            let mut threads = Vec::new();
            for writer in 0..2u64 {
                let (server, stops) = (&server, &stops);
                threads.push(scope.spawn(move || {
                    let (mut client, mut random) = (server.client(), Random::new(writer + 1));
                    let mut changes = 0;
                    // Only this thread changes these elements. More elements are added than removed until there are
                    // thousands.
                    while !stops.load(Ordering::Relaxed) {
                        let id = writer * 10_000 + random.below(3000) as u64;
                        let (is_second, name) = (random.below(2) == 1, id.to_string());
                        let vector = vector_of(id, is_second);
                        let blob = blob_of(&vector);
                        let is_removed = random.below(3) == 0;
                        if is_removed {
                            client.command(&[&b"VREM"[..], b"v", name.as_bytes()]);
                        } else {
                            let options = [b"NOQUANT", &b"M"[..], b"8", b"EF", b"40"];
                            let words =
                                [&[&b"VADD"[..], b"v", b"FP32", &blob, name.as_bytes()], &options[..]];
                            client.command(&words.concat());
                        }
                        let hits = found(&mut client, &vector, "10");
                        let hit = hits.iter().find(|(other, _)| *other == id);
                        match hit {
                            Some(_) if is_removed => panic!("{mode:?}: {id} is removed: {hits:?}"),
                            Some((_, score)) => assert!(*score > 0.999, "{mode:?}: {id} was replaced"),
                            // The element must be found while it waits to be linked, and nearly always afterwards.
                            None => changes += u64::from(!is_removed) << 32,
                        }
                        changes += 1;
                    }
                    changes
                }));
            }
            for searcher in 0..2u64 {
                let (server, stops) = (&server, &stops);
                scope.spawn(move || {
                    let (mut client, mut random) = (server.client(), Random::new(searcher + 100));
                    while !stops.load(Ordering::Relaxed) {
                        let query = vector_of(random.next_u64() >> 24, false);
                        found(&mut client, &query, "50");
                    }
                });
            }
            let mut client = server.client();
            let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
            while std::time::Instant::now() < end {
                found(&mut client, &vector_of(5, true), "1000");
            }
            stops.store(true, Ordering::Relaxed);
            for thread in threads {
                let counted = thread.join().unwrap();
                let (changes, missed) = (counted & 0xFFFF_FFFF, counted >> 32);
                assert!(missed * 100 <= changes, "{mode:?}: {missed} of {changes} were not found");
            }
        });
        let mut client = server.client();
        wait_until("all vectors are linked", || pending(&mut client) == 0);
    }
}

#[test]
fn unlinked_elements_are_saved() {
    for mode in MODES {
        let arguments = [mode, &["--enable-debug-command", "yes"]].concat();
        let server = Server::start(env!("CARGO_BIN_EXE_ember-server"), &arguments);
        let mut client = server.client();
        let mut random = Random::new(11);
        client.run("MULTI");
        for id in 0..300 {
            vadd(&mut client, &format!("e{id}"), &blob(&mut random));
        }
        client.run("COPY v copy");
        let Value::Array(replies) = client.run("EXEC") else { panic!("all calls are answered") };
        assert_eq!(replies.len(), 301);
        assert_eq!(client.run("DEBUG RELOAD"), Value::Simple(b"OK".to_vec()));
        for key in ["v", "copy"] {
            assert_eq!(client.run(&format!("VCARD {key}")), Value::Integer(300));
            let found = client.run(&format!("VSIM {key} ELE e299 COUNT 1"));
            assert_eq!(shown(&found).split('"').nth(1), Some("e299"));
        }
        assert_eq!(pending(&mut client), 0);
    }
}

/// Returns a number in the VECTOR.INFO of an index.
fn info_number(client: &mut RawClient, name: &str) -> i64 {
    let Value::Array(info) = client.run("VECTOR.INFO v") else { panic!("the index exists") };
    let at = info.iter().position(|value| *value == Value::Bulk(name.as_bytes().to_vec())).unwrap();
    let Value::Integer(number) = info[at + 1] else { panic!("{name} is a number") };
    number
}

#[test]
fn lists_are_built_while_commands_run() {
    for mode in MODES {
        let arguments = [mode, &["--enable-debug-command", "yes"]].concat();
        let server = Server::start(env!("CARGO_BIN_EXE_ember-server"), &arguments);
        let mut client = server.client();
        let mut random = Random::new(19);
        client.run(&format!("VECTOR.CREATE v DIM {DIM} TYPE IVF NLIST 16 NPROBE 2 QUANT Q8"));
        let mut blobs = Vec::new();
        let mut add = |client: &mut RawClient, blobs: &mut Vec<Vec<u8>>| {
            let name = format!("e{}", blobs.len());
            blobs.push(blob(&mut random));
            let words: [&[u8]; 4] = [b"VECTOR.ADD", b"v", name.as_bytes(), &blobs[blobs.len() - 1]];
            assert_eq!(client.command(&words), Value::Integer(1));
        };
        let finds = |client: &mut RawClient, blobs: &[Vec<u8>], id: usize| {
            let words: [&[u8]; 5] = [b"VECTOR.SEARCH", b"v", &blobs[id], b"K", b"1"];
            let found = shown(&client.command(&words));
            assert_eq!(found.split('"').nth(1), Some(&*format!("e{id}")), "{mode:?}: {found}");
        };
        assert_eq!(info_number(&mut client, "is_trained"), 0);
        for id in 0..4000 {
            add(&mut client, &mut blobs);
            if id % 50 == 0 {
                finds(&mut client, &blobs, id);
            }
        }
        wait_until("the lists are built", || info_number(&mut client, "is_trained") == 1);
        wait_until("all vectors are in lists", || pending(&mut client) == 0);
        assert_eq!(client.run("VECTOR.REINDEX v BACKGROUND"), Value::Simple(b"OK".to_vec()));
        for id in 4000..5000 {
            assert_eq!(client.run(&format!("VECTOR.DEL v e{}", id - 4000)), Value::Integer(1));
            add(&mut client, &mut blobs);
            if id % 20 == 0 {
                finds(&mut client, &blobs, id);
                finds(&mut client, &blobs, id - 1500);
            }
        }
        assert_eq!(client.run("DEBUG RELOAD"), Value::Simple(b"OK".to_vec()));
        assert_eq!((info_number(&mut client, "is_trained"), info_number(&mut client, "vectors")), (1, 4000));
        (1000..5000).step_by(100).for_each(|id| finds(&mut client, &blobs, id));
    }
}

#[test]
fn lists_and_graphs_are_loaded_from_files() {
    for mode in MODES {
        // With a preamble, a rewritten file contains whole indexes; otherwise it contains commands.
        for preamble in ["yes", "no"] {
            let directory = Directory::new("vectors");
            let vectors: Vec<Vec<f32>> = (0..800).map(|id| vector_of(id, false)).collect();
            // Each server is killed, and the next one starts with its files.
            for (round, all) in [0, 400, 600, 800].into_iter().enumerate() {
                let server = Server::builder(env!("CARGO_BIN_EXE_ember-server"))
                    .arguments(mode)
                    .arguments(&["--appendonly", "yes", "--appendfsync", "always"])
                    .arguments(&["--aof-use-rdb-preamble", preamble])
                    .directory(&directory.0)
                    .start();
                let mut client = server.client();
                if round == 0 {
                    client.run(&format!("VECTOR.CREATE v DIM {DIM} TYPE IVF NLIST 8 NPROBE 8"));
                } else {
                    wait_until("the lists are built", || info_number(&mut client, "is_trained") == 1);
                    assert_eq!(
                        info_number(&mut client, "vectors"),
                        all as i64 - 50,
                        "{mode:?} {preamble} {round}"
                    );
                    assert_eq!(client.run("VCARD g"), Value::Integer(all as i64 - 50));
                }
                for id in (50..all).step_by(37) {
                    for key in ["v", "g"] {
                        let blob = blob_of(&vectors[id]);
                        let words = [&b"VSIM"[..], key.as_bytes(), b"FP32", &blob, b"COUNT", b"1"];
                        let found = shown(&client.command(&words));
                        assert_eq!(found.split('"').nth(1), Some(&*id.to_string()), "{mode:?} {preamble}");
                    }
                }
                for (id, vector) in
                    vectors.iter().enumerate().skip(all).take(if round == 0 { 400 } else { 200 })
                {
                    let (name, blob) = (id.to_string(), blob_of(vector));
                    let add: [&[u8]; 4] = [b"VECTOR.ADD", b"v", name.as_bytes(), &blob];
                    assert_eq!(client.command(&add), Value::Integer(1));
                    let add = [&b"VADD"[..], b"g", b"FP32", &blob, name.as_bytes(), b"NOQUANT"];
                    assert_eq!(client.command(&add), Value::Integer(1));
                }
                if round == 0 {
                    for id in 0..50 {
                        assert_eq!(client.run(&format!("VECTOR.DEL v {id}")), Value::Integer(1));
                        assert_eq!(client.run(&format!("VREM g {id}")), Value::Integer(1));
                    }
                } else if round == 1 {
                    client.run("BGREWRITEAOF");
                    let is_over = |client: &mut RawClient| {
                        let info = client.run("INFO persistence").text();
                        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
                    };
                    wait_until("the file is rewritten", || is_over(&mut client));
                }
            }
        }
    }
}

#[test]
fn a_snapshot_does_not_block_a_vector_set() {
    for mode in MODES {
        let arguments = [mode, &["--enable-debug-command", "yes"]].concat();
        let server = Server::start(env!("CARGO_BIN_EXE_ember-server"), &arguments);
        let mut client = server.client();
        let mut random = Random::new(23);
        for id in 0..1200 {
            vadd(&mut client, &format!("e{id}"), &blob(&mut random));
        }
        let names = client.run("VRANGE v - +");
        let exact = client.run("VSIM v ELE e500 TRUTH WITHSCORES COUNT 1200");
        // Writing each key takes ten seconds, unless a command needs to change it.
        client.run("CONFIG SET rdb-key-save-delay 10000000");
        assert!(!client.run("BGSAVE").is_error());
        for id in 0..100 {
            assert_eq!(client.run(&format!("VREM v e{id}")), Value::Integer(1), "{mode:?}");
            assert_eq!(vadd(&mut client, &format!("e{}", 600 + id), &blob(&mut random)), Value::Integer(0));
            assert_eq!(vadd(&mut client, &format!("n{id}"), &blob(&mut random)), Value::Integer(1));
        }
        wait_until("all vectors are linked", || pending(&mut client) == 0);
        assert_eq!(client.info("rdb_bgsave_in_progress"), "1", "{mode:?}: no client has waited for it");
        client.run("CONFIG SET rdb-key-save-delay 0");
        wait_until("the snapshot is saved", || client.info("rdb_bgsave_in_progress") == "0");
        assert_eq!(client.info("rdb_last_bgsave_status"), "ok");
        assert_ne!(client.run("VRANGE v - +"), names);
        assert_eq!(client.run("DEBUG RELOAD NOSAVE"), Value::ok());
        assert_eq!(client.run("VRANGE v - +"), names, "the file has the data of its moment");
        assert_eq!(client.run("VSIM v ELE e500 TRUTH WITHSCORES COUNT 1200"), exact);
    }
}

#[test]
fn elements_are_linked_while_an_aof_is_loaded_without_loss() {
    for mode in MODES {
        let directory = Directory::new("vectors-log");
        let start = || {
            let builder = Server::builder(env!("CARGO_BIN_EXE_ember-server")).arguments(mode);
            let builder = builder.arguments(&["--appendonly", "yes", "--appendfsync", "always"]);
            builder.arguments(&["--aof-use-rdb-preamble", "no"]).directory(&directory.0).start()
        };
        let exact = "VSIM v ELE 2900 TRUTH WITHSCORES COUNT 3000";
        let expected = {
            let server = start();
            let mut client = server.client();
            let add = |id: u64, is_second: bool| -> Vec<Vec<u8>> {
                let (blob, name) = (blob_of(&vector_of(id, is_second)), id.to_string());
                let words: [&[u8]; 10] =
                    [b"VADD", b"v", b"FP32", &blob, name.as_bytes(), b"NOQUANT", b"M", b"8", b"EF", b"40"];
                words.map(<[u8]>::to_vec).to_vec()
            };
            let added: Vec<Vec<Vec<u8>>> = (0..3000).map(|id| add(id, false)).collect();
            client.pipeline(&added).unwrap();
            for id in 0..300 {
                assert_eq!(client.run(&format!("VREM v {id}")), Value::Integer(1));
                assert_eq!(client.command(&add(300 + id, true)), Value::Integer(0));
            }
            client.run(exact)
        };
        // The server is killed, and the next server loads all data from commands.
        let server = start();
        let mut client = server.client();
        assert_eq!(client.run(exact), expected, "{mode:?}");
        for is_linked in [false, true] {
            if is_linked {
                wait_until("all vectors are linked", || pending(&mut client) == 0);
            }
            assert_eq!(client.run("VCARD v"), Value::Integer(2700));
            let ids = (300..3000).step_by(23);
            let missed = ids.filter(|&id| {
                let vector = vector_of(id, id < 600);
                found(&mut client, &vector, "1").first().is_none_or(|(first, _)| *first != id)
            });
            assert!(missed.count() <= 1, "{mode:?}: nearly all vectors are found");
        }
    }
}
