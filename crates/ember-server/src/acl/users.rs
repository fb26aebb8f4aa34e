//! The table of all users, which connections and ACL commands share.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ember_config::{StoredUser, UserDirective};
use ember_persistence::full_path::full_path;
use ember_persistence::replace_file::replace;
use parking_lot::Mutex;

use super::file;
use super::log::AclLog;
use super::rule::has_spaces;
use super::selector::Grammar;
use super::user::{DEFAULT_NAME, User};

/// All users, by name.
#[derive(Default)]
struct Users {
    by_name: BTreeMap<Box<[u8]>, Arc<User>>,
    /// The number of users created so far, including removed ones.
    made: u64,
    /// The number of restricted users.
    restricted: usize,
}

impl Users {
    fn next_id(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Inserts a user, and returns the user of the same name that it replaces. Takes O(log users) steps.
    fn put(&mut self, user: User) -> Option<Arc<User>> {
        self.restricted += usize::from(!user.is_unrestricted());
        let replaced = self.by_name.insert(user.name.clone(), Arc::new(user));
        self.restricted -= replaced.iter().filter(|user| !user.is_unrestricted()).count();
        replaced
    }

    /// Removes a user and returns it. Takes O(log users) steps.
    fn remove(&mut self, name: &[u8]) -> Option<Arc<User>> {
        let removed = self.by_name.remove(name)?;
        self.restricted -= usize::from(!removed.is_unrestricted());
        Some(removed)
    }

    /// Removes all users and returns them.
    fn take_all(&mut self) -> BTreeMap<Box<[u8]>, Arc<User>> {
        self.restricted = 0;
        std::mem::take(&mut self.by_name)
    }

    fn default_user(&self) -> &Arc<User> {
        self.by_name.get(DEFAULT_NAME).expect("the default user is created at startup and cannot be removed")
    }
}

/// A user that has lost access to channels.
pub(crate) struct Revocation {
    user: Arc<User>,
}

impl Revocation {
    fn between(before: &User, after: Arc<User>) -> Option<Revocation> {
        (!after.has_all_channels_of(before)).then_some(Revocation { user: after })
    }

    /// Whether `user` is the user that has lost access.
    pub(crate) fn concerns(&self, user: &User) -> bool {
        self.user.is_same(user)
    }

    /// Whether the user may still access a channel, or subscribe to a pattern of channels.
    pub(crate) fn allows(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.user.allows_channel(channel, is_pattern)
    }
}

/// The user table and the log of denials.
pub(crate) struct Acl {
    users: Mutex<Users>,
    /// The number of changes of `users` so far.
    generation: AtomicU64,
    /// Whether at least one user is restricted.
    restricts_anybody: AtomicBool,
    pub(crate) log: AclLog,
    /// Locked while the ACL file is written.
    saving: Mutex<()>,
}

/// The part of the user table that a connection stores.
pub(crate) struct Standing {
    /// The requested user, if it exists.
    pub(crate) user: Option<Arc<User>>,
    /// Whether connections that have not authenticated may run commands.
    pub(crate) is_open: bool,
    /// The generation of the table at the lookup, or an earlier one.
    pub(crate) generation: u64,
}

impl Acl {
    /// Creates a table that contains only the default user, with this password; without a password if it is empty.
    pub(crate) fn new(grammar: Grammar<'_>, password: &[u8]) -> Acl {
        let mut users = Users::default();
        let mut user = User::new_default(users.next_id(), grammar);
        user.set_only_password(password);
        users.put(user);
        Acl {
            users: Mutex::new(users),
            generation: AtomicU64::new(0),
            restricts_anybody: AtomicBool::new(false),
            log: AclLog::default(),
            saving: Mutex::new(()),
        }
    }

