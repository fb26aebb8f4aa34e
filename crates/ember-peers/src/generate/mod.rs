//! Random commands over small alphabets, so that key collisions, wrong states and conflicting options are frequent.
//!
//! A generator is mostly a template: words in braces are drawn ([`Draw::word`]), the others are used literally in
//! random letter case. No generator produces:
//! * an expiry within a few hours from now, unless it is in the past: whether the key exists would depend on the clock;
//! * two equal relative expiries: GT and LT would depend on the millisecond;
//! * floats beyond the range of a double, or cursors of SCAN other than 0: clients cannot rely on them.

mod bitmap;
mod connection;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod list;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;

use ember_testkit::Random;

/// The words of one command: its name and arguments.
pub(crate) type Words = Vec<Vec<u8>>;

/// Generates random forms of one command.
#[derive(Debug)]
pub struct Generator {
    /// The command.
    pub name: &'static str,
    /// The relative frequency of the command.
    pub weight: usize,
    make: fn(&mut Draw) -> Vec<Step>,
}

/// All generators, group by group.
pub const COMMANDS: &[&[Generator]] = &[
    string::COMMANDS,
    bitmap::COMMANDS,
    list::COMMANDS,
    hash::COMMANDS,
    set::COMMANDS,
    stream::COMMANDS,
    hyperloglog::COMMANDS,
    sorted_set::COMMANDS,
    geo::COMMANDS,
    generic::COMMANDS,
    connection::COMMANDS,
    server::COMMANDS,
];

/// A command to send, and any peculiarity of its reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) words: Words,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// One reply.
    Reply,
    /// No reply: CLIENT REPLY OFF or SKIP.
    Quiet,
    /// One reply, then the server closes the connection.
    Close,
    /// SCAN, which is repeated with each server's own cursors until the iteration is complete.
    Iterate,
}

impl Step {
    pub(crate) fn reply(words: Words) -> Self {
        Step { words, outcome: Outcome::Reply }
    }
}

/// The source of all random choices.
#[derive(Debug)]
pub(crate) struct Draw {
    pub(crate) random: Random,
    /// Lower-case names, including `container|subcommand`, with their arities as in COMMAND (negative: the minimum).
    pub(crate) arities: Vec<(String, i64)>,
    total_weight: usize,
}

const KEYS: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"k1",
    b"k2",
    b"k3",
    b"k4",
    b"k5",
    b"user:1",
    b"user:2",
    b"{tag}x",
    b"{tag}y",
    b"",
    b"\xff\x00\x80key",
    b"hel*o",
    b"with space",
    b"UPPER",
    b"upper",
    b"line\r\nend",
    b"a-key-that-is-longer-than-any-inline-buffer-is-likely-to-be-0123456789",
];

const VALUES: &[&[u8]] = &[
    b"",
    b"0",
    b"1",
    b"-1",
    b"5",
    b"10",
    b"9999",
    b"10000",
    b"123456789",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"9223372036854775806",
    b"3.0",
    b"3.14",
    b"-2.5",
    b"0.1",
    b"1e3",
    b" 1",
    b"1 ",
    b"+1",
    b"01",
    b"-0",
    b"0x10",
    b"nan",
    b"inf",
    b"-inf",
    b"hello",
    b"hello world",
    b"ohmytext",
    b"mynewtext",
    b"foobar",
    b"\x00",
    b"\xff\xf0\x00",
    b"\x00\xff\xf0",
    b"\xff\xff\xff",
    b"\x00\x00\x00\x00",
    b"a\r\nb",
    b"\xe2\x82\xac",
    b"\xc3\x28",
    b"exactly-forty-four-bytes-long-which-is-embst",
    b"exactly-forty-five-bytes-long-which-is-raw-so",
    b"12345678901234567890",
    b"123456789012345678901",
];

const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "10",
    "-10",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "-9223372036854775807",
    "9223372036854775806",
    "4611686018427387904",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
];

const NOT_INTEGERS: &[&str] = &[
    "abc",
    "",
    "1.5",
    " 5",
    "5 ",
    "+5",
    "007",
    "-0",
    "9223372036854775808",
    "-9223372036854775809",
    "0x1",
    "1e2",
    "nan",
];

