//! The dashboard in a browser: real clicks and keys in Chromium, a real server, and its clients beside.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use ember_peers::browser::{Browser, key};
use ember_testkit::{RawClient, Server, Value, find_ember_server, wait_until};
use serde_json::{Value as Json, json};

fn start(arguments: &[&str]) -> Server {
    Server::builder(find_ember_server())
        .arguments(&["--shards", "2", "--metrics-dashboard", "yes"])
        .arguments(arguments)
        .metrics()
        .start()
}

/// Opens a view of a server's dashboard.
fn open(browser: &Browser, server: &Server, view: &str) {
    browser.open(&format!("http://{}/dashboard/#{view}", server.metrics_address()));
}

/// Where pictures are kept.
fn picture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard").join(format!("{name}.png"))
}

/// What the page may not do is in the console, and so is what went wrong in it. Refusals that were meant to be are not
/// counted.
#[track_caller]
fn assert_nothing_went_wrong(browser: &Browser) {
    let wrong: Vec<String> =
        browser.console().into_iter().filter(|line| !line.contains("status of 401")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Logs in, in the dialog that is open.
fn log_in(browser: &Browser, user: &str, password: &str) {
    browser.fill("#login [name=user]", user);
    browser.fill("#login [name=password]", password);
    browser.click("#login [type=submit]");
}

/// Chooses a key in the list.
fn choose(browser: &Browser, name: &str) {
    browser.click_button("//ul[@class='keys']", name);
    browser.wait_for_text("#key h2", name);
    browser.wait_for("document.querySelector('#content').childElementCount > 0");
}

/// Clicks at a button of the key that is shown.
fn click_at_key(browser: &Browser, label: &str) {
    browser.click_button("//*[@id='key']", label);
}

/// Fills a field of the dialog that is open.
fn answer(browser: &Browser, field: &str, text: &str) {
    browser.fill(&format!("dialog[open] [name={field}]"), text);
}

/// Says yes in the dialog that is open, and waits until it is closed.
#[track_caller]
fn confirm(browser: &Browser) {
    browser.click("dialog[open] [type=submit]");
    browser.wait_for("document.querySelector('dialog[open]') === null");
}

/// The number at the begin of a figure's text, without its unit.
fn figure(browser: &Browser, tile: &str) -> String {
    browser.text(&format!("{tile} .figure"))
}

#[test]
fn a_user_logs_in_and_watches_the_figures_move() {
    let server = start(&["--requirepass", "open-sesame"]);
    let mut client = server.client();
    client.run("AUTH open-sesame");
    client.run("ACL SETUSER watcher on >pass-word ~* +@read +info");
    let browser = Browser::start();
    open(&browser, &server, "");
    browser.wait_for("document.querySelector('#login').open");
    browser.wait_for_text("#login-reason", "NOAUTH");
    log_in(&browser, "watcher", "wrong");
    browser.wait_for_text("#login-reason", "WRONGPASS");
    assert_eq!(browser.count("#throughput"), 0, "nothing is shown before");
    log_in(&browser, "watcher", "pass-word");
    browser.wait_for("!document.querySelector('#login').open");
    assert_eq!(browser.text("#user"), "watcher");

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                client.run(&format!("SET key:{} {number}", number % 500));
                client.run(&format!("GET key:{}", number % 1000));
            }
        });
        browser.wait_for(
            "parseFloat(document.querySelector('#throughput .figure').innerText.replace(',', '')) > 100",
        );
        let before = figure(&browser, "#throughput");
        browser.wait_for(&format!(
            "document.querySelector('#throughput .figure').innerText !== {}",
            json!(before)
        ));
        browser.wait_for("/\\d.* (µs|ms|s)$/.test(document.querySelector('#latency .figure').innerText)");
        browser.wait_for("/^[45]\\d/.test(document.querySelector('#hits .figure').innerText)");
        browser.wait_for("/ [KM]iB$/.test(document.querySelector('#memory .figure').innerText)");
        browser.wait_for("document.querySelector('#keycount .figure').innerText === '500'");
        browser.wait_for_text("#commands", "get");
        browser.wait_for("[...document.querySelectorAll('#workers meter')].some((meter) => meter.value > 0)");
        assert_eq!(browser.count("#workers tbody tr"), 2);
        browser.wait_for(
            "document.querySelector('#throughput polyline').getAttribute('points').split(' ').length > 3",
        );
        browser.keep_picture(&picture("overview"));
        // What is pointed at is told, and the hour that the server has kept is shown.
        browser.run(
            "const plot = document.querySelector('#throughput .plot');
             const { left, right, top } = plot.getBoundingClientRect();
             const at = { bubbles: true, clientX: right - 2, clientY: top + 5, left };
             plot.dispatchEvent(new PointerEvent('pointermove', at));",
        );
        browser.wait_for(
            "/: [\\d,.]+( [kM])? \\/ s$/.test(document.querySelector('#throughput .tip').innerText)",
        );
        browser.wait_for("document.querySelector('#latency .legend').innerText.includes('p99.9')");
        browser.click("[data-range='1 hour']");
        browser.wait_for("document.querySelector('#throughput .below').innerText.includes('60 min ago')");
        browser.wait_for(
            "document.querySelector('#throughput polyline').getAttribute('points').split(' ').length > 1",
        );
        browser.click("[data-range='2 minutes']");
        browser.wait_for("document.querySelector('#throughput .below').innerText.includes('2 min ago')");
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(figure(&browser, "#persistence"), "healthy");

    // Nothing is asked of anybody else, and nothing was refused by the policy.
    let foreign = browser.run(
        "return performance.getEntriesByType('resource').map(({ name }) => name)
             .filter((name) => !name.startsWith(location.origin))",
    );
    assert_eq!(foreign, json!([]));
    assert_nothing_went_wrong(&browser);
}

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
    // What is alone has no group, and a large group is closed until it is clicked at.
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
    assert_eq!(browser.count(".keys details details"), 25, "what is open stays open");
    browser.click_button("//*[@class='orders']", "TTL");
    browser.wait_for("document.querySelector('.keys > li > button').title === 'b'");
    assert_eq!(names().as_array().unwrap()[..2], [json!("b"), json!("a")]);
    browser.keep_picture(&picture("groups"));
    assert_nothing_went_wrong(&browser);
}

