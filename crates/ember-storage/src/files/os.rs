//! The disk of the operating system.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
use rustix::io::Errno;

use super::{Disk, DiskError, Operation, StoredFile, refused_after_failed_sync};

/// Files are readable by the server's user and its group, as in Redis: they contain all data.
pub(super) const MODE: u32 = 0o640;

/// The permission bits of a file's mode.
const PERMISSIONS: u32 = 0o777;

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

impl OsDisk {
    fn handle(
        path: &Path,
        operation: Operation,
        options: &OpenOptions,
    ) -> Result<Arc<dyn StoredFile>, DiskError> {
        let file = options.open(path).map_err(|cause| DiskError::new(operation, path, cause))?;
        Ok(Arc::new(OsFile { file, path: path.to_owned(), sync_failed: AtomicBool::new(false) }))
    }
}

impl Disk for OsDisk {
    fn open(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        OsDisk::handle(path, Operation::Open, OpenOptions::new().read(true).write(true))
    }

    fn open_to_read(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        OsDisk::handle(path, Operation::Open, OpenOptions::new().read(true))
    }

    fn create(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(MODE);
        OsDisk::handle(path, Operation::Create, &options)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError> {
        fs::rename(from, to).map_err(|cause| DiskError::new(Operation::Rename, from, cause))
    }

    fn remove(&self, path: &Path) -> Result<(), DiskError> {
        fs::remove_file(path).map_err(|cause| DiskError::new(Operation::Remove, path, cause))
    }

    fn create_directory(&self, path: &Path) -> Result<(), DiskError> {
        fs::create_dir_all(path).map_err(|cause| DiskError::new(Operation::CreateDirectory, path, cause))
    }

    fn sync_directory(&self, path: &Path) -> Result<(), DiskError> {
        let synced = File::open(path).and_then(|directory| directory.sync_all());
        synced.map_err(|cause| DiskError::new(Operation::SyncDirectory, path, cause))
    }

    fn list(&self, path: &Path) -> Result<Vec<OsString>, DiskError> {
        let failed = |cause| DiskError::new(Operation::List, path, cause);
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_file() {
                names.push(entry.file_name());
            }
        }
        names.sort();
        Ok(names)
    }
}

#[derive(Debug)]
struct OsFile {
    file: File,
    path: PathBuf,
    /// Whether a sync has failed. Set once and never cleared; readers rely on no other data being ordered with it.
    sync_failed: AtomicBool,
}

impl OsFile {
    fn error(&self, operation: Operation) -> impl FnOnce(std::io::Error) -> DiskError {
        move |cause| DiskError::new(operation, &self.path, cause)
    }

    fn check(&self, operation: Operation) -> Result<(), DiskError> {
        if self.sync_failed.load(Ordering::Acquire) {
            return Err(self.error(operation)(refused_after_failed_sync()));
        }
        Ok(())
    }
}

impl StoredFile for OsFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size(&self) -> Result<u64, DiskError> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(self.error(Operation::Read))
    }

    fn permissions(&self) -> Result<u32, DiskError> {
        let metadata = self.file.metadata().map_err(self.error(Operation::Read))?;
        Ok(metadata.permissions().mode() & PERMISSIONS)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                result => return result.map_err(self.error(Operation::Read)),
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn read_ready(&self, offset: u64, buffer: &mut [u8]) -> Result<Option<usize>, DiskError> {
        let parts = &mut [std::io::IoSliceMut::new(buffer)];
        match rustix::io::preadv2(&self.file, parts, offset, rustix::io::ReadWriteFlags::NOWAIT) {
            Ok(count) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
            Err(error) => Err(self.error(Operation::Read)(error.into())),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.check(Operation::Write)?;
        self.file.write_all_at(bytes, offset).map_err(self.error(Operation::Write))
    }

    fn set_size(&self, len: u64) -> Result<(), DiskError> {
        self.check(Operation::Truncate)?;
        self.file.set_len(len).map_err(self.error(Operation::Truncate))
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.check(Operation::Sync)?;
        // fdatasync also makes the file's length durable, and no other metadata is needed to read the file.
        self.file.sync_data().map_err(|cause| {
            self.sync_failed.store(true, Ordering::Release);
            self.error(Operation::Sync)(cause)
        })
    }
}