const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.1",
    "0.2",
    "-0.1",
    "1.5",
    "3.0",
    "3.0e3",
    "5.0e3",
    "-5.5",
    "1e5",
    "1e-5",
    "2.5e-3",
    "10.50",
    "1e17",
    "100000000000000000000",
    "0.25",
    "123456.789",
    "-123456.789",
    "nan",
    "inf",
    "-inf",
    "infinity",
    "abc",
    "",
    " 1",
    "1 ",
    "1.",
    ".5",
    "+1.5",
    "1e",
    "0x1p3",
    "--1",
    "1e5 ",
];

/// Keys that mostly contain sets, because string commands seldom overwrite them.
const SET_KEYS: &[&[u8]] = &[b"set:1", b"set:2", b"set:3", b"set:4"];

/// Keys that mostly contain streams.
const STREAM_KEYS: &[&[u8]] = &[b"stream:1", b"stream:2", b"stream:3"];

/// Keys that mostly contain HyperLogLogs.
const HYPERLOGLOG_KEYS: &[&[u8]] = &[b"hll:1", b"hll:2", b"hll:3", b"hll:4"];

/// Keys that mostly contain hashes.
const HASH_KEYS: &[&[u8]] = &[b"hash:1", b"hash:2", b"hash:3", b"hash:4"];

/// Whether a word is one of the keys that generated commands use.
pub(crate) fn is_key(word: &[u8]) -> bool {
    [KEYS, SET_KEYS, HASH_KEYS, STREAM_KEYS, HYPERLOGLOG_KEYS].iter().any(|keys| keys.contains(&word))
}

impl Draw {
    pub(crate) fn new(seed: u64, arities: Vec<(String, i64)>) -> Self {
        let total_weight = COMMANDS.iter().copied().flatten().map(|generator| generator.weight).sum();
        Draw { random: Random::new(seed), arities, total_weight }
    }

    /// Returns the next commands: one, or several that belong together.
    pub(crate) fn steps(&mut self) -> Vec<Step> {
        if self.random.chance(2) {
            return vec![Step::reply(self.wrong_arity())];
        }
        let mut left = self.random.below(self.total_weight);
        for generator in COMMANDS.iter().copied().flatten() {
            if left < generator.weight {
                return (generator.make)(self);
            }
            left -= generator.weight;
        }
        unreachable!("the weights add up to the total")
    }

    /// Returns a command with too few or too many arguments, according to the arity reported by Redis.
    fn wrong_arity(&mut self) -> Words {
        let index = self.random.below(self.arities.len());
        let (name, arity) = self.arities[index].clone();
        let mut words: Words = name.split('|').map(|word| self.letter_case(word).into_bytes()).collect();
        let needed = arity.unsigned_abs() as usize;
        let count = if arity > 0 && self.random.chance(50) {
            needed + 1 + self.random.below(3)
        } else {
            self.random.between(words.len() as i64, (needed - 1).max(words.len()) as i64) as usize
        };
        if count == needed || (arity < 0 && count >= needed) {
            // A command that is valid without arguments can only have too many, and only if its arity is exact.
            return self.line("PING a b c");
        }
        while words.len() < count {
            words.push(self.value());
        }
        words
    }

    /// Returns the words of a template; see [`Draw::word`].
    pub(crate) fn line(&mut self, template: &str) -> Words {
        let mut words = Vec::new();
        for word in template.split(' ').filter(|word| !word.is_empty()) {
            self.word(word, &mut words);
        }
        words
    }

    /// Returns [`Draw::line`] as the only step.
    pub(crate) fn one(&mut self, template: &str) -> Vec<Step> {
        vec![Step::reply(self.line(template))]
    }

    /// Fills one of several templates.
    pub(crate) fn any(&mut self, templates: &[&str]) -> Vec<Step> {
        let template = self.random.pick(templates);
        self.one(template)
    }

