//! Clients that wait without a timeout: every job is delivered to one of them, and a lost wake-up causes a timeout of
//! the test.

use ember_testkit::{Random, RawClient, Server, Value};

use crate::batch::{Batch, Words, ask, words};
use crate::book::{Bag, Book, check_bags, double, element, items, number};
use crate::connect;
use crate::streams::by_stream;

/// The call that a waiter repeats.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    /// BLPOP on two lists, concurrently with another client.
    Pop,
    /// BLMOVE to a list of finished jobs.
    Move,
    /// BZPOPMIN.
    Lowest,
    /// XREAD from the last entry received.
    Read,
    /// XREADGROUP, concurrently with another consumer.
    Share(&'static str),
}

const WAITS: [(Wait, bool); 8] = [
    (Wait::Pop, false),
    (Wait::Pop, true),
    (Wait::Move, true),
    (Wait::Lowest, false),
    (Wait::Lowest, true),
    (Wait::Read, false),
    (Wait::Share("one"), true),
    (Wait::Share("two"), false),
];

const END: &str = "end";

/// The score of the end marker in the sorted set: higher than the score of every job.
const END_SCORE: f64 = 1e15;

/// Creates the group of the consumers that share a stream.
pub(crate) fn set_up(client: &mut RawClient) {
    ask(client, &words!["XGROUP", "CREATE", "jobs:shared", "group", "0", "MKSTREAM"]);
}

/// Opens the connections that will wait.
pub(crate) fn waiters(server: &Server) -> Vec<(RawClient, Wait)> {
    WAITS.into_iter().map(|(wait, is_resp3)| (connect(server, is_resp3), wait)).collect()
}

/// Receives jobs until the end marker arrives.
pub(crate) fn take_jobs(mut client: RawClient, wait: Wait) -> Bag {
    let mut bag = Bag::default();
    let mut latest = "0-0".to_owned();
    loop {
        let call = match wait {
            Wait::Pop => words!["BLPOP", "jobs:list:0", "jobs:list:1", "0"],
            Wait::Move => words!["BLMOVE", "jobs:moved", "jobs:done", "LEFT", "RIGHT", "0"],
            Wait::Lowest => words!["BZPOPMIN", "jobs:scores", "0"],
            Wait::Read => words!["XREAD", "COUNT", "20", "BLOCK", "0", "STREAMS", "jobs:log", latest.clone()],
            Wait::Share(name) => words![
                "XREADGROUP",
                "GROUP",
                "group",
                name,
                "COUNT",
                "5",
                "BLOCK",
                "0",
                "NOACK",
                "STREAMS",
                "jobs:shared",
                ">"
            ],
        };
        let reply = ask(&mut client, &call);
        let jobs: Vec<Value> = match wait {
            Wait::Pop => vec![items(&reply)[1].clone()],
            Wait::Move => vec![reply],
            Wait::Lowest => {
                let [_, member, score] = items(&reply) else { panic!("no member: {reply:?}") };
                if member.text().starts_with(END) {
                    return bag;
                }
                assert!(double(score) == number(member) as f64);
                vec![member.clone()]
            }
            Wait::Read | Wait::Share(_) => {
                let (_, entries) = by_stream(&reply).swap_remove(0);
                latest = items(items(&entries).last().expect("a reply has entries"))[0].text();
                items(&entries).iter().map(|entry| items(&items(entry)[1])[1].clone()).collect()
            }
        };
        let (ends, jobs): (Vec<Value>, Vec<Value>) = jobs.into_iter().partition(|job| job.text() == END);
        jobs.iter().for_each(|job| bag.take(job));
        if !ends.is_empty() {
            // One reply may also have contained the end marker of another consumer, which is added again.
            ends.iter().skip(1).for_each(|_| drop(ask(&mut client, &end_of_shared())));
            return bag;
        }
    }
}

/// Adds a job for the waiters.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let job = book.fresh();
    let text = element(job);
    let call = match random.below(6) {
        0 => words!["RPUSH", "jobs:list:0", text],
        1 => words!["LPUSH", "jobs:list:1", text],
        2 => words!["RPUSH", "jobs:moved", text],
        3 => words!["ZADD", "jobs:scores", job.to_string(), text],
        4 => words!["XADD", "jobs:log", "*", "job", text],
        _ => words!["XADD", "jobs:shared", "*", "job", text],
    };
    batch.call(call, move |book, _| book.jobs.put.push(job));
}

/// Returns the command that adds an end marker for one of the consumers that share a stream.
fn end_of_shared() -> Words {
    words!["XADD", "jobs:shared", "*", "job", END]
}

/// Adds an end marker for each waiter, after all jobs.
pub(crate) fn end(client: &mut RawClient) {
    let calls: [Words; 9] = [
        words!["RPUSH", "jobs:list:1", END],
        words!["RPUSH", "jobs:list:1", END],
        words!["RPUSH", "jobs:moved", END],
        words!["ZADD", "jobs:scores", END_SCORE.to_string(), "end 1"],
        words!["ZADD", "jobs:scores", END_SCORE.to_string(), "end 2"],
        words!["XADD", "jobs:log", "*", "job", END],
        end_of_shared(),
        end_of_shared(),
        words!["PING"],
    ];
    calls.iter().for_each(|call| drop(ask(client, call)));
}

/// Compares the records with the jobs that the waiters took.
pub(crate) fn check(books: &[Book], taken: &[Bag], client: &mut RawClient) {
    let done = ask(client, &words!["LRANGE", "jobs:done", "0", "-2"]);
    items(&done).iter().for_each(|job| assert!(number(job) > 0));
    check_bags("jobs", books.iter().map(|book| &book.jobs).chain(taken), &[]);
}
