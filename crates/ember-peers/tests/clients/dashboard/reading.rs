//! The dashboard can be used with the keyboard alone, and is readable in light and dark and in a narrow window.

use ember_peers::browser::{Browser, key};
use ember_testkit::Value;
use serde_json::json;

use super::{assert_no_errors, choose, fill, open, picture, start};

/// Returns the label or text of the focused element; empty if the page as a whole has the focus.
fn focused(browser: &Browser) -> String {
    let text = browser.run(
        "const at = document.activeElement;
         return at === document.body ? '' : at.getAttribute('aria-label') || at.innerText || at.name || ''",
    );
    text.as_str().unwrap().trim().to_owned()
}

/// Presses Tab until an element has the focus.
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
fn every_action_works_with_the_keyboard_alone() {
    let server = start(&["--requirepass", "open-sesame"]);
    let mut client = server.client();
    client.run("AUTH open-sesame");
    fill(&mut client);
    let browser = Browser::start();
    open(&browser, &server, "");
    // When the dialog opens, the field of the user name has the focus.
    browser.wait_for("document.activeElement.name === 'user'");
    browser.press(key::TAB);
    browser.press("open-sesame");
    browser.press(key::ENTER);
    browser.wait_for("!document.querySelector('#login').open && document.querySelector('#throughput')");
    browser.run("document.activeElement.blur()");
    go_to(&browser, "Skip to the content");
    go_to(&browser, "Keys");
    let outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outline, "solid", "the focus is visible");
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
    assert_eq!(focused(&browser), "Delete green", "the focus has returned");
    assert_eq!(client.run("SCARD a-set"), Value::Integer(2));
    browser.press(key::ENTER);
    browser.wait_for("document.querySelector('dialog[open]')");
    go_to(&browser, "Delete it");
    browser.press(key::ENTER);
    browser.wait_for("!document.querySelector('dialog[open]')");
    browser.wait_for_text("#status", "was deleted");
    assert_eq!(client.run("SMEMBERS a-set").elements().unwrap().len(), 1);
    assert_ne!(browser.run("return document.activeElement === document.body"), true, "the focus is not lost");
    // Updated figures leave the focus unchanged.
    browser.run("location.hash = '#overview'");
    browser.wait_for("document.querySelector('#workers .scroll')");
    browser.run("document.querySelector('#workers .scroll').focus()");
    browser.wait_for(
        "document.querySelector('#throughput polyline').getAttribute('points').split(' ').length > 2",
    );
    assert_eq!(focused(&browser), "Threads that serve clients");
    assert_no_errors(&browser);
}

/// The contrast of text and background, by the formula of WCAG 2.
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
fn pages_are_readable_in_light_dark_and_narrow_windows() {
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
        "profiler",
        "pubsub",
        "console",
        "users",
        "configuration",
        "persistence",
        "replication",
    ] {
        open(&browser, &server, view);
        browser.wait_for("document.querySelector('#main section')");
        // The header with name, user and views takes two lines, and the current view is visible in it.
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
        assert_eq!(hidden, json!([360, 0]), "{view} does not scroll sideways");
        browser.keep_picture(&picture(&format!("narrow-{view}")));
    }
    assert_no_errors(&browser);
}
