//! Sends the same random commands to redis-server and ember over several connections and compares every reply.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::time::Duration;

use ember_testkit::{RawClient, Server, Value, encode_command, quote, render};

use crate::exceptions::{Case, allowances, comparable_contents, comparable_encoding, replies_agree};
use crate::generate::{COMMANDS, Draw, Outcome, Step, Words, is_key};

/// The number of connections to each server. Only one is used at a time, so both servers receive the commands in the
/// same order.
const CONNECTION_COUNT: usize = 4;

/// The maximum number of commands in one write.
const BATCH_COMMANDS_MAX: usize = 64;

/// Size of the requests in bytes after which a batch is sent: far smaller than the socket buffers, since all requests
/// of a batch are written before any reply is read.
const BATCH_BYTES_MAX: usize = 32 * 1024;

/// The default number of databases in both servers.
const DATABASE_COUNT: usize = 16;

/// The number of latest commands stored for the report of a difference.
const HISTORY_COUNT: usize = 20_000;

/// The maximum number of commands in that report.
const REPORT_COMMANDS_MAX: usize = 40;

/// The number of differences after which a run stops. After each difference both servers are emptied, so that one bug
/// does not cause several.
const DIFFERENCES_MAX: usize = 25;

/// The number of commands between two comparisons of the whole keyspace.
const KEYSPACE_CHECK_INTERVAL: usize = 10_000;

/// The maximum number of rounds of SCAN.
const SCAN_ROUNDS_MAX: usize = 100_000;

/// The maximum number of characters of a value that are compared with the other server's.
const CONTENTS_CHARACTERS_MAX: usize = 100_000;

/// The timeout of a reply: batches take milliseconds, or seconds on a busy machine.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// The protocol of the connections of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, the default protocol.
    Resp2,
    /// RESP3, selected with HELLO 3.
    Resp3,
}

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The seed of the random commands; equal seeds produce equal commands.
    pub seed: u64,
    /// The number of commands to send to each server.
    pub commands: usize,
    /// The protocol of the connections, apart from a few HELLO commands.
    pub protocol: Protocol,
}

/// Runs a plan against both servers.
///
/// # Panics
/// Panics if a reply differs and no exception allows it. The message contains the seed, the command, both replies and
/// the latest commands on the same keys. Several differences are collected before the run ends.
pub fn compare_servers(redis: &Server, ember: &Server, plan: Plan) {
    let mut run = Run::new(redis, ember, plan);
    while run.sent < plan.commands && run.differences.len() < DIFFERENCES_MAX && !run.broken {
        run.batch();
    }
    if !run.broken {
        run.compare_keyspaces();
    }
    let count = run.differences.len();
    let mut commands: Vec<_> = run.seen.iter().map(String::as_str).collect();
    commands.sort_unstable();
    assert!(
        count == 0,
        "{count} differences after {} commands, seed {} ({:?}):\n\n{}",
        run.sent,
        plan.seed,
        plan.protocol,
        run.differences.join("\n")
    );
    let missing: Vec<_> = COMMANDS
        .iter()
        .copied()
        .flatten()
        .map(|generator| generator.name)
        .filter(|name| !run.seen.contains(*name))
        .collect();
    assert!(plan.commands < 10_000 || missing.is_empty(), "never sent: {missing:?}");
}

struct Run<'a> {
    plan: Plan,
    draw: Draw,
    servers: [&'a Server; 2],
    /// The clients `[redis, ember]` of each connection.
    connections: Vec<[RawClient; 2]>,
    /// For each connection, whether HELLO or RESET may have changed its protocol.
    changed: Vec<bool>,
    sent: usize,
    history: VecDeque<(usize, Words)>,
    seen: BTreeSet<String>,
    differences: Vec<String>,
    /// Whether a connection broke or timed out: then the run stops, because each further command would time out, too.
    broken: bool,
    next_keyspace_check: usize,
}

