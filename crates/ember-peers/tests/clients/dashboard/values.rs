//! Views of values: decoded bytes, long JSON, searches in elements, consumer groups, and the URL of the shown key.

use ember_peers::browser::{Browser, key};
use ember_testkit::{RawClient, Value};
use serde_json::json;

use super::{answer, assert_no_errors, choose, click_at_key, confirm, keep_pictures, open, start};

/// `{"name": "alice", "tags": ["a", null], "big": 2^63}` in MessagePack.
const MESSAGE: &[u8] = b"\x83\xa4name\xa5alice\xa4tags\x92\xa1a\xc0\xa3big\xcf\x80\0\0\0\0\0\0\0";

/// `{"packed":[1,2]}`, packed by gzip.
const PACKED: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x2a\x48\x4c\xce\x4e\x4d\x51\xb2\x8a\x36\xd4\x31\
    \x8a\xad\x05\x00\xad\xa5\xd5\xcb\x10\x00\x00\x00";

#[test]
fn bytes_are_shown_decoded_and_in_hexadecimal() {
    let server = start(&[]);
    let mut client = server.client();
    client.command(&[&b"SET"[..], b"message", MESSAGE]);
    client.command(&[&b"SET"[..], b"packed", PACKED]);
    client.command(&[&b"SET"[..], b"cut-off", &PACKED[..PACKED.len() - 12]]);
    client.command(&[&b"SET"[..], b"bytes", &(0..=255).collect::<Vec<u8>>().repeat(20)]);
    client.command(&[&b"HSET"[..], b"hash", b"field", MESSAGE]);
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "5 keys");
    choose(&browser, "message");
    browser.wait_for_text("#content", "MessagePack");
    for text in ["\"name\": \"alice\"", "\"tags\":", "null", "\"big\": 9223372036854775808"] {
        browser.wait_for_text("#value .json", text);
    }
    click_at_key(&browser, "Text");
    browser.wait_for("document.querySelector('#value textarea').value.startsWith('\\\\x83\\\\xa4name')");
    click_at_key(&browser, "Hex");
    browser.wait_for_text("#value .hex", "00000000  83 a4 6e 61 6d 65 a5 61  6c 69 63 65");
    browser.wait_for_text("#value .hex", "..name.alice.tag");
    choose(&browser, "bytes");
    // The chosen view is kept, and only its beginning is created.
    browser.wait_for_text("#value .hex", "00000010  10 11");
    click_at_key(&browser, "More: 1 KiB not shown");
    browser.wait_for_text("#value", "000013f0  f0 f1");
    keep_pictures(&browser, "hexadecimal");
    choose(&browser, "packed");
    click_at_key(&browser, "gzip");
    browser.wait_for_text("#value", "16 B unpacked");
    browser.wait_for_text("#value .json", "\"packed\":");
    choose(&browser, "cut-off");
    browser.wait_for_text("#value", "damaged or cut off");
    choose(&browser, "hash");
    browser.click("#content summary");
    browser.wait_for_text("#content .json", "\"name\": \"alice\"");
    assert_no_errors(&browser);
}

#[test]
fn damaged_message_pack_is_not_decoded() {
    let server = start(&[]);
    let browser = Browser::start();
    open(&browser, &server, "");
    let script = "return import('/dashboard/formats.js').then(({ messagePack }) => {
        const is = (...bytes) => messagePack(Uint8Array.from(bytes)) !== null;
        // Values that are truncated, or have bytes after the end, a false length, an unused first byte, or too deep
        // a nesting; and a scalar.
        const wrong = [[0x82, 0xa1, 0x61], [0x90, 0x00], [0xdd, 0xff, 0xff, 0xff, 0xff], [0x91, 0xc1],
            [...Array(100).fill(0x91), 0x90], [0x05], [0x91, 0xdb, 0xff, 0xff, 0xff, 0xff, 0x61], []];
        return [wrong.map((bytes) => is(...bytes)), is(0x90), is(0x91, 0xd4, 1, 2), is(0x81, 0x01, 0xcb,
            0x3f, 0xf8, 0, 0, 0, 0, 0, 0)];
    })";
    assert_eq!(browser.run(script), json!([vec![false; 8], true, true, true]));
}

#[test]
fn long_json_in_a_string_is_shown_as_a_tree() {
    let server = start(&[]);
    let mut client = server.client();
    let members: Vec<String> =
        (0..20_000).map(|number| format!("{{\"id\":{number},\"ä\":\"{}\"}}", "x".repeat(20))).collect();
    let text = format!("[{}]", members.join(","));
    assert!(text.len() > 800_000);
    client.command(&["SET", "long", &text]);
    client.command(&["SET", "broken", &text[..100_000]]);
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "2 keys");
    choose(&browser, "long");
    browser.wait_for_text("#content", "JSON");
    browser.wait_for_text("#value .json", "20,000 elements");
    browser.wait_for_text("#content", "Read only.");
    choose(&browser, "broken");
    browser.wait_for_text("#content", "the first 64 KiB of them");
    assert_eq!((browser.count("#value .json"), browser.count("#value textarea")), (0, 1));
    assert_no_errors(&browser);
}

