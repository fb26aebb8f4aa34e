//! Live queries for browsers: the states of commands as server-sent events, for authorized clients.

use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ember_testkit::{EventStream, HttpAnswer, Server, Value, http_exchange};
use serde_json::{Value as Json, json};

use crate::{MODES, assert_ok, builder, wait_until};

fn start(mode: &[&str], arguments: &[&str]) -> Server {
    builder(mode).arguments(arguments).http_watch().start()
}

fn open(server: &Server, query: &str, fields: &[(&str, &str)]) -> EventStream {
    EventStream::open(server.watch_address(), &format!("/watch?{query}"), fields).unwrap()
}

/// Opens a stream of live queries, which must be accepted.
#[track_caller]
fn watch(server: &Server, query: &str, fields: &[(&str, &str)]) -> EventStream {
    let stream = open(server, query, fields);
    assert_eq!(stream.status, 200, "{}", stream.head);
    assert_eq!(stream.header("content-type"), Some("text/event-stream; charset=utf-8"));
    stream
}

/// Returns the ID, the command and the result of the next event.
#[track_caller]
fn next(stream: &mut EventStream) -> (String, String, Json) {
    let event = stream.next_event().unwrap().expect("the stream continues");
    let mut data: Json = serde_json::from_str(&event.data).unwrap();
    let version = data["version"].as_str().unwrap();
    assert!(event.id.split(',').any(|part| part == version), "{event:?}");
    (event.id, data["command"].as_str().unwrap().to_owned(), data["result"].take())
}

#[track_caller]
fn next_result(stream: &mut EventStream) -> Json {
    next(stream).2
}

/// Sends an HTTP request whose response is not a stream.
fn ask(address: SocketAddr, method: &str, path: &str, fields: &[(&str, &str)]) -> HttpAnswer {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\n");
    fields.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
    http_exchange(address, (request + "\r\n").as_bytes()).unwrap()
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Requests a ticket for a user.
fn ticket(server: &Server, authorization: &str) -> String {
    let answer = ask(server.watch_address(), "POST", "/watch/ticket", &[("Authorization", authorization)]);
    assert_eq!(answer.status, 200, "{answer:?}");
    let body: Json = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(body["seconds"], 30);
    body["ticket"].as_str().unwrap().to_owned()
}

#[test]
fn a_stream_has_the_first_state_and_every_new_one() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("SET price 10");
        client.run("HSET user name alice");
        let mut stream = watch(&server, "cmd=GET%20price&cmd=hgetall+user&cmd=GET+%22a%20b%22", &[]);
        let (first, command, result) = next(&mut stream);
        assert_eq!((command.as_str(), result, first.split(',').count()), ("GET price", json!("10"), 1));
        let (second, command, result) = next(&mut stream);
        assert_eq!((command.as_str(), result), ("hgetall user", json!({ "name": "alice" })));
        assert!(second.starts_with(&first));
        assert_eq!(next(&mut stream).1, "GET \"a b\"");
        client.run("INCR price");
        let (id, _, result) = next(&mut stream);
        assert_eq!((result, id.split(',').count()), (json!("11"), 3));
        client.run("DEL user");
        assert_eq!(next_result(&mut stream), json!({}));
        client.command(&[&b"SET"[..], b"a b", b"\xff"]);
        assert_eq!(next_result(&mut stream), json!({ "base64": "/w==" }));
        client.run("RPUSH user x");
        let error = next_result(&mut stream)["error"].as_str().unwrap().to_owned();
        assert!(error.starts_with("WRONGTYPE "), "{error}");
        client.run("DEL user");
        assert_eq!(next_result(&mut stream), json!({}), "the query continues");
    }
}

#[test]
fn options_equal_those_of_watch_open() {
    let server = start(MODES[0], &[]);
    let mut client = server.client();
    client.run("SELECT 3");
    client.run("SET k 1");
    let mut every = watch(&server, "cmd=GET+k&db=3&every", &[]);
    let mut paced = watch(&server, "cmd=GET+k&db=3&interval=300", &[]);
    for stream in [&mut every, &mut paced] {
        assert_eq!(next_result(stream), json!("1"));
    }
    client.run("SET k 1");
    assert_eq!(next_result(&mut every), json!("1"));
    client.run("SET k 2");
    client.run("SET k 3");
    assert_eq!(next_result(&mut paced), json!("3"));
}