#[test]
fn a_page_of_somebody_else_gets_nothing() {
    let server = start(&[]);
    let other = start(&[]);
    let browser = Browser::start();
    open(&browser, &other, "");
    browser.wait_for("document.querySelector('#throughput')");
    let url = json!(format!("http://{}/dashboard/api/commands", server.metrics_address()));
    for (mode, kind) in [("cors", "application/json"), ("cors", "text/plain"), ("no-cors", "text/plain")] {
        let script = format!(
            "return fetch({url}, {{ method: 'POST', mode: '{mode}', headers: {{ 'Content-Type': '{kind}' }},
                body: '{{\"commands\": [[\"SET\", \"k\", \"v\"]]}}' }}).then((answer) => answer.text(), () => '')"
        );
        assert_eq!(browser.run(&script), "", "{mode} {kind}");
    }
    assert_eq!(server.client().run("DBSIZE"), Value::Integer(0));
    // The page's own requests go through.
    let own = "return import('/dashboard/api.js').then((api) => api.run(['SET', 'k', 'v']))";
    assert_eq!(browser.run(own), "OK");
    assert_eq!(other.client().run("GET k").text(), "v");
}

/// A key of each type.
fn fill(client: &mut RawClient) {
    client.command(&[&b"SET"[..], b"a-string", b"line one\nline \xc3\xa4"]);
    client.command(&[&b"SET"[..], b"a-binary\xff", b"\x00\xff\\"]);
    for line in [
        "EXPIRE a-string 5000",
        "RPUSH a-list zero one two two",
        "HSET a-hash name alice age 30",
        "HEXPIRE a-hash 3000 FIELDS 1 age",
        "SADD a-set red green",
        "ZADD a-zset 1 low 2.5 high",
        "XADD a-stream 1-1 kind login",
        "XGROUP CREATE a-stream readers 0",
    ] {
        assert!(!client.run(line).is_error(), "{line}");
    }
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
    whole_keys_are_changed(&browser, &mut client);
    browser.keep_picture(&picture("keys"));
    assert_nothing_went_wrong(&browser);
}

#[test]
fn vector_sets_are_shown_with_what_is_near() {
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
        assert_eq!(browser.run(hidden), 0, "{name} does not need to be moved sideways");
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
    // A page ends at a name, whatever its bytes are.
    choose(&browser, "many");
    browser.wait_for_text("#content", "100 of 151 elements");
    click_at_key(&browser, "More");
    browser.wait_for_text("#content", "151 of 151 elements");
    browser.wait_for_text("#content", "\\xff\\x00");
    browser.run("document.querySelector('form[role=search] [name=type]').value = 'vectorset'");
    browser.click("form[role=search] [type=submit]");
    browser.wait_for_text("#found", "3 keys");
    assert_nothing_went_wrong(&browser);
}

