//! The profiler and published messages: streams that end with their view.

use ember_peers::browser::Browser;
use ember_testkit::{RawClient, Value, wait_until};
use serde_json::json;

use super::{assert_no_errors, assert_nothing_but_refusals, keep_pictures, log_in, open, start};

/// Waits until this number of streams is open and has run its command.
fn wait_for_streams(client: &mut RawClient, number: usize) {
    wait_until("the number of streams is reached", || {
        let list = client.run("CLIENT LIST").text();
        let streams = list.lines().filter(|line| line.contains(" name=dashboard-stream "));
        streams.filter(|line| !line.contains(" cmd=hello ")).count() == number
    });
}

#[test]
fn the_profiler_shows_commands_until_the_view_is_left() {
    let server = start(&[]);
    let mut client = server.client();
    client.run("ACL SETUSER reader on >pass ~* +@read +ping");
    let browser = Browser::start();
    open(&browser, &server, "profiler");
    browser.wait_for_text("#rows", "Start shows commands here.");
    browser.click_button("//*[@id='profiler']", "Start");
    wait_for_streams(&mut client, 1);
    browser.wait_for("document.querySelector('#start-stream').getAttribute('aria-pressed') === 'true'");
    client.command(&["SET", "<b>key</b>", "a \"b\"\n"]);
    client.run("SELECT 3");
    client.run("GET other");
    browser.wait_for_text("#rows tbody", "\"SET\" \"<b>key</b>\" \"a \\\"b\\\"\\n\"");
    browser.wait_for_text("#rows tbody tr:nth-child(1)", "\"GET\" \"other\"");
    let cells = browser
        .run("return [...document.querySelector('#rows tbody tr').cells].map(({ innerText }) => innerText)");
    assert_eq!(cells[2], "3");
    assert!(cells[3].as_str().unwrap().starts_with("127.0.0.1:"), "{cells}");
    keep_pictures(&browser, "profiler");
    browser.fill("#profiler [type=search]", "\"set\"");
    browser.wait_for("document.querySelectorAll('#rows tbody tr').length === 1");
    browser.fill("#profiler [type=search]", "no such command");
    browser.wait_for_text("#rows tbody", "No command yet.");
    browser.fill("#profiler [type=search]", " ");

    // Many commands are shown in part, and the others counted.
    let calls: Vec<Vec<String>> =
        (0..5000).map(|number| vec!["GET".to_owned(), format!("k:{number}")]).collect();
    client.pipeline(&calls).unwrap();
    browser.wait_for_text("#rows", "were not sent");
    browser.wait_for("document.querySelectorAll('#rows tbody tr').length === 200");
    browser.click_button("//*[@id='profiler']", "Stop");
    wait_for_streams(&mut client, 0);
    client.run("GET after-the-end");
    browser.click_button("//*[@id='profiler']", "Clear");
    browser.wait_for_text("#rows", "0 commands");

    browser.click_button("//*[@id='profiler']", "Start");
    wait_for_streams(&mut client, 1);
    client.run("GET another");
    browser.wait_for_text("#rows tbody", "another");
    browser.click_button("//nav", "Slow log");
    wait_for_streams(&mut client, 0);
    browser.click_button("//nav", "Profiler");
    browser.wait_for_text("#rows tbody", "another");
    // Another user does not see what the first one has seen.
    browser.click("#switch");
    log_in(&browser, "reader", "pass");
    browser.wait_for_text("#profiler .refused", "NOPERM User reader has no permissions to run the 'monitor'");
    assert_eq!(
        browser.run("return document.querySelector('#profiler').innerText.includes('another')"),
        false
    );
    assert_eq!(browser.count("#start-stream"), 0);
    assert_no_errors(&browser);
}

#[test]
fn messages_are_published_and_shown_until_the_view_is_left() {
    let server = start(&[]);
    let mut client = server.client();
    client.run("ACL SETUSER reader on >pass ~* resetchannels &news +@pubsub +ping");
    let browser = Browser::start();
    open(&browser, &server, "pubsub");
    browser.wait_for_text("#rows", "Subscribe shows messages here.");
    browser.wait_for_text("#channels", "No channel has subscribers.");
    browser.fill("#pubsub [name=names]", "news.* \"or ders\"");
    browser.click("#start-stream");
    wait_for_streams(&mut client, 1);
    browser.fill("#pubsub [name=channel]", "news.1");
    browser.fill("#pubsub [name=message]", "<i>hello</i>");
    browser.click_button("//*[@id='pubsub']", "Publish");
    browser.wait_for_text("#status", "Published to 1 subscriber.");
    browser.wait_for_text("#rows tbody", "<i>hello</i>");
    client.command(&[&b"PUBLISH"[..], b"or ders", b"\xff\x00"]);
    browser.wait_for_text("#rows tbody tr:nth-child(1)", "\\xff\\x00");
    client.command(&["PUBLISH", "news.2", &"x".repeat(100_000)]);
    browser.wait_for_text("#rows tbody tr:nth-child(1)", "… (97.7 KiB)");
    let mut subscriber = server.client();
    subscriber.run("SUBSCRIBE seen");
    browser.click_button("//*[@id='channels']", "Refresh");
    browser.wait_for_text("#channels tbody", "seen");
    browser.wait_for_text("#channels", "2 patterns with subscribers");
    keep_pictures(&browser, "pubsub");
    browser.click_button("//nav", "Clients");
    wait_for_streams(&mut client, 0);
    assert_eq!(client.run("PUBLISH news.1 x"), Value::Integer(0));

    // The subscription has the rights of the user.
    browser.click("#switch");
    log_in(&browser, "reader", "pass");
    browser.click_button("//nav", "Pub/sub");
    browser.wait_for_text("#rows", "0 messages");
    browser.run("document.querySelector('#pubsub [name=kind]').value = 'channels'");
    browser.fill("#pubsub [name=names]", "other");
    browser.click("#start-stream");
    browser.wait_for_text("#rows", "ended: NOPERM");
    browser.fill("#pubsub [name=names]", "news");
    browser.click("#start-stream");
    wait_for_streams(&mut client, 1);
    client.run("PUBLISH news latest");
    browser.wait_for_text("#rows tbody", "latest");
    client.run("ACL SETUSER reader resetchannels");
    browser.wait_for_text("#rows", "ended: the server closed the connection");
    assert_eq!(
        browser.run("return document.querySelector('#stop-stream').getAttribute('aria-disabled')"),
        json!("true")
    );
    assert_nothing_but_refusals(&browser);
}
