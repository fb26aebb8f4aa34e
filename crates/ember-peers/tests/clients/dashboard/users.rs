//! The users of the access control list.

use ember_peers::browser::Browser;
use ember_testkit::Value;

use super::{answer, assert_no_errors, confirm, keep_pictures, log_in, open, start};

#[test]
fn users_are_shown_created_changed_and_deleted() {
    let server = start(&[]);
    let mut client = server.client();
    client.run("ACL SETUSER bob on >secret-word %R~a:* ~b:* &news +@read -get (+set ~s:*)");
    client.run("ACL SETUSER looker on >pass ~* +acl|users +acl|getuser");
    let mut other = server.client();
    other.run("AUTH bob secret-word");
    assert!(other.run("SET denied x").is_error());
    assert!(other.run("AUTH bob wrong").is_error());
    let browser = Browser::start();
    open(&browser, &server, "users");
    browser.wait_for_text("#user-list caption", "3 users; you are default");
    for text in ["%R~a:* ~b:*", "&news", "-@all +@read -get", "(-@all +set ~s:*)", "none needed"] {
        browser.wait_for_text("#user-list tbody", text);
    }
    browser.wait_for_text("#acl-log tbody", "denied");
    browser.wait_for_text("#acl-log tbody", "auth");
    // Neither passwords nor their hashes are shown.
    assert_eq!(browser.run("return /[0-9a-f]{32}|secret/.test(document.body.innerText)"), false);
    keep_pictures(&browser, "users");

    browser.click_button("//*[@id='user-list']", "New user");
    answer(&browser, "name", "carol");
    answer(&browser, "rules", "on >word ~c:* +nonsense");
    browser.click("dialog[open] [type=submit]");
    browser.wait_for_text("dialog[open] [role=alert]", "ERR Error in ACL SETUSER modifier");
    answer(&browser, "rules", "on >word ~c:* +get");
    confirm(&browser);
    browser.wait_for_text("#user-list caption", "4 users");
    let mut carol = server.client();
    assert_eq!(carol.run("AUTH carol word").text(), "OK");
    browser.click_button("//*[@id='user-list']", "Change carol");
    answer(&browser, "rules", "+set -get");
    confirm(&browser);
    browser.wait_for_text("#user-list tbody", "-@all +set -get");
    assert_eq!(carol.run("SET c:1 x").text(), "OK");
    browser.click_button("//*[@id='user-list']", "Delete carol");
    browser.wait_for_text("dialog[open]", "carol");
    confirm(&browser);
    browser.wait_for_text("#user-list caption", "3 users");
    assert!(carol.is_closed().unwrap());
    browser.click_button("//*[@id='acl-log']", "Empty the log");
    confirm(&browser);
    browser.wait_for_text("#acl-log tbody", "There were none.");
    assert_eq!(client.run("ACL LOG"), Value::Array(vec![]));

    browser.click("#switch");
    log_in(&browser, "looker", "pass");
    browser.wait_for_text("#user-list caption", "you are looker");
    browser.wait_for_text("#acl-log .refused", "NOPERM User looker has no permissions to run the 'acl|log'");
    assert_eq!(browser.count("#users button"), 0);
    assert_no_errors(&browser);
}