fn strings_are_edited(browser: &Browser, client: &mut RawClient) {
    choose(browser, "a-string");
    browser.wait_for("document.querySelector('#content textarea').value === 'line one\\nline ä'");
    browser.fill("#content textarea", "other\ntext\\x00");
    click_at_key(browser, "Save");
    browser.wait_for_text("#status", "was saved");
    assert_eq!(client.run("GET a-string"), Value::Bulk(b"other\ntext\0".to_vec()));
    assert!(client.run("TTL a-string").integer().unwrap() > 4000, "it keeps its time to live");
    // Somebody else is not overwritten.
    client.run("SET a-string somebody-else");
    browser.fill("#content textarea", "mine");
    click_at_key(browser, "Save");
    browser.wait_for_text("#status", "changed by somebody else");
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
    // What has moved is not what was meant.
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

fn whole_keys_are_changed(browser: &Browser, client: &mut RawClient) {
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
    browser.wait_for_text("dialog[open] [role=alert]", "There is a key with this name.");
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
    browser.run(
        "const kind = document.querySelector('dialog[open] [name=type]'); kind.value = 'hash';
        kind.dispatchEvent(new Event('input', { bubbles: true }))",
    );
    answer(browser, "name", "field");
    answer(browser, "value", "<b>bold</b>");
    confirm(browser);
    browser.wait_for_text("#content", "<b>bold</b>");
    assert_eq!(client.run("HGET fresh field").text(), "<b>bold</b>");
    assert_eq!(browser.count("#content b"), 0, "data is text");
}

/// Types a command into the console, and waits for the end of it.
#[track_caller]
fn type_command(browser: &Browser, line: &str) {
    browser.fill("#line", line);
    browser.press(key::ENTER);
    browser
        .wait_for("document.querySelector('#line').value === '' && document.querySelector('#stop').disabled");
}

/// What the console has answered to the last command.
fn last_reply(browser: &Browser) -> String {
    let entry = browser.run("return document.querySelector('#transcript').lastElementChild.innerText");
    entry.as_str().unwrap().split_once('\n').map_or("", |(_, reply)| reply).to_owned()
}

#[test]
fn commands_are_typed_and_run_with_the_rights_of_the_user() {
    let server = start(&[]);
    let mut client = server.client();
    client.run("ACL SETUSER reader on >pass ~a-* +@read +ping");
    fill(&mut client);
    let browser = Browser::start();
    open(&browser, &server, "console");
    browser.wait_for("document.activeElement.id === 'line'");
    for (line, reply) in [
        ("SET greeting \"a \\x41\\n\\\"b\"", "OK"),
        ("strlen greeting", "(integer) 6"),
        ("GET 'no such key'", "(nil)"),
        ("LRANGE a-list 0 -1", "1) \"zero\"\n2) \"one\"\n3) \"two\"\n4) \"two\""),
        ("CONFIG GET appendfsync", "1# \"appendfsync\" => \"everysec\""),
        ("SMEMBERS none", "(empty set)"),
        ("INCR a-list", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GET \"a-binary\\xff\"", "\"\\x00\\xff\\\\\""),
        ("GET \"open", "A quote is not closed."),
        ("SELECT 5", "OK"),
        ("DBSIZE", "(integer) 0"),
        ("MULTI", "OK: commands are sent together by EXEC, or thrown away by DISCARD"),
        ("SET n 1", "QUEUED"),
        ("INCR n", "QUEUED"),
        ("EXEC", "1) OK\n2) (integer) 2"),
        ("SELECT 0", "OK"),
        (
            "CLIENT SETNAME x",
            "OK\n(each command has a connection of its own here: the next one does not know of this)",
        ),
    ] {
        type_command(&browser, line);
        assert_eq!(last_reply(&browser), reply, "{line}");
    }
    assert_eq!(client.run("GET greeting"), Value::Bulk(b"a A\n\"b".to_vec()));
    type_command(&browser, "INFO server");
    assert!(last_reply(&browser).starts_with("# Server\nredis_version:"), "{}", last_reply(&browser));

    // What blocks can be stopped, what subscribes is refused, and what is long is cut.
    browser.fill("#line", "BLPOP nothing 0");
    browser.press(key::ENTER);
    browser.wait_for("!document.querySelector('#stop').disabled");
    browser.click("#stop");
    browser.wait_for("document.querySelector('#stop').disabled");
    assert!(last_reply(&browser).starts_with("Stopped"), "{}", last_reply(&browser));
    for (line, reply) in [
        ("SUBSCRIBE news", "this command needs a connection that stays open"),
        (
            "MONITOR",
            "MONITOR needs a connection that stays open, and each command has one of its own here: use ember-cli.",
        ),
    ] {
        type_command(&browser, line);
        assert_eq!(last_reply(&browser), reply);
    }
    for _ in 0..5 {
        client.run(&format!("RPUSH long{}", " x".repeat(400)));
    }
    type_command(&browser, "LRANGE long 0 -1");
    assert!(
        last_reply(&browser).ends_with("… 1,000 more lines are not shown"),
        "{:.100}",
        last_reply(&browser)
    );

    // What cannot be undone is asked about.
    type_command_with_question(&browser, "FLUSHALL", false);
    assert_eq!(last_reply(&browser), "not run");
    assert_ne!(client.run("DBSIZE"), Value::Integer(0));
    type_command_with_question(&browser, "flushall", true);
    assert_eq!((last_reply(&browser).as_str(), client.run("DBSIZE")), ("OK", Value::Integer(0)));

    // Lines can be called back.
    browser.press("\u{e013}");
    browser.wait_for("document.querySelector('#line').value === 'flushall'");
    browser.keep_picture(&picture("console"));

    // Another user does not see what the first has seen, and has no more rights here than elsewhere.
    browser.click("#switch");
    log_in(&browser, "reader", "pass");
    browser.wait_for("document.querySelector('#transcript').childElementCount === 0");
    type_command(&browser, "SET a b");
    assert_eq!(
        last_reply(&browser),
        "(error) NOPERM User reader has no permissions to run the 'set' command"
    );
    assert_nothing_but_refusals(&browser);
}

/// Types a command that is asked about once more, and answers.
fn type_command_with_question(browser: &Browser, line: &str, is_meant: bool) {
    browser.fill("#line", line);
    browser.press(key::ENTER);
    browser.wait_for("document.querySelector('dialog[open]')");
    let answer = if is_meant { "Run it" } else { "Cancel" };
    browser.click_button("//dialog[@open]", answer);
    browser.wait_for("!document.querySelector('dialog[open]') && document.querySelector('#stop').disabled");
}

/// As [`assert_nothing_went_wrong`], after commands that are answered with a status of HTTP.
#[track_caller]
fn assert_nothing_but_refusals(browser: &Browser) {
    let wrong: Vec<String> =
        browser.console().into_iter().filter(|line| !line.contains("status of 4")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn json_is_shown_as_a_tree_whose_parts_fold() {
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
    // Order and numbers are as they were written.
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
    assert_nothing_went_wrong(&browser);
}

#[test]
fn the_configuration_is_shown_and_changed_but_no_password() {
    let server = start(&["--maxmemory", "1gb"]);
    let mut client = server.client();
    client.run("CONFIG SET masterauth hunter2");
    client.run("ACL SETUSER looker on >pass ~* +config|get +ping");
    client.run("ACL SETUSER nobody on >pass +ping");
    let browser = Browser::start();
    open(&browser, &server, "configuration");
    let row = |name: &str| format!("[data-parameter={name}]");
    browser.wait_for_text(&row("maxmemory"), "changed");
    browser.wait_for_text(&row("maxmemory"), "1073741824 (1 GiB)");
    browser.wait_for_text(&row("maxmemory"), "Default: 0");
    browser.wait_for_text(&row("masterauth"), "set, not shown");
    browser.wait_for_text(&row("requirepass"), "not set");
    browser.wait_for_text(&row("metrics-port"), "fixed at start");
    assert_eq!(browser.run("return document.body.innerText.includes('hunter2')"), false);
    let heard = browser.run(
        "return fetch('/dashboard/api/configuration', { method: 'POST', body: '{\"commands\": []}',
             headers: { 'Content-Type': 'application/json' } }).then((answer) => answer.text())",
    );
    assert!(!heard.as_str().unwrap().contains("hunter2"));
    browser.keep_picture(&picture("configuration"));

    browser.fill("[name=filter]", "appendfsync");
    browser.wait_for("document.querySelectorAll('.parameters li').length < 10");
    browser.click_button("//*[@data-parameter='appendfsync']", "Change");
    let chosen = browser.run("return document.querySelector('dialog[open] [name=value]').value");
    assert_eq!(chosen, "everysec");
    browser.run("document.querySelector('dialog[open] [name=value]').value = 'always'");
    confirm(&browser);
    browser.wait_for_text(&row("appendfsync"), "always");
    assert_eq!(client.run("CONFIG GET appendfsync").elements().unwrap()[1].text(), "always");
    browser.run(
        "const filter = document.querySelector('[name=filter]'); filter.value = 'maxclients';
        filter.dispatchEvent(new Event('input'))",
    );
    browser.click_button("//*[@data-parameter='maxclients']", "Change");
    answer(&browser, "value", "many");
    browser.click("dialog[open] [type=submit]");
    browser.wait_for_text("dialog[open] [role=alert]", "ERR CONFIG SET failed");
    browser.press(key::ESCAPE);
    browser.run(
        "const filter = document.querySelector('[name=filter]'); filter.value = 'no such thing';
        filter.dispatchEvent(new Event('input'))",
    );
    browser.wait_for_text(".parameters", "No parameter has this");

    browser.click("#switch");
    log_in(&browser, "looker", "pass");
    browser.wait_for_text("#configuration", "Read only: this user may not run CONFIG SET.");
    assert_eq!(browser.count(".parameters button"), 0);
    browser.click("#switch");
    log_in(&browser, "nobody", "pass");
    browser.wait_for_text(
        "#main .refused",
        "NOPERM User nobody has no permissions to run the 'config|get' command",
    );
    assert_nothing_went_wrong(&browser);
}

#[test]
fn persistence_is_shown_and_asked_for() {
    let server = start(&["--save", "3600 1"]);
    let mut client = server.client();
    client.run("SET a b");
    client.run("ACL SETUSER looker on >pass ~* +info");
    let browser = Browser::start();
    open(&browser, &server, "persistence");
    browser.wait_for_text("#rdb", "none since the start");
    browser.wait_for_text("#rdb", "after 1 h with 1 change");
    browser.wait_for_text("#aof", "It is off");
    browser.click("#save");
    browser.wait_for_text("#rdb", "succeeded");
    assert!(server.directory().join("dump.rdb").exists());
    client.run("CONFIG SET appendonly yes");
    browser.wait_for_text("#aof", "once a second");
    browser.wait_for("document.querySelector('#rewrite').innerText === 'Rewrite now'");
    let rewrites = client.info("aof_rewrites");
    browser.click("#rewrite");
    browser.wait_for(&format!(
        "/rewrites since the start\\s+(\\d+)/.exec(document.querySelector('#aof').innerText)[1]
        > {rewrites}"
    ));
    browser.keep_picture(&picture("persistence"));
    browser.click("#switch");
    log_in(&browser, "looker", "pass");
    browser.wait_for_text("#rdb", "Read only: this user may not run BGSAVE.");
    browser.wait_for_text("#aof", "Read only: this user may not run BGREWRITEAOF.");
    assert_eq!(browser.count("#save, #rewrite"), 0);
    assert_nothing_went_wrong(&browser);
}

/// Has a server follow another, and waits until it does.
fn follow(replica: &Server, primary: &Server) {
    let mut client = replica.client();
    client.run(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    wait_until("it follows", || client.info("master_link_status") == "up");
}

/// Keeps pictures of what is shown: wide and narrow, light and dark. Nothing of it is to be moved sideways.
fn keep_pictures(browser: &Browser, name: &str) {
    for (width, is_dark) in [(1400, false), (1400, true), (390, false), (390, true)] {
        browser.prefer_dark(is_dark);
        browser.resize(width, 900);
        let shade = if is_dark { "dark" } else { "light" };
        browser.keep_picture(&picture(&format!("{name}-{width}-{shade}")));
        let hidden = "const page = document.documentElement; return page.scrollWidth - page.clientWidth";
        assert_eq!(browser.run(hidden), 0, "{name} does not need to be moved sideways at {width}");
    }
    browser.resize(1400, 900);
}

#[test]
fn replication_is_shown_as_a_tree_with_what_is_missing() {
    let arguments = ["--repl-diskless-sync-delay", "0", "--repl-backlog-size", "1mb"];
    let [primary, middle] = [start(&arguments), start(&arguments)];
    let mut client = primary.client();
    let browser = Browser::start();
    browser.resize(1400, 900);
    open(&browser, &primary, "replication");
    browser.wait_for_text("#own-role", "primary");
    browser.wait_for_text("#own-role", "its configuration says so; since");
    browser.wait_for_text("#no-replicas", "It has no replicas.");
    browser.wait_for_text("#backlog", "No replica has come");
    assert_eq!((browser.count("#link"), browser.count("#replicas")), (0, 0));
    keep_pictures(&browser, "replication-alone");

    let [below, stopped] = [start(&arguments), start(&arguments)];
    follow(&middle, &primary);
    follow(&below, &middle);
    follow(&stopped, &primary);
    client.run("SET a b");
    let address = |server: &Server| format!("127.0.0.1:{}", server.port());
    for server in [&middle, &stopped] {
        browser.wait_for_text("#topology ul", &address(server));
    }
    browser.wait_for("document.querySelectorAll('#topology ul li').length === 2");
    browser.wait_for(
        "[...document.querySelectorAll('#topology li')].every((it) => it.innerText.includes('has all'))",
    );
    browser.wait_for("document.querySelectorAll('#replicas tbody tr').length === 2");
    // One that does not take what is written is behind, and the others are not.
    stopped.signal("STOP");
    for _ in 0..8 {
        client.run(&format!("SET big {}", "x".repeat(1 << 20)));
    }
    browser.wait_for("/\\d MiB behind/.test(document.querySelector('#topology ul').innerText)");
    browser.wait_for("document.querySelector('#topology ul').innerText.includes('has all')");
    browser.wait_for("/MiB/.test(document.querySelector('#backlog dl').innerText)");
    browser.wait_for("/\\d+ s ago/.test(document.querySelector('#replicas').innerText)");
    keep_pictures(&browser, "replication-primary");
    stopped.signal("CONT");

    open(&browser, &middle, "replication");
    browser.wait_for_text("#its-primary", &address(&primary));
    browser.wait_for_text("#its-primary", "linked");
    browser.wait_for_text("#own-role", "replica");
    browser.wait_for_text("#own-role", "REPLICAOF of client");
    browser.wait_for_text("#topology ul ul", &address(&below));
    browser.wait_for_text("#link", "read and not applied");
    keep_pictures(&browser, "replication-middle");
    drop(client);
    drop(primary);
    browser.wait_for_text("#its-primary", "no link");
    browser.wait_for_text("#link .refused", "cannot connect to 127.0.0.1");
    keep_pictures(&browser, "replication-broken");
    assert_nothing_went_wrong(&browser);
}

#[test]
fn values_away_from_memory_are_counted() {
    let server = start(&["--tiered-path", "tiers", "--maxmemory", "1gb", "--enable-debug-command", "yes"]);
    let mut client = server.client();
    client.run("MSET a some-text b some-text c some-text");
    client.run("TIERING PIN a");
    let away = client.run("DEBUG TIER DEMOTE b").text();
    assert!(away.starts_with("tier:"), "{away}");
    let browser = Browser::start();
    let shows = |name: &str, figure: u64| {
        browser.wait_for(&format!("/{name}\\s+{figure}/.test(document.querySelector('#tiers')?.innerText)"));
    };
    open(&browser, &server, "persistence");
    shows("values in memory", 2);
    shows("pinned there", 1);
    shows("values away", 1);
    shows("memory that they would take", 24);
    client.run("GET b");
    shows("brought back since the start", 1);
    shows("values away", 0);
    assert_nothing_went_wrong(&browser);

    let without = start(&[]);
    open(&browser, &without, "persistence");
    browser.wait_for_text("#aof", "It is off");
    assert_eq!(browser.count("#tiers"), 0);
}

#[test]
fn where_there_is_nothing_that_is_said() {
    let server = start(&[]);
    let mut client = server.client();
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "Database 0 has no keys. New key makes one.");
    browser.fill("[name=pattern]", "a*");
    browser.click("form[role=search] [type=submit]");
    browser.wait_for_text("#found", "No key has this pattern and type.");
    client.run("SET a-key b");
    browser.click("form[role=search] [type=submit]");
    browser.wait_for("document.querySelector('#found').innerText === '1 key'");
    open(&browser, &server, "heavy");
    browser.wait_for_text("#hot", "No key was used often in the last seconds.");
    browser.run("document.querySelector('[name=database]').value = '3'");
    let nothing_to_stop = "document.querySelector('#stop-big').getAttribute('aria-disabled') === 'true'";
    browser.wait_for(nothing_to_stop);
    browser.click_button("//*[@id='big']", "Look for big keys");
    browser.wait_for_text("#big", "The database is empty.");
    browser.wait_for(nothing_to_stop);
    open(&browser, &server, "slowlog");
    browser.wait_for_text("#main", "No command took so long.");
    open(&browser, &server, "clients");
    browser.fill("#main input[type=search]", "no such client");
    browser.wait_for_text("#clients-list", "No client has this in what is shown of it.");
    assert_nothing_went_wrong(&browser);
}

#[test]
fn who_may_only_read_finds_nothing_to_change_and_is_refused() {
    let server = start(&["--concurrent", "no"]);
    let mut client = server.client();
    fill(&mut client);
    client.run("ACL SETUSER reader on >pass ~a-* +@read");
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "7 keys");
    browser.click("#switch");
    log_in(&browser, "reader", "pass");
    browser.wait_for("!document.querySelector('#login').open");
    browser.wait_for_text("#found", "7 keys");
    let search_buttons = browser.run(
        "return [...document.querySelectorAll('[role=search] button')].map((button) => button.innerText)",
    );
    assert_eq!(search_buttons, json!(["Search"]));
    for name in ["a-string", "a-list", "a-hash", "a-set", "a-zset", "a-stream"] {
        choose(&browser, name);
        browser.wait_for_text("#content", "Read only.");
        let buttons = browser
            .run("return [...document.querySelectorAll('#key button')].map((button) => button.innerText)");
        assert_eq!(buttons, json!(["Refresh", "Live"]), "{name}");
    }
    // And if the page asked nevertheless:
    let refused = browser.run(
        "return import('/dashboard/api.js').then(async ({ runAll }) =>
             (await runAll([['DEL', 'a-list'], ['GET', 'b']])).map((reply) => reply.message))",
    );
    let refusals = [
        "NOPERM User reader has no permissions to run the 'del' command",
        "NOPERM No permissions to access a key",
    ];
    assert_eq!(refused, json!(refusals));
    assert_eq!(client.run("EXISTS a-list"), Value::Integer(1));
    for (view, command) in [
        ("overview", "info"),
        ("heavy", "hotkeys|get"),
        ("clients", "client|list"),
        ("slowlog", "slowlog|get"),
        ("configuration", "config|get"),
        ("persistence", "info"),
    ] {
        open(&browser, &server, view);
        browser.wait_for_text(
            "#main .refused",
            &format!("NOPERM User reader has no permissions to run the '{command}' command"),
        );
    }
    assert_nothing_went_wrong(&browser);
}

