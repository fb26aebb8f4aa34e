//! A batch requires one read and one write.

use ember_testkit::becomes_true;

use crate::{alone, encode, start, system_calls};

#[test]
fn a_pipeline_received_at_once_costs_one_read_and_one_write() {
    let _machine = alone();
    const ROUNDS: u64 = 200;
    let server = start(&["--shards", "1"]);
    let mut client = server.client();
    client.run("SET key value");
    for depth in [1, 64, 500] {
        let request = encode(&["GET", "key"]).repeat(depth);
        let mut batch = || {
            client.send(&request).unwrap();
            assert_eq!(client.read_bytes(depth * 11).unwrap().len(), depth * 11);
        };
        (0..10).for_each(|_| batch());
        // The kernel counts a call after the client may have received its bytes, so the counts are read until they settle.
        let counts = || {
            let mut last = (0, 0);
            becomes_true(|| {
                let now = (system_calls(&server, "syscr"), system_calls(&server, "syscw"));
                std::mem::replace(&mut last, now) == now
            });
            last
        };
        let mut count = || {
            let before = counts();
            (0..ROUNDS).for_each(|_| batch());
            let after = counts();
            (after.0 - before.0, after.1 - before.1)
        };
        // Occasional other work of the server, and a request that a busy machine delivers in two parts, only increase
        // the count.
        let fewest = (0..5).map(|_| count()).min().unwrap_or_default();
        assert_eq!(fewest, (ROUNDS, ROUNDS), "depth {depth}");
    }
}