    /// Fills a template followed by up to `count_max` of the options, in any order, sometimes repeated or conflicting.
    pub(crate) fn with_options(&mut self, template: &str, options: &[&str], count_max: usize) -> Vec<Step> {
        let mut words = self.line(template);
        for _ in 0..self.random.below(count_max + 1) {
            let option = self.random.pick(options);
            words.extend(self.line(option));
        }
        vec![Step::reply(words)]
    }

    fn word(&mut self, word: &str, words: &mut Words) {
        let name = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
        let drawn = match name {
            None => self.letter_case(word).into_bytes(),
            Some("key") => self.key(),
            Some("keys") => {
                for _ in 0..=self.random.below(4) {
                    words.push(self.key());
                }
                return;
            }
            Some("hash") => self.key_or(HASH_KEYS),
            Some("field") => hash::field(&mut self.random),
            Some("fields") => {
                for _ in 0..=self.random.below(4) {
                    words.push(hash::field(&mut self.random));
                }
                return;
            }
            Some("set") => self.key_or(SET_KEYS),
            Some("stream") => self.key_or(STREAM_KEYS),
            Some("hll") => self.key_or(HYPERLOGLOG_KEYS),
            Some("sets") => {
                for _ in 0..=self.random.below(4) {
                    words.push(self.key_or(SET_KEYS));
                }
                return;
            }
            Some("pairs") => {
                for _ in 0..=self.random.below(3) {
                    words.push(self.key());
                    words.push(self.value());
                }
                return;
            }
            Some("value") => self.value(),
            Some("integer") => self.integer().into_bytes(),
            Some("float") => self.random.pick(FLOATS).as_bytes().to_vec(),
            Some("index") => self.index().into_bytes(),
            Some("offset") => self.offset(2000, "536870912").into_bytes(),
            Some("bit_offset") => self.offset(20000, "4294967296").into_bytes(),
            Some("bit") => {
                self.random.pick(&["0", "1", "0", "1", "0", "1", "2", "-1", "a", ""]).as_bytes().to_vec()
            }
            Some("database") => self.database().into_bytes(),
            Some("pattern") => self.pattern(),
            Some("seconds") => self.relative(1).into_bytes(),
            Some("milliseconds") => self.relative(1000).into_bytes(),
            Some("at_seconds") => self.absolute(1).into_bytes(),
            Some("at_milliseconds") => self.absolute(1000).into_bytes(),
            Some("count") => self.random.pick(&["1", "2", "10", "1000", "0", "-1", "x"]).as_bytes().to_vec(),
            Some("word") => self
                .random
                .pick(&["foo", "GET", "count", "match", "ex", "nx", "help", "*", "\u{e9}"])
                .as_bytes()
                .to_vec(),
            Some(other) => unreachable!("no such placeholder: {other}"),
        };
        words.push(drawn);
    }

    /// Returns a word mostly unchanged, sometimes in lower or mixed case: commands and options are case-insensitive.
    fn letter_case(&mut self, word: &str) -> String {
        match self.random.below(10) {
            0 | 1 => word.to_ascii_lowercase(),
            2 => {
                let flip = |letter: char| {
                    if self.random.chance(50) {
                        letter.to_ascii_lowercase()
                    } else {
                        letter.to_ascii_uppercase()
                    }
                };
                word.chars().map(flip).collect()
            }
            _ => word.to_owned(),
        }
    }

    pub(crate) fn key(&mut self) -> Vec<u8> {
        self.random.pick(KEYS).to_vec()
    }

    /// Returns mostly one of `keys`, which commands of one type prefer, and sometimes any other key.
    fn key_or(&mut self, keys: &[&[u8]]) -> Vec<u8> {
        if self.random.chance(80) { self.random.pick(keys).to_vec() } else { self.key() }
    }

    pub(crate) fn value(&mut self) -> Vec<u8> {
        match self.random.below(20) {
            0 => {
                let length = self.random.below(32);
                self.random.bytes(length)
            }
            1 => vec![b'x'; self.random.below(200)],
            2 => vec![b'y'; self.random.below(3000)],
            3..=6 => self.random.between(-20, 20).to_string().into_bytes(),
            7 => self.random.between(i64::MIN, i64::MAX).to_string().into_bytes(),
            _ => self.random.pick(VALUES).to_vec(),
        }
    }

