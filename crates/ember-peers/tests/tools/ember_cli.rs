//! redis-cli and ember-cli with the same arguments, against one server, print the same bytes and exit with the same
//! status.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ember_peers::{Mode, require_program, start_ember, start_redis};
use ember_testkit::{Server, find_ember_cli, wait_until};

/// The output and exit status of a program.
#[derive(PartialEq, Eq)]
struct Run {
    code: Option<i32>,
    out: Vec<u8>,
    err: Vec<u8>,
}

fn run(program: &Path, arguments: &[&str], input: &[u8], is_terminal: bool) -> Run {
    let mut command = Command::new(program);
    if is_terminal {
        // `script` gives a program a terminal and copies its output.
        let line: Vec<String> = std::iter::once(program.display().to_string())
            .chain(arguments.iter().map(|argument| format!("'{argument}'")))
            .collect();
        command = Command::new(require_program("script"));
        command.args(["-qec", &line.join(" "), "/dev/null"]);
    } else {
        command.args(arguments);
    }
    let mut child = command
        .env_remove("REDISCLI_AUTH")
        .env_remove("EMBERCLI_AUTH")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that does not read its input may have ended before.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run { code: output.status.code(), out: output.stdout, err: output.stderr }
}

struct Clients {
    theirs: PathBuf,
    ours: PathBuf,
    port: String,
    differences: Vec<String>,
    count: usize,
}

impl Clients {
    fn of(server: &Server) -> Clients {
        Clients {
            theirs: require_program("redis-cli"),
            ours: find_ember_cli(),
            port: server.port().to_string(),
            differences: Vec::new(),
            count: 0,
        }
    }

    fn compare(&mut self, arguments: &[&str], input: &[u8]) {
        self.compare_on(arguments, input, false);
    }

    fn compare_on(&mut self, arguments: &[&str], input: &[u8], is_terminal: bool) {
        let arguments = [&["-p", &self.port], arguments].concat();
        let theirs = run(&self.theirs, &arguments, input, is_terminal);
        let ours = run(&self.ours, &arguments, input, is_terminal);
        self.count += 1;
        if theirs != ours {
            let shown = |run: &Run| {
                format!("{:?} \"{}\" \"{}\"", run.code, run.out.escape_ascii(), run.err.escape_ascii())
            };
            self.differences.push(format!("{arguments:?}\n  {}\n  {}", shown(&theirs), shown(&ours)));
        }
    }

    fn finish(self, count_min: usize) {
        assert!(self.count >= count_min, "only {} comparisons", self.count);
        let found = self.differences.len();
        assert!(found == 0, "{found} of {}:\n{}", self.count, self.differences.join("\n"));
    }
}

/// Creates a key of each type; the value of `binary` contains bytes that need every kind of escape.
fn fill(server: &Server) {
    let mut client = server.client();
    let binary: Vec<u8> = (0..=255).filter(|&byte| byte != b'"').collect();
    client.command(&[&b"SET"[..], b"binary", &binary]);
    for line in [
        "SET text hello",
        "SET empty \"\"",
        "SET number 10",
        "RPUSH list c b a",
        "HSET hash field value",
        "SADD set member",
        "ZADD zset 1 one 2.5 two",
        "XADD stream 1-1 a b",
        "GEOADD geo 13.36 38.11 Palermo",
    ] {
        client.command(&ember_testkit::split_arguments(line).unwrap());
    }
}

const COMMANDS: [&str; 50] = [
    "get text",
    "get empty",
    "get nothing",
    "get binary",
    "set other value",
    "no such command",
    "get",
    "hgetall hash",
    "hgetall nothing",
    "mget text nothing list",
    "lrange list 0 -1",
    "lrange nothing 0 -1",
    "smembers set",
    "smembers nothing",
    "zrange zset 0 -1 withscores",
    "zscore zset two",
    "zrandmember zset 0",
    "xrange stream - +",
    "xinfo stream stream",
    "geopos geo Palermo nobody",
    "config get maxmemory*",
    "config get save",
    "ping",
    "ping hello",
    "echo a%b\\n",
    "object encoding number",
    "type list",
    "exists text nothing",
    "scan 0 count 100",
    "hscan hash 0",
    "command info get",
    "command count2",
    "command getkeys mset a b c d",
    "debug protocol string",
    "debug protocol integer",
    "debug protocol double",
    "debug protocol null",
    "debug protocol array",
    "debug protocol set",
    "debug protocol map",
    "debug protocol true",
    "debug protocol false",
    "debug protocol verbatim",
    "eval return{1,{2,{3}},'x'} 0",
    "eval return{} 0",
    "eval return{err='A'} 0",
    "eval return{{err='A'},{ok='B'}} 0",
    "acl whoami",
    "select 3",
    "select 99",
];

