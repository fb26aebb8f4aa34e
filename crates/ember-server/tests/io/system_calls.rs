//! A batch requires one read and one write.

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
        let mut count = || {
            let before = (system_calls(&server, "syscr"), system_calls(&server, "syscw"));
            (0..ROUNDS).for_each(|_| batch());
            (system_calls(&server, "syscr") - before.0, system_calls(&server, "syscw") - before.1)
        };
        // Occasional other work of the server, and a request that a busy machine delivers in two parts, only increase
        // the count.
        let fewest = (0..5).map(|_| count()).min().unwrap_or_default();
        assert_eq!(fewest, (ROUNDS, ROUNDS), "depth {depth}");
    }
}
