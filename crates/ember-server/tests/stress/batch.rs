//! Calls that are sent in one write, some of them in transactions, and the checks of their replies.

use ember_testkit::{Random, RawClient, Value, encode_command, quote};

use crate::book::Book;

/// A command with its arguments.
pub(crate) type Words = Vec<Vec<u8>>;

type Settle = Box<dyn FnOnce(&mut Book, &[Value])>;

/// Builds a [`Words`] of texts, byte strings and numbers formatted as text.
macro_rules! words {
    ($($word:expr),* $(,)?) => { vec![$(Vec::<u8>::from($word)),*] };
}
pub(crate) use words;

/// The probability, in percent, that a call that could be sent alone begins a transaction with later calls.
const TRANSACTION_CHANCE: usize = 8;

/// The maximum number of calls in such a transaction.
const TRANSACTION_GROUPS_MAX: usize = 6;

/// Calls whose replies are checked together.
struct Group {
    calls: Vec<Words>,
    is_transaction: bool,
    settle: Settle,
}

/// Calls of one connection, in order.
#[derive(Default)]
pub(crate) struct Batch {
    groups: Vec<Group>,
}

impl Batch {
    /// Adds a call; `settle` checks its reply, which must not be an error.
    pub(crate) fn call(&mut self, words: Words, settle: impl FnOnce(&mut Book, &Value) + 'static) {
        self.groups.push(Group {
            calls: vec![words],
            is_transaction: false,
            settle: Box::new(|book, replies| settle(book, &replies[0])),
        });
    }

    /// Adds a transaction; `settle` checks the replies of its calls.
    pub(crate) fn transaction(
        &mut self,
        calls: Vec<Words>,
        settle: impl FnOnce(&mut Book, &[Value]) + 'static,
    ) {
        self.groups.push(Group { calls, is_transaction: true, settle: Box::new(settle) });
    }

    /// Sends everything in one write and settles every reply.
    pub(crate) fn run(self, client: &mut RawClient, random: &mut Random, book: &mut Book) {
        let mut spans: Vec<(bool, Vec<Group>)> = Vec::new();
        for group in self.groups {
            let is_transaction = group.is_transaction;
            match spans.last_mut() {
                Some((true, span))
                    if !is_transaction
                        && !span[0].is_transaction
                        && span.len() < TRANSACTION_GROUPS_MAX
                        && random.chance(80) =>
                {
                    span.push(group);
                }
                _ => spans.push((is_transaction || random.chance(TRANSACTION_CHANCE), vec![group])),
            }
        }
        let mut bytes = Vec::new();
        for (is_transaction, groups) in &spans {
            if *is_transaction {
                encode_command(&["MULTI"], &mut bytes);
            }
            groups.iter().flat_map(|group| &group.calls).for_each(|words| encode_command(words, &mut bytes));
            if *is_transaction {
                encode_command(&["EXEC"], &mut bytes);
            }
        }
        client.send(&bytes).unwrap();
        for (is_transaction, groups) in spans {
            let calls: Vec<&Words> = groups.iter().flat_map(|group| &group.calls).collect();
            let mut replies = if is_transaction {
                let begun = read(client, &words!["MULTI"]);
                assert_eq!(begun, Value::ok());
                calls.iter().for_each(|words| assert_eq!(read(client, words).text(), "QUEUED"));
                let executed = read(client, &words!["EXEC"]);
                let replies = executed.elements().expect("no key is watched").to_vec();
                assert_eq!(replies.len(), calls.len(), "a reply for each call of a transaction");
                calls.iter().zip(&replies).for_each(|(words, reply)| assert_no_error(words, reply));
                replies
            } else {
                calls.iter().map(|words| read(client, words)).collect()
            };
            for group in groups {
                let rest = replies.split_off(group.calls.len());
                (group.settle)(book, &replies);
                replies = rest;
            }
        }
    }
}

/// Sends one command and reads its reply.
pub(crate) fn ask(client: &mut RawClient, words: &Words) -> Value {
    client.send_command(words).unwrap();
    read(client, words)
}

/// Reads the reply to a command, skipping pushes.
fn read(client: &mut RawClient, words: &Words) -> Value {
    loop {
        match client.read_value() {
            Ok(Value::Push(_)) => {}
            Ok(reply) => {
                assert_no_error(words, &reply);
                return reply;
            }
            Err(error) => panic!("no reply to {}: {error}", shown(words)),
        }
    }
}

fn assert_no_error(words: &Words, reply: &Value) {
    assert!(!reply.is_error(), "{}: {}", shown(words), reply.text());
}

fn shown(words: &Words) -> String {
    let mut text: String = words.iter().map(|word| quote(word) + " ").collect();
    text.truncate(500);
    text
}
