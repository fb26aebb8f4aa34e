//! Configuration files in the syntax of redis.conf: one directive per line, `#` comments, quotes, `include`.
//!
//! `include` takes a path or a glob pattern. A relative path starts from the directory of the including file. The files
//! that match a pattern are read in the order of their names; a pattern without matches is no error.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use ember_persistence::full_path::full_path;
use emberkv_core::glob::{self, Case};

use super::assignment::{Assignment, Statement};
use super::parameter::Parameter;
use super::words;

/// The maximum depth of includes. Deeper includes are reported like a file that includes itself.
const INCLUDE_DEPTH_MAX: usize = 16;

/// The maximum number of files read. With the depth, this bounds the work for patterns that match many files.
const FILES_MAX: usize = 1024;

/// The maximum size of a file in bytes; anything larger is not a configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Directives of older Redis versions that Redis 7.2 reads without any effect.
const RETIRED: [&str; 4] =
    ["gopher-enabled", "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"];

/// The statements of a file, in the order of its lines. Lines with mistakes are represented by error messages.
pub(super) type Statements = Vec<Result<Assignment, String>>;

/// Reads the file at `path` and its includes.
///
/// # Errors
/// Returns one line if the file itself cannot be read. Mistakes in the file are part of the returned statements: one
/// line each, with the file, the line number and the directive.
pub(crate) fn read(path: &Path) -> Result<Statements, String> {
    let mut reader = Reader::default();
    reader.read_file(path, 0).map_err(|error| format!("cannot read '{}': {error}", full_path(path)))?;
    Ok(reader.statements)
}

/// Reads everything from `input`, called `name` in messages. Relative includes start from the current directory.
///
/// # Errors
/// Returns the errors of [`read`].
pub(crate) fn read_from(input: impl Read, name: &str) -> Result<Statements, String> {
    let text = read_text(input).map_err(|error| format!("cannot read {name}: {error}"))?;
    Ok(parse(&text, name, Path::new("")))
}

/// Reads `text`, called `name` in messages. Relative includes start from `directory`.
pub(crate) fn parse(text: &str, name: &str, directory: &Path) -> Statements {
    let mut reader = Reader::default();
    reader.parse(text, name, directory, 0);
    reader.statements
}

#[derive(Default)]
struct Reader {
    statements: Statements,
    files: usize,
}

impl Reader {
    /// Reads one file and appends its statements. Returns an error only if the file itself cannot be read.
    fn read_file(&mut self, path: &Path, depth: usize) -> std::io::Result<()> {
        let text = read_text(File::open(path)?)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        self.parse(&text, &path.display().to_string(), directory, depth);
        Ok(())
    }

    fn parse(&mut self, text: &str, name: &str, directory: &Path, depth: usize) {
        for (index, line) in text.lines().enumerate() {
            let origin = format!("{name}:{}", index + 1);
            match directive(line) {
                Ok(None) => {}
                Ok(Some(Directive { name, words })) if name.eq_ignore_ascii_case("include") => {
                    if let Err(error) = self.include(&words, directory, depth + 1) {
                        self.statements.push(Err(format!("{origin}: include: {error}")));
                    }
                }
                Ok(Some(directive)) => self.statements.push(statement(directive, origin)),
                Err(error) => self.statements.push(Err(format!("{origin}: {error}"))),
            }
        }
    }

    fn include(&mut self, words: &[String], directory: &Path, depth: usize) -> Result<(), String> {
        let [pattern] = words else { return Err("wrong number of arguments".to_owned()) };
        if depth > INCLUDE_DEPTH_MAX {
            return Err(format!("nested more than {INCLUDE_DEPTH_MAX} files deep"));
        }
        for path in expand(&directory.join(pattern)) {
            self.files += 1;
            if self.files > FILES_MAX {
                return Err(format!("more than {FILES_MAX} files"));
            }
            self.read_file(&path, depth)
                .map_err(|error| format!("cannot read '{}': {error}", full_path(&path)))?;
        }
        Ok(())
    }
}

