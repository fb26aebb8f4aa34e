//! Creates and deletes keyspaces so that the process can be killed at any time.
//!
//! fjall stores the names and options of keyspaces in a separate tree, and reuses the number of a deleted keyspace. The
//! rows there have sequence numbers from one counter for all trees, which starts after the highest number in all
//! *other* trees (seen in 3.1.13). Numbers used only for names are therefore reused after a crash: the deletion of a
//! name then hides a later creation, and the database does not open, or one keyspace has the options of another.
//!
//! So a row of `meta` is written and synced before each change of names: the row's sequence number exceeds all numbers
//! used for names before. Before the first change of a process the row is written many times, because no row was
//! written after the last change of the previous process.

use std::sync::atomic::{AtomicBool, Ordering};

use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::batches::Batches;

/// The row of `meta` that is written for its sequence number.
const NUMBER: &[u8] = b"number";

/// Sequence numbers skipped before the first change of names: far more than such a change uses, including concurrent
/// writes and merges.
const PASSED_OVER: u32 = 1024;

/// The creation and deletion of the keyspaces of a database.
pub(super) struct Keyspaces {
    database: Database,
    meta: Keyspace,
    /// Whether this process has changed names.
    has_changed: AtomicBool,
}

impl Keyspaces {
    /// Creates the keyspace manager of a database whose keyspace `meta` is open.
    pub(super) fn new(database: &Database, meta: &Keyspace) -> Keyspaces {
        Keyspaces { database: database.clone(), meta: meta.clone(), has_changed: AtomicBool::new(false) }
    }

    /// Opens a keyspace, or creates it.
    pub(super) fn open(
        &self,
        batches: &Batches,
        name: &str,
        options: impl FnOnce() -> KeyspaceCreateOptions,
    ) -> ::fjall::Result<Keyspace> {
        if !self.database.keyspace_exists(name) {
            self.number(batches)?;
        }
        self.database.keyspace(name, options)
    }

    /// Deletes a keyspace.
    pub(super) fn delete(&self, batches: &Batches, keyspace: Keyspace) -> ::fjall::Result<()> {
        self.number(batches)?;
        self.database.delete_keyspace(keyspace)
    }

    /// Deletes the keyspace of that name, if it exists.
    pub(super) fn delete_named(&self, batches: &Batches, name: &str) -> ::fjall::Result<()> {
        if self.database.keyspace_exists(name) {
            // Opening an existing keyspace ignores these options.
            self.delete(batches, self.database.keyspace(name, KeyspaceCreateOptions::default)?)?;
        }
        Ok(())
    }

    /// Writes and syncs a row whose sequence number exceeds the numbers of all names.
    fn number(&self, batches: &Batches) -> ::fjall::Result<()> {
        let passed_over = if self.has_changed.load(Ordering::Relaxed) { 0 } else { PASSED_OVER };
        for number in 0..=passed_over {
            let mut batch = self.database.batch();
            if number == passed_over {
                batch = batch.durability(Some(PersistMode::SyncAll));
            }
            batch.insert(&self.meta, NUMBER, []);
            batches.commit(&self.database, batch)?;
        }
        self.has_changed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ::fjall::KvSeparationOptions;

    use super::*;

    /// Copies the files as a process killed now would leave them.
    fn killed(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                killed(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }

    fn open(path: &Path) -> (Database, Keyspaces) {
        let database = Database::builder(path).open().unwrap();
        let meta = database.keyspace("meta", KeyspaceCreateOptions::default).unwrap();
        let keyspaces = Keyspaces::new(&database, &meta);
        (database, keyspaces)
    }

    #[test]
    fn names_are_correct_after_a_kill_at_any_time() {
        let folder = std::env::temp_dir().join(format!("ember-fjall-keyspaces-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let batches = Batches::new();
        let separated = || {
            let separation = KvSeparationOptions::default();
            KeyspaceCreateOptions::default().with_kv_separation(Some(separation))
        };
        let mut path = folder.join("0");
        std::fs::create_dir_all(&folder).unwrap();
        drop(open(&path));
        for round in 0..8 {
            let (database, keyspaces) = open(&path);
            // In every second round many keyspaces are created and deleted first, so that sequence numbers are high.
            for _ in 0..10 * ((round + 1) % 2) {
                drop(keyspaces.open(&batches, "other", KeyspaceCreateOptions::default).unwrap());
                keyspaces.delete_named(&batches, "other").unwrap();
            }
            // Separate processes create and delete keyspaces of different kinds under the same number.
            match round % 4 {
                0 => drop(keyspaces.open(&batches, "plain", KeyspaceCreateOptions::default).unwrap()),
                1 => keyspaces.delete_named(&batches, "plain").unwrap(),
                2 => drop(keyspaces.open(&batches, "separated", separated).unwrap()),
                _ => keyspaces.delete_named(&batches, "separated").unwrap(),
            }
            let next = folder.join((round + 1).to_string());
            killed(&path, &next);
            drop((database, keyspaces));
            let (database, _) = open(&next);
            let mut names = database.list_keyspace_names();
            names.sort();
            let expected: [&[&str]; 4] = [&["meta", "plain"], &["meta"], &["meta", "separated"], &["meta"]];
            assert!(
                names.iter().map(|name| &**name).eq(expected[round % 4].iter().copied()),
                "round {round}: {names:?}"
            );
            drop(database);
            path = next;
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