    pub(crate) fn integer(&mut self) -> String {
        match self.random.below(10) {
            0 => self.random.pick(NOT_INTEGERS).to_owned(),
            1..=3 => self.random.pick(INTEGERS).to_owned(),
            _ => self.random.between(-50, 50).to_string(),
        }
    }

    /// Returns a position in a string, counted from either end.
    fn index(&mut self) -> String {
        match self.random.below(20) {
            0 => self.random.pick(NOT_INTEGERS).to_owned(),
            1 | 2 => self.random.pick(INTEGERS).to_owned(),
            _ => self.random.between(-30, 30).to_string(),
        }
    }

    /// Returns a position to write at: below `below`, so that values remain small, or `too_far`, which is an error.
    fn offset(&mut self, below: usize, too_far: &str) -> String {
        match self.random.below(20) {
            0 => self.random.pick(NOT_INTEGERS).to_owned(),
            1 => self.random.pick(&[too_far, "-1", "9223372036854775807", "-9223372036854775808"]).to_owned(),
            2..=4 => self.random.below(below).to_string(),
            _ => self.random.below(64).to_string(),
        }
    }

    fn database(&mut self) -> String {
        match self.random.below(20) {
            0 => self
                .random
                .pick(&["16", "-1", "abc", "", "1.5", "2147483648", "99999999999999999999"])
                .to_owned(),
            1..=3 => self.random.below(16).to_string(),
            _ => self.random.below(3).to_string(),
        }
    }

    fn pattern(&mut self) -> Vec<u8> {
        const PATTERNS: &[&[u8]] = &[
            b"*",
            b"",
            b"a",
            b"?",
            b"k*",
            b"k?",
            b"k[1-3]",
            b"k[^1-3]",
            b"[a-c]",
            b"[c-a]",
            b"user:*",
            b"*:*",
            b"hel\\*o",
            b"hel*o",
            b"[",
            b"[a",
            b"[^",
            b"\\",
            b"k\\",
            b"**",
            b"*?*",
            b"[abc]",
            b"[\\a]",
            b"*\xff*",
            b"\xff*",
            b"*\n*",
            b"{tag}*",
            b"[]",
            b"[^]",
            b"[a-",
            b"UPPER",
            b"[A-Z]*",
            b"a*b*c*d*",
        ];
        self.random.pick(PATTERNS).to_vec()
    }

    /// Returns a time to live in steps of ten minutes, far from now and never used twice, or an invalid or past one.
    fn relative(&mut self, unit: i64) -> String {
        match self.random.below(20) {
            0 => self.random.pick(NOT_INTEGERS).to_owned(),
            1 => self
                .random
                .pick(&["0", "-1", "-1000", "9223372036854775807", "-9223372036854775808"])
                .to_owned(),
            2 => (i64::MAX / 1000 * if unit == 1 { 1 } else { 1000 }).to_string(),
            _ => ((10_000 + 600 * self.random.between(0, 1_000_000)) * unit).to_string(),
        }
    }

    /// Returns a time that is centuries away, or in the past.
    fn absolute(&mut self, unit: i64) -> String {
        match self.random.below(20) {
            0 => self.random.pick(NOT_INTEGERS).to_owned(),
            1 => {
                self.random.pick(&["0", "-1", "1", "9223372036854775807", "-9223372036854775808"]).to_owned()
            }
            _ => ((33_177_117_420 + self.random.between(0, 3)) * unit).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_can_be_drawn_and_equal_seeds_draw_equally() {
        let draw = |seed| -> Vec<Step> {
            let mut draw =
                Draw::new(seed, vec![("get".into(), 2), ("client|getname".into(), 2), ("mget".into(), -2)]);
            let mut steps = Vec::new();
            for generator in COMMANDS.iter().copied().flatten() {
                for _ in 0..200 {
                    steps.extend((generator.make)(&mut draw));
                }
            }
            steps.extend((0..2000).flat_map(|_| draw.steps()));
            steps
        };
        let steps = draw(1);
        assert!(steps.iter().all(|step| !step.words.is_empty()));
        assert_eq!(steps, draw(1));
        assert_ne!(steps, draw(2));
    }
}