#[test]
fn replies_are_printed_alike_in_every_format() {
    let forms: [&[&str]; 14] = [
        &[],
        &["--raw"],
        &["--no-raw"],
        &["--csv"],
        &["--json"],
        &["--quoted-json"],
        &["-3"],
        &["-3", "--no-raw"],
        &["-3", "--csv"],
        &["-3", "--json"],
        &["-2", "--json"],
        &["-d", ",", "-D", ";"],
        &["-D", "|", "--no-raw"],
        &["-e"],
    ];
    for server in [start_redis(), start_ember(Mode::Sharded)] {
        fill(&server);
        let mut clients = Clients::of(&server);
        for form in forms {
            for command in COMMANDS {
                let words: Vec<&str> = command.split(' ').collect();
                clients.compare(&[form, &words].concat(), b"");
            }
        }
        clients.finish(14 * 50);
    }
}

#[test]
fn replies_are_printed_alike_on_a_terminal() {
    let server = start_ember(Mode::Concurrent);
    fill(&server);
    let mut clients = Clients::of(&server);
    for command in COMMANDS {
        let words: Vec<&str> = command.split(' ').collect();
        // The shell in between would interpret quotes.
        if !command.contains('\'') {
            clients.compare_on(&words, b"", true);
            clients.compare_on(&[&["-3"], &words[..]].concat(), b"", true);
        }
    }
    clients.compare_on(&["--raw", "get", "text"], b"", true);
    clients.compare_on(&["--scan"], b"", true);
    clients.finish(90);
}

/// Tests maps within a map, with values of each kind on one line and on several lines.
#[test]
fn nested_replies_are_indented_alike() {
    let server = start_redis();
    let mut clients = Clients::of(&server);
    for script in [
        "return {map={a={map={b=1}}}}",
        "return {map={a={1,2},b={set={x=true}}}}",
        "return {{map={a={1,{2,3}}}},{map={a={}}}}",
        "return {map={a={double=1.5},b={map={c={map={d={1,{map={e={5,6}}}}}}}}}}",
        "return {map={a={verbatim_string={format='txt',string='x\\ny'}}}}",
        "return {map={a={{verbatim_string={format='txt',string='x\\ny'}}}}}",
        "return {1,2,3,4,5,6,7,8,9,{10,{11,12}}}",
    ] {
        for form in ["--no-raw", "--raw", "--csv", "--json"] {
            clients.compare(&["-3", form, "eval", &format!("redis.setresp(3) {script}"), "0"], b"");
        }
    }
    clients.finish(28);
}

#[test]
fn lines_of_standard_input_are_run_alike() {
    let server = start_ember(Mode::Sharded);
    fill(&server);
    let mut clients = Clients::of(&server);
    let inputs: [&[u8]; 6] = [
        b"set a 1\nget a\n\n  \nno such\nget \"open\nlrange list 0 -1\nselect 3\nget a\nselect 0\nget a",
        b"multi\nset b 1\nget b\nexec\nmulti\ndiscard\n3 ping\n\"get\" \"\\x61\"\nget 'a'\nget 'a'b\n",
        b"get a\nquit\nget a\n",
        b"PING\nEXIT\n",
        b"clear\n:set hints\ninfo commandstats2\nreset\nping\n",
        b"",
    ];
    for form in [&[][..], &["--no-raw"], &["--csv"], &["--json"], &["-3", "--no-raw"], &["-n", "2"]] {
        for input in inputs {
            clients.compare(form, input);
        }
    }
    clients.finish(36);
}

