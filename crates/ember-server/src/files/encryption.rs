//! Encryption at rest: the keys that files are written and read with, and where they come from.
//!
//! Whoever writes or reads a file asks for [`FileEncryption::current`] when it begins with it. Keys are read at the start,
//! by each CONFIG SET that names the key file, and at SIGHUP. A key that files were written with so far must be among those
//! read again; the next file is written with the first of them.

use std::path::Path;

use ember_persistence::encryption::{Encryption, FileSource};
use parking_lot::Mutex;

use crate::config::Config;

/// With which keys files are written and read.
pub(crate) struct FileEncryption(Mutex<Current>);

#[derive(Default)]
struct Current {
    encryption: Encryption,
    /// What the key that files are written with is called; it says nothing else about it.
    fingerprint: Option<String>,
}

impl FileEncryption {
    /// With the keys of a configuration.
    ///
    /// # Errors
    /// One line that says where there should be a key, what is wrong there, and what to do.
    pub(crate) fn new(config: &Config) -> Result<FileEncryption, String> {
        let current = keys::read(config, None)?;
        if let Some(fingerprint) = &current.fingerprint {
            tracing::info!("files are encrypted with the key of fingerprint {fingerprint}");
        }
        Ok(FileEncryption(Mutex::new(current)))
    }

    /// Reads the keys again, for files to come.
    ///
    /// # Errors
    /// As [`FileEncryption::new`], and when the key is missing that files have been written with so far; nothing is changed
    /// then.
    pub(crate) fn reload(&self, config: &Config) -> Result<(), String> {
        let mut current = self.0.lock();
        let next = keys::read(config, current.fingerprint.as_deref())?;
        if let Some(fingerprint) = &next.fingerprint
            && next.fingerprint != current.fingerprint
        {
            tracing::info!("files to come are encrypted with the key of fingerprint {fingerprint}");
        }
        *current = next;
        Ok(())
    }

    /// What the next file is written with, and files are read with.
    pub(crate) fn current(&self) -> Encryption {
        self.0.lock().encryption.clone()
    }

    /// Warns of a file that is about to be read if it is plain although files are to be encrypted.
    pub(crate) fn warn_of_plain(&self, opened: &FileSource, path: &Path) {
        if matches!(opened, FileSource::Plain(_)) && self.fingerprint().is_some() {
            tracing::warn!("{} is not encrypted; the next save or rewrite encrypts it", path.display());
        }
    }

    /// What the key that files are written with is called; `None` if they are not encrypted.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        self.0.lock().fingerprint.clone()
    }
}

#[cfg(feature = "encryption")]
mod keys {
    use std::path::Path;

    use ember_persistence::encryption::{Encryption, KEY_VARIABLE, KeyRing};
    use ember_persistence::files::OsDisk;

    use super::Current;
    use crate::config::Config;
    use crate::system::full_path::full_path;

    /// The keys of a configuration, among which `used` is to be.
    pub(super) fn read(config: &Config, used: Option<&str>) -> Result<Current, String> {
        let path = &config.encryption_key_file;
        let (place, ring) = if !path.is_empty() {
            let ring = KeyRing::from_file(&OsDisk, Path::new(path));
            (format!("encryption-key-file '{}'", full_path(path)), ring)
        } else if std::env::var_os(KEY_VARIABLE).is_some() {
            (KEY_VARIABLE.to_owned(), KeyRing::from_environment(KEY_VARIABLE))
        } else if used.is_some() {
            return Err(
                "encryption can't be ended while the server runs: stop it and convert its files".to_owned()
            );
        } else {
            return Ok(Current::default());
        };
        let ring = ring.map_err(|error| format!("{place}: {error}"))?;
        if let Some(used) = used
            && !ring.holds(used)
        {
            return Err(format!(
                "{place}: the key of fingerprint {used} is missing, which files were written with; put it behind the \
                 new one"
            ));
        }
        let fingerprint = Some(ring.current().fingerprint());
        Ok(Current { encryption: Encryption::with(ring), fingerprint })
    }
}

#[cfg(not(feature = "encryption"))]
mod keys {
    use ember_persistence::encryption::KEY_VARIABLE;

    use super::Current;
    use crate::config::Config;

    /// No keys: encryption was left out of the program.
    pub(super) fn read(config: &Config, _used: Option<&str>) -> Result<Current, String> {
        if config.encryption_key_file.is_empty() && std::env::var_os(KEY_VARIABLE).is_none() {
            return Ok(Current::default());
        }
        Err("encryption-key-file: this program was built without the feature `encryption`".to_owned())
    }
}
