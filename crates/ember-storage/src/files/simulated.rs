//! A simulated disk in memory with fault injection, which loses unsynced data at a power cut.
//!
//! It simulates the worst behavior that POSIX allows. Until a file is synced, each sector written and each change of
//! its length may reach the disk or not, independent of the others and of their order. Until a directory is synced, the
//! same holds for each creation, renaming and removal in it. A failed sync makes some of the sectors durable and drops
//! the pending writes of the others, while reads continue to show them.
//!
//! All random choices are determined by a seed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{Disk, DiskError, Operation, StoredFile, directory_of, refused_after_failed_sync};

/// The size of a sector, which a disk writes completely or not at all.
const SECTOR_BYTES: u64 = 512;

/// Permissions of all files on the simulated disk.
const PERMISSIONS: u32 = 0o640;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const ENOENT: i32 = 2;

/// Called by a slow sync before it takes effect: a test can block it there.
pub type SyncHook = Arc<dyn Fn(&Path) + Send + Sync>;

/// The faults to inject. Percentages are the probability for each single operation.
#[derive(Clone, Default)]
pub struct Faults {
    /// Capacity for all files together, holes included; a write that does not fit is truncated at the capacity and
    /// fails with ENOSPC.
    pub capacity_bytes: Option<u64>,
    /// Percentage of writes that fail with EIO after writing some of the bytes, possibly none.
    pub write_error_percent: u32,
    /// Percentage of file syncs that fail with EIO.
    pub sync_error_percent: u32,
    /// Percentage of directory changes and directory syncs that fail with EIO and have no effect.
    pub name_error_percent: u32,
    /// Percentage of reads that fail with EIO.
    pub read_error_percent: u32,
    /// Whether creating, writing, syncing, renaming and removing files fails with EROFS.
    pub read_only: bool,
    /// Percentage of file syncs that call `slow_sync` first, while the disk continues to serve other calls.
    pub slow_sync_percent: u32,
    /// The hook that slow syncs call.
    pub slow_sync: Option<SyncHook>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("capacity_bytes", &self.capacity_bytes)
            .field("write_error_percent", &self.write_error_percent)
            .field("sync_error_percent", &self.sync_error_percent)
            .field("name_error_percent", &self.name_error_percent)
            .field("read_error_percent", &self.read_error_percent)
            .field("read_only", &self.read_only)
            .field("slow_sync_percent", &self.slow_sync_percent)
            .finish_non_exhaustive()
    }
}

/// A simulated disk. Clones share its state.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    choices: Choices,
    faults: Faults,
    inodes: BTreeMap<u64, Inode>,
    /// The inode that each name currently refers to.
    names: BTreeMap<PathBuf, u64>,
    /// The inode that each name would refer to if a power cut discarded all pending changes.
    durable_names: BTreeMap<PathBuf, u64>,
    pending_names: Vec<NameChange>,
    /// The number of the next inode or of the next file change.
    next: u64,
    syncs: u64,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    content: Vec<u8>,
    durable: Vec<u8>,
    /// Unsynced changes, in ascending order of their numbers.
    pending: Vec<(u64, Change)>,
}

#[derive(Clone, Debug)]
enum Change {
    Sector { offset: u64, bytes: Vec<u8> },
    Size(u64),
}

/// One change of a directory: it makes `path` refer to `inode`, and deletes the name `removed`.
#[derive(Clone, Debug)]
struct NameChange {
    path: Option<(PathBuf, u64)>,
    removed: Option<PathBuf>,
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        if let Some(removed) = &self.removed {
            names.remove(removed);
        }
        if let Some((path, inode)) = &self.path {
            names.insert(path.clone(), *inode);
        }
    }

    fn is_in(&self, directory: &Path) -> bool {
        let path = self.path.as_ref().map(|(path, _)| path).or(self.removed.as_ref());
        path.is_some_and(|path| directory_of(path) == directory)
    }
}

fn put(bytes: &mut Vec<u8>, offset: u64, new: &[u8]) {
    let (from, to) = (offset as usize, offset as usize + new.len());
    if bytes.len() < to {
        bytes.resize(to, 0);
    }
    bytes[from..to].copy_from_slice(new);
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Sector { offset, bytes: new } => put(bytes, *offset, new),
            Change::Size(size) => bytes.resize(*size as usize, 0),
        }
    }
}