#[test]
fn options_mean_the_same() {
    let server = start_ember(Mode::Sharded);
    fill(&server);
    let mut clients = Clients::of(&server);
    let script = server.directory().join("script.lua");
    std::fs::write(&script, "return {KEYS[1] or 'none', ARGV[1] or 'none', #KEYS}").unwrap();
    let script = script.to_str().unwrap();
    let uri = |rest: &str| format!("redis://127.0.0.1:{}{rest}", server.port());
    let cases: [&[&str]; 40] = [
        &["-x", "set", "from-input"],
        &["get", "from-input"],
        &["-X", "WORD", "set", "WORD", "value"],
        &["-X", "WORD", "set", "other", "value"],
        &["-x", "-X", "WORD", "set", "WORD"],
        &["-r", "3", "ping"],
        &["-r", "0", "ping"],
        &["-r", "2", "-i", "0.01", "ping"],
        &["--scan"],
        &["--scan", "--pattern", "l*"],
        &["--no-raw", "--scan"],
        &["--csv", "--scan"],
        &["--scan", "--quoted-pattern", "\"l\\x69*\""],
        &["--bigkeys"],
        &["--memkeys"],
        &["--memkeys-samples", "0"],
        &["--bigkeys", "-i", "0.01"],
        &["--hotkeys"],
        &["--quoted-input", "get", "\"text\""],
        &["--quoted-input", "get", "\"text"],
        &["--quoted-input", "get", "text"],
        &["--quoted-input", "set", "'two words'", "\"\\xff\""],
        &["-a", "wrong", "ping"],
        &["-a", "wrong", "--no-auth-warning", "ping"],
        &["--pass", "wrong", "ping"],
        &["--user", "nobody", "--pass", "wrong", "ping"],
        &["-n", "3", "dbsize"],
        &["-n", "99", "ping"],
        &["-e", "get", "list"],
        &["-p", "1", "ping"],
        &["-p", "1", "--scan"],
        &["-p", "1", "-s", "/no/such/socket", "ping"],
        &["--eval", "/no/such/file"],
        &["--eval", script],
        &["--eval", script, "key"],
        &["--eval", script, "key", ",", "argument"],
        &["--no-raw", "--eval", script, "key", ",", "argument", ","],
        &["-u", &uri("/3"), "dbsize"],
        &["-u", "http://somewhere", "ping"],
        &["-u", &format!("redis://nobody:wrong@127.0.0.1:{}/3", server.port()), "dbsize"],
    ];
    for arguments in cases {
        clients.compare(arguments, b"from standard input\n");
    }
    clients.finish(40);
}

#[test]
fn pipe_mode_works_alike() {
    let server = start_ember(Mode::Sharded);
    let mut clients = Clients::of(&server);
    let mut many = Vec::new();
    for number in 0..20_000 {
        write!(many, "*3\r\n$3\r\nSET\r\n$9\r\nkey:{number:05}\r\n$5\r\n{number:05}\r\n").unwrap();
    }
    let inputs: [&[u8]; 5] = [
        &many,
        b"SET a 1\r\nGET a\r\nNOTHING\r\n*1\r\n$4\r\nPING\r\n",
        b"",
        b"PING\nPING",
        b"PING\nGET a\nEVAL \"return {1,{2},'x'}\" 0\n",
    ];
    for input in inputs {
        clients.compare(&["--pipe"], input);
    }
    clients.finish(5);
}

/// Starts a cluster node without slots, which redirects every request; returns its port.
fn redirecting(to: &Server) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = format!("-MOVED 12539 {}\r\n", to.address());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let mut bytes = [0; 4096];
            while let Ok(1..) = std::io::Read::read(&mut stream, &mut bytes) {
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    port
}

#[test]
fn redirections_are_followed_alike() {
    let server = start_ember(Mode::Sharded);
    fill(&server);
    let mut clients = Clients::of(&server);
    clients.port = redirecting(&server).to_string();
    clients.compare(&["-c", "get", "text"], b"");
    clients.compare(&["-c", "--no-raw", "lrange", "list", "0", "-1"], b"");
    clients.compare(&["-c"], b"get text\nget number\n");
    clients.compare(&["get", "text"], b"");
    clients.finish(4);
}

