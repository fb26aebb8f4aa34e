//! Encryption at rest: the keys with which files are written and read, and their source.
//!
//! A thread calls [`FileEncryption::current`] when it begins to write or read a file. Keys are read at startup, by each
//! CONFIG SET that names the key file, and at SIGHUP. Keys that are read again must include the key in use; new files
//! are written with the first key.

use std::path::Path;

use ember_config::Config;
use ember_persistence::encryption::{Encryption, FileSource};
use parking_lot::Mutex;

/// The keys with which files are written and read.
pub(crate) struct FileEncryption(Mutex<Current>);

#[derive(Default)]
struct Current {
    encryption: Encryption,
    /// The fingerprint of the key with which files are written; it reveals nothing else about the key.
    fingerprint: Option<String>,
}

impl FileEncryption {
    /// Reads the keys of a configuration.
    ///
    /// # Errors
    /// Returns one line that says where a key is expected, the problem, and the solution.
    pub(crate) fn new(config: &Config) -> Result<FileEncryption, String> {
        let current = keys::read(config, None)?;
        if let Some(fingerprint) = &current.fingerprint {
            tracing::info!("files are encrypted with the key of fingerprint {fingerprint}");
        }
        Ok(FileEncryption(Mutex::new(current)))
    }

    /// Reads the keys of the configuration again; files opened later use them.
    ///
    /// # Errors
    /// Returns the errors of [`FileEncryption::new`], or an error if the key in use is missing; the keys are then
    /// unchanged.
    pub(crate) fn reload(&self, config: &Config) -> Result<(), String> {
        let mut current = self.0.lock();
        let next = keys::read(config, current.fingerprint.as_deref())?;
        if let Some(fingerprint) = &next.fingerprint
            && next.fingerprint != current.fingerprint
        {
            tracing::info!("new files are encrypted with the key of fingerprint {fingerprint}");
        }
        *current = next;
        Ok(())
    }

    /// Returns the keys for writing and reading files opened from now on.
    pub(crate) fn current(&self) -> Encryption {
        self.0.lock().encryption.clone()
    }

    /// Warns if a file to be read is not encrypted although encryption is on.
    pub(crate) fn warn_of_plain(&self, opened: &FileSource, path: &Path) {
        if matches!(opened, FileSource::Plain(_)) && self.fingerprint().is_some() {
            tracing::warn!("{} is not encrypted; the next save or rewrite encrypts it", path.display());
        }
    }

    /// Returns the fingerprint of the key with which files are written; `None` if they are not encrypted.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        self.0.lock().fingerprint.clone()
    }
}

#[cfg(feature = "encryption")]
mod keys {
    use std::path::Path;

    use ember_config::Config;
    use ember_persistence::encryption::{Encryption, KEY_VARIABLE, KeyRing};
    use ember_persistence::files::OsDisk;
    use ember_persistence::full_path::full_path;

    use super::Current;

    /// Reads the keys of a configuration, which must include the key with fingerprint `used`.
    pub(super) fn read(config: &Config, used: Option<&str>) -> Result<Current, String> {
        let path = &config.encryption_key_file;
        let (place, ring) = if !path.is_empty() {
            let ring = KeyRing::from_file(&OsDisk, Path::new(path));
            (format!("encryption-key-file '{}'", full_path(path)), ring)
        } else if std::env::var_os(KEY_VARIABLE).is_some() {
            (KEY_VARIABLE.to_owned(), KeyRing::from_environment(KEY_VARIABLE))
        } else if used.is_some() {
            return Err("encryption cannot be disabled while the server runs: stop it and convert its files"
                .to_owned());
        } else {
            return Ok(Current::default());
        };
        let ring = ring.map_err(|error| format!("{place}: {error}"))?;
        if let Some(used) = used
            && !ring.holds(used)
        {
            return Err(format!(
                "{place}: the key of fingerprint {used}, with which files were written, is missing; add it \
                 after the new one"
            ));
        }
        let fingerprint = Some(ring.current().fingerprint());
        Ok(Current { encryption: Encryption::with(ring), fingerprint })
    }
}

#[cfg(not(feature = "encryption"))]
mod keys {
    use ember_config::Config;
    use ember_persistence::encryption::KEY_VARIABLE;

    use super::Current;

    /// Returns no keys, because this build does not support encryption.
    pub(super) fn read(config: &Config, _used: Option<&str>) -> Result<Current, String> {
        if config.encryption_key_file.is_empty() && std::env::var_os(KEY_VARIABLE).is_none() {
            return Ok(Current::default());
        }
        Err("encryption-key-file: this program was built without the feature `encryption`".to_owned())
    }
}
