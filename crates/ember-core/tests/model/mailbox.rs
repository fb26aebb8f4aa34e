//! Workers that forward commands to each other, under a model checker: every request receives an answer in every
//! schedule. A lost wake-up would cause a deadlock. Runs with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p emberkv-core --test model mailbox`.

use std::sync::Arc;

use emberkv_core::mailbox::Mailbox;
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

const SCHEDULES: usize = 3000;
const REQUESTS: usize = 3;

enum Message {
    /// A request, which the receiver answers to this worker.
    Run(usize),
    Answer,
}

/// A worker as others see it: its mailbox, and a replacement for the system's event that wakes it.
struct Worker {
    mailbox: Mailbox<Message>,
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Worker {
    fn new() -> Worker {
        Worker { mailbox: Mailbox::new(), is_rung: Mutex::new(false), rung: Condvar::new() }
    }

    fn send(&self, message: Message) {
        if self.mailbox.post(message) {
            *self.is_rung.lock().expect("no worker panics") = true;
            self.rung.notify_one();
        }
    }

    fn wait(&self) {
        if self.mailbox.fall_asleep() {
            let mut is_rung = self.is_rung.lock().expect("no worker panics");
            while !*is_rung {
                is_rung = self.rung.wait(is_rung).expect("no worker panics");
            }
            *is_rung = false;
            drop(is_rung);
            self.mailbox.wake_up();
        }
    }
}

/// Sends `REQUESTS` requests to every other worker and answers their requests; returns when all answers are received
/// and sent.
fn run(workers: &[Worker], index: usize) {
    let others = workers.len() - 1;
    let (mut asked, mut answers, mut answered) = (0, 0, 0);
    let mut messages = Vec::new();
    while answers < REQUESTS * others || answered < REQUESTS * others {
        if asked < REQUESTS {
            asked += 1;
            for other in (0..workers.len()).filter(|&other| other != index) {
                workers[other].send(Message::Run(index));
            }
        } else {
            workers[index].wait();
        }
        workers[index].mailbox.take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Run(origin) => {
                    answered += 1;
                    workers[origin].send(Message::Answer);
                }
                Message::Answer => answers += 1,
            }
        }
    }
}

fn forward_among(count: usize) {
    shuttle::check_pct(
        move || {
            let workers: Arc<Vec<Worker>> = Arc::new((0..count).map(|_| Worker::new()).collect());
            let threads: Vec<_> = (0..count)
                .map(|index| {
                    let workers = Arc::clone(&workers);
                    thread::spawn(move || run(&workers, index))
                })
                .collect();
            for thread in threads {
                thread.join().expect("no worker panics");
            }
        },
        SCHEDULES,
        3,
    );
}

#[test]
fn two_workers_answer_each_other_in_every_schedule() {
    forward_among(2);
}

#[test]
fn three_workers_answer_each_other_in_every_schedule() {
    forward_among(3);
}