#[test]
fn a_reconnecting_client_receives_changed_states() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        client.run("MSET a 1 b 1");
        let mut stream = watch(&server, "cmd=GET+a&cmd=GET+b", &[]);
        next(&mut stream);
        let (id, ..) = next(&mut stream);
        drop(stream);
        client.run("SET b 2");
        let mut stream = watch(&server, "cmd=GET+a&cmd=GET+b", &[("Last-Event-ID", &id)]);
        let (newer, command, result) = next(&mut stream);
        assert_eq!((command.as_str(), result), ("GET b", json!("2")));
        assert_eq!(newer.split(',').next(), id.split(',').next(), "an unchanged state keeps its version");
        // The version is in the query instead of a header field, as when a page opens a new stream.
        let mut again = watch(&server, &format!("cmd=GET+a&cmd=GET+b&since={newer}"), &[]);
        client.run("SET a 2");
        assert_eq!(next(&mut again).1, "GET a");
        // A version of an earlier run of the server.
        let other = start(mode, &[]);
        other.client().run("MSET a 1 b 3");
        let mut stream = watch(&other, "cmd=GET+a&cmd=GET+b", &[("Last-Event-ID", &newer)]);
        assert_eq!(next_result(&mut stream), json!("3"));
        // A version that this server has not reached.
        let (history, rest) = id.split(',').next().unwrap().split_once('-').unwrap();
        let hash = rest.split_once('-').unwrap().1;
        let ahead = format!("{history}-99999999-{hash}");
        let mut stream = watch(&server, &format!("cmd=GET+a&since={ahead}"), &[]);
        assert_eq!(stream.next_event().unwrap(), None, "a browser reconnects");
    }
}

#[test]
fn users_watch_only_keys_they_may_read() {
    for mode in MODES {
        let server = start(mode, &["--requirepass", "secret"]);
        let mut client = server.client();
        client.run("AUTH secret");
        assert_ok(
            &mut client,
            "ACL SETUSER web on >pw ~public:* resetchannels +@read -hgetall.watch +get.watch +watch.open",
        );
        client.run("SET public:a 1");
        let status = |query: &str, authorization: Option<&str>| {
            let fields: Vec<_> = authorization.map(|value| ("Authorization", value)).into_iter().collect();
            open(&server, query, &fields).status
        };
        let web = basic("web", "pw");
        assert_eq!(status("cmd=GET+public:a", None), 401);
        let stream = open(&server, "cmd=GET+public:a", &[]);
        assert!(stream.header("www-authenticate").unwrap().starts_with("Basic realm=\"ember\""));
        assert_eq!(status("cmd=GET+public:a", Some(&basic("web", "wrong"))), 401);
        assert_eq!(status("cmd=GET+public:a", Some("Bearer x")), 401);
        assert_eq!(status("cmd=GET+private:a", Some(&web)), 403);
        assert_eq!(status("cmd=HGETALL+public:a", Some(&web)), 403, "not HGETALL.WATCH");
        let mut stream = watch(&server, "cmd=GET+public:a", &[("Authorization", &web)]);
        assert_eq!(next_result(&mut stream), json!("1"));
        // Revoked rights end the stream with a reason.
        assert_ok(&mut client, "ACL SETUSER web -get.watch");
        client.run("SET public:a 2");
        let error = next_result(&mut stream)["error"].as_str().unwrap().to_owned();
        assert!(error.starts_with("NOPERM "), "{error}");
        assert_eq!(stream.next_event().unwrap(), None);
    }
}

