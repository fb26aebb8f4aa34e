//! Converts Lua values to replies, as documented by Redis. `stack.rs` contains the opposite conversion.
//!
//! | value | reply |
//! |---|---|
//! | number | integer, the fraction truncated |
//! | string | bulk string |
//! | table | array up to the first nil |
//! | `{ok = …}`, `{err = …}` | status, error |
//! | false, nil | null |
//! | tables with one field `double`, `big_number`, `verbatim_string`, `map`, `set` | the type of that name |

use ember_protocol::{Protocol, Reply};
use mlua::{Table, Value};

use super::arguments::as_number;
use super::interpreter::{ELEMENT_WORK, Shared};
use super::raised::{self, ERROR_FIELD, KILLED, UNCOUNTED_FIELD};
use super::walk::Pairs;

/// The maximum nesting depth of a returned table: the interpreter can hold about 8000 references.
const VALUE_DEPTH_MAX: usize = 7000;

const TOO_DEEP: &str = "ERR reached lua stack limit";
const TOO_LARGE: &str = "ERR the reply of the script is too large";

/// The error with which a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error text, with its code.
    pub text: Vec<u8>,
    /// The chunk and the line where the error was raised.
    pub place: Option<(Vec<u8>, i64)>,
    /// Whether the error is that of a call, which was already counted as failed.
    pub is_counted: bool,
}

impl Failure {
    /// Creates a failure without a position.
    pub(super) fn of_text(text: impl Into<Vec<u8>>) -> Failure {
        Failure { text: text.into(), place: None, is_counted: false }
    }

    /// Converts the result of the handler of uncaught errors to a failure.
    pub(super) fn of(problem: &Value) -> Failure {
        match problem {
            Value::Table(table) => {
                let string = |name: &str| match table.raw_get(name) {
                    Ok(Value::String(text)) => Some(text.as_bytes().to_vec()),
                    _ => None,
                };
                let line = table.raw_get::<Option<i64>>("line").ok().flatten();
                Failure {
                    text: string("err").unwrap_or_else(|| b"ERR unknown error".to_vec()),
                    place: string("source").zip(line),
                    is_counted: is_counted(table),
                }
            }
            Value::String(text) => Failure::of_text([b"ERR ", &*text.as_bytes()].concat()),
            _ => Failure::of_text("ERR unknown error"),
        }
    }

    /// Returns a failure if the value that a script returned is an error.
    pub(super) fn returned(value: &Value) -> Option<Failure> {
        let Value::Table(table) = value else { return None };
        let Ok(Value::String(text)) = table.raw_get(ERROR_FIELD) else { return None };
        Some(Failure { text: text.as_bytes().to_vec(), place: None, is_counted: is_counted(table) })
    }

    /// Converts an error of the binding to a failure.
    pub(super) fn of_error(error: &mlua::Error) -> Failure {
        match raised::root(error) {
            mlua::Error::MemoryError(_) => Failure::of_text("ERR not enough memory"),
            other => Failure::of_text(format!("ERR {}", other.to_string().replace(['\r', '\n'], " "))),
        }
    }
}

fn is_counted(error: &Table) -> bool {
    error.raw_get(UNCOUNTED_FIELD).is_ok_and(|is_counted: Option<bool>| is_counted == Some(true))
}

/// Formats an error text of a script: the code, then the text without line breaks. A text without a leading `-` is
/// given the code `ERR`.
pub(super) fn error_text(text: &[u8]) -> Vec<u8> {
    let Some(coded) = text.strip_prefix(b"-") else { return [b"ERR ", trimmed(text)].concat() };
    match coded.iter().position(|&byte| byte == b' ') {
        Some(at) => [&coded[..=at], trimmed(&coded[at + 1..])].concat(),
        None => [b"ERR ", trimmed(coded)].concat(),
    }
}