#[test]
fn hot_and_big_keys_clients_and_the_slow_log_are_shown() {
    let server = start(&["--hotkeys-sampling", "1", "--slowlog-log-slower-than", "1000000"]);
    let mut client = server.client();
    client.command(&["SET", "the-big-one", &"x".repeat(300_000)]);
    let pipeline: Vec<Vec<String>> =
        (0..300).map(|number| vec!["SET".to_owned(), format!("k{number}"), "v".to_owned()]).collect();
    client.pipeline(&pipeline).unwrap();
    let browser = Browser::start();
    open(&browser, &server, "heavy");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                client.run("GET k7");
            }
        });
        browser.wait_for_text("#hot tbody", "k7");
        is_over.store(true, Ordering::Relaxed);
    });
    browser.click_button("//*[@id='big']", "Look for big keys");
    browser.wait_for_text("#big caption", "looked at 301 of 301 keys");
    browser.wait_for_text("#big tbody tr", "the-big-one");
    browser.wait_for_text("#big tbody tr", "KiB");
    browser.keep_picture(&picture("heavy"));
    browser.click_button("//*[@id='big']//tbody", "the-big-one");
    browser.wait_for_text("#key h2", "the-big-one");
    browser.wait_for_text("#content", "the first 64 KiB");

    let mut doomed = server.client();
    doomed.run("CLIENT SETNAME doomed");
    browser.click_button("//nav", "Clients");
    browser.wait_for_text("#clients-list", "doomed");
    browser.fill("#main input[type=search]", "name=doomed");
    browser.wait_for("document.querySelectorAll('#clients-list tbody tr').length === 1");
    browser.click("#clients-list tbody button");
    browser.wait_for_text("dialog[open]", "doomed");
    confirm(&browser);
    browser.wait_for_text("#status", "was closed");
    assert!(doomed.is_closed().unwrap());

    client.run("CONFIG SET slowlog-log-slower-than 0");
    client.run("SET slow-key v");
    client.run("CONFIG SET slowlog-log-slower-than 1000000");
    browser.click_button("//nav", "Slow log");
    browser.wait_for_text("#main tbody", "SET slow-key v");
    browser.click("#empty");
    confirm(&browser);
    browser.wait_for_text("#main tbody", "No command took so long.");
    assert_eq!(client.run("SLOWLOG LEN"), Value::Integer(0));
    assert_nothing_went_wrong(&browser);
}