/// Pseudorandom choices that depend on the seed alone (splitmix64, Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
struct Choices(u64);

impl Choices {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    fn percent(&mut self, percent: u32) -> bool {
        percent > 0 && self.below(100) < u64::from(percent)
    }
}

impl State {
    fn fail(&mut self, percent: u32, changes: bool) -> io::Result<()> {
        if changes && self.faults.read_only {
            return Err(io::Error::from_raw_os_error(EROFS));
        }
        if self.choices.percent(percent) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        Ok(())
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn used(&self) -> u64 {
        self.names.values().map(|inode| self.inodes[inode].content.len() as u64).sum()
    }

    /// Returns how many of `len` bytes at `offset` fit on the disk.
    fn free_space(&self, inode: u64, offset: u64, len: u64) -> u64 {
        let Some(capacity) = self.faults.capacity_bytes else { return len };
        let size = self.inodes[&inode].content.len() as u64;
        let free = capacity.saturating_sub(self.used());
        len.min((size + free).saturating_sub(offset))
    }

    fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) {
        let mut pieces = Vec::new();
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = (SECTOR_BYTES - at % SECTOR_BYTES).min(rest.len() as u64);
            let (piece, after) = rest.split_at(len as usize);
            pieces.push((self.number(), Change::Sector { offset: at, bytes: piece.to_vec() }));
            (at, rest) = (at + len, after);
        }
        let size_number = self.number();
        let Some(inode) = self.inodes.get_mut(&inode) else { return };
        let size_before = inode.content.len() as u64;
        put(&mut inode.content, offset, bytes);
        inode.pending.append(&mut pieces);
        if at > size_before {
            inode.pending.push((size_number, Change::Size(at)));
        }
    }

    /// Syncs the changes numbered up to `until`. A failing sync makes only some of them durable.
    fn sync(&mut self, inode: u64, until: u64, fails: bool) {
        let State { inodes, choices, .. } = self;
        let Some(inode) = inodes.get_mut(&inode) else { return };
        let split = inode.pending.partition_point(|(number, _)| *number <= until);
        for (_, change) in inode.pending.drain(..split) {
            if !fails || choices.percent(50) {
                change.apply(&mut inode.durable);
            }
        }
    }
}

