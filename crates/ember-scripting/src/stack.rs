//! What every call of a script passes and gets back, on Lua's own stack: `redis.call` and its like, replies as values, and
//! the tables of keys and arguments.
//!
//! | reply | value |
//! |---|---|
//! | integer | number |
//! | bulk string | string |
//! | array | list |
//! | status, error | `{ok = …}`, `{err = …}` |
//! | null in RESP2, in RESP3 | false, nil |
//! | double, big number, verbatim string, map, set | tables with one field of that name |
//!
//! The binding holds a reference to each value that Rust sees, makes every string under protection and wraps every function
//! in guards, which together took a fifth of the time of a script of three calls. So this is written as functions in C are.
//!
//! # Safety
//!
//! Lua ends a function that fails by `longjmp`, which runs no destructors. Whatever here calls a function of Lua that may
//! fail (all that allocate) therefore owns nothing at that time: what is owned lies in [`Scratch`], which belongs to the
//! interpreter. Panics do not pass through frames of Lua; they end the process.

#![allow(unsafe_code, reason = "functions of Lua are called as C calls them")]

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use ember_protocol::number::{parse_i64, write_f64};
use ember_protocol::{Protocol, Reply};
use mlua::{Function, Lua, Table, ffi, lua_State};

use super::interpreter::{CommandRunner, ELEMENT_WORK, RUNNER, Shared};
use super::raised::{ERROR_FIELD, KILLED, UNCOUNTED_FIELD};
use super::reply::error_text;

/// Bytes of the arguments of one call together; the same string may be among them many times.
const CALL_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// Replies in replies, far more than any command has.
const REPLY_DEPTH_MAX: usize = 100;

/// Values that one level of a reply has on the stack at once.
const STACK_VALUES: c_int = 16;

/// The words of a call that need no memory of their own to be listed.
const WORDS_LISTED: usize = 16;

const UNREADABLE: &[u8] = b"ERR a reply that cannot be read";

/// What the functions of this file own while they run.
pub(super) struct Scratch(UnsafeCell<Owned>);

struct Owned {
    words: Vec<Word>,
    /// The digits of the numbers among the words.
    digits: Vec<u8>,
    /// The reply to a call.
    answer: Reply,
    /// The same in one piece, if it was not.
    flat: Vec<u8>,
    /// The text of an error.
    text: Vec<u8>,
}

/// An argument of a call.
#[derive(Clone, Copy)]
enum Word {
    /// A string in Lua's memory.
    String(*const u8, usize),
    /// A place among the digits.
    Number(usize, usize),
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch(UnsafeCell::new(Owned {
            words: Vec::new(),
            digits: Vec::new(),
            answer: Reply::new(Protocol::Resp2),
            flat: Vec::new(),
            text: Vec::new(),
        }))
    }
}

/// What a script calls.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    /// `redis.call`, which raises errors.
    Call,
    /// `redis.pcall`, which returns them.
    ProtectedCall,
    /// `redis.acl_check_cmd`.
    AccessCheck,
}

/// One of these functions as a value of Lua. `shared` lives as long as the interpreter.
pub(super) fn function(lua: &Lua, shared: &Rc<Shared>, entry: Entry) -> mlua::Result<Function> {
    lua.set_app_data(Rc::clone(shared));
    let pointer = Rc::as_ptr(shared).cast_mut().cast::<c_void>();
    let body = match entry {
        Entry::Call => call,
        Entry::ProtectedCall => protected_call,
        Entry::AccessCheck => access_check,
    };
    // SAFETY: the closure owns nothing, and leaves one value on the stack.
    unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_pushlightuserdata(state, pointer);
            ffi::lua_pushcclosure(state, body, 1);
        })
    }
}

/// Two lists of these strings.
///
/// # Errors
/// If there is no memory for them.
pub(super) fn lists(lua: &Lua, lists: [&[&[u8]]; 2]) -> mlua::Result<(Table, Table)> {
    // SAFETY: the closure owns nothing, and leaves two tables on the stack, which has room for a function's first values.
    unsafe {
        lua.exec_raw((), |state| {
            for strings in lists {
                ffi::lua_createtable(state, capacity(strings.len()), 0);
                for (number, string) in (1..).zip(strings) {
                    push_bytes(state, string);
                    ffi::lua_rawseti(state, -2, number);
                }
            }
        })
    }
}

unsafe extern "C-unwind" fn call(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a stack of this function's own.
    unsafe { perform(state, true) }
}

unsafe extern "C-unwind" fn protected_call(state: *mut lua_State) -> c_int {
    // SAFETY: as above.
    unsafe { perform(state, false) }
}

/// What a call came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// There is a reply.
    Answered,
    /// There is the text of an error.
    Failed,
    /// The one thing asked is so, or is not.
    Told(bool),
}