/// What the keyboard is at: its label, or its text; nothing if it is at the page as a whole.
fn focused(browser: &Browser) -> String {
    let text = browser.run(
        "const at = document.activeElement;
         return at === document.body ? '' : at.getAttribute('aria-label') || at.innerText || at.name || ''",
    );
    text.as_str().unwrap().trim().to_owned()
}

/// Presses the tabulator until the keyboard is at something.
#[track_caller]
fn go_to(browser: &Browser, label: &str) {
    let mut passed = Vec::new();
    while passed.len() < 60 {
        browser.press(key::TAB);
        let now = focused(browser);
        if now == label || now.lines().any(|line| line == label) {
            return;
        }
        passed.push(now);
    }
    panic!("{label} cannot be reached: {passed:#?}");
}

#[test]
fn all_can_be_done_with_the_keyboard_alone() {
    let server = start(&["--requirepass", "open-sesame"]);
    let mut client = server.client();
    client.run("AUTH open-sesame");
    fill(&mut client);
    let browser = Browser::start();
    open(&browser, &server, "");
    // The dialog has the focus by itself, in the field of the name.
    browser.wait_for("document.activeElement.name === 'user'");
    browser.press(key::TAB);
    browser.press("open-sesame");
    browser.press(key::ENTER);
    browser.wait_for("!document.querySelector('#login').open && document.querySelector('#throughput')");
    browser.run("document.activeElement.blur()");
    go_to(&browser, "Skip to the content");
    go_to(&browser, "Keys");
    let outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outline, "solid", "one sees where the keyboard is");
    browser.press(key::ENTER);
    browser.wait_for_text("#found", "7 keys");
    go_to(&browser, "a-set");
    browser.press(key::ENTER);
    browser.wait_for_text("#key h2", "a-set");
    browser.wait_for_text("#content", "2 of 2 elements");
    assert_eq!(
        browser.run("return document.querySelector('.keys [aria-pressed=true]').innerText.includes('a-set')"),
        true
    );
    go_to(&browser, "Delete green");
    browser.press(key::ENTER);
    browser.wait_for("document.querySelector('dialog[open]')");
    browser.press(key::ESCAPE);
    browser.wait_for("!document.querySelector('dialog[open]')");
    assert_eq!(focused(&browser), "Delete green", "the focus is back where it was");
    assert_eq!(client.run("SCARD a-set"), Value::Integer(2));
    browser.press(key::ENTER);
    browser.wait_for("document.querySelector('dialog[open]')");
    go_to(&browser, "Delete it");
    browser.press(key::ENTER);
    browser.wait_for("!document.querySelector('dialog[open]')");
    browser.wait_for_text("#status", "was deleted");
    assert_eq!(client.run("SMEMBERS a-set").elements().unwrap().len(), 1);
    assert_ne!(browser.run("return document.activeElement === document.body"), true, "the focus is not lost");
    // Figures that move leave the focus where it is.
    browser.run("location.hash = '#overview'");
    browser.wait_for("document.querySelector('#workers .scroll')");
    browser.run("document.querySelector('#workers .scroll').focus()");
    browser.wait_for(
        "document.querySelector('#throughput polyline').getAttribute('points').split(' ').length > 2",
    );
    assert_eq!(focused(&browser), "Threads that serve clients");
    assert_nothing_went_wrong(&browser);
}

