//! Libraries of functions. All workers share them; each interpreter compiles them itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use emberkv_core::error::CommandError;
use parking_lot::RwLock;

use super::confinement::Confinement;
use super::shebang::ScriptFlags;
use super::shebang::Shebang;

/// The error text for an invalid library name.
pub const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be \
                                   at least one character long";

/// Whether `name` is valid as the name of a library or function.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The declaration of a function by its library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The function's name.
    pub name: Vec<u8>,
    /// The description given by the library's author.
    pub description: Option<Vec<u8>>,
    /// The function's declared flags.
    pub flags: ScriptFlags,
}

/// A library of functions.
#[derive(Debug, PartialEq, Eq)]
pub struct Library {
    /// The library's name.
    pub name: Vec<u8>,
    /// The library's text, including the first line.
    pub code: Vec<u8>,
    /// The library's functions, by name.
    pub functions: BTreeMap<Vec<u8>, Declaration>,
    /// The library's confined functions, which may run concurrently with other programs.
    pub confined: BTreeMap<Vec<u8>, Confinement>,
}

/// Returns the name of a library, and its text without the first line.
///
/// # Errors
/// Returns Redis's message for an invalid first line.
pub fn head(code: &[u8]) -> Result<(Vec<u8>, &[u8]), CommandError> {
    if !code.starts_with(b"#!") {
        return Err("ERR Missing library metadata".into());
    }
    let shebang = Shebang::parse(code).ok_or("ERR Invalid library metadata")?;
    let mut name = None;
    for option in &shebang.options {
        if option.len() < 5 || !option[..5].eq_ignore_ascii_case(b"name=") {
            return Err(CommandError::quoting("ERR Invalid metadata value given: ", option, ""));
        }
        if name.replace(option[5..].to_vec()).is_some() {
            return Err("ERR Invalid metadata value, name argument was given multiple times".into());
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    if !is_name(&name) {
        return Err(format!("ERR {BAD_NAME}").into());
    }
    if !shebang.engine.eq_ignore_ascii_case(b"lua") {
        return Err(CommandError::quoting("ERR Engine '", &shebang.engine, "' not found"));
    }
    Ok((name, shebang.body))
}

/// The policy by which FUNCTION RESTORE combines restored libraries with existing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Existing libraries are removed first.
    Flush,
    /// The restore fails if a restored library exists already.
    Append,
    /// Restored libraries replace existing ones of the same name.
    Replace,
}

/// A set of libraries. No two of their functions have the same name, ignoring case.
#[derive(Clone, Debug, Default)]
pub struct Libraries {
    by_name: BTreeMap<Vec<u8>, Arc<Library>>,
    /// The library of each function, by its name in lower case.
    by_function: BTreeMap<Vec<u8>, Arc<Library>>,
}

impl Libraries {
    /// Returns the library of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Arc<Library>> {
        self.by_name.get(name)
    }

    /// Returns all libraries, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Library>> {
        self.by_name.values()
    }

    /// Returns the function of this name, ignoring case, with its library.
    pub fn find(&self, function: &[u8]) -> Option<(&Arc<Library>, &Declaration)> {
        let name = function.to_ascii_lowercase();
        let library = self.by_function.get(&name)?;
        let declaration = library.functions.values().find(|found| found.name.eq_ignore_ascii_case(&name))?;
        Some((library, declaration))
    }

    /// Returns the total length of the libraries' texts, in bytes.
    pub fn code_bytes(&self) -> usize {
        self.by_name.values().map(|library| library.code.len()).sum()
    }

    /// Returns the number of functions.
    pub fn functions_count(&self) -> usize {
        self.by_function.len()
    }

    /// Adds a library. If `replaces`, a library of the same name is replaced.
    ///
    /// # Errors
    /// Returns an error if the library or one of its functions exists already; nothing is changed then.
    pub fn add(&mut self, library: Library, replaces: bool) -> Result<(), CommandError> {
        let present = self.by_name.get(&library.name);
        if present.is_some() && !replaces {
            return Err(CommandError::quoting("ERR Library '", &library.name, "' already exists"));
        }
        for name in library.functions.keys() {
            let holder = self.by_function.get(&name.to_ascii_lowercase());
            if holder.is_some_and(|holder| holder.name != library.name) {
                return Err(CommandError::quoting("ERR Function ", name, " already exists"));
            }
        }
        self.remove(&library.name.clone());
        let library = Arc::new(library);
        for name in library.functions.keys() {
            self.by_function.insert(name.to_ascii_lowercase(), Arc::clone(&library));
        }
        self.by_name.insert(library.name.clone(), library);
        Ok(())
    }

    /// Removes a library; returns false if it does not exist.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let Some(library) = self.by_name.remove(name) else { return false };
        for name in library.functions.keys() {
            self.by_function.remove(&name.to_ascii_lowercase());
        }
        true
    }
}

/// The libraries of the server, shared by all workers.
#[derive(Default)]
pub struct LibraryRegistry {
    libraries: RwLock<Arc<Libraries>>,
}

impl LibraryRegistry {
    /// Returns the current libraries.
    pub fn snapshot(&self) -> Arc<Libraries> {
        Arc::clone(&self.libraries.read())
    }

    /// Applies one atomic change ([`Libraries::add`], [`Libraries::remove`]). Its cost does not
    /// depend on the number of libraries, unless another thread holds a snapshot.
    ///
    /// # Errors
    /// Returns the error of `change`.
    pub fn change_one(
        &self,
        change: impl FnOnce(&mut Libraries) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        change(Arc::make_mut(&mut self.libraries.write()))
    }

    /// Applies changes atomically. Takes O(libraries) steps.
    ///
    /// # Errors
    /// Returns the error of `change`; nothing is changed then.
    pub fn change(
        &self,
        change: impl FnOnce(&mut Libraries) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let mut libraries = self.libraries.write();
        let mut changed = Libraries::clone(&libraries);
        change(&mut changed)?;
        *libraries = Arc::new(changed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str) -> Library {
        let name = name.as_bytes().to_vec();
        let function = Declaration { name: name.clone(), description: None, flags: ScriptFlags::default() };
        let functions = BTreeMap::from([(name.clone(), function)]);
        Library { name, code: Vec::new(), functions, confined: BTreeMap::new() }
    }

    #[test]
    fn one_change_copies_the_libraries_only_while_a_snapshot_is_held() {
        let registry = LibraryRegistry::default();
        let add = |name: &str| registry.change_one(|libraries| libraries.add(library(name), false));
        let place = || Arc::as_ptr(&registry.snapshot());
        add("a").unwrap();
        let before = place();
        (0..100).for_each(|number| add(&format!("b{number}")).unwrap());
        add("a").unwrap_err();
        assert!(place() == before && registry.snapshot().all().count() == 101);
        let seen = registry.snapshot();
        add("c").unwrap();
        registry.change_one(|libraries| libraries.remove(b"a").then_some(()).ok_or("ERR".into())).unwrap();
        assert!(seen.get(b"a").is_some() && seen.get(b"c").is_none());
        assert!(registry.snapshot().get(b"a").is_none() && registry.snapshot().find(b"C").is_some());
    }
}