#[test]
fn long_json_documents_are_read_in_the_parts_that_are_unfolded() {
    let server = start(&[]);
    let mut client = server.client();
    let elements: Vec<String> =
        (0..12_000).map(|number| format!("{{\"id\":{number},\"text\":\"{}\"}}", "x".repeat(300))).collect();
    let huge = format!("\"{}\"", "y".repeat(4 << 20));
    let text = format!("{{\"list\":[{},{huge}],\"a \\\"b\\\".c\":{{\"d\":1}},\"n\":5}}", elements.join(","));
    assert!(client.command(&["JSON.SET", "document", "$", &text]).text() == "OK");
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "1 key");
    choose(&browser, "document");
    browser.wait_for_text("#content", "Read only.");
    browser.wait_for_text("#value .json", "3 members");
    let unfold = |name: &str, shown: &str| {
        browser.run(&format!(
            "[...document.querySelectorAll('#value details:not([open])')]
                 .find((part) => part.querySelector('summary').innerText.startsWith({})).open = true",
            json!(name)
        ));
        browser.wait_for_text("#value .json", shown);
    };
    unfold("\"a \\\"b\\\".c\":", "\"d\": 1");
    unfold("\"list\":", "12,001 elements");
    unfold("300–399:", "\"id\": 399");
    assert_eq!(
        browser.run("return document.querySelector('#value').innerText.includes('\"id\": 400')"),
        false
    );
    unfold("12000–12000:", "[ 1 element ]");
    unfold("12000:", "too long");
    client.run("JSON.DEL document $.n");
    unfold("\"n\":", "(deleted)");
    keep_pictures(&browser, "long-document");
    assert_no_errors(&browser);
}

#[test]
fn elements_are_searched_by_pattern() {
    let server = start(&[]);
    let mut client = server.client();
    let mut calls: Vec<Vec<String>> = Vec::new();
    let mut call = |line: String| calls.push(line.split(' ').map(str::to_owned).collect());
    for number in 0..3000 {
        call(format!("HSET hash field:{number} v"));
        call(format!("RPUSH list item:{number}"));
        call(format!("SADD set member:{number}"));
        call(format!("ZADD zset {number} member:{number}"));
        call(format!("XADD stream 1-{} kind event:{number}", number + 1));
    }
    client.pipeline(&calls).unwrap();
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "5 keys");
    for (name, pattern, found) in [
        ("hash", "field:299?", 10),
        ("list", "*:2[5-6]00", 2),
        ("set", "member:77", 1),
        ("zset", "*ber:1?34", 10),
        ("stream", "event:29*", 111),
    ] {
        choose(&browser, name);
        browser.fill("#content [name=elements]", pattern);
        browser.press(key::ENTER);
        browser.wait_for_text("#content caption", "those that match");
        let shown = browser.count("#content table:first-of-type tbody tr");
        assert_eq!(shown, found, "{name} {pattern}");
    }
    // The search stays after a change of an element.
    choose(&browser, "hash");
    browser.fill("#content [name=elements]", "field:12");
    browser.press(key::ENTER);
    browser.wait_for_text("#content caption", "1 of 3,000 elements: those that match");
    click_at_key(&browser, "Edit field:12 v");
    answer(&browser, "value", "other");
    confirm(&browser);
    browser.wait_for_text("#content tbody", "other");
    browser.wait_for_text("#content caption", "1 of 3,000 elements: those that match");
    browser.fill("#content [name=elements]", "nothing");
    browser.press(key::ENTER);
    browser.wait_for_text("#content tbody", "No element matches.");
    let script = "return Promise.all([import('/dashboard/glob.js'), import('/dashboard/bytes.js')]).then(
        ([{ matches }, { Bytes }]) => [['abc', 'a*c'], ['abc', '*b'], ['a*c', 'a\\\\*c'], ['abc', 'a\\\\*c'],
            ['x', '[^a-w]'], ['', '*'], ['b', '[c-a]'], ['ab', 'a'], ['aXbXc', '*X*X*']].map(([text, pattern]) =>
                matches(Bytes.of(text), pattern)))";
    let expected = json!([true, false, true, false, true, true, true, false, true]);
    assert_eq!(browser.run(script), expected);
    assert_no_errors(&browser);
}

/// Returns the number of pending entries of a group.
fn pending(client: &mut RawClient) -> i64 {
    client.run("XPENDING stream readers").elements().unwrap()[0].integer().unwrap()
}

