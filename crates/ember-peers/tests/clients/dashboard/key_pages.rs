//! The pages of keys: finding, showing, editing and watching values.

use ember_peers::browser::{Browser, key};
use ember_testkit::{RawClient, Value, wait_until};
use serde_json::{Value as Json, json};

use super::{answer, assert_no_errors, choose, click_at_key, confirm, fill, log_in, open, picture, start};

#[test]
fn keys_are_grouped_by_the_parts_of_their_names_and_sorted() {
    let server = start(&[]);
    let mut client = server.client();
    for number in 0..25 {
        client.run(&format!("SETEX user:{number}:name {} x", 1000 - number));
        client.run(&format!("SET user:{number}:mail {}", "x".repeat(100 + number)));
    }
    for line in ["SET alone:key x", "SETEX b 50 small", "SETEX a 100 small"] {
        client.run(line);
    }
    client.run(&format!("SET c {}", "x".repeat(5000)));
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "54 keys");
    // A single key is not in a group, and a large group is collapsed until it is clicked.
    let names = || {
        let names = "[...document.querySelectorAll('.keys > li > button')].map((key) => key.title)";
        browser.run(&format!("return {names}"))
    };
    assert_eq!(names(), json!(["a", "alone:key", "b", "c"]));
    assert_eq!(browser.text(".keys summary"), "user: 50 keys");
    assert_eq!(browser.count(".keys details details"), 0);
    browser.click(".keys summary");
    browser.wait_for("document.querySelectorAll('.keys details details').length === 25");
    assert_eq!(browser.text(".keys details details summary"), "0: 2 keys");
    choose(&browser, "user:7:mail");
    browser.click_button("//*[@class='orders']", "size");
    browser.wait_for("document.querySelector('.keys > li > button').title === 'c'");
    assert_eq!(browser.count(".keys details details"), 25, "open groups stay open");
    browser.click_button("//*[@class='orders']", "TTL");
    browser.wait_for("document.querySelector('.keys > li > button').title === 'b'");
    assert_eq!(names().as_array().unwrap()[..2], [json!("b"), json!("a")]);
    browser.keep_picture(&picture("groups"));
    assert_no_errors(&browser);
}

#[test]
fn keys_of_each_type_are_shown_changed_and_deleted() {
    let server = start(&["--concurrent", "yes"]);
    let mut client = server.client();
    fill(&mut client);
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "7 keys");
    browser.fill("[name=pattern]", "a-s*");
    browser.click("form[role=search] [type=submit]");
    browser.wait_for_text("#found", "3 keys");
    browser.fill("[name=pattern]", "*");
    browser.click("form[role=search] [type=submit]");
    browser.wait_for_text("#found", "7 keys");

    strings_are_edited(&browser, &mut client);
    elements_are_edited(&browser, &mut client);
    change_whole_keys(&browser, &mut client);
    browser.keep_picture(&picture("keys"));
    assert_no_errors(&browser);
}

fn strings_are_edited(browser: &Browser, client: &mut RawClient) {
    choose(browser, "a-string");
    browser.wait_for("document.querySelector('#content textarea').value === 'line one\\nline ä'");
    browser.fill("#content textarea", "other\ntext\\x00");
    click_at_key(browser, "Save");
    browser.wait_for_text("#status", "was saved");
    assert_eq!(client.run("GET a-string"), Value::Bulk(b"other\ntext\0".to_vec()));
    assert!(client.run("TTL a-string").integer().unwrap() > 4000, "the key keeps its time to live");
    // Changes of other clients are not overwritten.
    client.run("SET a-string somebody-else");
    browser.fill("#content textarea", "mine");
    click_at_key(browser, "Save");
    browser.wait_for_text("#status", "changed by another client");
    assert_eq!(client.run("GET a-string").text(), "somebody-else");
    browser.fill("#content textarea", "\\q");
    click_at_key(browser, "Save");
    browser.wait_for_text("#status", "A backslash begins");

    choose(browser, "a-binary\\xff");
    browser.wait_for("document.querySelector('#content textarea').value === '\\\\x00\\\\xff\\\\\\\\'");
    browser.fill("#content textarea", "\\xfe\\n");
    click_at_key(browser, "Save");
    browser.wait_for_text("#status", "was saved");
    assert_eq!(client.command(&[&b"GET"[..], b"a-binary\xff"]), Value::Bulk(b"\xfe\n".to_vec()));
}