impl SimulatedDisk {
    /// Creates an empty disk whose random choices are determined by `seed`.
    pub fn new(seed: u64) -> SimulatedDisk {
        let state = State {
            choices: Choices(seed),
            faults: Faults::default(),
            inodes: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            next: 0,
            syncs: 0,
        };
        SimulatedDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// Replaces the faults to inject.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// Returns the number of successful syncs of files.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// Returns a disk with the contents that a power cut now would leave; `seed` selects one of the possible outcomes.
    /// This disk is unchanged.
    pub fn after_power_cut(&self, seed: u64) -> SimulatedDisk {
        let state = self.state.lock();
        let mut choices = Choices(seed);
        // The probability that a pending change survives; 0 and 100 % (none or all) are chosen often.
        let keep_percent = [0, 10, 50, 90, 100][choices.below(5) as usize];
        let mut names = state.durable_names.clone();
        for change in &state.pending_names {
            if choices.percent(keep_percent) {
                change.apply(&mut names);
            }
        }
        let mut inodes = BTreeMap::new();
        for &number in names.values() {
            let mut durable = state.inodes[&number].durable.clone();
            for (_, change) in &state.inodes[&number].pending {
                if choices.percent(keep_percent) {
                    change.apply(&mut durable);
                }
            }
            inodes.insert(number, Inode { content: durable.clone(), durable, pending: Vec::new() });
        }
        let left = State {
            choices,
            faults: Faults::default(),
            inodes,
            names: names.clone(),
            durable_names: names,
            pending_names: Vec::new(),
            next: state.next,
            syncs: 0,
        };
        SimulatedDisk { state: Arc::new(Mutex::new(left)) }
    }

    fn opened(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        let state = self.state.lock();
        let inode = state.names.get(path).copied();
        let inode = inode.ok_or_else(|| missing(Operation::Open, path))?;
        drop(state);
        Ok(self.handle(path, inode))
    }

    fn handle(&self, path: &Path, inode: u64) -> Arc<dyn StoredFile> {
        Arc::new(SimulatedFile {
            disk: self.clone(),
            inode,
            path: path.to_owned(),
            sync_failed: AtomicBool::new(false),
        })
    }

    fn try_names(&self, operation: Operation, path: &Path) -> Result<(), DiskError> {
        let mut state = self.state.lock();
        let percent = state.faults.name_error_percent;
        state.fail(percent, true).map_err(|cause| DiskError::new(operation, path, cause))
    }
}

fn missing(operation: Operation, path: &Path) -> DiskError {
    DiskError::new(operation, path, io::Error::from_raw_os_error(ENOENT))
}

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        if self.state.lock().faults.read_only {
            let cause = io::Error::from_raw_os_error(EROFS);
            return Err(DiskError::new(Operation::Open, path, cause));
        }
        self.opened(path)
    }

    fn open_to_read(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        self.opened(path)
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        self.try_names(Operation::Create, path)?;
        let mut state = self.state.lock();
        let number = state.number();
        let found = state.names.get(path).copied();
        let inode = match found {
            Some(inode) => {
                let inode_of = state.inodes.entry(inode).or_default();
                inode_of.content.clear();
                inode_of.pending.push((number, Change::Size(0)));
                inode
            }
            None => {
                state.inodes.insert(number, Inode::default());
                state.change_name(NameChange { path: Some((path.to_owned(), number)), removed: None });
                number
            }
        };
        drop(state);
        Ok(self.handle(path, inode))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        self.try_names(Operation::Rename, from)?;
        let mut state = self.state.lock();
        let inode = state.names.get(from).copied().ok_or_else(|| missing(Operation::Rename, from))?;
        state.change_name(NameChange { path: Some((to.to_owned(), inode)), removed: Some(from.to_owned()) });
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        self.try_names(Operation::Remove, path)?;
        let mut state = self.state.lock();
        if !state.names.contains_key(path) {
            return Err(missing(Operation::Remove, path));
        }
        state.change_name(NameChange { path: None, removed: Some(path.to_owned()) });
        Ok(())
    }

    /// Directories exist durably as soon as they are created.
    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.try_names(Operation::CreateDirectory, path)
    }

    fn sync_directory(&self, path: &Path) -> Result<(), DiskError> {
        self.try_names(Operation::SyncDirectory, path)?;
        let mut state = self.state.lock();
        let State { pending_names, durable_names, .. } = &mut *state;
        pending_names.retain(|change| {
            let is_here = change.is_in(path);
            if is_here {
                change.apply(durable_names);
            }
            !is_here
        });
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>, DiskError> {
        let state = self.state.lock();
        let here = state.names.keys().filter(|name| directory_of(name) == path);
        Ok(here.filter_map(|name| name.file_name()).map(OsString::from).collect())
    }
}

#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    inode: u64,
    path: PathBuf,
    /// Whether a sync has failed. Set once and never cleared; readers rely on no other data being ordered with it.
    sync_failed: AtomicBool,
}

impl SimulatedFile {
    fn error(&self, operation: Operation) -> impl FnOnce(io::Error) -> DiskError {
        move |cause| DiskError::new(operation, &self.path, cause)
    }

    fn check(&self, operation: Operation) -> Result<(), DiskError> {
        if self.sync_failed.load(Ordering::Acquire) {
            return Err(self.error(operation)(refused_after_failed_sync()));
        }
        Ok(())
    }
}

