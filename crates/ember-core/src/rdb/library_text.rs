//! The text of a library of functions, for servers that know the API of scripts only under Redis's name.
//!
//! Scripts for Valkey may contain `server.call` instead of `redis.call`, and ember accepts both. Redis considers a file
//! with such a library damaged and does not start. So a declaration of `server` is added to the text when it is
//! written, and is removed when it is read.
//!
//! ```text
//! #!lua name=lib LF [`DECLARATION`] text of the library
//! ```
//!
//! The declaration is a table of functions that look up those of `redis` when they are called: `redis` is one table
//! while a library is loaded, and another while its functions run. While a library is loaded, nothing but `redis`
//! exists, for example no `setmetatable`. The declaration has no line end, so that line numbers in error messages stay
//! the same.

use std::borrow::Cow;

/// Declares `server`, Valkey's name of the API, where only `redis` is known.
const DECLARATION: &str = concat!(
    "local server = {",
    "call = function(...) return redis.call(...) end, ",
    "pcall = function(...) return redis.pcall(...) end, ",
    "log = function(...) return redis.log(...) end, ",
    "register_function = function(...) return redis.register_function(...) end, ",
    "sha1hex = function(...) return redis.sha1hex(...) end, ",
    "error_reply = function(...) return redis.error_reply(...) end, ",
    "status_reply = function(...) return redis.status_reply(...) end, ",
    "setresp = function(...) return redis.setresp(...) end, ",
    "set_repl = function(...) return redis.set_repl(...) end, ",
    "breakpoint = function(...) return redis.breakpoint(...) end, ",
    "debug = function(...) return redis.debug(...) end, ",
    "replicate_commands = function(...) return redis.replicate_commands(...) end, ",
    "acl_check_cmd = function(...) return redis.acl_check_cmd(...) end, ",
    "LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3, REPL_NONE = 0, REPL_AOF = 1, ",
    "REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3, REDIS_VERSION = redis.REDIS_VERSION, ",
    "REDIS_VERSION_NUM = redis.REDIS_VERSION_NUM}; --[[for Redis]] ",
);

/// Valkey's name of the API.
const NAME: &[u8] = b"server";

/// Returns the text for readers that only know `redis`: with the declaration if the library uses `server`. O(its
/// bytes).
pub fn library_for_redis(text: &[u8]) -> Cow<'_, [u8]> {
    let plain = plain_library(text);
    let Some(at) = body_at(&plain).filter(|&at| mentions_name(&plain[at..])) else { return plain };
    Cow::Owned([&plain[..at], DECLARATION.as_bytes(), &plain[at..]].concat())
}

/// Returns the text as its author wrote it: without the declaration. O(its bytes) if there is one, else O(1).
pub fn plain_library(text: &[u8]) -> Cow<'_, [u8]> {
    match body_at(text) {
        Some(at) if text[at..].starts_with(DECLARATION.as_bytes()) => {
            Cow::Owned([&text[..at], &text[at + DECLARATION.len()..]].concat())
        }
        _ => Cow::Borrowed(text),
    }
}

/// Returns the offset after the first line of a library.
fn body_at(text: &[u8]) -> Option<usize> {
    if !text.starts_with(b"#!") {
        return None;
    }
    text.iter().position(|&byte| byte == b'\n').map(|end| end + 1)
}

/// Returns whether a Lua source contains `server` as a separate word, outside of comments and strings. A word after a
/// dot is a member of something else.
fn mentions_name(source: &[u8]) -> bool {
    let mut rest = source;
    let mut is_member = false;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(skipped) = skip_comment_or_string(rest) {
            (rest, is_member) = (skipped, false);
        } else if is_word_byte(first) {
            let end = rest.iter().position(|&byte| !is_word_byte(byte)).unwrap_or(rest.len());
            if &rest[..end] == NAME && !is_member {
                return true;
            }
            (rest, is_member) = (&rest[end..], false);
        } else {
            // `..` concatenates strings: the word after it is not a member.
            is_member = match first {
                b'.' => !is_member,
                _ => is_member && first.is_ascii_whitespace(),
            };
            rest = after;
        }
    }
    false
}

fn is_word_byte(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// Returns the bytes after the comment or string with which `source` begins; `None` if it begins with neither.
fn skip_comment_or_string(source: &[u8]) -> Option<&[u8]> {
    if let Some(comment) = source.strip_prefix(b"--") {
        return Some(skip_long_bracket(comment).unwrap_or_else(|| {
            let end = comment.iter().position(|byte| b"\n\r".contains(byte)).unwrap_or(comment.len());
            &comment[end..]
        }));
    }
    let quote = *source.first()?;
    if quote != b'"' && quote != b'\'' {
        return skip_long_bracket(source);
    }
    let mut at = 1;
    while let Some(&byte) = source.get(at) {
        match byte {
            b'\\' => at += 2,
            _ if byte == quote => return Some(&source[at + 1..]),
            _ => at += 1,
        }
    }
    Some(&[])
}

/// Returns the bytes after `[[…]]` or `[==[…]==]`, if `source` begins with such a bracket.
fn skip_long_bracket(source: &[u8]) -> Option<&[u8]> {
    let level = source.strip_prefix(b"[")?.iter().take_while(|&&byte| byte == b'=').count();
    let inside = source[1 + level..].strip_prefix(b"[")?;
    let close = [&b"]"[..], &vec![b'='; level], b"]"].concat();
    // A comparison that begins at one `]` compares nothing beyond the next `]`, so the search is linear.
    let found = inside.windows(close.len()).position(|bytes| bytes == close);
    let end = found.map_or(inside.len(), |end| end + close.len());
    Some(&inside[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_use_server_gain_a_declaration_that_reading_removes() {
        for body in [
            "server.register_function('f', function() return server.call('PING') end)",
            "local api = server\napi.register_function('f', f)",
            "redis.log('x'..server.sha1hex(''))",
            "-- a comment\nlocal s = [[ text ]] server.call()",
            "local q = 'it\\'s' server.call()",
        ] {
            let text = format!("#!lua name=lib\n{body}");
            let written = library_for_redis(text.as_bytes());
            assert_eq!(written.len(), text.len() + DECLARATION.len(), "{body}");
            assert_eq!(written.iter().filter(|&&byte| byte == b'\n').count(), text.matches('\n').count());
            assert_eq!(library_for_redis(&written), written, "the conversion is idempotent");
            assert_eq!(plain_library(&written), text.as_bytes());
        }
    }

    #[test]
    fn other_libraries_are_written_as_they_are() {
        for text in [
            "#!lua name=lib\nredis.register_function('f', function() return redis.call('PING') end)",
            "#!lua name=server\nredis.register_function('server', function() return 'server' end)",
            "#!lua name=lib\n-- server.call\n--[[ server\nserver ]] local a = [==[ ]] server ]==] .. x.server .. x . server",
            "#!lua name=lib\nlocal servers, my_server = 1, \"server\"",
            "#!lua name=lib",
            "server.call()",
            "",
        ] {
            assert_eq!(library_for_redis(text.as_bytes()), text.as_bytes());
            assert_eq!(plain_library(text.as_bytes()), text.as_bytes());
        }
    }
}
