//! The bytes of every reply in both protocols, as redis-server 7.0.15 sends them.

use std::io::IoSlice;
use std::sync::Arc;

use ember_protocol::{Mark, Protocol, ProtocolError, Reply, SHARED_LEN_MIN};

#[track_caller]
fn gives(write: impl Fn(&mut Reply), resp2: &str, resp3: &str) {
    for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
        let mut reply = Reply::new(protocol);
        write(&mut reply);
        assert_eq!(String::from_utf8_lossy(&reply.to_vec()), expected, "{protocol:?}");
        assert_eq!(reply.len_bytes(), expected.len());
    }
}

#[track_caller]
fn gives_both(write: impl Fn(&mut Reply), expected: &str) {
    gives(write, expected, expected);
}

fn large(fill: u8) -> Arc<Vec<u8>> {
    Arc::new(vec![fill; SHARED_LEN_MIN])
}

#[test]
fn plain_replies_are_the_same_in_both_protocols() {
    gives_both(Reply::ok, "+OK\r\n");
    gives_both(|reply| reply.simple("QUEUED"), "+QUEUED\r\n");
    gives_both(|reply| reply.bulk(b""), "$0\r\n\r\n");
    gives_both(|reply| reply.bulk(b"Hello World"), "$11\r\nHello World\r\n");
    gives_both(|reply| reply.bulk_integer(-12), "$3\r\n-12\r\n");
    gives_both(|reply| reply.raw(b"+PONG\r\n"), "+PONG\r\n");
    gives_both(|reply| reply.array(0), "*0\r\n");
}

#[test]
fn integers_and_lengths_of_every_width_are_written() {
    for number in [0, 9, 10, 99, 100, 999, 1000, i64::MAX, -1, -100, i64::MIN] {
        gives_both(|reply| reply.integer(number), &format!(":{number}\r\n"));
        gives_both(
            |reply| reply.bulk_integer(number),
            &format!("${}\r\n{number}\r\n", number.to_string().len()),
        );
    }
    for len in [9, 10, 99, 100, 999, 1000, 12345] {
        let value = "x".repeat(len);
        gives_both(|reply| reply.bulk(value.as_bytes()), &format!("${len}\r\n{value}\r\n"));
        gives_both(|reply| reply.array(len), &format!("*{len}\r\n"));
    }
}

#[test]
fn typed_replies_differ_between_the_protocols() {
    gives(Reply::null, "$-1\r\n", "_\r\n");
    gives(Reply::null_array, "*-1\r\n", "_\r\n");
    gives(|reply| reply.map(3), "*6\r\n", "%3\r\n");
    gives(|reply| reply.set(3), "*3\r\n", "~3\r\n");
    gives(|reply| reply.push(2), "*2\r\n", ">2\r\n");
    gives(|reply| reply.boolean(true), ":1\r\n", "#t\r\n");
    gives(|reply| reply.boolean(false), ":0\r\n", "#f\r\n");
    gives(
        |reply| reply.verbatim(b"txt", b"This is a verbatim\nstring"),
        "$25\r\nThis is a verbatim\nstring\r\n",
        "=29\r\ntxt:This is a verbatim\nstring\r\n",
    );
    gives(
        |reply| reply.big_number("1234567999999999999"),
        "$19\r\n1234567999999999999\r\n",
        "(1234567999999999999\r\n",
    );
    gives(
        |reply| {
            if reply.attribute(1) {
                reply.bulk(b"popularity");
                reply.integer(90);
            }
            reply.ok();
        },
        "+OK\r\n",
        "|1\r\n$10\r\npopularity\r\n:90\r\n+OK\r\n",
    );
}

