//! Live queries in a browser: the page in `docs/live-queries.md`, and the browser's reconnection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ember_peers::browser::Browser;
use ember_peers::clients_directory;
use ember_testkit::{RawClient, Server, code_blocks, find_ember_server, http_exchange};
use serde_json::{Value as Json, json};

/// The credentials `web:pass-word`, with which the page's server requests tickets, as a header field.
const AUTHORIZATION: &str = "Basic d2ViOnBhc3Mtd29yZA==";

/// The number of tickets requested so far.
static TICKETS: AtomicUsize = AtomicUsize::new(0);

fn start(mode: &str, arguments: &[&str]) -> Server {
    Server::builder(find_ember_server())
        .arguments(&["--shards", "2", "--concurrent", mode])
        .arguments(arguments)
        .http_watch()
        .start()
}

/// Serves a page and its tickets, as a web application would, until the process ends; returns the address.
fn serve_page(page: &'static str, ember: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), page, ember);
        }
    });
    address
}

fn answer(mut stream: TcpStream, page: &str, ember: SocketAddr) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        if reader.read_line(&mut request).unwrap_or(0) == 0 {
            return; // the browser has opened a connection to be ready
        }
    }
    let text = match request.split(' ').nth(1).unwrap() {
        "/ticket" => {
            TICKETS.fetch_add(1, Ordering::SeqCst);
            let asked = format!(
                "POST /watch/ticket HTTP/1.1\r\nHost: {ember}\r\nAuthorization: {AUTHORIZATION}\r\n\r\n"
            );
            let answer = http_exchange(ember, asked.as_bytes()).unwrap();
            let body: Json = serde_json::from_str(&answer.body).unwrap();
            body["ticket"].as_str().unwrap().to_owned()
        }
        path if path.starts_with("/?") || path == "/" => page.to_owned(),
        _ => String::new(),
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n";
    let _ = stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = reader.read_to_end(&mut Vec::new());
}

/// Closes all streams, as a proxy or a bad connection would; returns their number.
fn kill_streams(client: &mut RawClient) -> usize {
    let list = client.run("CLIENT LIST").text();
    let streams = list.lines().filter(|line| line.contains("name=http-watch"));
    let ids: Vec<&str> =
        streams.map(|line| line.split("id=").nth(1).unwrap().split(' ').next().unwrap()).collect();
    ids.iter().for_each(|id| _ = client.run(&format!("CLIENT KILL ID {id}")));
    ids.len()
}

#[test]
fn a_page_shows_watched_states_as_documented() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/live-queries.md");
    let blocks = code_blocks(&std::fs::read_to_string(document).unwrap());
    let shown = &blocks.iter().find(|block| block.language == "html").unwrap().text;
    let page = std::fs::read_to_string(clients_directory().join("browser/live.html")).unwrap();
    assert_eq!(shown.trim_end(), page.trim_end(), "the document contains the page");
    let page: &'static str = page.leak();
    for mode in ["yes", "no"] {
        let server = start(mode, &["--requirepass", "secret"]);
        let mut client = server.client();
        client.run("AUTH secret");
        client.run("ACL SETUSER web on >pass-word ~price +get +get.watch +watch.open +select");
        let place = serve_page(page, server.watch_address());
        client.run(&format!("CONFIG SET http-watch-origins http://{place}"));
        client.run("SET price 10");
        let browser = Browser::start();
        browser.open(&format!("http://{place}/?ember=http://{}", server.watch_address()));
        browser.wait_for_text("p", "The price is 10.");
        for price in 11..20 {
            client.run("INCR price");
            browser.wait_for_text("output", &price.to_string());
        }
        // A lost connection is reopened, with another ticket.
        let tickets = TICKETS.load(Ordering::SeqCst);
        assert_eq!(kill_streams(&mut client), 1);
        client.run("SET price 30");
        browser.wait_for_text("output", "30");
        assert!(TICKETS.load(Ordering::SeqCst) > tickets);
        client.run("SET price 31");
        browser.wait_for_text("output", "31");
        let wrong = browser.console();
        assert!(wrong.iter().all(|line| line.contains("ERR_INCOMPLETE_CHUNKED_ENCODING")), "{wrong:?}");
    }
}

#[test]
fn a_browser_resumes_after_the_last_state_automatically() {
    let server = start("yes", &[]);
    let mut client = server.client();
    client.run("MSET a 1 b 1");
    let place = serve_page("<!doctype html><title>empty</title>", server.watch_address());
    let browser = Browser::start();
    browser.open(&format!("http://{place}/"));
    let url = json!(format!("http://{}/watch?cmd=GET%20a&cmd=GET%20b", server.watch_address()));
    let begin = format!(
        "window.states = []; window.opened = 0;
         const source = new EventSource({url});
         source.onopen = () => {{ window.opened += 1; }};
         source.onmessage = (event) => {{ const {{ command, result }} = JSON.parse(event.data);
             window.states.push(`${{command}}=${{result}}`); }};
         window.ended = new Promise((resolve) => {{
             source.onerror = () => {{ if (source.readyState === 2) resolve('closed'); }}; }});"
    );
    // The page's origin is not listed: the browser receives nothing.
    browser.run(&begin);
    assert_eq!(browser.run("return window.ended"), "closed");
    assert_eq!(browser.run("return window.states"), json!([]));
    client.run(&format!("CONFIG SET http-watch-origins http://{place}"));
    browser.run(&begin);
    browser.wait_for("window.states.length === 2");
    // Only the changes during the disconnection are sent.
    assert_eq!(kill_streams(&mut client), 1);
    client.run("SET b 2");
    browser.wait_for("window.opened === 2 && window.states.length === 3");
    client.run("SET a 2");
    browser.wait_for("window.states.length === 4");
    assert_eq!(browser.run("return window.states"), json!(["GET a=1", "GET b=1", "GET b=2", "GET a=2"]));
}
