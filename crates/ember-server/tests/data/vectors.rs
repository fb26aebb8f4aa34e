//! Vectors that are linked beside commands: they are found from their answer on, whatever goes on meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ember_testkit::{OnDrop, Random, RawClient, Server, Value, wait_until};

use crate::blocking::shown;
use crate::{MODES, start};

/// So many that sets of a few thousand are not looked at as a whole.
const DIM: usize = 96;

fn blob(random: &mut Random) -> Vec<u8> {
    (0..DIM).flat_map(|_| (random.below(2001) as f32 / 1000.0 - 1.0).to_le_bytes()).collect()
}

fn vadd(client: &mut RawClient, name: &str, blob: &[u8]) -> Value {
    let words: [&[u8]; 9] = [b"VADD", b"v", b"FP32", blob, name.as_bytes(), b"M", b"8", b"EF", b"40"];
    client.command(&words)
}

/// How many vectors of a set are not linked yet: the last that VECTOR.INFO says. None of one that is missing.
fn pending(client: &mut RawClient) -> usize {
    let info = shown(&client.run("VECTOR.INFO v"));
    info.rsplit([':', ' ', ')', '\n']).find_map(|word| word.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn an_element_is_found_from_its_answer_on() {
    for mode in MODES {
        let server = start(mode);
        let (mut one, mut other) = (server.client(), server.client());
        let mut random = Random::new(7);
        for id in 0..3500 {
            let (name, blob) = (format!("e{id}"), blob(&mut random));
            assert_eq!(vadd(&mut one, &name, &blob), Value::Integer(1), "{mode:?}");
            // Behind the first thousands a search goes through the graph.
            if id % 100 == 0 || id > 3300 {
                let found = other.command(&[&b"VSIM"[..], b"v", b"FP32", &blob, b"COUNT", b"1"]);
                assert_eq!(shown(&found).split('"').nth(1), Some(&*name), "{mode:?}: {found:?}");
            }
            if id % 7 == 6 {
                assert_eq!(one.run(&format!("VREM v e{}", id - 3)), Value::Integer(1));
            }
        }
        assert!(shown(&one.run("VLINKS v e3499")).contains("\"e"));
        assert_eq!(one.run("VCARD v"), Value::Integer(3000));
        wait_until("all vectors are linked", || pending(&mut one) == 0);
    }
}

#[test]
fn more_than_can_be_linked_at_once_waits_and_is_answered() {
    for mode in MODES {
        let server = start(mode);
        let (mut client, mut reader) = (server.client(), server.client());
        let stops = AtomicBool::new(false);
        thread::scope(|scope| {
            // Whatever fails, the reader is told to stop.
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
        // What goes away while it is linked takes its links with it.
        assert_eq!(client.run("RENAME v w"), Value::Simple(b"OK".to_vec()));
        assert_eq!(client.run("VCARD w"), Value::Integer(4001));
        assert_eq!(client.run("DEL w"), Value::Integer(1));
    }
}

#[test]
fn what_is_not_linked_yet_is_saved() {
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
        let Value::Array(replies) = client.run("EXEC") else { panic!("all are answered") };
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

/// A number that VECTOR.INFO says of an index.
fn told(client: &mut RawClient, name: &str) -> i64 {
    let Value::Array(info) = client.run("VECTOR.INFO v") else { panic!("there is an index") };
    let at = info.iter().position(|value| *value == Value::Bulk(name.as_bytes().to_vec())).unwrap();
    let Value::Integer(number) = info[at + 1] else { panic!("{name} is a number") };
    number
}

#[test]
fn lists_are_made_beside_commands() {
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
        assert_eq!(told(&mut client, "is_trained"), 0);
        for id in 0..4000 {
            add(&mut client, &mut blobs);
            if id % 50 == 0 {
                finds(&mut client, &blobs, id);
            }
        }
        wait_until("the lists are made", || told(&mut client, "is_trained") == 1);
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
        assert_eq!((told(&mut client, "is_trained"), told(&mut client, "vectors")), (1, 4000));
        (1000..5000).step_by(100).for_each(|id| finds(&mut client, &blobs, id));
    }
}
