//! Script calls, implemented directly on Lua's stack: `redis.call` and similar functions, the conversion of replies to
//! values, and the tables of keys and arguments.
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
//! This file bypasses the binding (mlua) and is written like C functions of Lua. The binding holds a reference to each
//! value that Rust code receives, creates every string in protected mode and wraps every function in guards, which
//! together took a fifth of the time of a script with three calls.
//!
//! # Safety
//!
//! Lua ends a failing function by `longjmp`, which runs no destructors. So code in this file owns no data while it
//! calls a Lua function that may fail (all functions that allocate): owned data are in [`Scratch`], which belongs to
//! the interpreter. Panics do not unwind through Lua frames; they end the process.

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

/// The maximum total length in bytes of the arguments of one call, because a script can pass one string many times.
const CALL_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// The maximum nesting depth of replies, which far exceeds the depth of any command's reply.
const REPLY_DEPTH_MAX: usize = 100;

/// The number of stack slots that one nesting level of a reply uses at a time.
const STACK_VALUES: c_int = 16;

/// The number of words for which the list of arguments needs no allocation.
const WORDS_LISTED: usize = 16;

const UNREADABLE: &[u8] = b"ERR a reply that cannot be read";

/// Data owned by the functions of this file while they run.
pub(super) struct Scratch(UnsafeCell<Owned>);

struct Owned {
    words: Vec<Word>,
    /// The digits of numeric arguments.
    digits: Vec<u8>,
    /// The reply to a call.
    answer: Reply,
    /// A contiguous copy of the reply, if it consists of several parts.
    flat: Vec<u8>,
    /// The text of an error.
    text: Vec<u8>,
}

/// An argument of a call.
#[derive(Clone, Copy)]
enum Word {
    /// A string in Lua's memory, with its length in bytes.
    String(*const u8, usize),
    /// A range in `digits`.
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

/// The functions that call the server.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    /// `redis.call`, which raises errors.
    Call,
    /// `redis.pcall`, which returns errors.
    ProtectedCall,
    /// `redis.acl_check_cmd`, which checks whether the user may make a call.
    AccessCheck,
}

/// Creates the Lua function of `entry`. `shared` must live as long as the interpreter.
pub(super) fn function(lua: &Lua, shared: &Rc<Shared>, entry: Entry) -> mlua::Result<Function> {
    lua.set_app_data(Rc::clone(shared));
    let pointer = Rc::as_ptr(shared).cast_mut().cast::<c_void>();
    let body = match entry {
        Entry::Call => call,
        Entry::ProtectedCall => protected_call,
        Entry::AccessCheck => access_check,
    };
    // SAFETY: the closure owns no data, and leaves one value on the stack.
    unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_pushlightuserdata(state, pointer);
            ffi::lua_pushcclosure(state, body, 1);
        })
    }
}

/// Creates two lists of strings.
///
/// # Errors
/// Returns an error if there is not enough memory.
pub(super) fn lists(lua: &Lua, lists: [&[&[u8]]; 2]) -> mlua::Result<(Table, Table)> {
    // SAFETY: the closure owns no data, and leaves two tables on the stack, which has space for a function's first
    // values.
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
    // SAFETY: Lua calls this with a stack frame for this function.
    unsafe { perform(state, true) }
}

unsafe extern "C-unwind" fn protected_call(state: *mut lua_State) -> c_int {
    // SAFETY: as in the function above.
    unsafe { perform(state, false) }
}

/// The outcome of a function of this file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The reply is in `answer`.
    Answered,
    /// The error text is in `text`.
    Failed,
    /// The result of an access check.
    Answer(bool),
}

/// Runs the call on the stack and returns the number of results on the stack.
///
/// # Safety
/// `state` must belong to a running function that was created by [`function`].
unsafe fn perform(state: *mut lua_State, raises: bool) -> c_int {
    // SAFETY: the interpreter owns the shared state while its functions run. They are not reentered, because commands
    // run no Lua code. After `prepare` has returned, no data are owned here.
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
            // If the script must end, functions that catch errors raise this error again.
            push_error(state, if shared.is_killed.get() { KILLED.as_bytes() } else { UNREADABLE });
            ffi::lua_error(state);
        }
        let owned = &mut *owned;
        if !owned.flat.is_empty() {
            // The memory of large replies is released before the next call.
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
                Ok(may_run) => Outcome::Answer(may_run),
                Err(text) => {
                    owned.text = text;
                    Outcome::Failed
                }
            }
        };
        match guarded(|| check(&mut *owned)) {
            Outcome::Answer(may_run) => {
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

/// Returns the shared state of the running function.
///
/// # Safety
/// As for [`perform`].
unsafe fn shared_of<'s>(state: *mut lua_State) -> (&'s Shared, *mut Owned) {
    // SAFETY: `function` has stored this pointer as an upvalue, and the interpreter keeps its target alive.
    unsafe {
        let shared = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast::<Shared>();
        (&*shared, (*shared).scratch.0.get())
    }
}

/// Runs code that may panic; a panic ends the process.
fn guarded<R>(act: impl FnOnce() -> R) -> R {
    // The panic hook has already reported the panic.
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| std::process::abort())
}