impl<'a> Run<'a> {
    fn new(redis: &'a Server, ember: &'a Server, plan: Plan) -> Self {
        let draw = Draw::new(plan.seed, arities(&mut redis.client()));
        let mut run = Run {
            plan,
            draw,
            servers: [redis, ember],
            connections: Vec::new(),
            changed: vec![true; CONNECTION_COUNT],
            sent: 0,
            history: VecDeque::new(),
            seen: BTreeSet::new(),
            differences: Vec::new(),
            broken: false,
            next_keyspace_check: KEYSPACE_CHECK_INTERVAL,
        };
        run.start_over();
        run
    }

    /// Empties the servers and opens new connections.
    fn start_over(&mut self) {
        for server in self.servers {
            let flushed = server.client().run("FLUSHALL");
            assert_eq!(flushed, Value::ok(), "FLUSHALL works on both servers");
        }
        self.connections = (0..CONNECTION_COUNT).map(|_| self.servers.map(connect)).collect();
        self.changed = vec![true; CONNECTION_COUNT];
    }

    fn batch(&mut self) {
        let connection = self.draw.random.below(CONNECTION_COUNT);
        let mut steps = Vec::new();
        if std::mem::take(&mut self.changed[connection]) {
            let version = if self.plan.protocol == Protocol::Resp3 { "3" } else { "2" };
            steps.push(Step::reply(vec![b"HELLO".to_vec(), version.as_bytes().to_vec()]));
        }
        let count = 1 + self.draw.random.below(BATCH_COMMANDS_MAX);
        let mut length = 0;
        while steps.len() < count && length < BATCH_BYTES_MAX {
            for step in self.draw.steps() {
                length += step.words.iter().map(Vec::len).sum::<usize>();
                steps.push(step);
            }
            if steps.last().is_some_and(|step| matches!(step.outcome, Outcome::Close | Outcome::Iterate)) {
                break;
            }
        }
        let iterate = steps.pop_if(|step| step.outcome == Outcome::Iterate);
        self.run_steps(connection, &steps);
        if let Some(step) = iterate {
            self.iterate(connection, &step.words);
        }
        if self.sent >= self.next_keyspace_check {
            self.next_keyspace_check += KEYSPACE_CHECK_INTERVAL;
            self.compare_keyspaces();
        }
    }

    /// Sends the steps to both servers and compares the replies one by one.
    fn run_steps(&mut self, connection: usize, steps: &[Step]) {
        for step in steps {
            self.sent += 1;
            self.seen.insert(command_name(&step.words).split('|').next().unwrap_or_default().to_owned());
            self.history.push_back((connection, step.words.clone()));
            let name = step.words[0].to_ascii_uppercase();
            self.changed[connection] |= name == b"HELLO" || name == b"RESET";
        }
        while self.history.len() > HISTORY_COUNT {
            self.history.pop_front();
        }
        let closes = steps.last().is_some_and(|step| step.outcome == Outcome::Close);
        let [redis, ember] = &mut self.connections[connection];
        let replies = [exchange(redis, steps, closes), exchange(ember, steps, closes)];
        let [redis_replies, ember_replies] = match replies {
            [Ok(redis), Ok(ember)] => [redis, ember],
            [redis, ember] => {
                let failed =
                    |result: Result<_, String>| result.err().unwrap_or_else(|| "answered".to_owned());
                let lines: Vec<_> = steps.iter().map(|step| command_line(&step.words)).collect();
                let text =
                    format!("a connection was lost\n  redis: {}\n  ember: {}", failed(redis), failed(ember));
                self.broken = true;
                self.differ(format!("{text}\n  the batch:\n    {}\n", lines.join("\n    ")), &[]);
                return;
            }
        };
        if closes {
            self.connections[connection] = self.servers.map(connect);
            self.changed[connection] = true;
        }
        let answered: Vec<&Step> = steps.iter().filter(|step| step.outcome != Outcome::Quiet).collect();
        if redis_replies.len() != answered.len() || ember_replies.len() != answered.len() {
            let lines: Vec<_> = steps.iter().map(|step| command_line(&step.words)).collect();
            let text = format!(
                "{} commands with replies, {} replies of redis, {} of ember",
                answered.len(),
                redis_replies.len(),
                ember_replies.len()
            );
            self.differ(format!("{text}\n  the batch:\n    {}\n", lines.join("\n    ")), &[]);
            return;
        }
        for ((step, redis), ember) in answered.into_iter().zip(&redis_replies).zip(&ember_replies) {
            if redis.raw == ember.raw {
                continue;
            }
            let name = command_name(&step.words);
            let case = Case { name: &name, words: &step.words, redis: &redis.value, ember: &ember.value };
            // Equal values with different bytes (for example RESP2's two nulls) are a difference, too.
            if redis.value == ember.value || !replies_agree(&case) {
                let mut text = format!(
                    "connection {connection}: {}\n  redis: {}\n  ember: {}\n",
                    command_line(&step.words),
                    shown(redis),
                    shown(ember)
                );
                for reason in allowances(&name) {
                    let _ = writeln!(text, "  an exception exists but does not cover this: {reason}");
                }
                self.differ(text, &step.words);
                return;
            }
        }
    }