#[test]
fn a_ticket_authenticates_its_user_once() {
    let server = start(MODES[0], &["--requirepass", "secret"]);
    let mut client = server.client();
    client.run("AUTH secret");
    assert_ok(&mut client, "ACL SETUSER web on >pw ~* +@read -hgetall.watch +get.watch +watch.open");
    client.run("SET a 1");
    let status =
        |fields: &[(&str, &str)]| ask(server.watch_address(), "POST", "/watch/ticket", fields).status;
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("Authorization", &basic("web", "wrong"))]), 401);
    let good = ticket(&server, &basic("web", "pw"));
    let mut stream = watch(&server, &format!("cmd=GET+a&ticket={good}"), &[]);
    assert_eq!(next_result(&mut stream), json!("1"));
    assert!(client.run("CLIENT LIST").text().contains("user=web "));
    assert_eq!(open(&server, &format!("cmd=GET+a&ticket={good}"), &[]).status, 401, "the ticket was used");
    assert_eq!(open(&server, "cmd=GET+a&ticket=x", &[]).status, 401);
    // The user's password is checked again when the ticket is used.
    let late = ticket(&server, &basic("web", "pw"));
    assert_ok(&mut client, "ACL SETUSER web <pw >other");
    assert_eq!(open(&server, &format!("cmd=GET+a&ticket={late}"), &[]).status, 401);
}

#[test]
fn only_pages_of_listed_origins_may_watch() {
    let server = start(MODES[0], &["--http-watch-origins", "https://app.example"]);
    let address = server.watch_address();
    let app = ("Origin", "https://app.example");
    let stream = watch(&server, "cmd=GET+a", &[app, ("Sec-Fetch-Site", "cross-site")]);
    assert_eq!(stream.header("access-control-allow-origin"), Some(app.1));
    assert_eq!(stream.header("vary"), Some("Origin"));
    assert_eq!(stream.header("cache-control"), Some("no-store"));
    let foreign = open(&server, "cmd=GET+a", &[("Origin", "https://evil.example")]);
    assert_eq!((foreign.status, foreign.header("access-control-allow-origin")), (403, None));
    assert_eq!(open(&server, "cmd=GET+a", &[("Sec-Fetch-Site", "cross-site")]).status, 403);
    let asked = ask(address, "OPTIONS", "/watch/ticket", &[app, ("Access-Control-Request-Method", "POST")]);
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (204, Some(app.1)));
    assert_eq!(asked.header("access-control-allow-headers"), Some("Authorization, Last-Event-ID"));
    assert_eq!(ask(address, "OPTIONS", "/watch", &[("Origin", "http://app.example")]).status, 403);
    assert_ok(&mut server.client(), "CONFIG SET http-watch-origins *");
    assert_eq!(open(&server, "cmd=GET+a", &[("Origin", "https://evil.example")]).status, 200);
}

#[test]
fn a_foreign_host_name_that_resolves_here_needs_a_password() {
    let server = start(MODES[0], &["--http-watch-origins", "https://app.example"]);
    for (host, status) in [
        ("127.0.0.1", 200),
        ("localhost:1", 200),
        ("app.example", 200),
        ("evil.example", 421),
        ("app.example.evil", 421),
    ] {
        assert_eq!(open(&server, "cmd=GET+a", &[("Host", host)]).status, status, "{host}");
    }
    let any = basic("default", "any");
    let stream = open(&server, "cmd=GET+a", &[("Host", "proxy.example"), ("Authorization", &any)]);
    assert_eq!(stream.status, 200, "the default user has no password");
}

#[test]
fn an_ambiguous_host_is_refused_even_with_a_password() {
    let server = start(MODES[0], &[]);
    let address = server.watch_address();
    let any = basic("default", "any");
    let own = address.to_string();
    for hosts in [&[own.as_str(), "evil.example"][..], &[&own, &own], &["[::1]evil"]] {
        let mut fields: Vec<_> = hosts.iter().map(|&host| ("Host", host)).collect();
        fields.push(("Authorization", &any));
        assert_eq!(open(&server, "cmd=GET+a", &fields).status, 400, "{hosts:?}");
    }
    let absolute = format!("http://{own}/watch/ticket");
    assert_eq!(ask(address, "POST", &absolute, &[("Authorization", &any)]).status, 400);
}

