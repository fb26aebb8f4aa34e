//! String commands, by their reply bytes.

use ember_protocol::Protocol;
use emberkv_core::local::Local;

#[test]
fn get_returns_what_set_stored() {
    let mut local = Local::new(Protocol::Resp2);
    assert_eq!(local.run(&[b"SET", b"hello", b"world"]), b"+OK\r\n");
    assert_eq!(local.run(&[b"GET", b"hello"]), b"$5\r\nworld\r\n");
    assert_eq!(local.run(&[b"GET", b"other"]), b"$-1\r\n");
    local.keyspace.check_invariants();
}
