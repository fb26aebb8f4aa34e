//! Writers that record every write while servers change their roles, and check that no write is lost or applied twice.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ember_testkit::{OnDrop, RawClient, Value};

/// The number of writing connections.
const WRITERS: usize = 4;

/// The writes that servers have acknowledged.
#[derive(Debug, Default)]
pub struct Written {
    /// The number of acknowledged writes of each writer.
    by_writer: Vec<u64>,
}

/// Runs `act` while writers count, push to lists and add to streams, all three in one transaction, on the first of
/// `servers` that accepts the transaction. If a server refuses because it is a replica, the writer continues with the
/// next one.
///
/// # Panics
/// Panics if a connection breaks, or a server replies with anything else.
pub fn write_while(servers: &[SocketAddr], act: impl FnOnce()) -> Written {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ended = OnDrop(|| is_over.store(true, Ordering::SeqCst));
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let is_over = &is_over;
                scope.spawn(move || write(servers, number, is_over))
            })
            .collect();
        act();
        is_over.store(true, Ordering::SeqCst);
        let by_writer = writers.into_iter().map(|writer| writer.join().expect("the writer does not panic"));
        Written { by_writer: by_writer.collect() }
    })
}

fn write(servers: &[SocketAddr], number: usize, is_over: &AtomicBool) -> u64 {
    let connect = |address: &SocketAddr| RawClient::connect(*address).expect("the server listens");
    let mut clients: Vec<_> = servers.iter().map(connect).collect();
    let (list, stream) = (format!("books:list:{number}"), format!("books:stream:{number}"));
    let (mut at, mut written) = (0, 0);
    while !is_over.load(Ordering::SeqCst) {
        let (value, id) = (written.to_string(), format!("{}-1", written + 1));
        let calls = [
            vec!["MULTI"],
            vec!["INCR", "books:counter"],
            vec!["RPUSH", &list, &value],
            vec!["XADD", &stream, &id, "at", &value],
            vec!["EXEC"],
        ];
        let replies = clients[at].pipeline(&calls).expect("the server replies");
        match replies.last() {
            Some(Value::Array(_)) => written += 1,
            Some(answer) => {
                let text = answer.text();
                assert!(text.contains("READONLY") || text.starts_with("EXECABORT"), "{text}");
                at = (at + 1) % clients.len();
            }
            None => panic!("a transaction has a reply"),
        }
    }
    written
}

impl Written {
    /// Returns the number of all writes.
    pub fn count(&self) -> u64 {
        self.by_writer.iter().sum()
    }

    /// Checks that a server has applied all writes, each once and in order.
    ///
    /// # Panics
    /// Panics if a write is missing, duplicated or out of order.
    pub fn check(&self, client: &mut RawClient) {
        assert_eq!(client.run("GET books:counter").text(), self.count().to_string());
        for (number, &count) in self.by_writer.iter().enumerate() {
            let list = client.run(&format!("LRANGE books:list:{number} 0 -1"));
            let list: Vec<String> =
                list.elements().unwrap_or_default().iter().map(|value| value.text()).collect();
            let expected: Vec<String> = (0..count).map(|at| at.to_string()).collect();
            assert!(list == expected, "list {number} has {} elements of {count}", list.len());
            let stream = client.run(&format!("XRANGE books:stream:{number} - +"));
            let ids: Vec<String> = stream
                .elements()
                .unwrap_or_default()
                .iter()
                .filter_map(|entry| Some(entry.elements()?.first()?.text()))
                .collect();
            let expected: Vec<String> = (0..count).map(|at| format!("{}-1", at + 1)).collect();
            assert!(ids == expected, "stream {number} has {} entries of {count}", ids.len());
        }
    }
}