    /// Loads the users at startup: from the ACL file at `path`, or from the configuration if `path` is empty.
    ///
    /// # Errors
    /// Returns one line with the position of the mistake.
    pub(crate) fn load_at_start(
        &self,
        configured: &[UserDirective],
        path: &str,
        grammar: Grammar<'_>,
    ) -> Result<(), String> {
        if !path.is_empty() {
            if let Some(directive) = configured.first() {
                return Err(format!(
                    "{}: users are either in the configuration or in the aclfile '{path}', not in both",
                    directive.origin
                ));
            }
            let loaded = self.load_file(path, &full_path(path), grammar);
            return loaded.map(drop).map_err(|error| String::from_utf8_lossy(&error).into_owned());
        }
        let mut users = self.users.lock();
        let mut seen = HashSet::new();
        for directive in configured {
            let wrong = |error: &dyn std::fmt::Display| format!("{}: user: {error}", directive.origin);
            let (name, rules) = directive.words.split_first().ok_or_else(|| wrong(&"a name is missing"))?;
            let name = name.as_bytes();
            if has_spaces(name) {
                return Err(wrong(&"Usernames can't contain spaces or null characters"));
            }
            if !seen.insert(name) {
                return Err(wrong(&"Duplicate user found. A user can only be defined once in config files"));
            }
            let id = users.by_name.get(name).map(|known| known.id);
            let mut user = User::new(name, id.unwrap_or_else(|| users.next_id()), grammar);
            user.apply_words(rules.iter().map(String::as_bytes), grammar)
                .map_err(|error| wrong(&String::from_utf8_lossy(&error)))?;
            warn_if_off(&user);
            users.put(user);
        }
        self.changed(&users);
        Ok(())
    }

    /// Returns a number that changes with every change of a user.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        // Pairs with the Release in `changed`.
        self.generation.load(Ordering::Acquire)
    }

    /// Whether at least one user is restricted.
    pub(crate) fn restricts_anybody(&self) -> bool {
        self.restricts_anybody.load(Ordering::Relaxed)
    }

    /// Publishes a change of the users; the caller still holds the lock.
    fn changed(&self, users: &Users) {
        self.restricts_anybody.store(users.restricted > 0, Ordering::Relaxed);
        // Pairs with the Acquire in `generation`: a thread that reads the new number also reads the new users.
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns the user of this name, if it exists.
    pub(crate) fn find(&self, name: &[u8]) -> Option<Arc<User>> {
        self.users.lock().by_name.get(name).cloned()
    }

    /// Returns the user of this name, with the data of the table that a connection stores.
    pub(crate) fn look_up(&self, name: &[u8]) -> Standing {
        let users = self.users.lock();
        Standing {
            user: users.by_name.get(name).cloned(),
            is_open: users.default_user().is_open(),
            generation: self.generation(),
        }
    }

    /// Returns the user of connections that have not authenticated.
    pub(crate) fn default_user(&self) -> Arc<User> {
        Arc::clone(self.users.lock().default_user())
    }

    /// Returns all users, ordered by name.
    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.users.lock().by_name.values().cloned().collect()
    }

