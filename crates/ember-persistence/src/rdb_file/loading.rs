//! A file's keys on several threads: one reads, all build and insert.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use emberkv_core::rdb::Value;
use emberkv_core::types::limits::EncodingLimits;
use parking_lot::Mutex;

use super::{Batch, KeyFacts, RdbError, RdbProblem, RdbReader, Step};

/// Batches under way for each thread; all of them together bound the memory that loading takes beside the data.
const BATCHES_PER_THREAD: usize = 2;

/// Loads what is left of a file on `threads` threads that exist for this call, beside the calling one, which reads. With
/// 0 threads the calling one does all.
///
/// `insert` makes, for each of the threads, what takes that thread's keys. Keys come in any order. `step` is told of all
/// that is no key, in the order of the file, and with [`Step::Keys`] of each batch that was read; it is given the bytes
/// read so far. It may refuse to go on. A key that is there twice is for `insert` to find
/// ([`RdbProblem::DuplicateKey`]).
///
/// # Errors
/// The first that a thread met. Keys before and some behind it have been inserted.
pub fn load<R: Read, I>(
    reader: &mut RdbReader<R>,
    threads: usize,
    limits: &EncodingLimits,
    insert: impl Fn() -> I + Sync,
    mut step: impl FnMut(Step, u64) -> Result<(), RdbProblem>,
) -> Result<(), RdbError>
where
    I: FnMut(&[u8], KeyFacts, Value) -> Result<(), RdbProblem>,
{
    let mut batch = Batch::new();
    if threads == 0 {
        let mut insert = insert();
        return read_all(reader, &mut batch, &mut step, |batch| insert_all(batch, limits, &mut insert));
    }
    let (full, to_insert) = sync_channel::<Batch>(threads * BATCHES_PER_THREAD);
    let (empty, to_fill) = sync_channel::<Batch>(threads * (BATCHES_PER_THREAD + 1));
    let to_insert = Mutex::new(to_insert);
    let failed = Mutex::new(None);
    let read = std::thread::scope(|scope| {
        for _ in 0..threads {
            let empty = empty.clone();
            scope.spawn(|| {
                let empty = empty;
                let error = work(&to_insert, &empty, limits, &mut insert());
                if let Err(error) = error {
                    failed.lock().get_or_insert(error);
                }
            });
        }
        let read = read_all(reader, &mut batch, &mut step, |batch| {
            if failed.lock().is_some() {
                return Err(batch.error(0, RdbProblem::Refused("another thread failed".into())));
            }
            hand_over(batch, &full, &to_fill)
        });
        drop(full);
        read
    });
    // What a thread met comes before what the reading of what follows would meet.
    failed.into_inner().map_or(read, Err)
}

/// Sends a batch on; another one takes its place.
fn hand_over(batch: &mut Batch, full: &SyncSender<Batch>, to_fill: &Receiver<Batch>) -> Result<(), RdbError> {
    let next = to_fill.try_recv().unwrap_or_default();
    let sent = full.send(std::mem::replace(batch, next));
    sent.map_err(|unsent| unsent.0.error(0, RdbProblem::Refused("another thread failed".into())))
}

fn read_all<R: Read>(
    reader: &mut RdbReader<R>,
    batch: &mut Batch,
    step: &mut impl FnMut(Step, u64) -> Result<(), RdbProblem>,
    mut take: impl FnMut(&mut Batch) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    loop {
        let next = reader.next(batch)?;
        if next == Step::Keys && !batch.is_empty() {
            take(batch)?;
        }
        let is_over = next == Step::End;
        let at = reader.offset();
        step(next, at).map_err(|problem| reader.error(at, problem))?;
        if is_over {
            return Ok(());
        }
    }
}

fn insert_all<I>(batch: &mut Batch, limits: &EncodingLimits, insert: &mut I) -> Result<(), RdbError>
where
    I: FnMut(&[u8], KeyFacts, Value) -> Result<(), RdbProblem>,
{
    for index in 0..batch.len() {
        let value = batch.take(index, limits)?;
        let (name, facts) = batch.key(index);
        insert(name, facts, value).map_err(|problem| batch.error(index, problem))?;
    }
    Ok(())
}

/// Inserts batches until none come. After an error the others are taken away unseen, so that nobody waits for room.
fn work<I>(
    to_insert: &Mutex<Receiver<Batch>>,
    empty: &SyncSender<Batch>,
    limits: &EncodingLimits,
    insert: &mut I,
) -> Result<(), RdbError>
where
    I: FnMut(&[u8], KeyFacts, Value) -> Result<(), RdbProblem>,
{
    let mut result = Ok(());
    loop {
        let received = to_insert.lock().recv();
        let Ok(mut batch) = received else { return result };
        if result.is_ok() {
            result = insert_all(&mut batch, limits, insert);
        }
        // With all places taken it is not needed.
        let _ = empty.try_send(batch);
    }
}
