//! Workloads: the requests of a test, and the data that must exist before it.

use std::os::unix::ffi::OsStrExt;

use ember_protocol::client::split_arguments;

use super::arguments::{BenchmarkArguments, WorkOptions};
use super::requests::Template;

/// A test.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    /// The name of the test in reports.
    pub(super) name: String,
    /// The kinds of requests, and the number of consecutive requests of each kind.
    pub(super) parts: Vec<(Template, u32)>,
    /// For each part, whether its requests read data that may be missing.
    pub(super) reads: Vec<bool>,
    /// The data that must be created before the test.
    pub(super) needs: Needs,
}

/// The data that a test needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing.
    Nothing,
    /// A string at every key.
    Keys,
    /// A string at every key that these key templates produce; each template contains one placeholder for a key's
    /// number.
    Strings(Vec<Vec<u8>>),
    /// A list with this number of elements; `None` for one element per request.
    List(Option<u64>),
    /// A set with the elements of all keys, or of as many as there are requests.
    Set,
    /// A sorted set with the same elements as [`Needs::Set`].
    SortedSet,
}

/// The list used by tests of lists.
pub(super) const LIST: &str = "mylist";
/// The set used by tests of sets.
pub(super) const SET: &str = "myset";
/// The sorted set used by tests of sorted sets.
pub(super) const SORTED_SET: &str = "myzset";
/// The prefix of elements in sets.
pub(super) const ELEMENT_PREFIX: &str = "element:";

/// Commands that read strings, for which keys are filled.
const STRING_READERS: [&[u8]; 5] = [b"GET", b"MGET", b"GETRANGE", b"STRLEN", b"SUBSTR"];

/// A predefined test.
struct Known {
    /// The names that select the test with `-t`, including those of its groups.
    names: &'static [&'static str],
    /// The name of the test in redis-benchmark's reports.
    title: &'static str,
    command: &'static str,
    reads: bool,
    needs: Needs,
}

const fn test(
    names: &'static [&'static str],
    title: &'static str,
    command: &'static str,
    reads: bool,
    needs: Needs,
) -> Known {
    Known { names, title, command, reads, needs }
}

/// All predefined tests, in the order of redis-benchmark.
const TESTS: [Known; 19] = [
    test(&["ping_inline", "ping"], "PING_INLINE", "", false, Needs::Nothing),
    test(&["ping_mbulk", "ping"], "PING_MBULK", "PING", false, Needs::Nothing),
    test(&["set"], "SET", "SET __key__ __data__", false, Needs::Nothing),
    test(&["get"], "GET", "GET __key__", true, Needs::Keys),
    test(&["incr"], "INCR", "INCR counter:__rand_int__", false, Needs::Nothing),
    test(&["lpush"], "LPUSH", "LPUSH mylist __data__", false, Needs::Nothing),
    test(&["rpush"], "RPUSH", "RPUSH mylist __data__", false, Needs::Nothing),
    test(&["lpop"], "LPOP", "LPOP mylist", true, Needs::List(None)),
    test(&["rpop"], "RPOP", "RPOP mylist", true, Needs::List(None)),
    test(&["sadd"], "SADD", "SADD myset element:__rand_int__", false, Needs::Nothing),
    test(&["hset"], "HSET", "HSET myhash element:__rand_int__ __data__", false, Needs::Nothing),
    test(&["spop"], "SPOP", "SPOP myset", true, Needs::Set),
    test(&["zadd"], "ZADD", "ZADD myzset __rand_int__ element:__rand_int__", false, Needs::Nothing),
    test(&["zpopmin"], "ZPOPMIN", "ZPOPMIN myzset", true, Needs::SortedSet),
    test(
        &["lrange_100", "lrange"],
        "LRANGE_100 (first 100 elements)",
        "LRANGE mylist 0 99",
        true,
        Needs::List(Some(100)),
    ),
    test(
        &["lrange_300", "lrange"],
        "LRANGE_300 (first 300 elements)",
        "LRANGE mylist 0 299",
        true,
        Needs::List(Some(300)),
    ),
    test(
        &["lrange_500", "lrange"],
        "LRANGE_500 (first 500 elements)",
        "LRANGE mylist 0 499",
        true,
        Needs::List(Some(500)),
    ),
    test(
        &["lrange_600", "lrange"],
        "LRANGE_600 (first 600 elements)",
        "LRANGE mylist 0 599",
        true,
        Needs::List(Some(600)),
    ),
    test(&["mset"], "MSET (10 keys)", "MSET", false, Needs::Nothing),
];

