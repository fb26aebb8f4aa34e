//! The restrictions of pages of other origins and of users with read-only rights.

use ember_peers::browser::Browser;
use ember_testkit::Value;
use serde_json::json;

use super::{assert_no_errors, choose, fill, log_in, open, start};

#[test]
fn a_page_of_another_origin_gets_no_data() {
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
    // The page's own requests succeed.
    let own = "return import('/dashboard/api.js').then((api) => api.run(['SET', 'k', 'v']))";
    assert_eq!(browser.run(own), "OK");
    assert_eq!(other.client().run("GET k").text(), "v");
}

#[test]
fn read_only_users_see_no_edit_controls_and_are_refused() {
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
        let views: &[&str] = match name {
            "a-string" => &["Text", "Hex"],
            "a-stream" => &["Open"],
            _ => &[],
        };
        assert_eq!(buttons, json!([&["Refresh", "Live"][..], views].concat()), "{name}");
    }
    // If the page sends the request nevertheless, the server refuses it.
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
        ("profiler", "monitor"),
        ("users", "acl|users"),
        ("configuration", "config|get"),
        ("persistence", "info"),
    ] {
        open(&browser, &server, view);
        browser.wait_for_text(
            "#main .refused",
            &format!("NOPERM User reader has no permissions to run the '{command}' command"),
        );
    }
    assert_no_errors(&browser);
}