fn trimmed(text: &[u8]) -> &[u8] {
    let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let start = text.iter().position(|byte| !is_line_end(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_line_end(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// The part of a table that is not written yet.
enum Rest {
    List { table: Table, next: usize, count: usize },
    Pairs { pairs: Pairs, is_map: bool, value: Option<Value> },
}

/// Appends the reply for `value`. The length of the reply is limited by [`Shared::memory_bytes_max`], and the runner is
/// asked at intervals whether to continue.
///
/// # Errors
/// Returns an error text if the value is nested too deeply or too large, or if the script must end. Part of the reply
/// is then written already.
pub(super) fn write_value(shared: &Shared, value: &Value, reply: &mut Reply) -> Result<(), &'static str> {
    let mut open: Vec<Rest> = Vec::new();
    let mut writer = Writer { shared, start: reply.len_bytes(), reply };
    open.extend(writer.begin(value)?);
    while let Some(rest) = open.last_mut() {
        let next = match rest {
            Rest::List { next, count, .. } if *next > *count => None,
            Rest::List { table, next, .. } => {
                *next += 1;
                Some(table.raw_get(*next - 1).map_err(|_| TOO_DEEP)?)
            }
            Rest::Pairs { value, .. } if value.is_some() => value.take(),
            Rest::Pairs { pairs, is_map, value } => match pairs.advance() {
                Ok(Some((key, second))) => {
                    *value = is_map.then_some(second);
                    Some(key)
                }
                Ok(None) => None,
                Err(_) => return Err(TOO_DEEP),
            },
        };
        let Some(value) = next else {
            open.pop();
            continue;
        };
        if let Some(rest) = writer.begin(&value)? {
            open.push(rest);
        }
        if open.len() > VALUE_DEPTH_MAX {
            return Err(TOO_DEEP);
        }
    }
    Ok(())
}

struct Writer<'w> {
    shared: &'w Shared,
    reply: &'w mut Reply,
    /// The offset in the reply at which the value starts.
    start: usize,
}

impl Writer<'_> {
    /// Writes a value, or the header of a table; returns the part of the table that is not written yet.
    fn begin(&mut self, value: &Value) -> Result<Option<Rest>, &'static str> {
        match value {
            Value::String(string) => {
                let string = string.as_bytes();
                self.count(string.len())?;
                self.reply.bulk(&string);
                return Ok(None);
            }
            Value::Integer(number) => self.reply.integer(*number),
            Value::Number(number) => self.reply.integer(cut(*number)),
            Value::Boolean(truth) if self.shared.protocol.get() == Protocol::Resp3 => {
                self.reply.boolean(*truth);
            }
            Value::Boolean(true) => self.reply.integer(1),
            Value::Table(table) => return self.begin_table(table),
            _ => self.reply.null(),
        }
        self.count(0)?;
        Ok(None)
    }

    /// Counts an element and its bytes as work.
    fn count(&self, bytes: usize) -> Result<(), &'static str> {
        if self.reply.len_bytes() - self.start + bytes > self.shared.memory_bytes_max {
            return Err(TOO_LARGE);
        }
        self.check(bytes)
    }

    fn check(&self, bytes: usize) -> Result<(), &'static str> {
        if self.shared.continues_after(ELEMENT_WORK + bytes) { Ok(()) } else { Err(KILLED) }
    }

    fn begin_table(&mut self, table: &Table) -> Result<Option<Rest>, &'static str> {
        self.count(0)?;
        let field = |name: &str| table.raw_get(name).unwrap_or(Value::Nil);
        if let Value::String(text) = field("err") {
            self.reply.error_bytes(&text.as_bytes());
        } else if let Value::String(text) = field("ok") {
            self.reply.simple_bytes(&text.as_bytes());
        } else if let Some(number) = as_number(&field("double")) {
            self.reply.double(number);
        } else if let Value::Table(map) = field("map") {
            return self.begin_pairs(&map, true).map(Some);
        } else if let Value::Table(set) = field("set") {
            return self.begin_pairs(&set, false).map(Some);
        } else if let Value::String(digits) = field("big_number") {
            // Line breaks are replaced in both protocols, as in Redis: a number contains none.
            self.reply.big_number(&digits.to_string_lossy().replace(['\r', '\n'], " "));
        } else if !self.verbatim(&field("verbatim_string")) {
            let mut count = 0;
            while table.raw_get::<Value>(count + 1).is_ok_and(|value| !value.is_nil()) {
                count += 1;
                self.check(0)?;
            }
            self.reply.array(count);
            return Ok(Some(Rest::List { table: table.clone(), next: 1, count }));
        }
        Ok(None)
    }

    fn begin_pairs(&mut self, table: &Table, is_map: bool) -> Result<Rest, &'static str> {
        let next = self.shared.next();
        let mut pairs = Pairs::of(next, table);
        let mut count = 0;
        while let Ok(Some(_)) = pairs.advance() {
            count += 1;
            self.check(0)?;
        }
        if is_map {
            self.reply.map(count)
        } else {
            self.reply.set(count)
        }
        Ok(Rest::Pairs { pairs: Pairs::of(next, table), is_map, value: None })
    }

    fn verbatim(&mut self, value: &Value) -> bool {
        let Value::Table(table) = value else { return false };
        let (Ok(Value::String(text)), Ok(Value::String(format))) =
            (table.raw_get("string"), table.raw_get("format"))
        else {
            return false;
        };
        // The format consists of three letters: as in Redis, further letters are cut off and missing ones become
        // blanks.
        let mut letters = [b' '; 3];
        for (letter, given) in letters.iter_mut().zip(format.as_bytes().iter()) {
            *letter = *given;
        }
        self.reply.verbatim(&letters, &text.as_bytes());
        true
    }
}

/// Truncates a number to an integer. Numbers outside the 64-bit range become the smallest integer, as on x86
/// processors.
fn cut(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}