/// Keys per MSET.
const MSET_KEYS: usize = 10;

/// The byte that values consist of, as in redis-benchmark.
const DATA_BYTE: u8 = b'x';

/// Creates a value of the size that the options select.
pub(super) fn data(options: &WorkOptions) -> Vec<u8> {
    vec![DATA_BYTE; options.data_bytes as usize]
}

/// Returns the workloads that the options select, in order.
///
/// # Errors
/// Returns a message for unknown tests, invalid commands, or conflicting options.
pub(super) fn chosen(arguments: &BenchmarkArguments) -> Result<Vec<Workload>, String> {
    let options = &arguments.work;
    let data = data(options);
    let workloads = if let Some(ratio) = options.ratio {
        vec![mixed(ratio, options.ttl, &data)]
    } else if let Some(command) = &options.command {
        let words = split_arguments(command.as_bytes()).filter(|words| !words.is_empty());
        vec![custom(&words.ok_or("--command is invalid: it is empty or has an unclosed quote")?, &data)]
    } else if !arguments.words.is_empty() {
        let words: Vec<Vec<u8>> = arguments.words.iter().map(|word| word.as_bytes().to_vec()).collect();
        vec![custom(&words, &data)]
    } else if arguments.output.matrix.is_some() {
        named(&["set".to_owned(), "get".to_owned()], options.ttl, &data)?
    } else {
        named(&options.tests, options.ttl, &data)?
    };
    let has_set = |workload: &Workload| options.ratio.is_some() || workload.name == "SET";
    let is_filled = |workload: &Workload| matches!(workload.needs, Needs::Keys | Needs::Strings(_));
    let writes_strings = |workload: &Workload| has_set(workload) || is_filled(workload);
    if options.ttl.is_some() && !workloads.iter().any(writes_strings) {
        return Err("--ttl requires a test that runs SET".to_owned());
    }
    Ok(workloads)
}

/// Builds a SET command with placeholders for the value, and with an optional expiry.
pub(super) fn set_words(key: &[u8], ttl: Option<u32>) -> Vec<Vec<u8>> {
    let mut words = vec![b"SET".to_vec(), key.to_vec(), b"__data__".to_vec()];
    words.extend(ttl.into_iter().flat_map(|ttl| [b"EX".to_vec(), ttl.to_string().into_bytes()]));
    words
}

fn mixed((sets, gets): (u32, u32), ttl: Option<u32>, data: &[u8]) -> Workload {
    let get = [b"GET".to_vec(), b"__key__".to_vec()];
    let parts = [
        (Template::of_command(&set_words(b"__key__", ttl), data), sets, false),
        (Template::of_command(&get, data), gets, true),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|(_, times, _)| *times > 0).collect();
    Workload {
        name: format!("SET:GET {sets}:{gets}"),
        reads: parts.iter().map(|(_, _, reads)| *reads).collect(),
        parts: parts.into_iter().map(|(template, times, _)| (template, times)).collect(),
        needs: if gets > 0 { Needs::Keys } else { Needs::Nothing },
    }
}

fn custom(words: &[Vec<u8>], data: &[u8]) -> Workload {
    let template = Template::of_command(words, data);
    let is_reader = STRING_READERS.iter().any(|name| name.eq_ignore_ascii_case(&words[0]));
    let needs = if is_reader { needs_of_reader(words, data) } else { Needs::Nothing };
    let shown: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    Workload { name: shown.join(" "), parts: vec![(template, 1)], reads: vec![is_reader], needs }
}