/// # Safety
/// `state` is that of a running function made by [`function`].
unsafe fn perform(state: *mut lua_State, raises: bool) -> c_int {
    // SAFETY: the interpreter owns what is shared for as long as functions of it run, and nothing here is called from inside
    // itself: commands run no Lua. `prepare` owns nothing any more when it has returned, and what follows owns nothing.
    unsafe {
        let (shared, owned) = shared_of(state);
        let outcome = guarded(|| prepare(state, shared, &mut *owned, raises));
        if outcome == Outcome::Failed {
            push_error(state, &(*owned).text);
            return if raises { ffi::lua_error(state) } else { 1 };
        }
        let (answer, flat) = (&(*owned).answer, &(*owned).flat);
        let bytes = if flat.is_empty() { answer.slices(0).next().unwrap_or_default() } else { &flat[..] };
        let mut rest = Rest { shared, bytes, at: 0, depth: 0, text: &raw mut (*owned).text };
        if rest.push(state).is_none() {
            // What catches the error of a script that is to end raises it again.
            push_error(state, if shared.is_killed.get() { KILLED.as_bytes() } else { UNREADABLE });
            ffi::lua_error(state);
        }
        let owned = &mut *owned;
        if !owned.flat.is_empty() {
            // Large replies are not kept until the next call.
            owned.flat = Vec::new();
            owned.answer.clear();
        }
        1
    }
}

unsafe extern "C-unwind" fn access_check(state: *mut lua_State) -> c_int {
    // SAFETY: as in `perform`.
    unsafe {
        let (_, owned) = shared_of(state);
        let check = |owned: &mut Owned| {
            let may_run = read_words(state, owned).and_then(|()| {
                with_words(owned, |words, _| RUNNER.with(|runner| runner.may_run(words)))
                    .ok_or_else(|| b"ERR Invalid command passed to redis.acl_check_cmd()".to_vec())
            });
            match may_run {
                Ok(may_run) => Outcome::Told(may_run),
                Err(text) => {
                    owned.text = text;
                    Outcome::Failed
                }
            }
        };
        match guarded(|| check(&mut *owned)) {
            Outcome::Told(may_run) => {
                ffi::lua_pushboolean(state, c_int::from(may_run));
                1
            }
            _ => {
                push_error(state, &(*owned).text);
                ffi::lua_error(state)
            }
        }
    }
}

/// # Safety
/// As [`perform`].
unsafe fn shared_of<'s>(state: *mut lua_State) -> (&'s Shared, *mut Owned) {
    // SAFETY: `function` has put a pointer to it there, and the interpreter keeps it.
    unsafe {
        let shared = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<Shared>();
        (&*shared, (*shared).scratch.0.get())
    }
}

/// Runs what may panic.
fn guarded<R>(act: impl FnOnce() -> R) -> R {
    // What is told of a panic has been told when it comes here.
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| std::process::abort())
}

/// Runs the call whose words are on the stack.
///
/// # Safety
/// As [`perform`].
unsafe fn prepare(state: *mut lua_State, shared: &Shared, owned: &mut Owned, raises: bool) -> Outcome {
    owned.flat = Vec::new();
    owned.answer.clear();
    owned.answer.set_protocol(shared.protocol.get());
    // SAFETY: the caller's; nothing takes the words off the stack meanwhile.
    let ran = unsafe {
        read_words(state, owned).and_then(|()| {
            with_words(owned, |words, answer| RUNNER.with(|runner| run(shared, runner, words, answer)))
        })
    };
    match ran {
        Err(text) => {
            owned.text = text;
            Outcome::Failed
        }
        Ok(()) => {
            let mut pieces = owned.answer.slices(0);
            let (first, second) = (pieces.next().unwrap_or_default(), pieces.next());
            if raises && first.first() == Some(&b'-') {
                owned.text = error_text(first);
                return Outcome::Failed;
            }
            if second.is_some() {
                owned.flat = owned.answer.to_vec();
            }
            Outcome::Answered
        }
    }
}

