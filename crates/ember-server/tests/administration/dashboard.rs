//! The dashboard's data: each request is executed by an ordinary client with the rights of its user, and requests of
//! pages of other origins are refused.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ember_testkit::{
    EventStream, HttpAnswer, RawClient, Server, Value, code_blocks, http_exchange, http_get,
};
use serde_json::{Value as Json, json};

use crate::{MODES, assert_ok, builder, wait_until};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn start(mode: &[&str], arguments: &[&str]) -> Server {
    builder(mode).arguments(&["--metrics-dashboard", "yes"]).arguments(arguments).metrics().start()
}

/// Runs a test on a server with a dashboard, in each mode.
fn everywhere(arguments: &[&str], test: impl Fn(&Server, &mut RawClient)) {
    for mode in MODES {
        let server = start(mode, arguments);
        test(&server, &mut server.client());
    }
}

/// Returns an HTTP request with a body, as bytes.
fn request(address: SocketAddr, path: &str, fields: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
    if !fields.iter().any(|(name, _)| *name == "Host") {
        head += &format!("Host: {address}\r\n");
    }
    fields.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    format!("{head}\r\n{body}").into_bytes()
}

fn post(server: &Server, path: &str, fields: &[(&str, &str)], body: &str) -> HttpAnswer {
    let address = server.metrics_address();
    http_exchange(address, &request(address, path, fields, body)).unwrap()
}

/// Returns a user's name and password as a header field.
fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Requests `api/<what>` as a user, or without one; returns the status and the JSON reply.
fn ask(server: &Server, what: &str, user: Option<(&str, &str)>, body: &Json) -> (u16, Json) {
    let authorization = user.map(|(name, password)| basic(name, password));
    let fields = authorization.as_deref().map(|value| ("Authorization", value));
    let fields: Vec<_> = [JSON].into_iter().chain(fields).collect();
    let answer = post(server, &format!("/dashboard/api/{what}"), &fields, &body.to_string());
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("no JSON: {answer:?}"));
    (answer.status, body)
}

/// Runs commands without a user; returns their replies.
#[track_caller]
fn run(server: &Server, commands: Json) -> Json {
    let (status, answer) = ask(server, "commands", None, &json!({ "commands": commands }));
    assert_eq!(status, 200, "{answer}");
    answer["replies"].clone()
}

