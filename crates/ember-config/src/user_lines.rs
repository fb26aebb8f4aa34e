//! Updates the `user name rule …` lines of a configuration file, for CONFIG REWRITE.

use std::path::Path;

use super::assignment::apply;
use super::fields::Config;
use super::file::{self, USER_DIRECTIVE};
use super::users::{StoredUser, UserDirective};

/// Updates the user lines of `text`, the file `name` in `directory`: replaces existing lines and appends the lines of
/// further users. `append` adds lines at the end.
///
/// # Errors
/// Returns a message if an included file defines users differently, because only `text` can be changed.
pub(super) fn rewrite(
    text: &str,
    users: &[StoredUser],
    name: &str,
    directory: &Path,
    append: impl FnOnce(&mut Vec<String>, Vec<String>),
) -> Result<String, String> {
    let own_origin = format!("{name}:");
    let included: Vec<UserDirective> = stated(text, name, directory)?
        .users
        .into_iter()
        .filter(|directive| !directive.origin.starts_with(&own_origin))
        .collect();
    for directive in &included {
        if !users.iter().any(|user| user.is_defined_by(directive)) {
            return Err(format!(
                "{}: the included file defines a user that has changed since it was read",
                directive.origin
            ));
        }
    }
    let is_included = |user: &&StoredUser| included.iter().any(|directive| user.is_defined_by(directive));
    let mut wanted = users.iter().filter(|user| !is_included(user)).map(StoredUser::line);
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        let is_user = file::directive(line).is_ok_and(|directive| {
            directive.is_some_and(|directive| directive.name.eq_ignore_ascii_case(USER_DIRECTIVE))
        });
        if is_user {
            lines.extend(wanted.next());
        } else {
            lines.push(line.to_owned());
        }
    }
    let rest: Vec<String> = wanted.collect();
    if !rest.is_empty() {
        append(&mut lines, rest);
    }
    let new = lines.concat();
    let found = stated(&new, name, directory)?.users;
    if !users.iter().all(|user| found.iter().any(|directive| user.is_defined_by(directive))) {
        return Err("the rewritten file would not restore the current users".to_owned());
    }
    Ok(new)
}

fn stated(text: &str, name: &str, directory: &Path) -> Result<Config, String> {
    // Only the first mistake is reported, because an error reply has one line.
    apply(&file::parse(text, name, directory)).map_err(|mut mistakes| mistakes.swap_remove(0))
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestDirectory;
    use super::*;

    fn user(line: &str) -> StoredUser {
        let mut words = super::super::words::split(line).unwrap().into_iter();
        StoredUser { name: words.next().unwrap(), rules: words.collect(), spellings: Vec::new() }
    }

    fn rewritten(text: &str, users: &[&str], directory: &Path) -> Result<String, String> {
        let users: Vec<_> = users.iter().map(|line| user(line)).collect();
        rewrite(text, &users, "a.conf", directory, |lines, new| lines.extend(new))
    }

    #[test]
    fn user_lines_are_replaced_in_place_and_further_ones_appended() {
        let text = "# Users.\nuser alice on >pw\nhz 10\nUSER bob off\n";
        let new = rewritten(text, &["alice on #12", "carol off", "dave \"~a'\""], Path::new("")).unwrap();
        assert_eq!(new, "# Users.\nuser alice on #12\nhz 10\nuser carol off\nuser dave \"~a'\"\n");
        assert_eq!(rewritten(&new, &[], Path::new("")).unwrap(), "# Users.\nhz 10\n");
        assert_eq!(rewritten("hz 10\n", &[], Path::new("")).unwrap(), "hz 10\n");
    }

    #[test]
    fn users_of_an_included_file_stay_there() {
        let directory = TestDirectory::new();
        let path = directory.write("users.conf", "user alice on nopass\n");
        let inside = Path::new(&path).parent().unwrap();
        let text = "include users.conf\nuser bob off\n";
        let new = rewritten(text, &["alice on nopass", "bob on"], inside).unwrap();
        assert_eq!(new, "include users.conf\nuser bob on\n");
        for users in [&["alice off", "bob on"][..], &["bob on"]] {
            let error = rewritten(text, users, inside).unwrap_err();
            assert!(
                error.ends_with(
                    "users.conf:1: the included file defines a user that has changed since it was read"
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn included_users_may_have_the_spelling_of_the_startup() {
        let directory = TestDirectory::new();
        let path = directory.write("users.conf", "user alice on >pw +@all\n");
        let inside = Path::new(&path).parent().unwrap();
        let text = "include users.conf\nuser bob off\n";
        let mut alice = user("alice on #12 +@all");
        let write = |alice: &StoredUser| {
            let users = [alice.clone(), user("bob off")];
            rewrite(text, &users, "a.conf", inside, |lines, new| lines.extend(new))
        };
        assert!(write(&alice).is_err());
        alice.spellings.push(["on", ">pw", "+@all"].map(str::to_owned).to_vec());
        assert_eq!(write(&alice).unwrap(), text);
    }

    #[test]
    fn debug_output_of_a_line_has_no_password() {
        let directives = stated("user alice on >secret\n", "a.conf", Path::new("")).unwrap().users;
        assert_eq!(format!("{directives:?}"), "[UserDirective(Some(\"alice\") at a.conf:1)]");
    }
}
