//! ember compared with Redis Stack 7.4, reply by reply. `scripts/setup-redis-stack.sh` installs it. `STACK_COMMANDS` is the
//! number of random commands of each comparison.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

mod json;
mod sketches;

use ember_peers::tools_directory;
use ember_testkit::{Directory, RawClient, Server, Value, encode};

/// The default number of random commands of each comparison.
const COMMANDS: usize = 100_000;

/// The number of commands that a failure shows.
const SHOWN_COMMANDS: usize = 60;

/// The words of a command.
type Words = Vec<Vec<u8>>;

/// Starts Redis Stack in a directory of its own.
fn start_stack(directory: &Directory) -> Server {
    let program = tools_directory().join("redis-stack/redis-stack-server");
    assert!(program.is_file(), "Redis Stack is not installed: run scripts/setup-redis-stack.sh");
    Server::builder(program).directory(&directory.0).arguments(&["--save", ""]).start()
}

/// Returns how many random commands each comparison runs.
fn commands() -> usize {
    std::env::var("STACK_COMMANDS").map_or(COMMANDS, |count| count.parse().unwrap())
}

fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// A connection to each server, and the commands so far.
struct Pair {
    ember: RawClient,
    stack: RawClient,
    history: Vec<String>,
}

impl Pair {
    /// Connects to both servers, which then have only the string `text`.
    fn connect(ember: &Server, stack: &Server, protocol: &str) -> Pair {
        let (mut ember, mut stack) = (ember.client(), stack.client());
        for client in [&mut ember, &mut stack] {
            client.command(&["HELLO", protocol]);
            client.run("FLUSHALL");
            client.run("SET text value");
        }
        Pair { ember, stack, history: Vec::new() }
    }

    /// Runs commands on each server, concurrently, and returns the replies of both. All requests are sent before a reply
    /// is read, so they must fit the buffers of a socket.
    fn run_each(&mut self, ember: &[Words], stack: &[Words]) -> (Vec<Value>, Vec<Value>) {
        for (client, commands) in [(&mut self.ember, ember), (&mut self.stack, stack)] {
            client.send(&commands.iter().flat_map(|words| encode(words)).collect::<Vec<u8>>()).unwrap();
        }
        let read = |client: &mut RawClient, commands: &[Words]| {
            commands.iter().map(|_| client.read_value().unwrap()).collect()
        };
        (read(&mut self.ember, ember), read(&mut self.stack, stack))
    }

    /// Runs commands on both servers, whose replies must be alike except those to DUMP. Returns the replies of both.
    fn run(&mut self, commands: &[Words], are_alike: fn(&Value, &Value) -> bool) -> (Vec<Value>, Vec<Value>) {
        let (ember, stack) = self.run_each(commands, commands);
        for (words, (ember, stack)) in commands.iter().zip(ember.iter().zip(&stack)) {
            self.compare(words, ember, stack, are_alike);
        }
        (ember, stack)
    }

    fn compare(
        &mut self,
        words: &[Vec<u8>],
        ember: &Value,
        stack: &Value,
        are_alike: fn(&Value, &Value) -> bool,
    ) {
        let shown: Vec<String> = words.iter().map(|word| word.escape_ascii().to_string()).collect();
        self.history.push(shown.join(" "));
        if words[0] == b"DUMP" || are_alike(ember, stack) {
            return;
        }
        let first = self.history.len().saturating_sub(SHOWN_COMMANDS);
        let lines = self.history[first..].join("\n");
        panic!("after\n{lines}\nember replies {ember:?}\nRedis Stack replies {stack:?}");
    }
}

/// Whether two replies are equal, or the same doubles with fewer digits from ember (docs/compatibility.md).
fn are_equal(ember: &Value, stack: &Value) -> bool {
    match (ember, stack) {
        (Value::Array(ember), Value::Array(stack)) => {
            ember.len() == stack.len() && ember.iter().zip(stack).all(|(one, other)| are_equal(one, other))
        }
        (Value::Bulk(ember), Value::Bulk(stack)) | (Value::Double(ember), Value::Double(stack)) => {
            ember == stack || is_shorter_double(ember, stack)
        }
        _ => ember == stack,
    }
}

/// Whether two texts are the same double, and the first has fewer digits.
fn is_shorter_double(one: &[u8], other: &[u8]) -> bool {
    let parse = |text| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    one.len() < other.len() && parse(one).is_some_and(|one| Some(one) == parse(other))
}