fn elements_are_edited(browser: &Browser, client: &mut RawClient) {
    choose(browser, "a-list");
    browser.wait_for_text("#content", "4 of 4 elements");
    click_at_key(browser, "Edit 1 one");
    answer(browser, "value", "uno");
    confirm(browser);
    click_at_key(browser, "Delete 3 two");
    confirm(browser);
    browser.wait_for_text("#content", "3 of 3 elements");
    click_at_key(browser, "Add");
    answer(browser, "value", "last");
    confirm(browser);
    browser.wait_for_text("#content", "4 of 4 elements");
    let list: Vec<String> =
        client.run("LRANGE a-list 0 -1").elements().unwrap().iter().map(Value::text).collect();
    assert_eq!(list, ["zero", "uno", "two", "last"]);
    // An element whose position has changed is not edited.
    client.run("LPUSH a-list new");
    click_at_key(browser, "Delete 0 zero");
    browser.click("dialog[open] [type=submit]");
    browser.wait_for_text("dialog[open] [role=alert]", "It has moved");
    browser.press(key::ESCAPE);
    assert_eq!(client.run("LLEN a-list"), Value::Integer(5));

    choose(browser, "a-hash");
    browser.wait_for_text("#content", "49 min");
    click_at_key(browser, "Edit age 30");
    answer(browser, "value", "31");
    confirm(browser);
    browser.wait_for_text("#content", "31");
    assert!(client.run("HTTL a-hash FIELDS 1 age").elements().unwrap()[0].integer().unwrap() > 2000);
    click_at_key(browser, "Add");
    answer(browser, "name", "city");
    answer(browser, "value", "Ulm");
    confirm(browser);
    click_at_key(browser, "Delete name alice");
    confirm(browser);
    browser.wait_for_text("#content", "2 of 2 elements");
    assert_eq!(
        (client.run("HGET a-hash city").text(), client.run("HGET a-hash name")),
        ("Ulm".to_owned(), Value::Null)
    );

    choose(browser, "a-set");
    click_at_key(browser, "Delete red");
    confirm(browser);
    browser.wait_for_text("#content", "1 of 1 element");
    assert_eq!(client.run("SISMEMBER a-set red"), Value::Integer(0));

    choose(browser, "a-zset");
    browser.wait_for_text("#content", "2.5");
    click_at_key(browser, "Edit 0 1 low");
    answer(browser, "score", "7");
    confirm(browser);
    browser.wait_for_text("#content tr:nth-child(2)", "7");
    assert_eq!(client.run("ZSCORE a-zset low").text(), "7");

    choose(browser, "a-stream");
    browser.wait_for_text("#content", "kind: login");
    browser.wait_for_text("#content", "readers");
    click_at_key(browser, "Add");
    answer(browser, "name", "kind");
    answer(browser, "value", "logout");
    confirm(browser);
    browser.wait_for_text("#content", "kind: logout");
    click_at_key(browser, "Delete 1-1 kind: login");
    confirm(browser);
    browser.wait_for_text("#content", "1 of 1 element");
    assert_eq!(client.run("XLEN a-stream"), Value::Integer(1));
}

