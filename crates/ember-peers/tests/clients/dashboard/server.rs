//! The pages of the server: configuration, persistence, replication, hot keys, clients and the slow log.

use std::sync::atomic::{AtomicBool, Ordering};

use ember_peers::browser::{Browser, key};
use ember_testkit::{Server, Value, wait_until};

use super::{answer, assert_no_errors, confirm, keep_pictures, log_in, open, picture, start};

#[test]
fn the_configuration_is_shown_and_changed_without_passwords() {
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
    browser.wait_for_text(&row("metrics-port"), "fixed at startup");
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
    assert_no_errors(&browser);
}

#[test]
fn persistence_is_shown_and_saves_are_requested() {
    let server = start(&["--save", "3600 1"]);
    let mut client = server.client();
    client.run("SET a b");
    client.run("ACL SETUSER looker on >pass ~* +info");
    let browser = Browser::start();
    open(&browser, &server, "persistence");
    browser.wait_for_text("#rdb", "none since startup");
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
        "/rewrites since startup\\s+(\\d+)/.exec(document.querySelector('#aof').innerText)[1]
        > {rewrites}"
    ));
    browser.keep_picture(&picture("persistence"));
    browser.click("#switch");
    log_in(&browser, "looker", "pass");
    browser.wait_for_text("#rdb", "Read only: this user may not run BGSAVE.");
    browser.wait_for_text("#aof", "Read only: this user may not run BGREWRITEAOF.");
    assert_eq!(browser.count("#save, #rewrite"), 0);
    assert_no_errors(&browser);
}

#[test]
fn cold_values_are_counted() {
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
    shows("pinned values", 1);
    shows("cold values", 1);
    shows("memory they would take", 24);
    client.run("GET b");
    shows("fetched since startup", 1);
    shows("cold values", 0);
    assert_no_errors(&browser);

    let without = start(&[]);
    open(&browser, &without, "persistence");
    browser.wait_for_text("#aof", "It is off");
    assert_eq!(browser.count("#tiers"), 0);
}

/// Makes a server follow another, and waits until the link is up.
fn follow(replica: &Server, primary: &Server) {
    let mut client = replica.client();
    client.run(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    wait_until("the link is up", || client.info("master_link_status") == "up");
}

#[test]
fn replication_is_shown_as_a_tree_with_lag() {
    let arguments = ["--repl-diskless-sync-delay", "0", "--repl-backlog-size", "1mb"];
    let [primary, middle] = [start(&arguments), start(&arguments)];
    let mut client = primary.client();
    let browser = Browser::start();
    browser.resize(1400, 900);
    open(&browser, &primary, "replication");
    browser.wait_for_text("#own-role", "primary");
    browser.wait_for_text("#own-role", "set in the configuration; since");
    browser.wait_for_text("#no-replicas", "It has no replicas.");
    browser.wait_for_text("#backlog", "No replica has connected");
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
        "[...document.querySelectorAll('#topology li')].every((it) => it.innerText.includes('up to date'))",
    );
    browser.wait_for("document.querySelectorAll('#replicas tbody tr').length === 2");
    // A replica that does not read the stream is shown as lagging, the others are not.
    stopped.signal("STOP");
    for _ in 0..8 {
        client.run(&format!("SET big {}", "x".repeat(1 << 20)));
    }
    browser.wait_for("/\\d MiB behind/.test(document.querySelector('#topology ul').innerText)");
    browser.wait_for("document.querySelector('#topology ul').innerText.includes('up to date')");
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
    assert_no_errors(&browser);
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
    browser.wait_for_text("#big caption", "scanned 301 of 301 keys");
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
    // The time of a call is shown on one line.
    browser.resize(900, 900);
    let lines = "const range = document.createRange();
        range.selectNodeContents(document.querySelector('#main td.when'));
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size";
    assert_eq!(browser.run(lines), 1);
    browser.resize(1400, 900);
    browser.click("#empty");
    confirm(&browser);
    browser.wait_for_text("#main tbody", "No command took that long.");
    assert_eq!(client.run("SLOWLOG LEN"), Value::Integer(0));
    assert_no_errors(&browser);
}

#[test]
fn all_keys_are_analysed_by_prefix_type_and_time_to_live() {
    let server = start(&[]);
    let mut client = server.client();
    for number in 0..500 {
        client.run(&format!("SET user:{number}:name x EX 50"));
        client.run(&format!("SET user:{number}:mail {}", "x".repeat(100)));
    }
    for line in ["SADD team:a x", "SET alone x EX 100000", "SET odd[*]:key x"] {
        client.run(line);
    }
    client.command(&["SET", "pictures:1", &"x".repeat(500_000)]);
    client.run("ACL SETUSER looker on >pass ~* +scan");
    let browser = Browser::start();
    open(&browser, &server, "analysis");
    browser.click_button("//*[@id='analysis']", "Analyse all keys");
    browser.wait_for_text("#analysed", "Scanned 1,004 of 1,004 keys");
    // Prefixes with most memory come first; they count all keys, not only loaded ones.
    browser.wait_for_text("#prefixes > div > ul > li:nth-child(1)", "pictures: 1 key, 4");
    browser.wait_for_text("#prefixes > div > ul > li:nth-child(2)", "user: 1,000 keys");
    browser.click("#prefixes details summary");
    browser.wait_for_text("#prefixes ul ul", "2 keys");
    browser.wait_for_text("#prefixes ul ul", "and 450 more");
    browser.wait_for_text("#types tbody tr", "string");
    browser.wait_for_text("#types", "1,003");
    for (name, keys) in [("no expiry", 503), ("up to 1 min", 500), ("up to 7 d", 1)] {
        browser.wait_for(&format!(
            "[...document.querySelectorAll('#lifetimes tbody tr')].some((row) =>
                 row.cells[0].innerText === '{name}' && row.cells[1].innerText === '{keys}')"
        ));
    }
    keep_pictures(&browser, "analysis");
    browser.click("#prefixes [aria-label='Keys of odd[*]:']");
    browser.wait_for("location.hash.startsWith('#keys?pattern=')");
    browser.wait_for_text("#found", "1 key");
    // The results are kept while another view is shown.
    browser.click_button("//nav", "Analysis");
    browser.wait_for_text("#analysed", "Scanned 1,004 of 1,004 keys");
    browser.click("#switch");
    log_in(&browser, "looker", "pass");
    browser.wait_for_text("#progress", "without blocking other clients");
    browser.click_button("//*[@id='analysis']", "Analyse all keys");
    browser.wait_for_text("#progress .refused", "NOPERM");
    assert_no_errors(&browser);
}
