//! Blocking readers of streams: changes that wake them, the consumer of a group that receives an entry, and the ends of
//! their waits.

use std::time::Instant;

use crate::blocking::{read, shown, wait_for_blocked};
use crate::{MODES, start};

const ENTRY: &str = "1) 1) \"s\"\n   2) 1) 1) \"5-1\"\n         2) 1) \"f\"\n            2) \"v\"";

#[test]
fn a_reader_waits_for_entries_added_after_its_call() {
    for mode in MODES {
        let server = start(mode);
        let (mut reader, mut writer) = (server.client(), server.client());
        writer.run("XADD s 1-1 old 1");
        reader.send(b"XREAD BLOCK 0 STREAMS s other $ $\r\n").unwrap();
        wait_for_blocked(&server, 1);
        // Changes without new entries, and keys of other types, leave the reader waiting.
        for line in
            ["XDEL s 1-1", "XGROUP CREATE s g 0", "DEL s", "SET other x", "DEL other", "RPUSH other x"]
        {
            assert!(!writer.run(line).is_error(), "{line}");
        }
        wait_for_blocked(&server, 1);
        writer.run("XADD s 5-1 f v");
        assert_eq!(read(&mut reader), ENTRY, "{mode:?}");
        wait_for_blocked(&server, 0);
    }
}

#[test]
fn every_reader_and_one_consumer_of_each_group_gets_an_entry() {
    for mode in MODES {
        let server = start(mode);
        let mut writer = server.client();
        writer.run("XGROUP CREATE s g $ MKSTREAM");
        let calls = [
            "XREADGROUP GROUP g first BLOCK 0 STREAMS s >",
            "XREAD BLOCK 0 STREAMS s $",
            "XREADGROUP GROUP g second BLOCK 0 STREAMS s >",
            "XREAD BLOCK 0 STREAMS s 0",
        ];
        let mut readers = calls.map(|_| server.client());
        for (number, (reader, call)) in readers.iter_mut().zip(calls).enumerate() {
            reader.send(format!("{call}\r\n").as_bytes()).unwrap();
            wait_for_blocked(&server, number + 1);
        }
        writer.run("XADD s 5-1 f v");
        let [first, second, third, fourth] = &mut readers;
        for reader in [first, second, fourth] {
            assert_eq!(read(reader), ENTRY, "{mode:?}");
        }
        wait_for_blocked(&server, 1);
        assert_eq!(shown(&writer.run("XPENDING s g - + 10 first")).lines().count(), 4);
        writer.run("XADD s 6-1 f v");
        assert_eq!(read(third), ENTRY.replace("5-1", "6-1"));
    }
}

#[test]
fn a_consumer_is_notified_when_its_group_or_stream_is_removed() {
    let no_group = "(error) NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
    let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    let cases = [
        ("XGROUP DESTROY s g", no_group),
        ("DEL s", no_group),
        ("UNLINK s", no_group),
        ("RENAME s t", no_group),
        ("FLUSHALL", no_group),
        ("SET s x", wrong),
    ];
    for mode in MODES {
        let server = start(mode);
        for (line, reply) in cases {
            let (mut reader, mut writer) = (server.client(), server.client());
            writer.run("FLUSHALL");
            writer.run("XGROUP CREATE s g $ MKSTREAM");
            reader.send(b"XREADGROUP GROUP g c BLOCK 0 STREAMS s >\r\nPING\r\n").unwrap();
            wait_for_blocked(&server, 1);
            assert!(!writer.run(line).is_error(), "{line}");
            assert_eq!(read(&mut reader), reply, "{mode:?}: {line}");
            assert_eq!(read(&mut reader), "PONG");
        }
    }
}

#[test]
fn a_blocking_read_times_out_with_null() {
    let server = start(MODES[0]);
    let mut client = server.client();
    client.run("XGROUP CREATE s g $ MKSTREAM");
    for call in ["XREAD BLOCK 50 STREAMS s $", "XREADGROUP GROUP g c BLOCK 50 STREAMS s >"] {
        let begun = Instant::now();
        assert_eq!(shown(&client.run(call)), "(nil)", "{call}");
        assert!(begun.elapsed().as_millis() >= 50, "{call}");
    }
}

#[test]
fn xread_with_plus_waits_for_entries_after_deleted_ones() {
    let server = start(MODES[0]);
    let (mut client, mut other) = (server.client(), server.client());
    client.run("XADD s 1-1 f v");
    client.run("XDEL s 1-1");
    client.send_command(&["XREAD", "BLOCK", "0", "STREAMS", "s", "+"]).unwrap();
    while !other.run("INFO clients").text().contains("blocked_clients:1") {
        std::thread::yield_now();
    }
    other.pipeline(&[["XADD", "s", "2-1", "f", "v"], ["XADD", "s", "3-1", "f", "v"]]).unwrap();
    assert!(shown(&client.read_value().unwrap()).contains("2-1"));
}

#[test]
fn operations_of_groups_do_not_break_a_watch() {
    let server = start(MODES[0]);
    let (mut client, mut other) = (server.client(), server.client());
    other.run("XADD s 1-1 f v");
    other.run("XGROUP CREATE s g 0");
    let is_broken_by =
        |client: &mut ember_testkit::RawClient, other: &mut ember_testkit::RawClient, line: &str| {
            client.run("WATCH s");
            assert!(!other.run(line).is_error(), "{line}");
            client.run("MULTI");
            client.run("PING");
            shown(&client.run("EXEC")) == "(nil)"
        };
    for line in [
        "XREADGROUP GROUP g c STREAMS s >",
        "XCLAIM s g d 0 1-1",
        "XACK s g 1-1",
        "XGROUP SETID s g 0",
        "XSETID s 2-0",
        "XGROUP DESTROY s g",
    ] {
        assert!(!is_broken_by(&mut client, &mut other, line), "{line}");
    }
    for line in ["XADD s 3-1 f v", "XDEL s 3-1", "XTRIM s MAXLEN 0"] {
        assert!(is_broken_by(&mut client, &mut other, line), "{line}");
    }
}