    /// Runs SCAN to its end on both servers and compares the results.
    fn iterate(&mut self, connection: usize, words: &Words) {
        self.sent += 1;
        self.seen.insert(command_name(words));
        self.history.push_back((connection, words.clone()));
        let [redis, ember] = self.connections[connection].each_mut().map(|client| scan_all(client, words));
        if redis != ember {
            let text = format!(
                "connection {connection}: {} until cursor 0\n  redis: {redis:?}\n  ember: {ember:?}\n",
                command_line(words)
            );
            self.differ(text, &[]);
        }
    }

    /// Compares names, values, encodings and expiries of all keys of all databases.
    fn compare_keyspaces(&mut self) {
        let mut clients = self.servers.map(Server::client);
        for database in 0..DATABASE_COUNT {
            let [redis, ember] = clients.each_mut().map(|client| keyspace(client, database));
            if redis == ember {
                continue;
            }
            let only = |left: &Keyspace, right: &Keyspace| -> String {
                let lines = left.iter().filter(|(key, line)| right.get(*key) != Some(*line));
                lines.take(10).fold(String::new(), |text, (_, line)| text + "    " + line + "\n")
            };
            let text = format!(
                "database {database} differs\n  only in redis:\n{}  only in ember:\n{}",
                only(&redis, &ember),
                only(&ember, &redis)
            );
            let keys = redis.keys().chain(ember.keys()).filter(|key| redis.get(*key) != ember.get(*key));
            let words: Words = std::iter::once(Vec::new()).chain(keys.cloned()).collect();
            self.differ(text, &words);
            return;
        }
    }

    /// Records a difference with the commands that led to it, and calls [`Run::start_over`].
    fn differ(&mut self, mut text: String, words: &[Vec<u8>]) {
        let keys: BTreeSet<&Vec<u8>> = words.iter().skip(1).filter(|word| is_key(word)).collect();
        let related = |other: &Words| {
            let name = other[0].to_ascii_uppercase();
            other.iter().skip(1).any(|word| keys.contains(word))
                || [&b"FLUSHALL"[..], b"FLUSHDB", b"SWAPDB"].contains(&&name[..])
        };
        let mut databases = [0; CONNECTION_COUNT];
        let mut latest: VecDeque<String> = VecDeque::new();
        for (connection, other) in &self.history {
            follow_database(&mut databases[*connection], other);
            if !keys.is_empty() && related(other) {
                latest.push_back(format!(
                    "    {connection}[{}]> {}\n",
                    databases[*connection],
                    command_line(other)
                ));
            }
        }
        let hidden = latest.len().saturating_sub(REPORT_COMMANDS_MAX);
        let latest: String = latest.into_iter().skip(hidden).collect();
        let _ =
            write!(text, "  latest commands on the same keys, as connection[database]> command:\n{latest}");
        eprintln!("difference after {} commands, seed {}:\n{text}", self.sent, self.plan.seed);
        self.differences.push(text);
        if !self.broken {
            self.start_over();
            self.history.clear();
        }
    }
}

