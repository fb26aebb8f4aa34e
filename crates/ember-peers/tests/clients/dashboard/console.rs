//! Commands typed into the console.

use ember_peers::browser::{Browser, key};
use ember_testkit::Value;
use serde_json::json;

use super::{
    assert_no_errors, assert_nothing_but_refusals, fill, keep_pictures, log_in, open, picture, start,
};

/// Types a command into the console, and waits until its reply is shown.
#[track_caller]
fn type_command(browser: &Browser, line: &str) {
    browser.fill("#line", line);
    browser.press(key::ENTER);
    browser
        .wait_for("document.querySelector('#line').value === '' && document.querySelector('#stop').disabled");
}

/// Types a command that needs a confirmation, and confirms or cancels the dialog.
fn type_command_with_question(browser: &Browser, line: &str, is_meant: bool) {
    browser.fill("#line", line);
    browser.press(key::ENTER);
    browser.wait_for("document.querySelector('dialog[open]')");
    let answer = if is_meant { "Run it" } else { "Cancel" };
    browser.click_button("//dialog[@open]", answer);
    browser.wait_for("!document.querySelector('dialog[open]') && document.querySelector('#stop').disabled");
}

/// Returns the console's output for the last command.
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
        ("MULTI", "OK: EXEC sends the queued commands together, DISCARD discards them"),
        ("SET n 1", "QUEUED"),
        ("INCR n", "QUEUED"),
        ("EXEC", "1) OK\n2) (integer) 2"),
        ("SELECT 0", "OK"),
        (
            "CLIENT SETNAME x",
            "OK\n(each command has a separate connection here: this does not affect the next one)",
        ),
    ] {
        type_command(&browser, line);
        assert_eq!(last_reply(&browser), reply, "{line}");
    }
    assert_eq!(client.run("GET greeting"), Value::Bulk(b"a A\n\"b".to_vec()));
    type_command(&browser, "INFO server");
    assert!(last_reply(&browser).starts_with("# Server\nredis_version:"), "{}", last_reply(&browser));

    // Blocking commands can be stopped, subscribing commands are refused, and long replies are truncated.
    browser.fill("#line", "BLPOP nothing 0");
    browser.press(key::ENTER);
    browser.wait_for("!document.querySelector('#stop').disabled");
    browser.click("#stop");
    browser.wait_for("document.querySelector('#stop').disabled");
    assert!(last_reply(&browser).starts_with("Stopped"), "{}", last_reply(&browser));
    for (line, reply) in [
        ("SUBSCRIBE news", "this command needs a permanent connection"),
        (
            "MONITOR",
            "MONITOR needs a permanent connection, and each command has a separate one here: use ember-cli.",
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

    // Irreversible commands need a confirmation.
    type_command_with_question(&browser, "FLUSHALL", false);
    assert_eq!(last_reply(&browser), "not run");
    assert_ne!(client.run("DBSIZE"), Value::Integer(0));
    type_command_with_question(&browser, "flushall", true);
    assert_eq!((last_reply(&browser).as_str(), client.run("DBSIZE")), ("OK", Value::Integer(0)));

    // Earlier lines can be recalled.
    browser.press("\u{e013}");
    browser.wait_for("document.querySelector('#line').value === 'flushall'");
    browser.keep_picture(&picture("console"));

    // Another user does not see the first user's lines, and has the same rights as over any connection.
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

#[test]
fn commands_are_completed_and_explained() {
    let server = start(&[]);
    let mut client = server.client();
    client.run("ACL SETUSER reader on >pass ~* +get");
    let browser = Browser::start();
    open(&browser, &server, "console");
    browser.wait_for("document.activeElement.id === 'line'");
    let wait_for_line = |line: &str| {
        browser.wait_for(&format!("document.querySelector('#line').value === {}", json!(line)));
    };
    // The syntax of the command shows that its documentation has arrived.
    browser.fill("#line", "zrangestore");
    browser.wait_for_text("#syntax", "ZRANGESTORE dst src min max [BYSCORE|BYLEX]");
    let complete = |typed: &str, line: &str| {
        browser.fill("#line", typed);
        browser.press(key::TAB);
        wait_for_line(line);
    };
    let offered = || {
        let names = "[...document.querySelectorAll('#offers button')].map((offer) => offer.innerText)";
        browser.run(&format!("return document.querySelector('#offers').hidden ? [] : {names}"))
    };
    complete("zrangest", "ZRANGESTORE ");
    complete("config r", "config RE");
    assert_eq!(offered(), json!([]), "the first Tab completes what is common");
    browser.press(key::TAB);
    browser.wait_for("!document.querySelector('#offers').hidden");
    assert_eq!(offered(), json!(["RESETSTAT", "REWRITE"]));
    // The next Tab moves the focus to the completions.
    browser.press(key::TAB);
    browser.wait_for("document.activeElement.innerText === 'RESETSTAT'");
    browser.press(key::ENTER);
    wait_for_line("config RESETSTAT ");
    assert_eq!(offered(), json!([]));
    // Arguments are completed by the tokens of the command.
    browser.fill("#line", "SET k v keep");
    browser.press(key::TAB);
    wait_for_line("SET k v KEEPTTL ");
    // Forms that watch a command are offered after their dot only.
    browser.fill("#line", "get");
    browser.press(key::TAB);
    browser.wait_for("!document.querySelector('#offers').hidden");
    assert_eq!(offered(), json!(["GET", "GETBIT", "GETDEL", "GETEX", "GETRANGE", "GETSET"]));
    browser.fill("#line", "get.");
    browser.press(key::TAB);
    browser.wait_for("!document.querySelector('#offers').hidden");
    assert_eq!(offered(), json!(["GET.UNWATCH", "GET.WATCH"]));
    keep_pictures(&browser, "completion");
    browser.press(key::ESCAPE);
    browser.wait_for("document.querySelector('#offers').hidden");

    // A user that may not read the documentation has a console without completions.
    browser.click("#switch");
    log_in(&browser, "reader", "pass");
    browser.wait_for_text("#main", "Commands run as reader");
    type_command(&browser, "GET nothing");
    assert_eq!(last_reply(&browser), "(nil)");
    browser.fill("#line", "zrangest");
    browser.press(key::TAB);
    assert_eq!(browser.run("return document.querySelector('#line').value"), "zrangest");
    assert_no_errors(&browser);
}