/// Runs the call whose words are on the stack, and stores the reply or the error text in `owned`.
///
/// # Safety
/// As for [`perform`].
unsafe fn prepare(state: *mut lua_State, shared: &Shared, owned: &mut Owned, raises: bool) -> Outcome {
    owned.flat = Vec::new();
    owned.answer.clear();
    owned.answer.set_protocol(shared.protocol.get());
    // SAFETY: guaranteed by the caller; the words remain on the stack during the call.
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

/// Runs a call. If the runner requests it, the runner is asked whether to continue while the reply is read.
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

/// Records the words of a call: strings, and numbers in Redis's format.
///
/// # Errors
/// Returns an error text if there are no words or a word has another type.
///
/// # Safety
/// As for [`perform`].
unsafe fn read_words(state: *mut lua_State, owned: &mut Owned) -> Result<(), Vec<u8>> {
    owned.words.clear();
    owned.digits.clear();
    let mut bytes = 0;
    // SAFETY: none of these functions can fail: strings are not converted, and numbers remain numbers.
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

/// Calls `act` with the recorded words and the reply buffer.
///
/// # Safety
/// The words must still be on the stack.
unsafe fn with_words<R>(owned: &mut Owned, act: impl FnOnce(&[&[u8]], &mut Reply) -> R) -> R {
    let Owned { words, digits, answer, .. } = owned;
    let bytes_of = |word: &Word| match *word {
        // SAFETY: a string on the stack is kept alive and does not move.
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

/// Appends the digits of a numeric argument: integers without an exponent, other numbers with the fewest digits that
/// identify them.
fn write_digits(digits: &mut Vec<u8>, number: f64) {
    /// The magnitude above which a double may not be an exact integer; Redis uses the same limit.
    const EXACT: f64 = 4_503_599_627_370_496.0;
    if number.fract() == 0.0 && number > -EXACT && number <= EXACT {
        digits.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
    } else {
        write_f64(digits, number);
    }
}

/// Pushes the value of the next reply. Returns the offset of its end, or `None` if the reply cannot be read or the
/// script must end.
///
/// # Safety
/// The stack must have space for [`STACK_VALUES`]. No other code may access the target of `rest.text`. The caller must
/// own no data that need a destructor.
unsafe fn push_reply(state: *mut lua_State, rest: Rest<'_>) -> Option<usize> {
    let Rest { shared, bytes, at, depth, text } = rest;
    if !guarded(|| shared.continues_after(ELEMENT_WORK)) {
        return None;
    }
    let kind = *bytes.get(at)?;
    let line_end = at + memchr::memchr(b'\r', bytes.get(at..)?)?;
    let (line, next) = (&bytes[at + 1..line_end], line_end + 2);
    let count = || parse_i64(line).map(|count| usize::try_from(count).ok());
    let bulk = |len: usize| Some((bytes.get(next..next + len)?, next + len + 2));
    // SAFETY: each level reserves space for the values that it pushes, and owns no data.
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
                    b'|' => push_after_attributes(state, rest, count),
                    _ => push_list(state, rest, count),
                };
            }
            _ => return None,
        }
    }
    Some(next)
}

/// The part of a reply that is not read yet.
#[derive(Clone, Copy)]
struct Rest<'r> {
    shared: &'r Shared,
    bytes: &'r [u8],
    at: usize,
    depth: usize,
    text: *mut Vec<u8>,
}

impl Rest<'_> {
    /// Pushes the next value; returns `None` if it cannot be read or the script must end.
    ///
    /// # Safety
    /// As for [`push_reply`].
    unsafe fn push(&mut self, state: *mut lua_State) -> Option<()> {
        // SAFETY: guaranteed by the caller.
        self.at = unsafe { push_reply(state, *self)? };
        Some(())
    }
}

/// Pushes the list of the next `count` values.
///
/// # Safety
/// As for [`push_reply`].
unsafe fn push_list(state: *mut lua_State, mut rest: Rest<'_>, count: usize) -> Option<usize> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        ffi::lua_createtable(state, capacity(count), 0);
        for number in 1..=count {
            rest.push(state)?;
            ffi::lua_rawseti(state, -2, number as ffi::lua_Integer);
        }
    }
    Some(rest.at)
}

/// Pushes `{map = {…}}` or `{set = {…}}`.
///
/// # Safety
/// As for [`push_reply`].
unsafe fn push_pairs(
    state: *mut lua_State,
    mut rest: Rest<'_>,
    count: usize,
    name: &'static str,
) -> Option<usize> {
    // SAFETY: guaranteed by the caller.
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
            // Null cannot be a key of a Lua table.
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

/// Skips attributes, which are not part of the value, and pushes the value that follows them.
///
/// # Safety
/// As for [`push_reply`].
unsafe fn push_after_attributes(state: *mut lua_State, mut rest: Rest<'_>, count: usize) -> Option<usize> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for _ in 0..2 * count {
            rest.push(state)?;
            ffi::lua_settop(state, -2);
        }
        rest.push(state)?;
    }
    Some(rest.at)
}

/// Pushes a table and the name of its only field. The caller then pushes the value of that field.
///
/// # Safety
/// As for [`push_reply`].
unsafe fn begin_wrapped(state: *mut lua_State, name: &str) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        ffi::lua_createtable(state, 0, 1);
        push_bytes(state, name.as_bytes());
    }
}

/// Pushes `{err = text}`, the result of a failed call.
///
/// # Safety
/// As for [`push_reply`].
unsafe fn push_error(state: *mut lua_State, text: &[u8]) {
    // SAFETY: guaranteed by the caller; a running function has space for twenty values in addition to its arguments.
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

/// Pushes a string.
///
/// # Safety
/// As for [`push_reply`].
unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: guaranteed by the caller; Lua copies the bytes.
    unsafe {
        ffi::lua_pushlstring(state, bytes.as_ptr().cast::<c_char>(), bytes.len());
    }
}

/// Returns the number of elements to preallocate in a new table.
fn capacity(count: usize) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}