#[test]
fn the_dashboard_is_off_by_default() {
    let server = builder(MODES[0]).metrics().start();
    let mut client = server.client();
    let status = |path: &str| http_get(server.metrics_address(), path).unwrap().status;
    let data = || post(&server, "/dashboard/api/commands", &[JSON], r#"{"commands": []}"#).status;
    for path in ["/", "/dashboard", "/dashboard/", "/dashboard/main.js"] {
        assert_eq!(status(path), 404, "{path}");
    }
    assert_eq!(data(), 404);
    assert_ok(&mut client, "CONFIG SET metrics-dashboard yes");
    assert_eq!((status("/"), status("/dashboard"), status("/dashboard/"), data()), (307, 307, 200, 200));
    assert_ok(&mut client, "CONFIG SET metrics-dashboard no");
    assert_eq!((status("/dashboard/"), data()), (404, 404));
}

#[test]
fn the_page_is_confined_to_its_own_files() {
    let server = start(MODES[0], &[]);
    let address = server.metrics_address();
    for (path, kind) in [
        ("", "text/html; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("main.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let answer = http_get(address, &format!("/dashboard/{path}")).unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        for rule in
            ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"]
        {
            assert!(policy.contains(rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe") && answer.header("x-content-type-options") == Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    }
    for path in ["/dashboard/nothing.js", "/dashboard/../metrics", "/dashboard/api/nothing", "/dashboardx"] {
        assert_eq!(http_get(address, path).unwrap().status, 404, "{path}");
    }
    assert_eq!(post(&server, "/dashboard/", &[JSON], "").status, 405);
    let answer = http_get(address, "/dashboard/api/commands").unwrap();
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
}

#[test]
fn keys_and_values_of_any_bytes_are_read_and_written() {
    everywhere(&[], |server, client| {
        let every: Vec<u8> = (0..=255).collect();
        let (key, value) =
            (json!({ "base64": STANDARD.encode(b"\xff\0k") }), json!({ "base64": STANDARD.encode(&every) }));
        let replies = run(
            server,
            json!([["SET", key, value], ["GET", key], ["STRLEN", key], ["KEYS", "*"], ["GET", "ä\u{0}"]]),
        );
        let expected = json!([{ "simple": "OK" }, value, { "integer": "256" }, [key], null]);
        assert_eq!(replies, expected);
        assert_eq!(client.command(&[&b"GET"[..], b"\xff\0k"]), Value::Bulk(every));
        let replies = run(
            server,
            json!([
                ["HSET", "h", "ä", "1.5"],
                ["HGETALL", "h"],
                ["SADD", "s", "x"],
                ["SMEMBERS", "s"],
                ["ZADD", "z", "1.5", "m"],
                ["ZSCORE", "z", "m"],
                ["LPUSH", "h", "x"],
                ["NONSENSE"]
            ]),
        );
        assert_eq!(replies[1], json!({ "map": [[{ "text": "ä" }, { "text": "1.5" }]] }));
        assert_eq!(replies[3], json!({ "set": [{ "text": "x" }] }));
        assert_eq!(replies[5], json!({ "double": "1.5" }));
        assert!(replies[6]["error"].as_str().unwrap().starts_with("WRONGTYPE "));
        assert!(replies[7]["error"].as_str().unwrap().starts_with("ERR unknown command"));
    });
}

#[test]
fn commands_use_the_given_database_and_may_be_a_transaction() {
    everywhere(&[], |server, client| {
        let body = json!({ "database": 3, "commands": [["MULTI"], ["SET", "k", "v"], ["DBSIZE"], ["EXEC"]] });
        let (status, answer) = ask(server, "commands", None, &body);
        assert_eq!((status, &answer["replies"][3]), (200, &json!([{ "simple": "OK" }, { "integer": "1" }])));
        assert_eq!(run(server, json!([["DBSIZE"]])), json!([{ "integer": "0" }]));
        let (status, answer) =
            ask(server, "commands", None, &json!({ "database": 99, "commands": [["SET", "k", "v"]] }));
        assert_eq!((status, answer["error"].as_str()), (400, Some("ERR DB index is out of range")));
        assert_eq!(client.run("DBSIZE"), Value::Integer(0), "no command runs in another database");
    });
}

#[test]
fn with_a_password_set_unauthenticated_requests_get_no_data() {
    everywhere(&[], |server, client| {
        assert_eq!(run(server, json!([["SET", "secret", "x"]])), json!([{ "simple": "OK" }]));
        assert_ok(client, "CONFIG SET requirepass open-sesame");
        let get = json!({ "commands": [["GET", "secret"]] });
        for what in ["commands", "permitted", "overview"] {
            let (status, answer) = ask(server, what, None, &get);
            assert!(status == 401 && answer["error"].as_str().unwrap().starts_with("NOAUTH "), "{answer}");
            let (status, answer) = ask(server, what, Some(("default", "wrong")), &get);
            assert!(status == 401 && answer["error"].as_str().unwrap().starts_with("WRONGPASS "), "{answer}");
            assert_eq!(ask(server, what, Some(("default", "open-sesame")), &get).0, 200);
        }
        // The page contains no secrets, so the server does not make the browser ask for a password.
        assert_eq!(http_get(server.metrics_address(), "/dashboard/").unwrap().status, 200);
        let answer = post(server, "/dashboard/api/commands", &[JSON], &get.to_string());
        assert!(
            answer.header("www-authenticate").is_some_and(|scheme| !scheme.to_lowercase().contains("basic"))
        );
        for wrong in ["Basic", "Basic ???", "Bearer open-sesame"] {
            let answer =
                post(server, "/dashboard/api/commands", &[JSON, ("Authorization", wrong)], &get.to_string());
            assert_eq!(answer.status, 401, "{wrong}");
        }
        let log = client.run("ACL LOG").elements().unwrap()[0].pairs().unwrap();
        let field = |name: &str| log.iter().find(|(key, _)| key.text() == name).unwrap().1.clone();
        assert_eq!(
            (field("reason").text(), field("username").text()),
            ("auth".to_owned(), "default".to_owned())
        );
        assert_eq!((field("object").text(), field("count")), ("HELLO".to_owned(), Value::Integer(3)));
        let about = field("client-info").text();
        let ours = format!(" laddr={} ", server.metrics_address());
        assert!(about.contains(" addr=127.0.0.1:") && about.contains(&ours), "{about}");
    });
}

#[test]
fn a_user_is_limited_to_its_rules_and_can_query_them() {
    everywhere(&[], |server, client| {
        assert_ok(client, "ACL SETUSER reader on >pass ~shop:* +@read -randomkey +slowlog|get");
        assert_ok(client, "SET shop:a 1");
        let calls = json!([
            ["GET", "shop:a"],
            ["GET", "bank:a"],
            ["SET", "shop:a", "2"],
            ["DEL", "shop:a"],
            ["SLOWLOG", "GET"],
            ["SLOWLOG", "RESET"],
            ["CONFIG", "GET", "*"],
            ["RANDOMKEY"],
            ["DEL"],
            ["NONSENSE"],
        ]);
        let body = json!({ "commands": calls });
        let reader = Some(("reader", "pass"));
        let (status, answer) = ask(server, "permitted", reader, &body);
        let expected = json!([true, false, false, false, true, false, false, false, false, false]);
        assert_eq!((status, &answer["permitted"]), (200, &expected));
        let with_other_keys = json!([true, true, false, false, true, false, false, false, false, false]);
        assert_eq!(answer["with_other_keys"], with_other_keys);
        let (_, answer) = ask(server, "commands", reader, &body);
        for (reply, allowed) in answer["replies"].as_array().unwrap().iter().zip(expected.as_array().unwrap())
        {
            assert_eq!(reply["error"].is_null(), allowed.as_bool().unwrap(), "{reply}");
        }
        assert_eq!(
            answer["replies"][2]["error"],
            "NOPERM User reader has no permissions to run the 'set' command"
        );
        let (status, answer) = ask(server, "overview", reader, &json!({ "commands": [] }));
        assert_eq!(status, 200);
        assert!(
            answer["refused"].as_str().unwrap().starts_with("NOPERM ") && answer["figures"].is_null(),
            "{answer}"
        );
        let (_, answer) = ask(server, "permitted", None, &body);
        assert_eq!(answer["permitted"][3], true, "the default user may");
        assert_ok(client, "ACL SETUSER reader off");
        assert_eq!(ask(server, "commands", reader, &body).0, 401);
        assert_eq!(client.run("GET shop:a").text(), "1");
    });
}

#[test]
fn pages_of_other_origins_are_refused() {
    let server = start(MODES[0], &[]);
    let address = server.metrics_address();
    let set = r#"{"commands": [["SET", "k", "v"]]}"#;
    let path = "/dashboard/api/commands";
    let status = |fields: &[(&str, &str)]| post(&server, path, fields, set).status;
    let evil_name = format!("evil.example:{}", address.port());
    assert_eq!(status(&[JSON, ("Host", &evil_name)]), 421);
    assert_eq!(status(&[JSON, ("Host", &evil_name), ("Origin", &format!("http://{evil_name}"))]), 421);
    assert_eq!(status(&[JSON, ("Origin", "http://evil.example")]), 403);
    assert_eq!(status(&[JSON, ("Origin", "null")]), 403);
    assert_eq!(status(&[JSON, ("Sec-Fetch-Site", "cross-site")]), 403);
    assert_eq!(
        status(&[JSON, ("Sec-Fetch-Site", "same-site"), ("Origin", &format!("http://{address}"))]),
        403
    );
    // These content types, which a form may send without a preflight request, are refused.
    assert_eq!(status(&[("Content-Type", "text/plain")]), 415);
    assert_eq!(status(&[("Content-Type", "application/x-www-form-urlencoded")]), 415);
    assert_eq!(status(&[]), 415);
    let question = format!(
        "OPTIONS {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://evil.example\r\n\
         Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\r\n"
    );
    let answer = http_exchange(address, question.as_bytes()).unwrap();
    assert!(
        answer.status == 405 && !answer.head.to_lowercase().contains("access-control-allow"),
        "{answer:?}"
    );
    assert_eq!(http_get(address, "/dashboard/").unwrap().status, 200);
    let page = format!("GET /dashboard/ HTTP/1.1\r\nHost: {evil_name}\r\n\r\n");
    assert_eq!(http_exchange(address, page.as_bytes()).unwrap().status, 421);
    assert_eq!(server.client().run("EXISTS k"), Value::Integer(0), "no command was run");
    let own = format!("http://{address}");
    for fields in
        [vec![JSON, ("Origin", own.as_str())], vec![JSON, ("Sec-Fetch-Site", "same-origin")], vec![JSON]]
    {
        assert_eq!(status(&fields), 200, "{fields:?}");
    }
    assert_eq!(status(&[JSON, ("Host", "localhost")]), 200);
}

#[test]
fn a_request_has_exactly_one_host() {
    let server = start(MODES[0], &[]);
    let address = server.metrics_address();
    let port = address.port();
    let status = |target: &str, hosts: &[&str]| {
        let fields: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        http_exchange(address, format!("GET {target} HTTP/1.1\r\n{fields}\r\n").as_bytes()).unwrap().status
    };
    let own = address.to_string();
    for path in ["/dashboard/", "/", "/metrics", "/health", "/ready", "/nothing"] {
        assert_ne!(status(path, &[&own]), 400, "{path}");
        for hosts in [
            &[own.as_str(), "evil.example"][..],
            &["evil.example", &own],
            &[&own, &own],
            &["[::1]evil"],
            &[&format!("[::1]evil:{port}")],
            &[&format!("user@{own}")],
            &["127.0.0.1, evil.example"],
            &["127.0.0.1:99999"],
        ] {
            assert_eq!(status(path, hosts), 400, "{path} {hosts:?}");
        }
        for host in [&own, "evil.example"] {
            assert_eq!(status(&format!("http://{host}{path}"), &[&own]), 400, "{host}{path}");
        }
    }
    let absolute = format!("http://{own}/dashboard/api/commands");
    let set = r#"{"commands": [["SET", "k", "v"]]}"#;
    assert_eq!(post(&server, &absolute, &[JSON], set).status, 400);
    assert_eq!(post(&server, "/dashboard/api/commands", &[JSON, ("Host", "[::1]evil")], set).status, 400);
    assert_eq!(server.client().run("EXISTS k"), Value::Integer(0), "no command was run");
    assert_eq!(status("/dashboard/", &[&format!("[::1]:{port}")]), 200);
}

#[test]
fn requests_and_replies_are_bounded() {
    everywhere(&[], |server, client| {
        let large = "v".repeat(1 << 20);
        let body = json!({ "commands": [["SET", "k", large]] });
        let (status, answer) = ask(server, "commands", None, &body);
        assert_eq!((status, answer["error"].as_str()), (413, Some("a request has at most 1048576 bytes")));
        assert_eq!(client.run("EXISTS k"), Value::Integer(0));
        client.command(&["SET", "k", &"v".repeat(5 << 20)]);
        let (status, answer) = ask(server, "commands", None, &json!({ "commands": [["GET", "k"]] }));
        assert_eq!((status, answer["error"].as_str()), (422, Some("the reply has more than 4194304 bytes")));
        let (status, answer) =
            ask(server, "commands", None, &json!({ "commands": [["STRLEN", "k"], ["GET", "k"]] }));
        assert_eq!((status, &answer["replies"]), (200, &json!([{ "integer": "5242880" }])));
        assert_eq!(answer["error"], "the reply has more than 4194304 bytes");
        let too_many = json!({ "commands": vec![["PING"]; 513] });
        assert_eq!(ask(server, "commands", None, &too_many).0, 400);
        for body in ["", "[]", "{\"commands\": 1}", "{\"commands\": [[]]}", "{\"commands\": [], \"x\": 1}"] {
            assert_eq!(post(server, "/dashboard/api/commands", &[JSON], body).status, 400, "{body}");
        }
    });
}

/// Returns the number of connected dashboard clients.
fn visitors(client: &mut RawClient) -> usize {
    client.run("CLIENT LIST").text().matches(" name=dashboard ").count()
}

#[test]
fn commands_that_need_an_open_connection_end_over_http() {
    everywhere(&[], |server, client| {
        for command in
            [json!(["SUBSCRIBE", "news"]), json!(["PSUBSCRIBE", "*"]), json!(["SSUBSCRIBE", "news"])]
        {
            let (status, answer) = ask(server, "commands", None, &json!({ "commands": [command] }));
            assert_eq!(
                (status, answer["error"].as_str()),
                (422, Some("this command needs a permanent connection"))
            );
        }
        assert_eq!(run(server, json!([["MONITOR"]])), json!([{ "simple": "OK" }]));
        let (status, answer) =
            ask(server, "commands", None, &json!({ "commands": [["BLPOP", "list", "0"]] }));
        assert_eq!((status, answer["error"].as_str()), (504, Some("there was no reply within 5 seconds")));
        wait_until("no client waits any more", || {
            client.info("blocked_clients") == "0" && visitors(client) == 0
        });
        assert_eq!(client.run("RPUSH list x"), Value::Integer(1), "no client takes it");
    });
}

#[test]
fn a_blocking_command_ends_when_its_visitor_disconnects() {
    everywhere(&[], |server, client| {
        let address = server.metrics_address();
        let mut stream = TcpStream::connect(address).unwrap();
        let body = r#"{"commands": [["BLPOP", "list", "0"]]}"#;
        stream.write_all(&request(address, "/dashboard/api/commands", &[JSON], body)).unwrap();
        wait_until("the command waits", || client.info("blocked_clients") == "1");
        let line = client.run("CLIENT LIST").text();
        let expected = format!(" addr={} laddr={address} ", stream.local_addr().unwrap());
        assert!(
            line.lines().any(|line| line.contains(&expected) && line.contains(" name=dashboard ")),
            "{line}"
        );
        drop(stream);
        wait_until("the visitor is disconnected", || {
            client.info("blocked_clients") == "0" && visitors(client) == 0
        });
    });
}

#[test]
fn visitors_are_counted_and_listed_as_clients() {
    everywhere(&["--maxclients", "2"], |server, client| {
        let mut monitor = server.client();
        assert_eq!(monitor.run("PING").text(), "PONG", "the monitor is connected before the visitor");
        let (status, answer) = ask(server, "commands", None, &json!({ "commands": [["PING"]] }));
        assert_eq!((status, answer["error"].as_str()), (503, Some("ERR max number of clients reached")));
        assert_ok(client, "CONFIG SET maxclients 3");
        assert_ok(client, "CONFIG SET slowlog-log-slower-than 0");
        assert_ok(&mut monitor, "MONITOR");
        wait_until("the former visitor is disconnected", || visitors(client) == 0);
        run(server, json!([["SET", "seen", "x"]]));
        wait_until("the monitor shows it", || {
            monitor.read_value().unwrap().text().contains("\"SET\" \"seen\" \"x\"")
        });
        let log = client.run("SLOWLOG GET");
        let is_there = log.elements().unwrap().iter().any(|entry| {
            let entry = entry.elements().unwrap();
            entry[3].elements().unwrap()[0].text() == "HELLO" && entry[5].text() == "dashboard"
        });
        assert!(is_there, "{log:?}");
    });
}

/// Opens the stream of a command as a user, or without one.
fn listen(server: &Server, user: Option<(&str, &str)>, command: &Json) -> EventStream {
    let address = server.metrics_address();
    let authorization = user.map(|(name, password)| basic(name, password));
    let fields = authorization.as_deref().map(|value| ("Authorization", value));
    let fields: Vec<_> = [JSON].into_iter().chain(fields).collect();
    let body = json!({ "commands": [command] }).to_string();
    EventStream::request(address, &request(address, "/dashboard/api/listen", &fields, &body)).unwrap()
}

/// Returns the data of the next event.
#[track_caller]
fn heard(stream: &mut EventStream) -> Json {
    serde_json::from_str(&stream.next_event().unwrap().expect("the stream continues").data).unwrap()
}

/// Returns the number of connections of streams.
fn listeners(client: &mut RawClient) -> usize {
    client.run("CLIENT LIST").text().matches(" name=dashboard-stream ").count()
}

#[test]
fn published_messages_are_streamed_until_the_page_closes() {
    everywhere(&[], |server, client| {
        let mut stream = listen(server, None, &json!(["PSUBSCRIBE", "news*", "b*"]));
        assert_eq!((stream.status, stream.header("cache-control")), (200, Some("no-store")));
        assert_eq!(client.command(&[&b"PUBLISH"[..], b"news:1", b"a\xff"]), Value::Integer(1));
        let event = heard(&mut stream);
        let row = &event["rows"][0];
        assert_eq!((&event["missed"], &row["length"]), (&json!(0), &json!(2)));
        assert_eq!(row["pattern"], json!({ "text": "news*" }));
        assert_eq!(
            (&row["channel"], &row["message"]),
            (&json!({ "text": "news:1" }), &json!({ "base64": "Yf8=" }))
        );
        // Only the beginning of a long message is sent.
        client.command(&["PUBLISH", "big", &"x".repeat(3 << 20)]);
        let row = heard(&mut stream)["rows"][0].take();
        assert_eq!(row["length"], 3 << 20);
        assert_eq!(row["message"]["text"].as_str().unwrap().len(), 4096);
        assert_eq!(listeners(client), 1);
        drop(stream);
        wait_until("the subscription has ended", || listeners(client) == 0);
        assert_eq!(client.run("PUBLISH news:1 b"), Value::Integer(0));

        let mut shard = listen(server, None, &json!(["SSUBSCRIBE", "orders"]));
        client.run("SPUBLISH orders 7");
        assert_eq!(heard(&mut shard)["rows"][0]["message"], json!({ "text": "7" }));
    });
}

#[test]
fn the_commands_of_clients_are_streamed_within_limits() {
    everywhere(&[], |server, client| {
        let mut stream = listen(server, None, &json!(["MONITOR"]));
        assert_eq!(stream.status, 200, "{}", stream.head);
        client.command(&["SET", "k", &"v".repeat(100_000)]);
        let row = heard(&mut stream)["rows"][0].take();
        let row = row.as_str().unwrap();
        assert!(row.contains(" \"SET\" \"k\" \"vvv") && row.ends_with(" bytes)"), "{row:.100}");
        assert!(row.len() < 5000, "{}", row.len());
        // An event has at most 200 rows; the others are counted.
        let calls: Vec<Vec<String>> =
            (0..3000).map(|number| vec!["GET".to_owned(), format!("key:{number}")]).collect();
        client.pipeline(&calls).unwrap();
        let (mut shown, mut missed) = (0, 0);
        while shown + missed < 3000 {
            let event = heard(&mut stream);
            let rows = event["rows"].as_array().unwrap().len();
            assert!(rows <= 200, "{rows}");
            shown += rows as u64;
            missed += event["missed"].as_u64().unwrap();
        }
        assert_eq!(shown + missed, 3000);
        // The third one is refused, and a place is free again once a stream has ended.
        let second = listen(server, None, &json!(["MONITOR"]));
        assert_eq!((second.status, listen(server, None, &json!(["MONITOR"])).status), (200, 503));
        drop(second);
        wait_until("the profiler has ended", || listeners(client) == 1);
        wait_until("another one is possible", || listen(server, None, &json!(["MONITOR"])).status == 200);
        // The server ends a stream whose connection it closes, and the page receives the reason.
        let list = client.run("CLIENT LIST").text();
        for line in list.lines().filter(|line| line.contains(" name=dashboard-stream ")) {
            let id = line.split("id=").nth(1).unwrap().split(' ').next().unwrap();
            client.run(&format!("CLIENT KILL ID {id}"));
        }
        wait_until("the stream has ended", || {
            heard(&mut stream).get("end") == Some(&json!("the server closed the connection"))
        });
        assert!(stream.next_event().unwrap().is_none());
    });
}

#[test]
fn a_page_that_does_not_read_its_stream_costs_the_server_no_memory() {
    everywhere(&[], |server, client| {
        let stream = listen(server, None, &json!(["MONITOR"]));
        assert_eq!(stream.status, 200);
        let calls: Vec<Vec<String>> = (0..100).map(|_| vec!["ECHO".to_owned(), "x".repeat(50_000)]).collect();
        for _ in 0..4 {
            client.pipeline(&calls).unwrap();
        }
        // All of it has been read and discarded, although nothing was read here; or the stream has ended.
        wait_until("nothing is unsent", || {
            let list = client.run("CLIENT LIST").text();
            let line = list.lines().find(|line| line.contains(" name=dashboard-stream "));
            line.is_none_or(|line| line.contains(" obl=0 ") && line.contains(" omem=0 "))
        });
    });
}

#[test]
fn streams_have_the_rights_of_their_user() {
    everywhere(&[], |server, client| {
        assert_ok(client, "ACL SETUSER reader on >pass ~* resetchannels &news +subscribe +psubscribe");
        assert_ok(client, "ACL SETUSER default resetpass >secret");
        let reader = Some(("reader", "pass"));
        let status = |user, command: Json| listen(server, user, &command).status;
        assert_eq!(status(None, json!(["MONITOR"])), 401);
        assert_eq!(status(Some(("reader", "wrong")), json!(["MONITOR"])), 401);
        assert_eq!(status(reader, json!(["MONITOR"])), 403);
        assert_eq!(status(reader, json!(["SUBSCRIBE", "other"])), 403);
        for command in [json!(["GET", "a"]), json!(["MONITOR", "x"]), json!(["SUBSCRIBE"]), json!(["SYNC"])] {
            assert_eq!(status(Some(("default", "secret")), command.clone()), 400, "{command}");
        }
        let mut stream = listen(server, reader, &json!(["SUBSCRIBE", "news"]));
        client.run("AUTH secret");
        client.run("PUBLISH news a");
        assert_eq!(heard(&mut stream)["rows"][0]["message"], json!({ "text": "a" }));
        // If a user loses the permission, the stream of the user ends.
        assert_ok(client, "ACL SETUSER reader resetchannels");
        assert_eq!(heard(&mut stream)["end"], "the server closed the connection");
        let page = [JSON, ("Origin", "http://evil.example")];
        let answer = post(server, "/dashboard/api/listen", &page, r#"{"commands": [["MONITOR"]]}"#);
        assert_eq!(answer.status, 403);
    });
}

#[test]
fn the_overview_shows_the_counters() {
    everywhere(&[], |server, client| {
        for _ in 0..100 {
            assert_ok(client, "SET a b");
        }
        let (status, answer) = ask(server, "overview", None, &json!({ "commands": [] }));
        assert_eq!(status, 200, "{answer}");
        assert!(answer["info"].as_str().unwrap().contains("\r\nused_memory:"));
        let figures = &answer["figures"];
        let set = &figures["commands"]["set"];
        assert_eq!(
            (set["calls"].as_u64(), set["failed"].as_u64(), set["rejected"].as_u64()),
            (Some(100), Some(0), Some(0))
        );
        let by_time: u64 =
            set["latency"].as_array().unwrap().iter().map(|calls| calls.as_u64().unwrap()).sum();
        assert_eq!(by_time, 100);
        assert_eq!(figures["workers"].as_array().unwrap().len(), 2);
        let sum = |name: &str| -> f64 {
            figures["workers"].as_array().unwrap().iter().map(|worker| worker[name].as_f64().unwrap()).sum()
        };
        assert!(
            sum("commands") >= 100.0 && sum("busy_seconds") > 0.0 && sum("connections") >= 2.0,
            "{figures}"
        );
        assert_eq!(figures["databases"], 16);
    });
}

#[test]
fn the_last_hour_is_kept_for_authorized_users() {
    let look = |server: &Server| {
        let client = &mut server.client();
        let nothing = json!({ "commands": [] });
        let past = || ask(server, "history", None, &nothing);
        let count = |answer: &Json| answer["at_ms"].as_array().unwrap().len();
        assert_eq!(past().0, 200);
        for _ in 0..100 {
            assert_ok(client, "SET a b");
        }
        wait_until("there is a sample", || count(&past().1) > 0);
        let (_, answer) = past();
        for name in
            ["operations", "received", "sent", "hits", "memory", "clients", "keys", "50", "99", "99.9"]
        {
            assert_eq!(answer[name].as_array().unwrap().len(), count(&answer), "{name}");
        }
        assert_eq!(answer["keys"][0], 1);
        // The test's own requests to the dashboard are not counted.
        let operations = answer["operations"][0].as_f64().unwrap();
        assert!(operations <= 15.0, "{operations}");
        assert_ok(client, "ACL SETUSER default -info");
        assert_eq!(past().1["refused"], "the user has no permission to run INFO");
    };
    // Samples are ten seconds apart.
    std::thread::scope(|scope| {
        for mode in MODES {
            scope.spawn(move || look(&start(mode, &[])));
        }
    });
}

#[test]
fn the_configuration_is_returned_without_passwords() {
    everywhere(&["--maxmemory", "1gb"], |server, client| {
        assert_ok(client, "CONFIG SET masterauth hunter2");
        let nothing = json!({ "commands": [] });
        let (status, answer) = ask(server, "configuration", None, &nothing);
        assert_eq!(status, 200, "{answer}");
        assert!(!answer.to_string().contains("hunter2"));
        let parameters = answer["parameters"].as_array().unwrap();
        let of = |name: &str| parameters.iter().find(|one| one["name"] == name).unwrap().clone();
        let (memory, secret) = (of("maxmemory"), of("masterauth"));
        assert_eq!((&memory["value"], &memory["default"]), (&json!("1073741824"), &json!("0")));
        assert_eq!((&memory["is_changed"], &memory["is_mutable"]), (&json!(true), &json!(true)));
        assert_eq!((&secret["is_set"], secret.get("value")), (&json!(true), None));
        assert_eq!(of("timeout")["is_changed"], false);
        assert_ok(client, "ACL SETUSER default -config|get");
        let (_, answer) = ask(server, "configuration", None, &nothing);
        assert!(answer["refused"].as_str().unwrap().starts_with("NOPERM"), "{answer}");
    });
}

#[test]
fn many_concurrent_visitors_are_served_and_leave_no_state() {
    everywhere(&[], |server, client| {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        assert_eq!(run(server, json!([["INCR", "n"]])).as_array().unwrap().len(), 1);
                    }
                });
            }
        });
        assert_eq!(client.run("GET n").text(), "200");
        wait_until("all visitors are disconnected", || visitors(client) == 0);
    });
}

#[test]
fn the_documentation_shows_actual_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dashboard.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<_> = code_blocks(&text).into_iter().filter(|block| block.language == "json").collect();
    assert!(blocks.len() >= 2 && blocks.len().is_multiple_of(2), "{blocks:?}");
    let server = start(MODES[0], &[]);
    for pair in blocks.chunks(2) {
        let [asked, answered] =
            [&pair[0], &pair[1]].map(|block| serde_json::from_str::<Json>(&block.text).unwrap());
        assert_eq!(ask(&server, "commands", None, &asked), (200, answered));
    }
}
