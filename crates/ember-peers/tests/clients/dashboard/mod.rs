//! The dashboard in a browser: clicks and key presses in Chromium, with a running server and its other clients.

mod console;
mod key_pages;
mod overview;
mod reading;
mod rights;
mod server;
mod streams;
mod users;
mod values;

use std::path::{Path, PathBuf};

use ember_peers::browser::Browser;
use ember_testkit::{RawClient, Server, find_ember_server};

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

/// Returns the path of a screenshot.
fn picture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard").join(format!("{name}.png"))
}

/// Saves screenshots of the page, wide and narrow, light and dark. The page must not scroll horizontally.
fn keep_pictures(browser: &Browser, name: &str) {
    for (width, is_dark) in [(1400, false), (1400, true), (390, false), (390, true)] {
        browser.prefer_dark(is_dark);
        browser.resize(width, 900);
        let shade = if is_dark { "dark" } else { "light" };
        browser.keep_picture(&picture(&format!("{name}-{width}-{shade}")));
        let hidden = "const page = document.documentElement; return page.scrollWidth - page.clientWidth";
        assert_eq!(browser.run(hidden), 0, "{name} does not scroll sideways at {width}");
    }
    browser.resize(1400, 900);
}

/// Asserts that the browser console contains no violations of the page's content security policy and no errors of the
/// page. Intended refusals are ignored.
#[track_caller]
fn assert_no_errors(browser: &Browser) {
    let wrong: Vec<String> =
        browser.console().into_iter().filter(|line| !line.contains("status of 401")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Like [`assert_no_errors`], after commands that the server refuses with an HTTP error status.
#[track_caller]
fn assert_nothing_but_refusals(browser: &Browser) {
    let wrong: Vec<String> =
        browser.console().into_iter().filter(|line| !line.contains("status of 4")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Logs in with the open dialog.
fn log_in(browser: &Browser, user: &str, password: &str) {
    browser.fill("#login [name=user]", user);
    browser.fill("#login [name=password]", password);
    browser.click("#login [type=submit]");
}

/// Selects a key in the list.
fn choose(browser: &Browser, name: &str) {
    browser.click_button("//ul[@class='keys']", name);
    browser.wait_for_text("#key h2", name);
    browser.wait_for("document.querySelector('#content').childElementCount > 0");
}

/// Clicks a button of the currently shown key.
fn click_at_key(browser: &Browser, label: &str) {
    browser.click_button("//*[@id='key']", label);
}

/// Fills a field of the open dialog.
fn answer(browser: &Browser, field: &str, text: &str) {
    browser.fill(&format!("dialog[open] [name={field}]"), text);
}

/// Confirms the open dialog, and waits until it is closed.
#[track_caller]
fn confirm(browser: &Browser) {
    browser.click("dialog[open] [type=submit]");
    browser.wait_for("document.querySelector('dialog[open]') === null");
}

/// Returns the number at the beginning of a figure's text, without its unit.
fn figure(browser: &Browser, tile: &str) -> String {
    browser.text(&format!("{tile} .figure"))
}

/// Creates a key of each type.
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