/// The files differ in facts about the server and the time, so only the printed length of the copied file is compared.
#[test]
fn rdb_files_are_copied_from_redis_and_from_ember() {
    let code = "#!lua name=library\nredis.register_function('f', function() return 1 end)";
    for server in [start_redis(), start_ember(Mode::Sharded)] {
        fill(&server);
        let mut client = server.client();
        assert_eq!(client.command(&["FUNCTION", "LOAD", code]).text(), "library");
        // The delay serves replicas that share a full sync.
        client.run("CONFIG SET repl-diskless-sync-delay 0");
        let port = server.port().to_string();
        for program in [find_ember_cli(), require_program("redis-cli")] {
            for (mode, found) in [("--rdb", "10 keys"), ("--functions-rdb", "0 keys")] {
                let file = server.directory().join("copy.rdb");
                let path = file.to_str().unwrap();
                let output = run(&program, &["-p", &port, mode, path], b"", false);
                assert_eq!(output.code, Some(0), "{mode}: {}", output.err.escape_ascii());
                let content = std::fs::read(&file).unwrap();
                assert!(
                    String::from_utf8_lossy(&output.err).contains("Transfer finished with success"),
                    "{mode}: {}",
                    output.err.escape_ascii()
                );
                assert!(content.windows(12).any(|part| part == b"name=library"), "{mode}");
                let check = run(&find_ember_cli(), &["check", path], b"", false);
                assert_eq!(check.code, Some(0), "{mode}: {}", check.err.escape_ascii());
                assert!(
                    String::from_utf8_lossy(&check.out).contains(found),
                    "{mode}: {}",
                    check.out.escape_ascii()
                );
                let output = run(&program, &["-p", &port, mode, "-"], b"", false);
                assert!(output.out.starts_with(b"REDIS"), "{mode}: {}", output.err.escape_ascii());
                std::fs::remove_file(&file).unwrap();
            }
        }
        wait_until("the copies are no replicas", || client.info_number("connected_slaves") == 0);
    }
}

#[test]
fn every_option_of_redis_cli_exists_or_is_listed_as_a_difference() {
    let options = |text: &str| -> Vec<String> {
        let words =
            text.split(|letter: char| letter.is_whitespace() || matches!(letter, ',' | '<' | '[' | '='));
        words.filter(|word| word.len() > 1 && word.starts_with('-')).map(str::to_owned).collect()
    };
    let help = |program: &Path| {
        let output = run(program, &["--help"], b"", false);
        String::from_utf8([output.out, output.err].concat()).unwrap()
    };
    let theirs = help(&require_program("redis-cli"));
    let begins = theirs.lines().filter(|line| line.trim_start().starts_with('-')).map(|line| {
        let line = line.trim_start();
        line.split("  ").next().unwrap_or(line)
    });
    let theirs: Vec<String> = begins.flat_map(options).collect();
    assert!(theirs.len() > 50, "{theirs:?}");
    let ours = options(&help(&find_ember_cli()));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, list) = page.split_once("### Differences from redis-cli").unwrap();
    for option in theirs {
        let is_listed =
            list.lines().any(|line| line.contains(&format!("`{option}`")) && line.contains("no such option"));
        assert_ne!(
            ours.contains(&option),
            is_listed,
            "{option}: it exists, or docs/cli.md explains its absence"
        );
    }
}

#[test]
fn the_replication_stream_is_shown_alike() {
    for server in [start_redis(), start_ember(Mode::Sharded)] {
        let mut client = server.client();
        client.run("SET before 1");
        client.run("CONFIG SET repl-diskless-sync-delay 0");
        let port = server.port().to_string();
        let shown = [find_ember_cli(), require_program("redis-cli")].map(|program| {
            let mut child = Command::new(program)
                .args(["-p", &port, "--replica"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            wait_until("the replica is connected", || {
                client.info("connected_slaves") == "1" && client.info("slave0").contains("state=online")
            });
            client.command(&["SET", "a", "x \"y\"\n"]);
            client.run("RPUSH list 1 2");
            client.run("DEL a list");
            // SELECT is sent to the first replica only, while it is connected.
            let is_said =
                |line: &String| !["PING", "GETACK", "SELECT"].iter().any(|word| line.contains(word));
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
            let lines: Vec<String> = lines.filter(is_said).take(3).collect();
            child.kill().unwrap();
            child.wait().unwrap();
            wait_until("the replica is disconnected", || client.info("connected_slaves") == "0");
            lines
        });
        let lines = [r#""SET","a","x \"y\"\n""#, r#""RPUSH","list","1","2""#];
        for shown in &shown {
            assert_eq!(shown[..2], lines, "{shown:?}");
            assert!(shown[2].eq_ignore_ascii_case(r#""DEL","a","list""#), "{shown:?}");
        }
    }
}

#[test]
fn endless_modes_print_the_same_lines() {
    let shape = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let last: Vec<&str> = text.lines().rev().take(2).collect();
        last.join("\n").split(|letter: char| letter.is_ascii_digit() || letter == '.').collect::<String>()
    };
    let arguments = ["--intrinsic-latency", "1"];
    let theirs = run(&require_program("redis-cli"), &arguments, b"", false);
    let ours = run(&find_ember_cli(), &arguments, b"", false);
    assert_eq!((shape(&theirs.out), theirs.code), (shape(&ours.out), ours.code));
}