fn change_whole_keys(browser: &Browser, client: &mut RawClient) {
    choose(browser, "a-zset");
    click_at_key(browser, "Set time to live");
    answer(browser, "seconds", "100");
    confirm(browser);
    browser.wait_for_text("#key .facts", "1 min");
    assert!((1..=100).contains(&client.run("TTL a-zset").integer().unwrap()));
    click_at_key(browser, "Keep for ever");
    browser.wait_for_text("#key .facts", "none");
    assert_eq!(client.run("TTL a-zset"), Value::Integer(-1));
    click_at_key(browser, "Rename");
    answer(browser, "to", "a-list");
    browser.click("dialog[open] [type=submit]");
    browser.wait_for_text("dialog[open] [role=alert]", "A key with this name already exists.");
    answer(browser, "to", "renamed\\x00");
    confirm(browser);
    browser.wait_for_text("#key h2", "renamed\\x00");
    assert_eq!(client.command(&[&b"TYPE"[..], b"renamed\0"]).text(), "zset");
    click_at_key(browser, "Delete");
    confirm(browser);
    browser.wait_for_text("#key", "Choose a key.");
    assert_eq!(client.command(&[&b"EXISTS"[..], b"renamed\0"]), Value::Integer(0));

    browser.click_button("//form[@role='search']", "New key");
    answer(browser, "key", "fresh");
    // Only the fields of the chosen type are shown.
    for (kind, fields) in [
        ("string", json!(["key", "type", "value"])),
        ("zset", json!(["key", "type", "score", "value"])),
        ("hash", json!(["key", "type", "name", "value"])),
    ] {
        browser.run(&format!(
            "const kind = document.querySelector('dialog[open] [name=type]'); kind.value = '{kind}';
             kind.dispatchEvent(new Event('input', {{ bubbles: true }}))"
        ));
        let shown = browser.run(
            "return [...document.querySelectorAll('dialog[open] [name]')]
                 .filter((field) => field.getClientRects().length > 0).map(({ name }) => name)",
        );
        assert_eq!(shown, fields, "{kind}");
    }
    answer(browser, "name", "field");
    answer(browser, "value", "<b>bold</b>");
    confirm(browser);
    browser.wait_for_text("#content", "<b>bold</b>");
    assert_eq!(client.run("HGET fresh field").text(), "<b>bold</b>");
    assert_eq!(browser.count("#content b"), 0, "data are shown as text");
}

#[test]
fn vector_sets_are_shown_with_nearest_neighbors() {
    let server = start(&[]);
    let mut client = server.client();
    for line in [
        "VADD films VALUES 3 1 0 0.2 alien Q8 SETATTR classic",
        "VADD films VALUES 3 0.9 0.1 0.2 aliens Q8 SETATTR {\"year\":1986}",
        "VADD films VALUES 3 0.1 1 0.3 amelie Q8",
        "VECTOR.CREATE lists DIM 2 TYPE IVF NLIST 4 DISTANCE L2",
        "VECTOR.ADD lists one [1,2]",
    ] {
        assert!(!client.run(line).is_error(), "{line}");
    }
    client.command(&[&b"VADD"[..], b"many", b"VALUES", b"2", b"1", b"1", b"\xff\x00"]);
    for number in 0..150 {
        client.run(&format!("VADD many VALUES 2 {number} 5 element:{number:03}"));
    }
    let browser = Browser::start();
    browser.resize(1400, 900);
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "3 keys");
    choose(&browser, "films");
    for text in ["dimensions", "Q8", "COSINE", "HNSW", "memory of the index", "3 of 3 elements", "1986"] {
        browser.wait_for_text("#content", text);
    }
    click_at_key(&browser, "Nearest alien classic");
    browser.wait_for_text("#more", "Nearest to alien");
    browser.wait_for_text("#more tbody tr:nth-child(1)", "aliens");
    browser.wait_for_text("#more tbody tr:nth-child(2)", "amelie");
    assert_eq!(browser.count("#more tbody tr"), 2);
    for (width, is_dark, name) in [
        (1400, false, "vectors-light"),
        (1400, true, "vectors-dark"),
        (390, false, "vectors-narrow-light"),
        (390, true, "vectors-narrow-dark"),
    ] {
        browser.prefer_dark(is_dark);
        browser.resize(width, 900);
        browser.keep_picture(&picture(name));
        let hidden = "const page = document.documentElement; return page.scrollWidth - page.clientWidth";
        assert_eq!(browser.run(hidden), 0, "{name} does not scroll sideways");
    }
    browser.resize(1400, 900);

    click_at_key(&browser, "Edit alien classic");
    answer(&browser, "value", "{\"year\":2003}");
    confirm(&browser);
    browser.wait_for_text("#content", "2003");
    assert_eq!(client.run("VGETATTR films alien").text(), "{\"year\":2003}");
    click_at_key(&browser, "Delete amelie");
    confirm(&browser);
    browser.wait_for_text("#content", "2 of 2 elements");
    assert_eq!(client.run("VISMEMBER films amelie"), Value::Integer(0));

    choose(&browser, "lists");
    browser.wait_for_text("#content", "IVF");
    browser.wait_for_text("#content", "1 of 1 element");
    // A page can end at any name, even one that is not UTF-8.
    choose(&browser, "many");
    browser.wait_for_text("#content", "100 of 151 elements");
    click_at_key(&browser, "More");
    browser.wait_for_text("#content", "151 of 151 elements");
    browser.wait_for_text("#content", "\\xff\\x00");
    browser.run("document.querySelector('form[role=search] [name=type]').value = 'vectorset'");
    browser.click("form[role=search] [type=submit]");
    browser.wait_for_text("#found", "3 keys");
    assert_no_errors(&browser);
}