/// Returns the statement of a directive; `origin` is the file and line of the directive.
fn statement(directive: Directive, origin: String) -> Result<Assignment, String> {
    let Directive { name, words } = directive;
    let name = name.to_ascii_lowercase();
    let at = |error: &dyn std::fmt::Display| format!("{origin}: {name}: {error}");
    let other = |statement| Ok(Assignment { statement, origin: origin.clone() });
    if let Some(parameter) = Parameter::find(&name) {
        let text = parameter.join(&words).map_err(|error| at(&error))?;
        return Ok(Assignment::value(parameter, text, format!("{origin}: {name}")));
    }
    if let Some(retired) = RETIRED.into_iter().find(|retired| *retired == name) {
        return match words.len() {
            1 => other(Statement::Retired(retired)),
            _ => Err(at(&"wrong number of arguments")),
        };
    }
    match (name.as_str(), &words[..]) {
        (USER_DIRECTIVE, _) => other(Statement::User(words)),
        ("rename-command", [from, to]) => other(Statement::Rename { from: from.clone(), to: to.clone() }),
        ("rename-command", _) => Err(at(&"wrong number of arguments")),
        _ => {
            let first = words.first().map_or("", String::as_str);
            if name == "loadmodule"
                && let Some(notice) = built_in(first)
            {
                return other(Statement::Retired(notice));
            }
            match unsupported(&name, first) {
                Some(why) => Err(at(&format!("{why}: remove this line"))),
                None => Err(format!("{origin}: {}", Parameter::unknown(&name))),
            }
        }
    }
}

/// Returns the notice for the log if the commands of the module in this file are built in.
fn built_in(module: &str) -> Option<&'static str> {
    let file = Path::new(module).file_name().and_then(OsStr::to_str);
    BUILT_IN_MODULES.into_iter().find(|&(name, _)| file == Some(name)).map(|(_, notice)| notice)
}

/// Returns why ember has no parameter for a directive of Redis; `None` if Redis does not have the directive either.
/// `name` is in small letters; `first` is the first word of the value.
pub(super) fn unsupported(name: &str, first: &str) -> Option<String> {
    match name {
        "loadmodule" => Some(format!("modules are not supported, so '{first}' cannot be loaded")),
        "sentinel" => Some("Sentinel is not available".to_owned()),
        module if module.contains('.') => Some("modules are not supported and have no parameters".to_owned()),
        _ => None,
    }
}

/// Files of modules whose commands are built in, so that a configuration may load them, and how the log names this.
const BUILT_IN_MODULES: [(&str, &str); 2] = [
    ("rejson.so", "loadmodule rejson.so (built in)"),
    ("redisbloom.so", "loadmodule redisbloom.so (built in)"),
];

/// The name of the directive that adds a user.
pub(super) const USER_DIRECTIVE: &str = "user";

/// The name and the arguments of a configuration line.
pub(crate) struct Directive {
    pub name: String,
    pub words: Vec<String>,
}

/// Returns the directive of a line; `None` for a comment or an empty line.
///
/// # Errors
/// Returns [`words::BadLine`] if the quotes of the line are not balanced or a word is not UTF-8.
pub(crate) fn directive(line: &str) -> Result<Option<Directive>, words::BadLine> {
    let line = line.trim_matches([' ', '\t', '\r', '\n']);
    if line.starts_with('#') {
        return Ok(None);
    }
    let mut words = words::split(line)?.into_iter();
    Ok(words.next().map(|name| Directive { name, words: words.collect() }))
}

/// Reads all of `input` as text.
///
/// # Errors
/// Returns the error of `input`, or an error if the text is longer than a configuration file may be or is not UTF-8.
pub(crate) fn read_text(input: impl Read) -> std::io::Result<String> {
    let mut text = String::new();
    input.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!("longer than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Returns the sorted paths that match `pattern`, or `pattern` itself if it contains no wildcards. A name that begins
/// with a dot is matched only by a pattern that also begins with a dot.
fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for component in pattern.components() {
        let part = component.as_os_str().as_encoded_bytes();
        let is_pattern =
            matches!(component, Component::Normal(_)) && part.iter().any(|byte| b"*?[".contains(byte));
        if !is_pattern {
            paths.iter_mut().for_each(|path| path.push(component));
            continue;
        }
        paths = paths
            .iter()
            .flat_map(|directory| matching_entries(directory, part))
            .take(FILES_MAX + 1)
            .collect();
    }
    let was_pattern = pattern.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte));
    if was_pattern {
        paths.retain(|path| path.exists());
    }
    paths
}