/// Runs a call; the runner is asked whether to go on while the reply is read, if it wants to be.
fn run(
    shared: &Shared,
    runner: &mut (dyn CommandRunner + '_),
    words: &[&[u8]],
    answer: &mut Reply,
) -> Result<(), Vec<u8>> {
    let result = runner.run(words, answer);
    if runner.is_due() {
        shared.end_work();
    }
    result
}

/// Notes the words of a call: strings, and numbers as Redis prints them.
///
/// # Errors
/// The text of an error: there is no word, or one is of another type.
///
/// # Safety
/// As [`perform`].
unsafe fn read_words(state: *mut lua_State, owned: &mut Owned) -> Result<(), Vec<u8>> {
    owned.words.clear();
    owned.digits.clear();
    let mut bytes = 0;
    // SAFETY: none of these functions fails: a string is not converted, and a number stays one.
    unsafe {
        let count = ffi::lua_gettop(state);
        if count == 0 {
            return Err(b"ERR Please specify at least one argument for this redis lib call".to_vec());
        }
        for number in 1..=count {
            let word = match ffi::lua_type(state, number) {
                ffi::LUA_TSTRING => {
                    let mut len = 0;
                    let string = ffi::lua_tolstring(state, number, &raw mut len);
                    bytes += len;
                    Word::String(string.cast(), len)
                }
                ffi::LUA_TNUMBER => {
                    let start = owned.digits.len();
                    write_digits(&mut owned.digits, ffi::lua_tonumber(state, number));
                    bytes += owned.digits.len() - start;
                    Word::Number(start, owned.digits.len())
                }
                _ => {
                    return Err(b"ERR Lua redis lib command arguments must be strings or integers".to_vec());
                }
            };
            owned.words.push(word);
        }
    }
    if bytes > CALL_BYTES_MAX { Err(b"ERR the arguments of the call are too large".to_vec()) } else { Ok(()) }
}

/// Calls `act` with the words noted and the buffer of the reply.
///
/// # Safety
/// The words are still on the stack.
unsafe fn with_words<R>(owned: &mut Owned, act: impl FnOnce(&[&[u8]], &mut Reply) -> R) -> R {
    let Owned { words, digits, answer, .. } = owned;
    let bytes_of = |word: &Word| match *word {
        // SAFETY: a string on the stack is kept and does not move.
        Word::String(start, len) => unsafe { std::slice::from_raw_parts(start, len) },
        Word::Number(start, end) => &digits[start..end],
    };
    if words.len() > WORDS_LISTED {
        return act(&words.iter().map(bytes_of).collect::<Vec<_>>(), answer);
    }
    let mut listed: [&[u8]; WORDS_LISTED] = [&[]; WORDS_LISTED];
    for (listed, word) in listed.iter_mut().zip(words.iter()) {
        *listed = bytes_of(word);
    }
    act(&listed[..words.len()], answer)
}

/// Appends the digits of a number in a call: an integer's without an exponent, others as few as tell it from its neighbours.
fn write_digits(digits: &mut Vec<u8>, number: f64) {
    /// Beyond it doubles are no longer exact integers for sure; Redis draws the same line.
    const EXACT: f64 = 4_503_599_627_370_496.0;
    if number.fract() == 0.0 && number > -EXACT && number <= EXACT {
        digits.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
    } else {
        write_f64(digits, number);
    }
}

/// Pushes the value of the next reply; returns where it ends, or nothing if it cannot be read or the script is to end.
///
/// # Safety
/// There is room on the stack for [`STACK_VALUES`]; what `rest.text` points to is nobody else's. The caller owns nothing.
unsafe fn push_reply(state: *mut lua_State, rest: Rest<'_>) -> Option<usize> {
    let Rest { shared, bytes, at, depth, text } = rest;
    if !guarded(|| shared.goes_on_after(ELEMENT_WORK)) {
        return None;
    }
    let kind = *bytes.get(at)?;
    let line_end = at + memchr::memchr(b'\r', bytes.get(at..)?)?;
    let (line, next) = (&bytes[at + 1..line_end], line_end + 2);
    let count = || parse_i64(line).map(|count| usize::try_from(count).ok());
    let bulk = |len: usize| Some((bytes.get(next..next + len)?, next + len + 2));
    // SAFETY: each level makes room for what it pushes, and owns nothing.
    unsafe {
        match kind {
            b'$' => match count()? {
                Some(len) => {
                    let (string, next) = bulk(len)?;
                    push_bytes(state, string);
                    return Some(next);
                }
                None => ffi::lua_pushboolean(state, 0),
            },
            b':' => ffi::lua_pushnumber(state, parse_i64(line)? as f64),
            b'+' => {
                begin_wrapped(state, "ok");
                push_bytes(state, line);
                ffi::lua_rawset(state, -3);
            }
            b'-' => {
                *text = error_text(&bytes[at..line_end]);
                push_error(state, &*text);
            }
            b'_' => ffi::lua_pushnil(state),
            b'#' => ffi::lua_pushboolean(state, c_int::from(line == b"t")),
            b',' => {
                let number: f64 = std::str::from_utf8(line).ok()?.parse().ok()?;
                begin_wrapped(state, "double");
                ffi::lua_pushnumber(state, number);
                ffi::lua_rawset(state, -3);
            }
            b'(' => {
                begin_wrapped(state, "big_number");
                push_bytes(state, line);
                ffi::lua_rawset(state, -3);
            }
            b'=' => {
                let (verbatim, next) = bulk(count()??)?;
                let (format, string) = verbatim.split_at_checked(4)?;
                begin_wrapped(state, "verbatim_string");
                ffi::lua_createtable(state, 0, 2);
                for (name, value) in [("string", string), ("format", &format[..3])] {
                    push_bytes(state, name.as_bytes());
                    push_bytes(state, value);
                    ffi::lua_rawset(state, -3);
                }
                ffi::lua_rawset(state, -3);
                return Some(next);
            }
            b'*' | b'>' | b'%' | b'~' | b'|' => {
                if depth == REPLY_DEPTH_MAX || ffi::lua_checkstack(state, STACK_VALUES) == 0 {
                    return None;
                }
                let Some(count) = count()? else {
                    ffi::lua_pushboolean(state, 0);
                    return Some(next);
                };
                let rest = Rest { at: next, depth: depth + 1, ..rest };
                return match kind {
                    b'%' => push_pairs(state, rest, count, "map"),
                    b'~' => push_pairs(state, rest, count, "set"),
                    b'|' => push_behind_attributes(state, rest, count),
                    _ => push_list(state, rest, count),
                };
            }
            _ => return None,
        }
    }
    Some(next)
}

/// Replies that are still to be read.
#[derive(Clone, Copy)]
struct Rest<'r> {
    shared: &'r Shared,
    bytes: &'r [u8],
    at: usize,
    depth: usize,
    text: *mut Vec<u8>,
}

