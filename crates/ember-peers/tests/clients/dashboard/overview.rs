//! The overview: updated figures, a server without data, and an unreachable server.

use std::sync::atomic::{AtomicBool, Ordering};

use ember_peers::browser::Browser;
use serde_json::json;

use super::{assert_no_errors, figure, log_in, open, picture, start};

#[test]
fn a_user_logs_in_and_sees_figures_update() {
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
    assert_eq!(browser.count("#throughput"), 0, "no figures are shown before the login");
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
        // The chart describes the point under the pointer, and shows the samples of the last hour, which the server
        // stores.
        browser.run(
            "const plot = document.querySelector('#throughput .plot');
             const { left, right, top } = plot.getBoundingClientRect();
             const at = { bubbles: true, clientX: right - 2, clientY: top + 5, left };
             plot.dispatchEvent(new PointerEvent('pointermove', at));",
        );
        browser.wait_for(
            "/: [\\d,.]+( [kM])? \\/ s$/.test(document.querySelector('#throughput .tip').innerText)",
        );
        // The description does not cover the chart's scale.
        let gap = browser.run(
            "const box = (part) => document.querySelector(`#throughput ${part}`).getBoundingClientRect();
             return box('.tip').top - box('.scale').bottom",
        );
        assert!(gap.as_f64().unwrap() >= 0.0, "{gap}");
        browser.wait_for("document.querySelector('#latency .legend').innerText.includes('p99.9')");
        // Latencies have a logarithmic scale between powers of ten; its figures and the values do not cover each other.
        let scale = browser.run(
            "const plot = document.querySelector('#latency .plot');
             const { left, right, top } = plot.getBoundingClientRect();
             const at = { bubbles: true, clientX: right - 2, clientY: top + 5, left };
             plot.dispatchEvent(new PointerEvent('pointermove', at));
             const box = (part) => document.querySelector(`#latency ${part}`).getBoundingClientRect();
             return [[...plot.querySelectorAll('.scale')].map((scale) => scale.innerText),
                 box('.tip').top - box('.scale').bottom, box('.scale.bottom').top - box('.tip').bottom,
                 plot.querySelectorAll('svg line:not(.at)').length]",
        );
        let names: Vec<&str> =
            scale[0].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let power = |name: &str| name.split(' ').next().unwrap().trim_matches('0') == "1";
        assert!(names.len() == 2 && names.iter().all(|name| power(name)), "{names:?}");
        assert!(scale[1].as_f64().unwrap() >= 0.0 && scale[2].as_f64().unwrap() >= 0.0, "{scale}");
        assert!(scale[3].as_u64().unwrap() >= 2, "{scale}");
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

    // The page contacts no other host, and its content security policy has blocked no request.
    let foreign = browser.run(
        "return performance.getEntriesByType('resource').map(({ name }) => name)
             .filter((name) => !name.startsWith(location.origin))",
    );
    assert_eq!(foreign, json!([]));
    assert_no_errors(&browser);
}

#[test]
fn figures_are_not_updated_while_the_page_is_paused() {
    let server = start(&[]);
    let mut client = server.client();
    let browser = Browser::start();
    open(&browser, &server, "");
    browser.wait_for("document.querySelector('#keycount .figure').innerText === '0'");
    browser.click("#pause");
    browser.wait_for("document.querySelector('#pause').getAttribute('aria-pressed') === 'true'");
    // Earlier requests may still be answered.
    let asked = "performance.getEntriesByName(location.origin + '/dashboard/api/overview').length";
    browser.run("return new Promise((resolve) => setTimeout(resolve, 1500))");
    let before = browser.run(&format!("return {asked}"));
    client.run("SET a b");
    browser.run("return new Promise((resolve) => setTimeout(resolve, 1500))");
    assert_eq!(browser.run(&format!("return {asked}")), before, "no more requests are sent");
    assert_eq!(figure(&browser, "#keycount"), "0");
    browser.click("#pause");
    browser.wait_for("document.querySelector('#keycount .figure').innerText === '1'");
}

#[test]
fn an_unreachable_server_is_reported() {
    let server = start(&[]);
    let browser = Browser::start();
    open(&browser, &server, "");
    browser.wait_for("document.querySelector('#throughput')");
    assert_eq!(browser.run("return document.querySelector('#trouble').hidden"), true);
    drop(server);
    browser.wait_for_text("#trouble", "No answer from the server");
}

#[test]
fn empty_results_are_reported() {
    let server = start(&[]);
    let mut client = server.client();
    let browser = Browser::start();
    open(&browser, &server, "keys");
    browser.wait_for_text("#found", "Database 0 has no keys. New key creates one.");
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
    browser.wait_for_text("#main", "No command took that long.");
    open(&browser, &server, "clients");
    browser.fill("#main input[type=search]", "no such client");
    browser.wait_for_text("#clients-list", "No client matches the filter.");
    assert_no_errors(&browser);
}