fn connect(server: &Server) -> RawClient {
    let mut client = server.client();
    client.set_timeout(REPLY_TIMEOUT).expect("the timeout is not zero");
    client
}

/// Updates the selected database of a connection after a command.
fn follow_database(database: &mut usize, words: &Words) {
    let name = words[0].to_ascii_uppercase();
    if (name == b"RESET" && words.len() == 1) || name == b"QUIT" {
        *database = 0;
    } else if let (b"SELECT", [_, number]) = (&name[..], &words[..])
        && let Some(number) = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok())
        && number < DATABASE_COUNT
    {
        *database = number;
    }
}

/// The keys of a database, each with a line that describes it.
type Keyspace = BTreeMap<Vec<u8>, String>;

struct Reply {
    raw: Vec<u8>,
    value: Value,
}

/// Sends a batch, followed by a marker unless the batch closes the connection, and returns the replies before the
/// marker.
fn exchange(client: &mut RawClient, steps: &[Step], closes: bool) -> Result<Vec<Reply>, String> {
    let marker: &[u8] = b"$14\r\nend of a batch\r\n";
    let mut bytes = Vec::new();
    for step in steps {
        encode_command(&step.words, &mut bytes);
    }
    if !closes {
        encode_command(&[b"ECHO".to_vec(), b"end of a batch".to_vec()], &mut bytes);
    }
    client.send(&bytes).map_err(|error| error.to_string())?;
    let mut replies = Vec::new();
    loop {
        if closes && client.is_closed().map_err(|error| error.to_string())? {
            break;
        }
        let raw = client.read_raw().map_err(|error| format!("after {} replies: {error}", replies.len()))?;
        if !closes && raw == marker {
            break;
        }
        let value =
            ember_testkit::read_frame(&mut &raw[..], &mut Vec::new()).map_err(|error| error.to_string())?;
        replies.push(Reply { raw, value });
    }
    Ok(replies)
}

/// Returns the command's name in upper case, including the subcommand: `GET`, `CLIENT|GETNAME`.
fn command_name(words: &[Vec<u8>]) -> String {
    const CONTAINERS: [&str; 11] = [
        "CLIENT", "OBJECT", "COMMAND", "CONFIG", "SLOWLOG", "LATENCY", "MEMORY", "MODULE", "DEBUG", "XGROUP",
        "XINFO",
    ];
    if words[0].eq_ignore_ascii_case(b"nosuchcommand") {
        return "nosuchcommand".to_owned();
    }
    let upper = |word: &[u8]| String::from_utf8_lossy(word).to_ascii_uppercase();
    let name = upper(&words[0]);
    match words.get(1) {
        Some(subcommand) if CONTAINERS.contains(&name.as_str()) => format!("{name}|{}", upper(subcommand)),
        _ => name,
    }
}

fn command_line(words: &[Vec<u8>]) -> String {
    let shown = |word: &Vec<u8>| {
        let plain = !word.is_empty()
            && word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_:*#.|".contains(byte));
        match word.len() {
            0..=200 if plain => String::from_utf8_lossy(word).into_owned(),
            0..=200 => quote(word),
            length => format!("{}…({length} bytes)", quote(&word[..40])),
        }
    };
    words.iter().map(shown).collect::<Vec<_>>().join(" ")
}

fn shown(reply: &Reply) -> String {
    let raw = quote(&reply.raw[..reply.raw.len().min(400)]);
    format!(
        "{raw} ({})",
        render(&reply.value).lines().next().unwrap_or_default().chars().take(120).collect::<String>()
    )
}