#[test]
fn unwatchable_commands_are_refused_with_a_reason() {
    let server = start(MODES[0], &[]);
    let address = server.watch_address();
    let mut client = server.client();
    client.run("SET a 1");
    for query in [
        "",
        "cmd=",
        "cmd=GET",
        "cmd=SET+a+1",
        "cmd=TTL+a",
        "cmd=NONSENSE+a",
        "cmd=GET+%22a",
        "cmd=GET+a&db=99",
        "cmd=GET+a&interval=-1",
        "cmd=GET+a&since=x",
        "cmd=GET+a&nonsense=1",
    ] {
        let mut stream = open(&server, query, &[]);
        assert_eq!(stream.status, 400, "{query}");
        assert_eq!(stream.header("content-type"), Some("application/json"));
        assert!(stream.next_event().is_ok_and(|event| event.is_none()), "{query}");
    }
    assert_eq!(ask(address, "GET", "/", &[]).status, 404);
    assert_eq!(ask(address, "GET", "/metrics", &[]).status, 404);
    let wrong = ask(address, "POST", "/watch?cmd=GET+a", &[]);
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, OPTIONS")));
    let wrong = ask(address, "GET", "/watch/ticket", &[]);
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST, OPTIONS")));
    // The client of a refused request is no longer connected.
    wait_until("no other client is connected", || client.run("CLIENT LIST").text().lines().count() == 1);
}

#[test]
fn an_event_stream_is_a_client() {
    for mode in MODES {
        let server = start(mode, &["--http-watch-max-streams", "2"]);
        let mut client = server.client();
        client.run("SET a 1");
        let mut first = watch(&server, "cmd=GET+a", &[]);
        let mut second = watch(&server, "cmd=GET+a&cmd=STRLEN+a", &[]);
        next(&mut first);
        let streams = |client: &mut ember_testkit::RawClient| -> Vec<String> {
            let list = client.run("CLIENT LIST").text();
            list.lines().filter(|line| line.contains("name=http-watch")).map(str::to_owned).collect()
        };
        let listed = streams(&mut client);
        assert_eq!(listed.len(), 2, "{listed:?}");
        assert!(listed.iter().any(|line| line.ends_with(" queries=2")), "{listed:?}");
        assert_eq!(open(&server, "cmd=GET+a", &[]).status, 503, "the limit of streams is reached");
        // A killed stream ends and no longer counts against the limit.
        let id = listed[0].split("id=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        assert_eq!(client.run(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
        let ended = if listed[0].ends_with(" queries=1") { &mut first } else { &mut second };
        while ended.next_event().unwrap().is_some() {}
        wait_until("the stream is over", || streams(&mut client).len() == 1);
        // A stream whose browser has disconnected ends, too.
        drop((first, second));
        wait_until("no stream is left", || streams(&mut client).is_empty());
        wait_until("its slot is free", || open(&server, "cmd=GET+a", &[]).status == 200);
    }
}

#[test]
fn long_states_arrive_whole_and_slow_readers_get_the_newest() {
    for mode in MODES {
        let server = start(mode, &[]);
        let mut client = server.client();
        let value = |number: usize| format!("{number:06}{}", "v".repeat(500_000));
        client.command(&["SET", "k", &value(0)]);
        let mut stream = watch(&server, "cmd=GET+k", &[]);
        assert_eq!(next_result(&mut stream), json!(value(0)));
        // The client reads nothing during these writes; of 100 MB of states, the server stores only the latest.
        for number in 1..=200 {
            client.command(&["SET", "k", &value(number)]);
        }
        let list = client.run("CLIENT LIST").text();
        let line = list.lines().find(|line| line.contains("name=http-watch")).unwrap();
        let memory = line.split("tot-mem=").nth(1).unwrap().split(' ').next().unwrap();
        assert!(memory.parse::<u64>().unwrap() < 3_000_000, "{line}");
        let (mut received, mut last) = (0, String::new());
        while !last.starts_with("000200") {
            last = next_result(&mut stream).as_str().unwrap().to_owned();
            received += 1;
        }
        assert!(received < 100, "{received}");
        assert_eq!(last, value(200));
    }
}