#[test]
fn pending_entries_of_groups_are_shown_acknowledged_and_claimed() {
    let server = start(&[]);
    let mut client = server.client();
    for number in 1..=150 {
        client.run(&format!("XADD stream 1-{number} n {number}"));
    }
    client.run("XGROUP CREATE stream readers 0");
    client.run("XREADGROUP GROUP readers alice COUNT 120 STREAMS stream >");
    client.run("XREADGROUP GROUP readers bob COUNT 5 STREAMS stream >");
    client.run("ACL SETUSER reader on >pass ~* +@read");
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "1 key");
    choose(&browser, "stream");
    browser.wait_for_text("#groups", "125");
    click_at_key(&browser, "Open group readers");
    browser.wait_for_text("#group", "Consumers of readers");
    browser.wait_for("document.querySelectorAll('#pending tbody tr').length === 100");
    browser.click_button("//*[@id='pending']", "More");
    browser.wait_for("document.querySelectorAll('#pending tbody tr').length === 125");
    click_at_key(&browser, "Ack 1-3");
    browser.wait_for_text("#status", "1 entry was acknowledged.");
    assert_eq!(pending(&mut client), 124);
    click_at_key(&browser, "Pending of bob");
    browser.wait_for("document.querySelectorAll('#pending tbody tr').length === 5");
    keep_pictures(&browser, "groups");
    click_at_key(&browser, "Claim 1-121");
    answer(&browser, "consumer", "carol");
    confirm(&browser);
    browser.wait_for("document.querySelectorAll('#pending tbody tr').length === 4");
    browser.wait_for_text("#group", "carol");
    click_at_key(&browser, "Ack all 4 shown entries");
    confirm(&browser);
    browser.wait_for_text("#pending", "There are none.");
    assert_eq!(pending(&mut client), 120);
    click_at_key(&browser, "Delete bob");
    confirm(&browser);
    browser.wait_for_text("#status", "The consumer was deleted, with 0 pending entries.");
    click_at_key(&browser, "New group");
    answer(&browser, "name", "others");
    confirm(&browser);
    browser.wait_for_text("#groups tbody", "others");
    click_at_key(&browser, "Set ID of group others");
    answer(&browser, "id", "1-7");
    confirm(&browser);
    browser.wait_for_text("#groups tbody", "1-7");
    click_at_key(&browser, "Delete group others");
    confirm(&browser);
    browser.wait_for("!document.querySelector('#groups tbody').innerText.includes('others')");
    assert_eq!(client.run("XINFO GROUPS stream").elements().unwrap().len(), 1);
    // Without rights there are no buttons for changes.
    let texts = browser.run(
        "return import('/dashboard/api.js').then(async ({ logIn }) => { await logIn('reader', 'pass'); return 1; })",
    );
    assert_eq!(texts, 1);
    click_at_key(&browser, "Refresh");
    browser.wait_for_text("#content", "Read only.");
    click_at_key(&browser, "Open group readers");
    browser.wait_for_text("#pending", "Pending entries of readers");
    let buttons = browser
        .run("return [...document.querySelectorAll('#groups button')].map((button) => button.innerText)");
    assert_eq!(buttons, json!(["Open", "Pending", "Pending", "More"]));
    assert_no_errors(&browser);
}

#[test]
fn a_reload_shows_the_same_search_and_key() {
    let server = start(&[]);
    let mut client = server.client();
    client.run("SELECT 2");
    client.command(&[&b"SADD"[..], b"user:\xff&=\\ ?", b"member"]);
    for line in ["SET user:1 x", "SET other x", "SADD user:set member"] {
        client.run(line);
    }
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "Database 0 has no keys.");
    browser.fill("[name=database]", "2");
    browser.fill("[name=pattern]", "user:*");
    browser.run("document.querySelector('[name=type]').value = 'set'");
    browser.click("form[role=search] [type=submit]");
    browser.wait_for("document.querySelector('#found').innerText === '2 keys'");
    choose(&browser, "user:\\xff&=\\\\ ?");
    browser.run("location.reload()");
    browser.wait_for("document.querySelector('#found')?.innerText === '2 keys'");
    browser.wait_for_text("#key h2", "user:\\xff&=\\\\ ?");
    browser.wait_for_text("#content", "member");
    let inputs = browser.run(
        "return ['pattern', 'type', 'database'].map((name) => document.querySelector(`[name=${name}]`).value)",
    );
    assert_eq!(inputs, json!(["user:*", "set", "2"]));
    // Opens another view and returns, then opens a URL with an invalid key.
    browser.click_button("//nav", "Clients");
    browser.wait_for_text("#clients-list", "client");
    browser.run("history.back()");
    browser.wait_for_text("#key h2", "user:\\xff&=\\\\ ?");
    browser.run("location.hash = '#keys?type=nonsense&key=' + encodeURIComponent('\\\\q')");
    browser.wait_for_text("#key", "Choose a key.");
    browser.wait_for_text("#found", "Database 0 has no keys.");
    assert_eq!(client.run("DBSIZE"), Value::Integer(4));
    assert_no_errors(&browser);
}
