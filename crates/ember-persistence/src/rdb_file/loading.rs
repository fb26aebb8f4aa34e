//! Loads a file on several threads: one thread reads keys, and inserts keys when the other threads are busy; the other
//! threads only insert.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use parking_lot::Mutex;

use super::{Batch, RdbError, RdbProblem, RdbReader, Step};

/// Number of batches in progress per thread, which bounds the additional memory for loading.
const BATCHES_PER_THREAD: usize = 2;

/// Loads the rest of a file on `threads` temporary threads and on the calling thread, which reads.
///
/// `insert` creates, for each thread, the function that inserts that thread's batches, such as with a
/// [`super::Inserter`]. Batches are inserted in any order. `step` is called for everything that is not a key, in the
/// order of the file, and with [`Step::Keys`] for each batch read; its second argument is the number of bytes read so
/// far. An error that it returns ends the load.
///
/// # Errors
/// Returns the first error that a thread encountered. Keys before the error and some after it have been inserted.
pub fn load<R: Read, I>(
    reader: &mut RdbReader<R>,
    threads: usize,
    insert: impl Fn() -> I + Sync,
    mut step: impl FnMut(Step, u64) -> Result<(), RdbProblem>,
) -> Result<(), RdbError>
where
    I: FnMut(&mut Batch) -> Result<(), RdbError>,
{
    let mut batch = Batch::new();
    let mut insert_here = insert();
    if threads == 0 {
        return read_all(reader, &mut batch, &mut step, insert_here);
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
                let error = work(&to_insert, &empty, &mut insert());
                if let Err(error) = error {
                    failed.lock().get_or_insert(error);
                }
            });
        }
        let read = read_all(reader, &mut batch, &mut step, |batch| {
            if failed.lock().is_some() {
                return Err(batch.error(0, RdbProblem::Refused("another thread failed".into())));
            }
            match dispatch(batch, &full, &to_fill) {
                Dispatched::Over => Ok(()),
                Dispatched::Back => insert_here(batch),
            }
        });
        drop(full);
        read
    });
    // An error of an inserting thread belongs to an earlier part of the file than an error of the reading thread.
    failed.into_inner().map_or(read, Err)
}

/// The thread that has to insert a batch.
enum Dispatched {
    /// One of the other threads, which has received the batch.
    Over,
    /// The reading thread, because the others are busy.
    Back,
}

/// Sends a batch to the other threads if their queue has space, and replaces it by an empty one.
fn dispatch(batch: &mut Batch, full: &SyncSender<Batch>, to_fill: &Receiver<Batch>) -> Dispatched {
    match full.try_send(std::mem::take(batch)) {
        Ok(()) => {
            *batch = to_fill.try_recv().unwrap_or_default();
            Dispatched::Over
        }
        Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => {
            *batch = back;
            Dispatched::Back
        }
    }
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

/// Inserts batches until the queue closes. After an error, the remaining batches are dropped, so that the reading
/// thread need not wait before it notices the error.
fn work(
    to_insert: &Mutex<Receiver<Batch>>,
    empty: &SyncSender<Batch>,
    insert: &mut impl FnMut(&mut Batch) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let mut result = Ok(());
    loop {
        let received = to_insert.lock().recv();
        let Ok(mut batch) = received else { return result };
        if result.is_ok() {
            result = insert(&mut batch);
        }
        // If the queue of empty batches is full, this batch is dropped.
        let _ = empty.try_send(batch);
    }
}