/// Returns the entries of `directory` that match `pattern`, sorted by name; an empty list if the directory cannot be
/// read.
fn matching_entries(directory: &Path, pattern: &[u8]) -> Vec<PathBuf> {
    let read = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Ok(entries) = std::fs::read_dir(read) else { return Vec::new() };
    let mut paths: Vec<_> = entries
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| {
            let name = name.as_encoded_bytes();
            (pattern.starts_with(b".") || !name.starts_with(b"."))
                && glob::matches(pattern, name, Case::Sensitive)
        })
        .map(|name| directory.join(name))
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestDirectory;
    use super::*;

    fn assigned(statements: &Statements) -> Vec<(&str, &str)> {
        let value = |stated: &'_ Result<Assignment, String>| match stated {
            Ok(Assignment { statement: Statement::Value(parameter, text), .. }) => {
                (parameter.name, text.clone().leak() as &str)
            }
            other => panic!("{other:?}"),
        };
        statements.iter().map(value).collect()
    }

    fn errors(statements: Statements) -> Vec<String> {
        statements.into_iter().filter_map(Result::err).collect()
    }

    fn errors_of(text: &str) -> Vec<String> {
        errors(parse(text, "a.conf", Path::new("")))
    }

    #[test]
    fn directives_are_read_without_regard_to_case_comments_and_blank_lines() {
        let text = "# comment\n\n  PORT 6380 \r\n\t# another\nbind 127.0.0.1  ::1\nsave\nrequirepass 'a b'\n";
        let assignments = parse(text, "a.conf", Path::new(""));
        let expected = [("port", "6380"), ("bind", "127.0.0.1 ::1"), ("save", ""), ("requirepass", "a b")];
        assert_eq!(assigned(&assignments), expected);
    }

    #[test]
    fn errors_name_the_file_the_line_and_the_directive() {
        for (text, error) in [
            ("\nprot 1", "a.conf:2: unknown parameter 'prot' (did you mean 'port'?)"),
            ("port 1 2", "a.conf:1: port: wrong number of arguments"),
            ("port", "a.conf:1: port: wrong number of arguments"),
            ("port 1 # one", "a.conf:1: port: wrong number of arguments (a comment needs a line of its own)"),
            ("dir \"a", "a.conf:1: unbalanced quotes"),
            ("dir \"\\xff\"", "a.conf:1: a value is not valid UTF-8"),
            ("include", "a.conf:1: include: wrong number of arguments"),
        ] {
            assert_eq!(errors_of(text), [error]);
        }
    }

    #[test]
    fn all_errors_are_reported_in_the_order_of_their_lines() {
        let text = "prot 1\nhz 20\nloadmodule /lib/search.so MAXSIZE 5\nsave 1\nsearch.maxsize 5\nport 1 2\nsentinel x\n\
                    rename-command GET\nlua-replicate-commands\nhz \"";
        let statements = parse(text, "a.conf", Path::new(""));
        let expected = [
            "a.conf:1: unknown parameter 'prot' (did you mean 'port'?)",
            "a.conf:3: loadmodule: modules are not supported, so '/lib/search.so' cannot be loaded: remove \
             this line",
            "a.conf:4: save: Invalid save parameters",
            "a.conf:5: search.maxsize: modules are not supported and have no parameters: remove this line",
            "a.conf:6: port: wrong number of arguments",
            "a.conf:7: sentinel: Sentinel is not available: remove this line",
            "a.conf:8: rename-command: wrong number of arguments",
            "a.conf:9: lua-replicate-commands: wrong number of arguments",
            "a.conf:10: unbalanced quotes",
        ];
        assert_eq!(super::super::assignment::apply(&statements).unwrap_err(), expected);
    }

    #[test]
    fn directives_that_are_no_parameters_are_kept() {
        let text =
            "rename-command FLUSHALL \"\"\nRename-Command get fetch\nlist-max-ziplist-value 64\nuser bob on";
        let config = super::super::assignment::apply(&parse(text, "a.conf", Path::new(""))).unwrap();
        let renames: Vec<_> = config.renames.iter().map(|r| (&*r.from, &*r.to, &*r.origin)).collect();
        assert_eq!(renames, [("FLUSHALL", "", "a.conf:1"), ("get", "fetch", "a.conf:2")]);
        assert_eq!(config.stored.names().collect::<Vec<_>>(), ["list-max-ziplist-value"]);
        let text = "loadmodule /opt/redis-stack/lib/rejson.so MAX 1\nloadmodule redisbloom.so";
        let built_in = super::super::assignment::apply(&parse(text, "a.conf", Path::new(""))).unwrap();
        assert_eq!(
            built_in.stored.names().collect::<Vec<_>>(),
            ["loadmodule redisbloom.so (built in)", "loadmodule rejson.so (built in)"]
        );
        assert_eq!(config.users[0].words, ["bob", "on"]);
    }

    #[test]
    fn a_refused_value_is_reported_with_its_place() {
        let mut config = super::super::Config::default();
        let assignments = parse("\nmaxmemory much", "conf.d/a.conf", Path::new(""));
        let error = assignments[0].as_ref().unwrap().apply(&mut config).unwrap_err();
        assert_eq!(error, "conf.d/a.conf:2: maxmemory: argument must be a memory value");
    }

    #[test]
    fn includes_are_relative_to_the_file_and_read_in_place() {
        let directory = TestDirectory::new();
        directory.write("conf.d/b.conf", "port 3\n");
        directory.write("conf.d/a.conf", "port 2\ninclude ../more.conf");
        directory.write("conf.d/.hidden.conf", "port 9\n");
        directory.write("conf.d/c.txt", "port 9\n");
        directory.write("more.conf", "hz 20\n");
        let main =
            directory.write("main.conf", "port 1\nInclude conf.d/*.conf\ninclude none*.conf\nport 4\n");
        let assignments = read(Path::new(&main)).unwrap();
        let expected = [("port", "1"), ("port", "2"), ("hz", "20"), ("port", "3"), ("port", "4")];
        assert_eq!(assigned(&assignments), expected);
    }

    #[test]
    fn patterns_may_stand_in_directories_too() {
        let directory = TestDirectory::new();
        directory.write("x1/a.conf", "port 1\n");
        directory.write("x2/a.conf", "port 2\n");
        directory.write("x3/b.conf", "port 3\n");
        let main = directory.write("main.conf", "include x*/a.conf\n");
        assert_eq!(assigned(&read(Path::new(&main)).unwrap()), [("port", "1"), ("port", "2")]);
    }

    #[test]
    fn a_file_which_includes_itself_is_refused() {
        let directory = TestDirectory::new();
        let path = directory.write("loop.conf", "include loop.conf\n");
        let found = errors(read(Path::new(&path)).unwrap());
        assert_eq!(found, [format!("{path}:1: include: nested more than 16 files deep")]);
        let path = directory.write("fan.conf", "include *.conf\ninclude *.conf\n");
        std::fs::remove_file(directory.path("loop.conf")).unwrap();
        for name in ["f1.conf", "f2.conf"] {
            directory.write(name, "port 1\n");
        }
        assert!(!errors(read(Path::new(&path)).unwrap()).is_empty());
    }

    #[test]
    fn a_missing_or_endless_file_is_an_error() {
        let directory = TestDirectory::new();
        let missing = directory.path("missing.conf");
        let error = read(Path::new(&missing)).unwrap_err();
        assert!(error.starts_with(&format!("cannot read '{missing}': ")), "{error}");
        let path = directory.write("a.conf", "\ninclude missing.conf\n");
        let error = errors(read(Path::new(&path)).unwrap()).remove(0);
        assert!(error.starts_with(&format!("{path}:2: include: cannot read '{missing}': ")), "{error}");
        let error = read_from(std::io::repeat(b'#'), "standard input").unwrap_err();
        assert_eq!(error, "cannot read standard input: longer than 1048576 bytes");
    }
}
