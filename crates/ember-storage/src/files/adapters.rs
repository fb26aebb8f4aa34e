//! Files as streams, and files that appear atomically.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Disk, DiskError, Operation, StoredFile, directory_of};

/// Buffer size of a writer: large enough that the cost of a call is small compared with the copy.
const BUFFER_BYTES: usize = 256 * 1024;

/// Name prefix of unfinished files.
const TEMPORARY_PREFIX: &str = "temp-ember-";

/// A reader that can be moved back to an earlier offset.
pub trait Reread: Read {
    /// Continues at `offset`, which has been read before.
    ///
    /// # Errors
    /// Returns the errors of reading.
    fn restart_at(&mut self, offset: u64) -> io::Result<()>;
}

impl<T: AsRef<[u8]>> Reread for io::Cursor<T> {
    fn restart_at(&mut self, offset: u64) -> io::Result<()> {
        self.set_position(offset);
        Ok(())
    }
}

/// A reader of a file, from some offset to its end.
#[derive(Debug)]
pub struct FileReader {
    file: Arc<dyn StoredFile>,
    offset: u64,
}

impl FileReader {
    /// Creates a reader of `file` from `offset` on.
    pub fn new(file: Arc<dyn StoredFile>, offset: u64) -> FileReader {
        FileReader { file, offset }
    }

    /// Returns the offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Reread for FileReader {
    fn restart_at(&mut self, offset: u64) -> io::Result<()> {
        self.offset = offset;
        Ok(())
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Reads a whole file into memory. Intended for small files, such as manifests and keys.
///
/// # Errors
/// Returns the errors of the disk, and an error if the file is longer than `len_max` bytes.
pub fn read_whole(disk: &dyn Disk, path: &Path, len_max: u64) -> Result<Vec<u8>, DiskError> {
    let file = disk.open_to_read(path)?;
    let mut bytes = Vec::new();
    let read = FileReader::new(file, 0).take(len_max.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| super::disk_error(error, Operation::Read, path))?;
    if bytes.len() as u64 > len_max {
        let cause = io::Error::new(io::ErrorKind::InvalidData, format!("it is longer than {len_max} bytes"));
        return Err(DiskError::new(Operation::Read, path, cause));
    }
    Ok(bytes)
}

/// A buffered writer of a file, from its beginning.
#[derive(Debug)]
pub struct FileWriter {
    file: Arc<dyn StoredFile>,
    /// The file offset of the buffer's first byte.
    offset: u64,
    buffer: Vec<u8>,
}

impl FileWriter {
    /// Creates a writer that begins at `offset`.
    pub fn new(file: Arc<dyn StoredFile>, offset: u64) -> FileWriter {
        FileWriter { file, offset, buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    /// Returns the length of the file including buffered bytes.
    pub fn size(&self) -> u64 {
        self.offset + self.buffer.len() as u64
    }

    /// Writes the buffer and makes everything durable.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn sync(&mut self) -> Result<(), DiskError> {
        self.write_out()?;
        self.file.sync()
    }

    fn write_out(&mut self) -> Result<(), DiskError> {
        self.file.write_at(self.offset, &self.buffer)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.write_out()?;
        }
        if bytes.len() >= BUFFER_BYTES {
            self.file.write_at(self.offset, bytes)?;
            self.offset += bytes.len() as u64;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(self.write_out()?)
    }
}

/// A file under a temporary name until it is complete. If dropped before that, it is removed.
#[derive(Debug)]
pub struct TemporaryFile {
    disk: Arc<dyn Disk>,
    /// The temporary path; `None` once the file is published.
    path: Option<PathBuf>,
    target: PathBuf,
    file: Arc<dyn StoredFile>,
}

impl TemporaryFile {
    /// Creates an empty temporary file in the directory of `target`.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn create(disk: &Arc<dyn Disk>, target: &Path) -> Result<TemporaryFile, DiskError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{TEMPORARY_PREFIX}{}-{number}-{name}", std::process::id());
        let path = directory_of(target).join(name);
        let file = disk.create(&path)?;
        Ok(TemporaryFile { disk: Arc::clone(disk), path: Some(path), target: target.to_owned(), file })
    }

    /// Returns the file for writing.
    pub fn file(&self) -> &Arc<dyn StoredFile> {
        &self.file
    }

    /// Makes the contents durable, renames the file to its target, and makes that durable. At any time, even after a
    /// power cut, the target name refers to the old file or the complete new one.
    ///
    /// # Errors
    /// Returns the errors of the disk. If an error occurs before the rename, the old file is unchanged.
    pub fn publish(mut self) -> Result<(), DiskError> {
        self.file.sync()?;
        if let Some(path) = &self.path {
            self.disk.rename(path, &self.target)?;
        }
        self.path = None;
        self.disk.sync_directory(directory_of(&self.target))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // A file that cannot be removed now is removed at the next startup.
            let _ = self.disk.remove(&path);
        }
    }
}

/// Returns the target name of a [`TemporaryFile`] with this name; `None` if `name` is not the name of a temporary file.
pub fn unfinished_target(name: &str) -> Option<&str> {
    let (process, rest) = name.strip_prefix(TEMPORARY_PREFIX)?.split_once('-')?;
    let (number, target) = rest.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(process) && is_number(number)).then_some(target)
}