fn scan_all(client: &mut RawClient, words: &Words) -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    let mut words = words.clone();
    // SCAN's cursor is its first argument, that of SSCAN and similar commands follows the key.
    let cursor_at = if words[0].eq_ignore_ascii_case(b"scan") { 1 } else { 2 };
    for _ in 0..SCAN_ROUNDS_MAX {
        let reply = client.command(&words);
        let Some([cursor, keys]) = reply.elements() else { return Err(render(&reply)) };
        let keys = keys.elements().ok_or("the keys are not an array")?;
        found.extend(keys.iter().filter_map(Value::bytes).map(quote));
        match cursor.bytes() {
            Some(b"0") => return Ok(found),
            Some(next) => words[cursor_at] = next.to_vec(),
            None => return Err("the cursor is not a string".to_owned()),
        }
    }
    Err("SCAN does not end".to_owned())
}

/// Returns all data of a database that is visible to clients, one line per key, sorted.
fn keyspace(client: &mut RawClient, database: usize) -> Keyspace {
    client.run(&format!("SELECT {database}"));
    let keys = client.run("KEYS *");
    let size = format!("DBSIZE {}", render(&client.run("DBSIZE")));
    let mut lines = Keyspace::from([(b"DBSIZE".to_vec(), size)]);
    for key in keys.elements().unwrap_or_default().iter().filter_map(Value::bytes) {
        let mut ask = |words: &[&[u8]]| client.command(words);
        let kind = ask(&[b"TYPE", key]).text();
        let (command, arguments): (&[u8], &[&[u8]]) = match kind.as_str() {
            "list" => (b"LRANGE", &[b"0", b"-1"]),
            "set" => (b"SMEMBERS", &[]),
            "zset" => (b"ZRANGE", &[b"0", b"-1", b"WITHSCORES"]),
            "hash" => (b"HGETALL", &[]),
            "stream" => (b"XRANGE", &[b"-", b"+"]),
            _ => (b"GET", &[]),
        };
        let contents = ask(&[&[command, key], arguments].concat());
        let value = render(&comparable_contents(&kind, &contents));
        let value: String = value.chars().take(CONTENTS_CHARACTERS_MAX).collect();
        let encoding = render(&ask(&[b"OBJECT", b"ENCODING", key]));
        let encoding = comparable_encoding(&kind, &encoding);
        // Only the existence of an expiry is compared: remaining times differ by the time between two commands.
        let expiry =
            ask(&[b"EXPIRETIME", key]).integer().map_or(0, |seconds| if seconds < 0 { seconds } else { 1 });
        lines.insert(key.to_vec(), format!("{} {kind} {encoding} expiry {expiry} {value}", quote(key)));
    }
    lines
}

/// Returns the names and arities, as reported by Redis, of all commands with generators, including subcommands.
pub(crate) fn arities(redis: &mut RawClient) -> Vec<(String, i64)> {
    let names = COMMANDS.iter().copied().flatten().map(|generator| generator.name);
    let mut words = vec!["COMMAND", "INFO"];
    words.extend(names.filter(|name| *name != "nosuchcommand"));
    let mut arities = Vec::new();
    let info = redis.command(&words);
    for command in info.elements().unwrap_or_default() {
        let Some(facts) = command.elements() else { continue };
        arities.push((facts[0].text(), facts[1].integer().unwrap_or(0)));
        for subcommand in facts.last().and_then(Value::elements).unwrap_or_default() {
            let facts = subcommand.elements().unwrap_or_default();
            arities.push((facts[0].text(), facts[1].integer().unwrap_or(0)));
        }
    }
    assert!(arities.len() > 50, "COMMAND INFO of redis-server lists the commands");
    // Commands of client tracking are not part of the comparison.
    let tracking = ["client|tracking", "client|trackinginfo", "client|caching", "client|getredir"];
    arities.retain(|(name, _)| !tracking.contains(&name.as_str()));
    // QUIT closes the connection even with wrong arguments.
    arities.retain(|(name, _)| name != "quit");
    arities
}