impl Rest<'_> {
    /// Pushes the next one; nothing if it cannot be read.
    ///
    /// # Safety
    /// As [`push_reply`].
    unsafe fn push(&mut self, state: *mut lua_State) -> Option<()> {
        // SAFETY: the caller's.
        self.at = unsafe { push_reply(state, *self)? };
        Some(())
    }
}

/// # Safety
/// As [`push_reply`].
unsafe fn push_list(state: *mut lua_State, mut rest: Rest<'_>, count: usize) -> Option<usize> {
    // SAFETY: the caller's.
    unsafe {
        ffi::lua_createtable(state, capacity(count), 0);
        for number in 1..=count {
            rest.push(state)?;
            ffi::lua_rawseti(state, -2, number as ffi::lua_Integer);
        }
    }
    Some(rest.at)
}

/// `{map = {…}}` or `{set = {…}}`.
///
/// # Safety
/// As [`push_reply`].
unsafe fn push_pairs(
    state: *mut lua_State,
    mut rest: Rest<'_>,
    count: usize,
    name: &'static str,
) -> Option<usize> {
    // SAFETY: the caller's.
    unsafe {
        begin_wrapped(state, name);
        ffi::lua_createtable(state, 0, capacity(count));
        for _ in 0..count {
            rest.push(state)?;
            if name == "map" {
                rest.push(state)?;
            } else {
                ffi::lua_pushboolean(state, 1);
            }
            // A null cannot be a key.
            if ffi::lua_type(state, -2) == ffi::LUA_TNIL {
                ffi::lua_settop(state, -3);
            } else {
                ffi::lua_rawset(state, -3);
            }
        }
        ffi::lua_rawset(state, -3);
    }
    Some(rest.at)
}

/// Attributes are no part of the value.
///
/// # Safety
/// As [`push_reply`].
unsafe fn push_behind_attributes(state: *mut lua_State, mut rest: Rest<'_>, count: usize) -> Option<usize> {
    // SAFETY: the caller's.
    unsafe {
        for _ in 0..2 * count {
            rest.push(state)?;
            ffi::lua_settop(state, -2);
        }
        rest.push(state)?;
    }
    Some(rest.at)
}

/// Pushes a table and the name of its one field, whose value is to follow.
///
/// # Safety
/// As [`push_reply`].
unsafe fn begin_wrapped(state: *mut lua_State, name: &str) {
    // SAFETY: the caller's.
    unsafe {
        ffi::lua_createtable(state, 0, 1);
        push_bytes(state, name.as_bytes());
    }
}

/// Pushes `{err = text}`, as a failed call gives it.
///
/// # Safety
/// As [`push_reply`].
unsafe fn push_error(state: *mut lua_State, text: &[u8]) {
    // SAFETY: the caller's; a running function has room for twenty values beside its arguments.
    unsafe {
        ffi::lua_createtable(state, 0, 2);
        push_bytes(state, ERROR_FIELD.as_bytes());
        push_bytes(state, text);
        ffi::lua_rawset(state, -3);
        push_bytes(state, UNCOUNTED_FIELD.as_bytes());
        ffi::lua_pushboolean(state, 1);
        ffi::lua_rawset(state, -3);
    }
}

/// # Safety
/// As [`push_reply`].
unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: the caller's; Lua copies them.
    unsafe {
        ffi::lua_pushlstring(state, bytes.as_ptr().cast::<c_char>(), bytes.len());
    }
}

/// How many elements a new table is told to expect.
fn capacity(count: usize) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}