/// Removes the temporary files that a crashed server has left in a directory, if `is_own` accepts their target names,
/// and returns their number. Only the single writer of files with those names may call it.
///
/// # Errors
/// Returns the errors of the disk.
pub fn remove_leftovers(
    disk: &dyn Disk,
    directory: &Path,
    is_own: impl Fn(&str) -> bool,
) -> Result<usize, DiskError> {
    let mut count = 0;
    for name in disk.list(directory)? {
        if unfinished_target(&name.to_string_lossy()).is_some_and(&is_own) {
            disk.remove(&directory.join(name))?;
            count += 1;
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::super::{OsDisk, SimulatedDisk};
    use super::*;

    fn write_and_publish(disk: &Arc<dyn Disk>, target: &Path, bytes: &[u8]) {
        let temporary = TemporaryFile::create(disk, target).unwrap();
        let mut writer = FileWriter::new(Arc::clone(temporary.file()), 0);
        for piece in bytes.chunks(1000) {
            writer.write_all(piece).unwrap();
        }
        writer.flush().unwrap();
        assert_eq!(writer.size(), bytes.len() as u64);
        temporary.publish().unwrap();
    }

    fn published_files_are_whole(disk: &Arc<dyn Disk>, directory: &Path) {
        disk.create_directory(directory).unwrap();
        let target = directory.join("data.rdb");
        let bytes: Vec<u8> = (0..700_000u32).map(|number| (number % 251) as u8).collect();
        write_and_publish(disk, &target, &bytes);
        assert_eq!(read_whole(disk.as_ref(), &target, 1 << 20).unwrap(), bytes);
        assert!(read_whole(disk.as_ref(), &target, 699_999).unwrap_err().to_string().contains("longer"));
        write_and_publish(disk, &target, b"new");
        assert_eq!(read_whole(disk.as_ref(), &target, 10).unwrap(), b"new");
        drop(TemporaryFile::create(disk, &target).unwrap());
        assert_eq!(disk.list(directory).unwrap(), ["data.rdb"]);
        std::mem::forget(TemporaryFile::create(disk, &target).unwrap());
        assert_eq!(remove_leftovers(disk.as_ref(), directory, |name| name == "a.rdb").unwrap(), 0);
        assert_eq!(remove_leftovers(disk.as_ref(), directory, |name| name == "data.rdb").unwrap(), 1);
        assert_eq!(disk.list(directory).unwrap(), ["data.rdb"]);
        disk.remove(&target).unwrap();
        let error = disk.open(&target).unwrap_err();
        assert!(error.is_missing() && error.to_string().starts_with("cannot open "), "{error}");
    }

    #[test]
    fn a_temporary_name_is_two_numbers_and_the_final_name() {
        assert_eq!(unfinished_target("temp-ember-12-0-a-b.rdb"), Some("a-b.rdb"));
        for name in
            ["a-b.rdb", "temp-ember-", "temp-ember-1-b.rdb", "temp-ember--0-b.rdb", "temp-ember-1-a-b.rdb"]
        {
            assert_eq!(unfinished_target(name), None, "{name}");
        }
    }

    #[test]
    fn published_files_are_whole_on_both_disks() {
        let directory = std::env::temp_dir().join(format!("ember-files-{}", std::process::id()));
        let os: Arc<dyn Disk> = Arc::new(OsDisk);
        published_files_are_whole(&os, &directory);
        std::fs::remove_dir_all(&directory).unwrap();
        let simulated: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
        published_files_are_whole(&simulated, Path::new("data"));
    }
}