#[test]
fn doubles_have_the_fewest_digits() {
    gives(|reply| reply.double(0.1), "$3\r\n0.1\r\n", ",0.1\r\n");
    gives(|reply| reply.double(3.0), "$1\r\n3\r\n", ",3\r\n");
    gives(|reply| reply.double_text(b"0.10"), "$4\r\n0.10\r\n", ",0.10\r\n");
    gives(|reply| reply.double(1e300), "$6\r\n1e+300\r\n", ",1e+300\r\n");
    gives(|reply| reply.double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n");
    gives(|reply| reply.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    gives(|reply| reply.double(f64::NAN), "$3\r\nnan\r\n", ",nan\r\n");
}

#[test]
fn line_ends_cannot_break_out_of_a_line() {
    gives_both(|reply| reply.error("ERR a\r\nb\nc"), "-ERR a  b c\r\n");
    gives_both(|reply| reply.error("\nERR a\r\n\n"), "-ERR a\r\n");
    gives_both(|reply| reply.error(""), "-\r\n");
    gives_both(|reply| reply.error("\r\n"), "-\r\n");
    gives_both(|reply| reply.simple("a\r\nb"), "+a  b\r\n");
}

#[test]
fn protocol_errors_have_the_texts_of_redis() {
    for (error, text) in [
        (ProtocolError::InvalidMultibulkLength, "invalid multibulk length"),
        (ProtocolError::TooBigMultibulkCount, "too big mbulk count string"),
        (ProtocolError::UnauthenticatedMultibulkLength, "unauthenticated multibulk length"),
        (ProtocolError::ExpectedDollar(b'x'), "expected '$', got 'x'"),
        (ProtocolError::ExpectedDollar(b'\r'), "expected '$', got ' '"),
        (ProtocolError::TooBigBulkCount, "too big bulk count string"),
        (ProtocolError::InvalidBulkLength, "invalid bulk length"),
        (ProtocolError::UnauthenticatedBulkLength, "unauthenticated bulk length"),
        (ProtocolError::TooBigInline, "too big inline request"),
        (ProtocolError::TlsHandshake, "this port does not speak TLS"),
        (ProtocolError::UnbalancedQuotes, "unbalanced quotes in request"),
    ] {
        gives_both(|reply| reply.protocol_error(error), &format!("-ERR Protocol error: {text}\r\n"));
    }
    let mut reply = Reply::default();
    reply.protocol_error(ProtocolError::ExpectedDollar(0xff));
    assert_eq!(reply.to_vec(), b"-ERR Protocol error: expected '$', got '\xff'\r\n");
    assert_eq!(ProtocolError::InvalidBulkLength.to_string(), "Protocol error: invalid bulk length");
}

#[test]
fn hello_switches_the_protocol_within_a_reply() {
    let mut reply = Reply::default();
    reply.null();
    reply.set_protocol(Protocol::Resp3);
    reply.null();
    assert_eq!(reply.to_vec(), b"$-1\r\n_\r\n");
    assert_eq!(reply.protocol(), Protocol::Resp3);
}

#[test]
fn a_header_is_inserted_when_the_count_is_known() {
    gives(
        |reply| {
            reply.ok();
            let outer = reply.mark();
            reply.integer(1);
            let inner = reply.mark();
            reply.bulk(b"a");
            reply.bulk(b"b");
            reply.insert_map(inner, 1);
            let members = reply.mark();
            reply.insert_set(members, 0);
            reply.insert_array(outer, 3);
            let message = reply.mark();
            reply.insert_push(message, 0);
        },
        "+OK\r\n*3\r\n:1\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*0\r\n*0\r\n",
        "+OK\r\n*3\r\n:1\r\n%1\r\n$1\r\na\r\n$1\r\nb\r\n~0\r\n>0\r\n",
    );
}

#[test]
fn large_values_are_shared_and_keep_their_position() {
    let (first, second) = (large(b'a'), large(b'b'));
    let mut reply = Reply::default();
    reply.bulk_shared(&first);
    let mark = reply.mark();
    reply.integer(7);
    reply.bulk_shared(&second);
    reply.bulk_shared(&Arc::new(b"small".to_vec()));
    reply.insert_array(mark, 3);
    assert_eq!(Arc::strong_count(&first), 2);

    let head = format!("${SHARED_LEN_MIN}\r\n");
    let text = |bytes: &Arc<Vec<u8>>| String::from_utf8(bytes.to_vec()).unwrap();
    let expected =
        format!("{head}{}\r\n*3\r\n:7\r\n{head}{}\r\n$5\r\nsmall\r\n", text(&first), text(&second));
    assert_eq!(reply.len_bytes(), expected.len());
    assert_eq!(reply.to_vec(), expected.as_bytes());
    let pieces: Vec<_> = reply.slices(0).collect();
    assert_eq!(pieces.len(), 5);
    assert_eq!(pieces[1].as_ptr(), first.as_ptr(), "the value itself is returned");

    for from in
        [0, 1, head.len(), head.len() + 5, head.len() + SHARED_LEN_MIN, expected.len() - 1, expected.len()]
    {
        let rest: Vec<u8> = reply.slices(from).flatten().copied().collect();
        assert_eq!(rest, expected.as_bytes()[from..]);
        assert!(reply.slices(from).all(|piece| !piece.is_empty()));
    }
    assert_eq!(reply.slices(expected.len() + 10).count(), 0);

    let mut target = [IoSlice::new(b""); 2];
    assert_eq!(reply.io_slices(3, &mut target), 2);
    assert_eq!(target[0].len() + target[1].len(), head.len() - 3 + SHARED_LEN_MIN);

    reply.clear();
    assert!(reply.is_empty());
    assert_eq!((reply.len_bytes(), Arc::strong_count(&first)), (0, 1));
}

#[test]
fn a_reply_that_ends_in_a_shared_segment_is_undone_completely() {
    let value = large(b'v');
    let mut reply = Reply::default();
    reply.ok();
    let mark = reply.mark();
    reply.bulk_shared(&value);
    reply.ok();
    reply.truncate_to(mark);
    assert_eq!(reply.to_vec(), b"+OK\r\n");
    assert_eq!((reply.len_bytes(), Arc::strong_count(&value)), (5, 1));
    reply.truncate_to(Mark::default());
    assert!(reply.is_empty());
}

#[test]
fn a_forwarded_part_keeps_its_segments() {
    let (first, second) = (large(b'a'), large(b'b'));
    let mut other = Reply::default();
    other.bulk_shared(&first);
    let from = other.mark();
    other.integer(1);
    other.bulk_shared(&second);
    let to = other.mark();
    other.ok();

    let mut reply = Reply::default();
    reply.ok();
    reply.append_from(&other, from, to);
    reply.ok();
    let mut expected = b"+OK\r\n:1\r\n".to_vec();
    expected.extend_from_slice(format!("${SHARED_LEN_MIN}\r\n").as_bytes());
    expected.extend_from_slice(&second);
    expected.extend_from_slice(b"\r\n+OK\r\n");
    assert_eq!(reply.to_vec(), expected);
    assert_eq!(reply.len_bytes(), expected.len());
    assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 3));

    let mut all = Reply::default();
    all.append(&other);
    assert_eq!(all.to_vec(), other.to_vec());
}

#[test]
fn clear_frees_excess_memory() {
    let mut reply = Reply::default();
    reply.raw(&vec![0; 4 << 20]);
    reply.clear();
    assert!(reply.memory_bytes() <= 1 << 20);
}

#[test]
fn long_replies_are_appended_in_order() {
    let long = vec![b'x'; 100_000];
    for shares in [false, true] {
        let mut other = Reply::new(Protocol::Resp2);
        other.integer(1);
        other.bulk(&long);
        if shares {
            other.bulk_shared(&Arc::new(long.clone()));
        }
        let mut all = Reply::new(Protocol::Resp2);
        all.ok();
        let expected = [all.to_vec(), other.to_vec(), b":2\r\n".to_vec(), other.to_vec()].concat();
        all.append_all(other.clone());
        all.integer(2);
        all.append_all(other);
        assert_eq!(all.len_bytes(), expected.len());
        assert_eq!(all.to_vec(), expected);
    }
}
