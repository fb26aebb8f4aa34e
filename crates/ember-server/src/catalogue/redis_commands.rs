//! The names of all commands and subcommands of Redis 7.2. ACL rules may contain any of them, and the documentation
//! lists those that ember lacks.

/// The names, by command group.
const NAMES: &str = include_str!("redis_commands.txt");

/// Returns the groups and their names in lower case; subcommands as `container|subcommand`.
pub(crate) fn groups() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let mut lines = NAMES.lines().filter(|line| !line.starts_with('#')).peekable();
    std::iter::from_fn(move || {
        let group = title(lines.next()?)?;
        let mut names = Vec::new();
        while let Some(line) = lines.next_if(|line| title(line).is_none()) {
            names.extend(line.split(' '));
        }
        Some((group, names))
    })
}

fn title(line: &str) -> Option<&str> {
    line.strip_prefix('[').and_then(|line| line.strip_suffix(']'))
}

/// Returns the listed name that equals `name`, ignoring case. Takes O(all names) steps.
pub(crate) fn known(name: &[u8]) -> Option<&'static str> {
    let mut names = groups().flat_map(|(_, names)| names);
    names.find(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Returns whether the command of this name has subcommands. Takes O(all names) steps.
pub(crate) fn is_container(name: &[u8]) -> bool {
    let is_of = |known: &&str| {
        let container = known.split_once('|').map(|(container, _)| container);
        container.is_some_and(|container| container.as_bytes().eq_ignore_ascii_case(name))
    };
    groups().flat_map(|(_, names)| names).any(|known| is_of(&known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(known(b"SYNC"), Some("sync"));
        assert_eq!(known(b"Cluster|Info"), Some("cluster|info"));
        assert_eq!(known(b"cluster|nothing"), None);
        assert_eq!(known(b"[string]"), None);
        assert!(is_container(b"SENTINEL") && !is_container(b"sync") && !is_container(b""));
    }

    #[test]
    fn no_group_is_empty() {
        assert!(groups().count() > 20);
        assert!(groups().all(|(_, names)| !names.is_empty()));
    }
}