/// Determines the strings that a command reads. Keys with several numbers are ignored, because they would need too many
/// strings.
fn needs_of_reader(words: &[Vec<u8>], data: &[u8]) -> Needs {
    let keys = if words[0].eq_ignore_ascii_case(b"MGET") {
        &words[1..]
    } else {
        words.get(1..2).unwrap_or_default()
    };
    let has_number = |key: &&Vec<u8>| Template::of_command(&[(*key).clone()], data).hole_count() == 1;
    let mut keys: Vec<Vec<u8>> = keys.iter().filter(has_number).cloned().collect();
    keys.sort();
    keys.dedup();
    match keys.as_slice() {
        [] => Needs::Nothing,
        [key] if key == b"__key__" => Needs::Keys,
        _ => Needs::Strings(keys),
    }
}

fn named(names: &[String], ttl: Option<u32>, data: &[u8]) -> Result<Vec<Workload>, String> {
    let wanted: Vec<String> = names.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
    let is_known = |name: &String| TESTS.iter().any(|test| test.names.contains(&name.as_str()));
    if let Some(name) = wanted.iter().find(|name| !is_known(name)) {
        return Err(format!("unknown test {name}; --help lists the tests"));
    }
    let is_wanted = |test: &&Known| {
        wanted.is_empty() || test.names.iter().any(|name| wanted.iter().any(|wanted| wanted == name))
    };
    Ok(TESTS.iter().filter(is_wanted).map(|known| workload(known, ttl, data)).collect())
}

fn workload(known: &Known, ttl: Option<u32>, data: &[u8]) -> Workload {
    let template = match known.title {
        "PING_INLINE" => Template::of_bytes(b"PING\r\n"),
        "SET" => Template::of_command(&set_words(b"__key__", ttl), data),
        _ => {
            let mut words: Vec<Vec<u8>> =
                known.command.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            if known.command == "MSET" {
                words.extend((0..MSET_KEYS).flat_map(|_| [b"__key__".to_vec(), b"__data__".to_vec()]));
            }
            Template::of_command(&words, data)
        }
    };
    Workload {
        name: known.title.to_owned(),
        parts: vec![(template, 1)],
        reads: vec![known.reads],
        needs: known.needs.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tests: &str) -> Result<Vec<String>, String> {
        let tests: Vec<String> = tests.split(',').map(str::to_owned).collect();
        named(&tests, None, b"xxx").map(|found| found.into_iter().map(|workload| workload.name).collect())
    }

    #[test]
    fn tests_are_found_by_their_names_and_groups() {
        assert_eq!(names("get,SET").unwrap(), ["SET", "GET"]);
        assert_eq!(names("ping").unwrap(), ["PING_INLINE", "PING_MBULK"]);
        assert_eq!(names("lrange").unwrap().len(), 4);
        assert_eq!(names("lrange_500").unwrap(), ["LRANGE_500 (first 500 elements)"]);
        assert!(names("get,gets").unwrap_err().contains("unknown test gets"));
        assert_eq!(named(&[], None, b"x").unwrap().len(), TESTS.len());
    }

    #[test]
    fn string_commands_require_populated_keys() {
        let needs = |line: &str| custom(&split_arguments(line).unwrap(), b"x").needs;
        assert_eq!(needs("get __key__"), Needs::Keys);
        assert_eq!(needs("GET fixed"), Needs::Nothing);
        assert_eq!(needs("HGETALL __key__"), Needs::Nothing);
        let strings =
            |keys: &[&str]| Needs::Strings(keys.iter().map(|key| key.as_bytes().to_vec()).collect());
        assert_eq!(needs("GET session:__rand_int__"), strings(&["session:__rand_int__"]));
        assert_eq!(
            needs("MGET b:__rand_int__ fixed __key__ __key__"),
            strings(&["__key__", "b:__rand_int__"])
        );
        assert_eq!(needs("GETRANGE k:__rand_int__ 0 __rand_int__"), strings(&["k:__rand_int__"]));
        assert_eq!(needs("GET a:__rand_int__:__rand_int__"), Needs::Nothing);
        assert_eq!(needs("GET"), Needs::Nothing);
    }
}