impl StoredFile for SimulatedFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size(&self) -> Result<u64, DiskError> {
        Ok(self.disk.state.lock().inodes[&self.inode].content.len() as u64)
    }

    fn permissions(&self) -> Result<u32, DiskError> {
        Ok(PERMISSIONS)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let mut state = self.disk.state.lock();
        let percent = state.faults.read_error_percent;
        state.fail(percent, false).map_err(self.error(Operation::Read))?;
        let content = &state.inodes[&self.inode].content;
        let rest = content.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    /// Simulates a page cache that lacks every second page.
    fn read_ready(&self, offset: u64, buffer: &mut [u8]) -> Result<Option<usize>, DiskError> {
        const PAGE_BYTES: u64 = 4096;
        let page = offset / PAGE_BYTES;
        let rest = ((page + 1) * PAGE_BYTES - offset).min(buffer.len() as u64) as usize;
        if page % 2 == 1 { Ok(None) } else { self.read_at(offset, &mut buffer[..rest]).map(Some) }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.check(Operation::Write)?;
        let mut state = self.disk.state.lock();
        let percent = state.faults.write_error_percent;
        let len = bytes.len() as u64;
        let (fits, cause) = match state.fail(percent, true) {
            Err(cause) if cause.raw_os_error() == Some(EROFS) => (0, Some(cause)),
            Err(cause) => (state.choices.below(len + 1), Some(cause)),
            Ok(()) => {
                let fits = state.free_space(self.inode, offset, len);
                (fits, (fits < len).then(|| io::Error::from_raw_os_error(ENOSPC)))
            }
        };
        state.write(self.inode, offset, &bytes[..fits as usize]);
        cause.map_or(Ok(()), |cause| Err(self.error(Operation::Write)(cause)))
    }

    fn set_size(&self, len: u64) -> Result<(), DiskError> {
        self.check(Operation::Truncate)?;
        let mut state = self.disk.state.lock();
        let percent = state.faults.write_error_percent;
        state.fail(percent, true).map_err(self.error(Operation::Truncate))?;
        // Holes are counted against the capacity, too; otherwise ENOSPC would be reported only by a later write into
        // the hole.
        if state.free_space(self.inode, 0, len) < len {
            return Err(self.error(Operation::Truncate)(io::Error::from_raw_os_error(ENOSPC)));
        }
        let number = state.number();
        if let Some(inode) = state.inodes.get_mut(&self.inode) {
            inode.content.resize(len as usize, 0);
            inode.pending.push((number, Change::Size(len)));
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.check(Operation::Sync)?;
        let mut state = self.disk.state.lock();
        let until = state.next;
        let slow_percent = state.faults.slow_sync_percent;
        let hook = state.faults.slow_sync.clone().filter(|_| state.choices.percent(slow_percent));
        if let Some(hook) = hook {
            drop(state);
            hook(&self.path);
            state = self.disk.state.lock();
        }
        let percent = state.faults.sync_error_percent;
        if let Err(cause) = state.fail(percent, true) {
            self.sync_failed.store(true, Ordering::Release);
            state.sync(self.inode, until, true);
            return Err(self.error(Operation::Sync)(cause));
        }
        state.sync(self.inode, until, false);
        state.syncs += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::read_whole;
    use super::*;

    fn content(disk: &SimulatedDisk, path: &Path) -> Option<Vec<u8>> {
        read_whole(disk, path, 1 << 30).ok()
    }

    #[test]
    fn only_synced_data_surely_survives_a_power_cut() {
        let disk = SimulatedDisk::new(1);
        let path = Path::new("d/a");
        let file = disk.create(path).unwrap();
        file.write_at(0, &[1; 2000]).unwrap();
        file.sync().unwrap();
        let without_name = (0..50).filter(|&seed| content(&disk.after_power_cut(seed), path).is_none());
        assert!(without_name.count() > 5, "the name was not synced");
        disk.sync_directory(Path::new("d")).unwrap();
        file.write_at(2000, &[2; 2000]).unwrap();
        let mut left = BTreeSet::new();
        for seed in 0..200 {
            let after = content(&disk.after_power_cut(seed), path).unwrap();
            assert_eq!(&after[..2000], &[1; 2000]);
            assert!(after.len() <= 4000 && after[2000..].iter().all(|byte| [0, 2].contains(byte)));
            left.insert(after);
        }
        assert!(left.len() > 8, "sectors are kept independent of each other: {}", left.len());
        assert_eq!(content(&disk, path).unwrap().len(), 4000);
    }

    #[test]
    fn a_renamed_name_refers_to_the_old_file_or_the_new_one() {
        let disk = SimulatedDisk::new(1);
        let (old, new) = (Path::new("d/name"), Path::new("d/new"));
        for (path, bytes) in [(old, b"old"), (new, b"new")] {
            let file = disk.create(path).unwrap();
            file.write_at(0, bytes).unwrap();
            file.sync().unwrap();
        }
        disk.sync_directory(Path::new("d")).unwrap();
        disk.rename(new, old).unwrap();
        let left: BTreeSet<Vec<u8>> =
            (0..50).map(|seed| content(&disk.after_power_cut(seed), old).unwrap()).collect();
        assert_eq!(left, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
        disk.sync_directory(Path::new("d")).unwrap();
        assert!((0..50).all(|seed| content(&disk.after_power_cut(seed), old).unwrap() == b"new"));
        assert!(content(&disk, new).is_none());
    }

    #[test]
    fn after_a_failed_sync_the_handle_fails_and_later_syncs_restore_nothing() {
        let disk = SimulatedDisk::new(1);
        let path = Path::new("d/a");
        let file = disk.create(path).unwrap();
        disk.sync_directory(Path::new("d")).unwrap();
        file.write_at(0, &[7; 20_000]).unwrap();
        disk.set_faults(Faults { sync_error_percent: 100, ..Faults::default() });
        assert!(file.sync().unwrap_err().to_string().starts_with("cannot fsync d/a: "));
        disk.set_faults(Faults::default());
        assert!(file.sync().unwrap_err().to_string().contains("an earlier fsync"));
        assert!(file.write_at(0, b"x").unwrap_err().to_string().contains("an earlier fsync"));
        let again = disk.open(path).unwrap();
        again.sync().unwrap();
        assert_eq!(content(&disk, path).unwrap(), [7; 20_000]);
        assert_ne!(content(&disk.after_power_cut(1), path).unwrap(), [7; 20_000]);
        again.write_at(0, &[7; 20_000]).unwrap();
        again.sync().unwrap();
        assert_eq!(content(&disk.after_power_cut(1), path).unwrap(), [7; 20_000]);
    }

    #[test]
    fn a_full_disk_writes_partially_and_returns_an_error() {
        let disk = SimulatedDisk::new(1);
        disk.set_faults(Faults { capacity_bytes: Some(1000), ..Faults::default() });
        let file = disk.create(Path::new("d/a")).unwrap();
        file.write_at(0, &[1; 600]).unwrap();
        let error = file.write_at(600, &[1; 600]).unwrap_err();
        assert!(error.is_full() && error.to_string().contains("free space"), "{error}");
        assert_eq!(file.size().unwrap(), 1000);
        assert!(file.set_size(1001).unwrap_err().is_full());
        file.set_size(600).unwrap();
        file.write_at(600, &[1; 400]).unwrap();
    }

    #[test]
    fn a_slow_sync_blocks_no_writes_and_covers_earlier_ones() {
        let disk = SimulatedDisk::new(1);
        let path = Path::new("d/a");
        let file = disk.create(path).unwrap();
        disk.sync_directory(Path::new("d")).unwrap();
        file.write_at(0, &[1; 512]).unwrap();
        let other = disk.open(path).unwrap();
        let slow_sync: SyncHook = Arc::new(move |_| other.write_at(512, &[2; 512]).unwrap());
        let slow = Faults { slow_sync_percent: 100, slow_sync: Some(slow_sync), ..Faults::default() };
        disk.set_faults(slow);
        file.sync().unwrap();
        assert_eq!(content(&disk, path).unwrap().len(), 1024);
        let shortest = (0..50).map(|seed| content(&disk.after_power_cut(seed), path).unwrap().len()).min();
        assert_eq!((shortest, disk.syncs()), (Some(512), 1));
    }

    #[test]
    fn a_read_only_disk_is_read() {
        let disk = SimulatedDisk::new(1);
        let path = Path::new("d/a");
        let file = disk.create(path).unwrap();
        file.write_at(0, b"abc").unwrap();
        disk.set_faults(Faults { read_only: true, ..Faults::default() });
        for error in [
            file.write_at(0, b"x").unwrap_err(),
            file.sync().unwrap_err(),
            disk.open(path).unwrap_err(),
            disk.remove(path).unwrap_err(),
        ] {
            assert!(error.to_string().contains("writable"), "{error}");
        }
        assert_eq!(content(&disk, path).unwrap(), b"abc");
    }
}