#[test]
fn json_is_shown_as_a_collapsible_tree() {
    let server = start(&[]);
    let mut client = server.client();
    let text =
        r#"{"b":1,"a":[1.50,1e400,12345678901234567890,{"x":{"y":{"z":null}}}],"10":"\u00e4 \"q\"","e":{}}"#;
    client.command(&["SET", "doc", text]);
    client.command(&["SET", "broken", r#"{"a":"#]);
    client.command(&["HSET", "user", "profile", r#"{"mail":"a@example.org"}"#, "name", "Ada"]);
    let long = format!("[{}]", (0..1000).map(|number| number.to_string()).collect::<Vec<_>>().join(","));
    client.command(&["SET", "long", &long]);
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "4 keys");
    choose(&browser, "doc");
    // Order and numbers of the JSON text are unchanged.
    assert_eq!(
        browser.text(".json").split_whitespace().collect::<Vec<_>>().join(" "),
        [
            r#"{ 4 members } "b": 1 "a": [ 4 elements ] 1.50 1e400 12345678901234567890"#,
            r#"{ 1 member } "x": { 1 member } "10": "\u00e4 \"q\"" "e": {}"#
        ]
        .join(" ")
    );
    browser.run("[...document.querySelectorAll('.json details')].at(-1).open = true");
    browser.wait_for_text(".json", "\"y\":");
    browser.run("document.querySelector('.json details details').open = false");
    browser.wait_for("!document.querySelector('.json').innerText.includes('1e400')");
    browser.keep_picture(&picture("json"));
    click_at_key(&browser, "Text");
    browser.wait_for(&format!(
        "typeof document.querySelector('#content textarea').value === 'string' &&
        document.querySelector('#content textarea').value.startsWith({})",
        json!("{\"b\":1,")
    ));
    click_at_key(&browser, "Tree");
    client.command(&["JSON.SET", "stored", "$", r#"{"n":[1,2]}"#]);
    browser.open("about:blank");
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "5 keys");
    choose(&browser, "stored");
    browser.wait_for_text(".json", "\"n\":");
    click_at_key(&browser, "Text");
    browser.run("document.querySelector('#content textarea').value = '{\"n\":[3]}'");
    click_at_key(&browser, "Save");
    browser.wait_for_text("body", "The value was saved.");
    assert_eq!(client.run("JSON.GET stored").text(), r#"{"n":[3]}"#);
    client.run("DEL stored");
    browser.open("about:blank");
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "4 keys");
    choose(&browser, "long");
    assert_eq!(browser.count(".json .json-other"), 200, "not all at once");
    browser.click_button("//*[@class='json']", "More: 800 are not shown");
    browser.wait_for("document.querySelectorAll('.json .json-other').length === 400");
    choose(&browser, "broken");
    assert_eq!((browser.count(".json"), browser.count("#content textarea")), (0, 1));
    choose(&browser, "user");
    browser.wait_for_text("#content summary", r#"{"mail":"a@example.org"}"#);
    browser.click("#content summary");
    browser.wait_for_text("#content .json", "1 member");
    assert_no_errors(&browser);
}

#[test]
fn bytes_are_escaped_so_that_they_can_be_read_back() {
    let server = start(&[]);
    let browser = Browser::start();
    open(&browser, &server, "");
    let script = "return import('/dashboard/bytes.js').then(({ fromBytes, typed, Bytes }) => {
        const wrong = [];
        const check = (bytes) => {
            const value = fromBytes(Uint8Array.from(bytes));
            for (const text of [value.line, value.lines]) {
                if (!typed(text).equals(value)) wrong.push([bytes, text]);
                if (/[\\x00-\\x09\\x0b-\\x1f\\x7f\\u202e\\u200b]/.test(text)) wrong.push([bytes, 'unseen']);
            }
        };
        for (let first = 0; first < 256; first += 1) {
            check([first]);
            for (const second of [0, 10, 34, 92, 120, 128, 191, 255]) check([first, second, 65]);
        }
        for (const text of ['ä€😀', '\\u202eabc', '\\u200b', '\\ufeffx', 'a\\\\n\\n', '']) {
            check(new TextEncoder().encode(text));
        }
        for (const bad of ['\\\\', '\\\\q', '\\\\x1', '\\\\xg0']) {
            try { typed(bad); wrong.push(bad); } catch {}
        }
        return [wrong, typed('\\\\xff').word, Bytes.of('ä').word, typed('\\\\xc3\\\\xa4').word];
    })";
    assert_eq!(browser.run(script), json!([[], { "base64": "/w==" }, "ä", "ä"]));
    let percentiles = browser.run(
        "return import('/dashboard/overview.js').then(({ percentile }) =>
             [percentile([99, 0, 0, 0, 1], 99), percentile([99, 0, 0, 0, 1], 99.9), percentile([], 50)])",
    );
    assert_eq!(percentiles, json!([1, 16, Json::Null]), "as in INFO latencystats");
}

#[test]
fn a_key_is_refreshed_live_on_request() {
    let server = start(&["--requirepass", "open-sesame"]);
    let mut client = server.client();
    client.run("AUTH open-sesame");
    fill(&mut client);
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for("document.querySelector('#login').open");
    log_in(&browser, "default", "open-sesame");
    browser.wait_for_text("#found", "7 keys");
    choose(&browser, "a-hash");
    click_at_key(&browser, "Live");
    browser.wait_for("document.querySelector('#live').getAttribute('aria-pressed') === 'true'");
    let streams = |client: &mut RawClient| {
        let list = client.run("CLIENT LIST").text();
        list.lines().filter(|line| line.contains("name=dashboard-live")).count()
    };
    wait_until("the server sends changes", || streams(&mut client) == 1);
    for age in 31..36 {
        client.run(&format!("HSET a-hash age {age}"));
        browser.wait_for_text("#content", &age.to_string());
    }
    client.run("HDEL a-hash name age");
    browser.wait_for_text("#key", "There is no such key.");
    client.run("HSET a-hash name bob");
    browser.wait_for_text("#content", "bob");
    browser.keep_picture(&picture("live"));
    // Unsaved input is not discarded, nor is input typed while the server replies.
    choose(&browser, "a-string");
    wait_until("the other key is not watched any more", || streams(&mut client) == 0);
    click_at_key(&browser, "Live");
    wait_until("the new key is watched", || streams(&mut client) == 1);
    client.run("SET a-string first");
    browser.wait_for("document.querySelector('#content textarea').value === 'first'");
    let assert_kept = |typed: &str| {
        browser.wait_for_text("#status", "The key has changed");
        assert_eq!(browser.run("return document.querySelector('#content textarea').value"), typed);
        // The next change is reported again.
        browser.run("document.querySelector('#status').textContent = ''");
    };
    browser.fill("#content textarea", "typed");
    client.run("SET a-string second");
    assert_kept("typed");
    click_at_key(&browser, "Refresh");
    browser.wait_for("document.querySelector('#content textarea').value === 'second'");
    browser.run(
        "window.held = []; window.really = window.fetch;
         window.fetch = async (...asked) => {
             const answer = await window.really(...asked);
             await new Promise((resolve) => window.held.push(resolve));
             return answer;
         }",
    );
    client.run("SET a-string late");
    browser.wait_for("window.held.length > 0");
    browser.fill("#content textarea", "typed meanwhile");
    browser.run("window.fetch = window.really; window.held.forEach((resolve) => resolve())");
    assert_kept("typed meanwhile");
    // A lost stream is requested again.
    click_at_key(&browser, "Refresh");
    browser.wait_for("document.querySelector('#content textarea').value === 'late'");
    let list = client.run("CLIENT LIST").text();
    let line = list.lines().find(|line| line.contains("name=dashboard-live")).unwrap();
    let id = line.split("id=").nth(1).unwrap().split(' ').next().unwrap();
    client.run(&format!("CLIENT KILL ID {id}"));
    client.run("SET a-string third");
    browser.wait_for("document.querySelector('#content textarea').value === 'third'");
    click_at_key(&browser, "Live");
    wait_until("no key is watched", || streams(&mut client) == 0);
    let wrong = browser.console();
    let is_meant = |line: &String| line.contains("status of 401") || line.contains("INCOMPLETE_CHUNKED");
    assert!(wrong.iter().all(is_meant), "{wrong:#?}");
}

#[test]
fn matching_keys_are_deleted_after_a_dry_run_and_a_confirmation() {
    let server = start(&[]);
    let mut client = server.client();
    for number in 0..450 {
        client.run(&format!("SET old:{number} x"));
    }
    for line in ["SET new:1 x", "SADD old:set x", "ACL SETUSER looker on >pass ~* +@read"] {
        assert!(!client.run(line).is_error(), "{line}");
    }
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "so far");
    browser.fill("[name=pattern]", "old:*");
    browser.run("document.querySelector('[name=type]').value = 'string'");
    browser.click("form[role=search] [type=submit]");
    // One SCAN returns more keys than one request may ask about.
    browser.wait_for_text("#found", "450 keys");
    browser.click_button("//form[@role='search']", "Delete matching keys");
    browser.wait_for_text("dialog[open]", "Delete 450 string keys of database 0 that match old:*?");
    browser.wait_for_text("dialog[open]", "and 445 more");
    browser.keep_picture(&picture("delete-matching"));
    // The dry run has deleted nothing, and a wrong confirmation does not either.
    answer(&browser, "confirmation", "*");
    browser.click("dialog[open] [type=submit]");
    browser.wait_for_text("dialog[open] [role=alert]", "The pattern is old:*");
    assert_eq!(client.run("DBSIZE"), Value::Integer(452));
    answer(&browser, "confirmation", "old:*");
    confirm(&browser);
    browser.wait_for_text("#status", "Deleted 450 keys.");
    browser.wait_for_text("#found", "No key has this pattern and type.");
    assert_eq!(client.run("DBSIZE"), Value::Integer(2));
    browser.click_button("//form[@role='search']", "Delete matching keys");
    browser.wait_for_text("#status", "No key has this pattern and type.");
    browser.click("#switch");
    log_in(&browser, "looker", "pass");
    browser.wait_for("document.querySelector('form[role=search]') !== null");
    browser.wait_for(
        "![...document.querySelectorAll('button')].some((it) => it.innerText === 'Delete matching keys')",
    );
    assert_no_errors(&browser);
}