    /// Changes or creates a user. Returns the user if it has lost access to channels. Takes O(log users + rules) steps.
    ///
    /// # Errors
    /// Returns the error of the rules, with Redis's text; nothing is changed then.
    pub(crate) fn set_user<'w>(
        &self,
        name: &[u8],
        rules: impl Iterator<Item = &'w [u8]> + Clone,
        grammar: Grammar<'_>,
    ) -> Result<Option<Revocation>, Vec<u8>> {
        let mut users = self.users.lock();
        let mut user = match users.by_name.get(name) {
            Some(known) => User::clone(known),
            None => User::new(name, users.next_id(), grammar),
        };
        user.apply_words(rules, grammar)?;
        let before = users.put(user);
        self.changed(&users);
        let after = users.by_name.get(name).map(Arc::clone);
        Ok(before.zip(after).and_then(|(before, after)| Revocation::between(&before, after)))
    }

    /// Sets the default user's password from `requirepass`; an empty password removes it.
    pub(crate) fn set_default_password(&self, password: &[u8]) {
        let mut users = self.users.lock();
        let mut user = User::clone(users.default_user());
        user.set_only_password(password);
        users.put(user);
        self.changed(&users);
    }

    /// Removes a user, if it exists, and returns it. Must not be called for the default user.
    pub(crate) fn remove(&self, name: &[u8]) -> Option<Arc<User>> {
        assert_ne!(name, DEFAULT_NAME, "the default user cannot be removed");
        let mut users = self.users.lock();
        let removed = users.remove(name)?;
        self.changed(&users);
        Some(removed)
    }

    /// Replaces all users by those in the file at `path`, which error messages call `shown`. Returns the previous
    /// users, except the default user, that are missing in the file or have other rules there: their connections must
    /// be closed.
    ///
    /// # Errors
    /// Returns all mistakes in the file, with line numbers; nothing is changed then.
    pub(crate) fn load_file(
        &self,
        path: &str,
        shown: &str,
        grammar: Grammar<'_>,
    ) -> Result<Vec<Arc<User>>, Vec<u8>> {
        let text = std::fs::read(path).map_err(|error| {
            let reason = file::system_reason(&error);
            format!("Error loading ACLs, opening file '{shown}': {reason}").into_bytes()
        })?;
        let mut users = self.users.lock();
        let default_id = users.default_user().id;
        let make = |name: &[u8]| match name {
            DEFAULT_NAME => User::new(name, default_id, grammar),
            name => User::new(name, users.next_id(), grammar),
        };
        let mut loaded = file::parse(&text, shown, make, grammar)?;
        loaded.iter().for_each(warn_if_off);
        if !loaded.iter().any(|user| *user.name == *DEFAULT_NAME) {
            loaded.push(User::new_default(default_id, grammar));
        }
        let mut old = users.take_all();
        for user in loaded {
            // An unchanged user is retained, so that its connections stay open.
            let is_same = old.get(&user.name).is_some_and(|old| old.line() == user.line());
            match is_same.then(|| old.remove(&user.name)).flatten() {
                Some(same) => users.put(User::clone(&same)),
                None => users.put(user),
            };
        }
        self.changed(&users);
        Ok(old.into_values().filter(|user| user.id != default_id).collect())
    }

    /// Returns all users to write to a configuration file with this `requirepass`. The default user is included only if
    /// `requirepass` does not describe it fully, or a line defines it. `lines` are the lines with which the server was
    /// started: a line that still defines the same user may stay unchanged.
    ///
    /// # Errors
    /// Returns the error reply if a name or rule is not UTF-8, because no configuration file can contain it.
    pub(crate) fn stored_users(
        &self,
        password: &[u8],
        lines: &[UserDirective],
        grammar: Grammar<'_>,
    ) -> Result<Vec<StoredUser>, String> {
        let mut plain = User::new_default(0, grammar);
        plain.set_only_password(password);
        let all = self.all();
        let is_plain = |user: &User| user.name == plain.name && user.describe() == plain.describe();
        let stored = all.iter().map(|user| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
            let spellings =
                lines.iter().filter_map(|line| spelling_of(user, line, grammar)).collect::<Vec<_>>();
            if is_plain(user) && spellings.is_empty() {
                return Ok(None);
            }
            let rules = user.describe();
            let rules = rules.split(|&byte| byte == b' ').map(text).collect::<Result<_, _>>()?;
            Ok(Some(StoredUser { name: text(&user.name)?, rules, spellings }))
        });
        let stored: Result<Vec<_>, std::string::FromUtf8Error> =
            stored.filter_map(Result::transpose).collect();
        stored.map_err(|_| "ERR Rewriting config file: a user's name or rule is not valid UTF-8".to_owned())
    }

    /// Writes all users to the file at `path` atomically.
    ///
    /// # Errors
    /// Returns the error of the system; the file is then unchanged.
    pub(crate) fn save_file(&self, path: &Path) -> std::io::Result<()> {
        let _saving = self.saving.lock();
        let mut text = Vec::new();
        for user in self.all() {
            text.extend_from_slice(&user.line());
            text.push(b'\n');
        }
        replace(path, &text)
    }
}

/// Warns if no connection can authenticate as a user, which may be a mistake.
fn warn_if_off(user: &User) {
    if user.is_off() {
        let name = String::from_utf8_lossy(&user.name);
        tracing::warn!("the user '{name}' is off and cannot log in: its rules do not include 'on'");
    }
}
/// Returns the rules of a configuration line if they define exactly this user.
fn spelling_of(user: &User, line: &UserDirective, grammar: Grammar<'_>) -> Option<Vec<String>> {
    let (name, rules) = line.words.split_first()?;
    if *user.name != *name.as_bytes() {
        return None;
    }
    let mut defined = User::new(name.as_bytes(), user.id, grammar);
    defined.apply_words(rules.iter().map(String::as_bytes), grammar).ok()?;
    (defined.describe() == user.describe()).then(|| rules.to_vec())
}