/// The contrast of text and ground, by the formula of WCAG 2.
const CONTRAST: &str = "
    const light = (colour) => {
        const [red, green, blue] = colour.match(/[\\d.]+/g).slice(0, 3).map((value) => {
            const share = value / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const ground = light(getComputedStyle(document.querySelector('.tile')).backgroundColor);
    const contrast = (selector) => {
        const text = light(getComputedStyle(document.querySelector(selector)).color);
        return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    };
    return [ground, contrast('.figure'), contrast('.tile h3'), contrast('.facts dt')];";

#[test]
fn it_is_readable_in_light_and_dark_and_in_a_narrow_window() {
    let server = start(&[]);
    let mut client = server.client();
    fill(&mut client);
    client.command(&["SET", &"a-long-name".repeat(30), "v"]);
    let browser = Browser::start();
    for is_dark in [false, true] {
        browser.prefer_dark(is_dark);
        open(&browser, &server, "overview");
        browser.wait_for("document.querySelectorAll('.facts dt').length > 20");
        let found = browser.run(CONTRAST);
        let [ground, contrasts @ ..] = found.as_array().unwrap().as_slice() else { panic!("{found}") };
        assert_eq!(ground.as_f64().unwrap() < 0.1, is_dark, "{found}");
        assert!(contrasts.iter().all(|contrast| contrast.as_f64().unwrap() >= 4.5), "{found}");
        browser.keep_picture(&picture(if is_dark { "dark" } else { "light" }));
    }
    browser.resize(360, 740);
    for view in [
        "overview",
        "keys",
        "heavy",
        "clients",
        "slowlog",
        "console",
        "configuration",
        "persistence",
        "replication",
    ] {
        open(&browser, &server, view);
        browser.wait_for("document.querySelector('#main section')");
        // The name, who it is and the views are two lines, and the view that is shown is seen among them.
        let header = "document.querySelector('header').getBoundingClientRect().height < 100";
        assert_eq!(browser.run(&format!("return {header}")), true, "{view}");
        browser.wait_for(
            "(({ left, right }) => left >= 0 && right <= innerWidth)(
                 document.querySelector('nav [aria-current]').getBoundingClientRect())",
        );
        if view == "keys" {
            browser.wait_for_text("#found", "8 keys");
            choose(&browser, "a-hash");
        }
        let hidden = browser.run(
            "const page = document.documentElement; return [innerWidth, page.scrollWidth - page.clientWidth]",
        );
        assert_eq!(hidden, json!([360, 0]), "{view} does not need to be moved sideways");
        browser.keep_picture(&picture(&format!("narrow-{view}")));
    }
    assert_nothing_went_wrong(&browser);
}

#[test]
fn bytes_are_written_so_that_they_are_read_back() {
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
    assert_eq!(percentiles, json!([1, 16, Json::Null]), "as INFO latencystats tells them");
}

#[test]
fn a_server_that_is_gone_is_said_to_be_gone() {
    let server = start(&[]);
    let browser = Browser::start();
    open(&browser, &server, "");
    browser.wait_for("document.querySelector('#throughput')");
    assert_eq!(browser.run("return document.querySelector('#trouble').hidden"), true);
    drop(server);
    browser.wait_for_text("#trouble", "No answer from the server");
}

#[test]
fn figures_stand_still_while_the_page_is_paused() {
    let server = start(&[]);
    let mut client = server.client();
    let browser = Browser::start();
    open(&browser, &server, "");
    browser.wait_for("document.querySelector('#keycount .figure').innerText === '0'");
    browser.click("#pause");
    browser.wait_for("document.querySelector('#pause').getAttribute('aria-pressed') === 'true'");
    // What was asked before may still be answered.
    let asked = "performance.getEntriesByName(location.origin + '/dashboard/api/overview').length";
    browser.run("return new Promise((resolve) => setTimeout(resolve, 1500))");
    let before = browser.run(&format!("return {asked}"));
    client.run("SET a b");
    browser.run("return new Promise((resolve) => setTimeout(resolve, 1500))");
    assert_eq!(browser.run(&format!("return {asked}")), before, "nothing more is asked");
    assert_eq!(figure(&browser, "#keycount"), "0");
    browser.click("#pause");
    browser.wait_for("document.querySelector('#keycount .figure').innerText === '1'");
}

#[test]
fn a_key_is_shown_as_it_changes_while_that_is_wanted() {
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
    wait_until("the server tells of changes", || streams(&mut client) == 1);
    for age in 31..36 {
        client.run(&format!("HSET a-hash age {age}"));
        browser.wait_for_text("#content", &age.to_string());
    }
    client.run("HDEL a-hash name age");
    browser.wait_for_text("#key", "There is no such key.");
    client.run("HSET a-hash name bob");
    browser.wait_for_text("#content", "bob");
    browser.keep_picture(&picture("live"));
    // What is typed is not thrown away, nor what is typed while the server answers.
    choose(&browser, "a-string");
    wait_until("the other key is not followed any more", || streams(&mut client) == 0);
    click_at_key(&browser, "Live");
    wait_until("this one is", || streams(&mut client) == 1);
    client.run("SET a-string first");
    browser.wait_for("document.querySelector('#content textarea').value === 'first'");
    let assert_kept = |typed: &str| {
        browser.wait_for_text("#status", "The key has changed");
        assert_eq!(browser.run("return document.querySelector('#content textarea').value"), typed);
        // The next one is told anew.
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
    // A stream that is lost is asked for again.
    click_at_key(&browser, "Refresh");
    browser.wait_for("document.querySelector('#content textarea').value === 'late'");
    let list = client.run("CLIENT LIST").text();
    let line = list.lines().find(|line| line.contains("name=dashboard-live")).unwrap();
    let id = line.split("id=").nth(1).unwrap().split(' ').next().unwrap();
    client.run(&format!("CLIENT KILL ID {id}"));
    client.run("SET a-string third");
    browser.wait_for("document.querySelector('#content textarea').value === 'third'");
    click_at_key(&browser, "Live");
    wait_until("nothing is followed", || streams(&mut client) == 0);
    let wrong = browser.console();
    let is_meant = |line: &String| line.contains("status of 401") || line.contains("INCOMPLETE_CHUNKED");
    assert!(wrong.iter().all(is_meant), "{wrong:#?}");
}
