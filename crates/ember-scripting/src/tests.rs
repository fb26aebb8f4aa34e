//! Tests of the libraries and of the conversion of values, with a stub instead of the server.

mod lua;

use std::sync::Arc;

use ember_protocol::{Protocol, Reply};
use emberkv_core::redis_version::RedisVersion;

use super::interpreter::{CommandRunner, Interpreter};
use super::scripts::sha_of;

/// A runner that supports ECHO and a few other commands, and ends a script after `questions_left` checks whether to
/// continue.
struct Echo {
    questions_left: usize,
}

impl CommandRunner for Echo {
    fn run(&mut self, arguments: &[&[u8]], reply: &mut Reply) -> Result<(), Vec<u8>> {
        match arguments {
            [b"ECHO", word] => reply.bulk(word),
            [b"SHARED", word] => reply.bulk_shared(&Arc::new(word.to_vec())),
            [b"MAP"] => {
                reply.map(1);
                reply.bulk(b"half");
                reply.double(0.5);
            }
            [b"SET"] => {
                reply.set(1);
                reply.boolean(true);
            }
            [b"FAIL"] => reply.error("CODE it\r\nfailed"),
            _ => return Err(b"ERR unknown".to_vec()),
        }
        Ok(())
    }

    fn may_run(&mut self, arguments: &[&[u8]]) -> Option<bool> {
        (arguments[0] == b"ECHO").then_some(arguments.len() == 2)
    }

    fn choose_readers(&mut self, _: bool, _: bool) {}

    fn is_due(&self) -> bool {
        false
    }

    fn may_continue(&mut self) -> bool {
        self.questions_left = self.questions_left.saturating_sub(1);
        self.questions_left > 0
    }
}

/// Runs a script and returns its RESP3 reply with `|` for line breaks, or its error text.
fn run_in(interpreter: &mut Interpreter, script: &str) -> String {
    let sha = sha_of(script.as_bytes());
    let body = match interpreter.script(&sha, script.as_bytes()) {
        Ok(body) => body,
        Err(problem) => return format!("!{}", String::from_utf8_lossy(&problem)),
    };
    let mut reply = Reply::new(Protocol::Resp3);
    let mut runner = Echo { questions_left: 2000 };
    let given = interpreter.given([&[b"key"], &[b"one", b"two"]]).unwrap();
    let outcome = interpreter.run(&body, false, given, &mut runner, &mut reply);
    while interpreter.collect_some() {}
    match outcome {
        Ok(()) => String::from_utf8_lossy(&reply.to_vec()).trim_end().replace("\r\n", "|"),
        Err(failure) => format!("-{}", String::from_utf8_lossy(&failure.text)),
    }
}

fn run(script: &str) -> String {
    run_in(&mut Interpreter::new(32 * 1024 * 1024, RedisVersion::ANSWERED).unwrap(), script)
}

/// Evaluates an expression and returns the bytes of the resulting string as hexadecimal digits.
fn bytes_of(expression: &str) -> String {
    let script =
        format!("return (({expression}):gsub('.', function(c) return ('%02x'):format(c:byte()) end))");
    let answer = run(&script);
    answer.split_once('|').map_or(answer.clone(), |(_, digits)| digits.to_owned())
}

#[test]
fn values_become_replies() {
    for (script, reply) in [
        ("return {1, 2.9, 'a', true, false, nil, 4}", "*5|:1|:2|$1|a|:1|_"),
        ("return {KEYS[1], ARGV[2], #ARGV}", "*3|$3|key|$3|two|:2"),
        ("redis.setresp(3) return {true, false}", "*2|#t|#f"),
        ("return {{ok = 'x\\ry'}, {err = 'y'}, {double = 3.5}}", "*3|+x y|-y|,3.5"),
        ("return {map = {a = {set = {b = true}}}}", "%1|$1|a|~1|$1|b"),
        (
            "return {{big_number = '123'}, {verbatim_string = {format = 'txt', string = 'hi'}}}",
            "*2|(123|=6|txt:hi",
        ),
        ("return {big_number = '1\\r\\n2'}", "(1  2"),
        ("return {1e30, -3.99, 0/0}", "*3|:-9223372036854775808|:-3|:-9223372036854775808"),
        (
            "return print",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'print'",
        ),
        ("local t = {} for i = 1, 8000 do t = {t} end return t", "-ERR reached lua stack limit"),
        ("return", "_"),
    ] {
        assert_eq!(run(script), reply, "{script}");
    }
}

#[test]
fn replies_become_values() {
    for (script, reply) in [
        ("return redis.call('ECHO', 'hi')", "$2|hi"),
        (
            "return redis.call('ECHO', 0.1) .. redis.call('ECHO', 2^40) .. redis.call('ECHO', 1e20)",
            "$21|0.110995116277761e+20",
        ),
        ("return redis.call('MAP')", "*2|$4|half|$3|0.5"),
        (
            "redis.setresp(3) local r = redis.call('MAP') return {r.map.half.double, r}",
            "*2|:0|%1|$4|half|,0.5",
        ),
        ("redis.setresp(3) return redis.call('SET')", "~1|#t"),
        ("return redis.pcall('FAIL').err", "$15|CODE it  failed"),
        ("return redis.call('FAIL')", "-CODE it  failed"),
        ("return {pcall(redis.call, 'NONE')}", "*2|_|$11|ERR unknown"),
        ("return {redis.acl_check_cmd('ECHO', 'x'), redis.acl_check_cmd('ECHO')}", "*2|:1|_"),
        ("return redis.acl_check_cmd('NONE')", "-ERR Invalid command passed to redis.acl_check_cmd()"),
        ("return redis.call({})", "-ERR Lua redis lib command arguments must be strings or integers"),
    ] {
        assert_eq!(run(script), reply, "{script}");
    }
}

#[test]
fn json_is_written_and_read_as_lua_cjson_does() {
    for (script, reply) in [
        ("return cjson.encode({1, 2, {a = cjson.null}})", "$16|[1,2,{\"a\":null}]"),
        ("return cjson.encode({[1] = 1, [3] = 2})", "$10|[1,null,2]"),
        (
            "return cjson.encode({[11] = 1})",
            "-ERR user_script:1: Cannot serialise table: excessively sparse array",
        ),
        ("return cjson.encode('a/\\1\\127\\n')", "$22|\"a\\/\\u0001\\u007f\\n\""),
        ("return cjson.encode({1/3, 1e20, 2^31})", "$37|[0.33333333333333,1e+20,2147483648]"),
        ("return cjson.encode(0/0)", "-ERR user_script:1: Cannot serialise number: must not be NaN or Inf"),
        (
            "local t = {} t.t = t return cjson.encode(t)",
            "-ERR user_script:1: Cannot serialise, excessive nesting (1001)",
        ),
        ("return cjson.decode('{\"a\":[1,2.5,{\"b\":\"\\\\u00e9\"}]}').a[3].b", "$2|é"),
        (
            "return cjson.decode('[1,]')",
            "-ERR user_script:1: Expected value but found T_ARR_END at character 4",
        ),
        (
            "return cjson.decode('{\"a\" 2}')",
            "-ERR user_script:1: Expected colon but found T_NUMBER at character 6",
        ),
        (
            "return cjson.decode(('['):rep(1001))",
            "-ERR user_script:1: Found too many nested data structures (1001) at character 1001",
        ),
        ("return tostring(cjson.decode('[0x10]')[1])", "$2|16"),
    ] {
        let answer = run(script);
        // The length headers of long strings are not compared here.
        let without_length = |text: &str| {
            text.trim_start_matches(['$', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).to_owned()
        };
        assert_eq!(without_length(&answer), without_length(reply), "{script}");
    }
}

#[test]
fn messages_and_structures_have_the_bytes_of_their_formats() {
    for (expression, bytes) in [
        ("cmsgpack.pack(1, -1, 128, 65536, -129, 2^53)", "01ffcc80ce00010000d1ff7fcf0020000000000000"),
        ("cmsgpack.pack(1.5, 0.1, nil, true, 'a')", "ca3fc00000cb3fb999999999999ac0c3a161"),
        ("cmsgpack.pack({}, {1, 2}, {a = 1})", "9092010281a16101"),
        (
            "struct.pack('bBhHiIlL', 1, 255, -2, 65535, -3, 4, 5, 6)",
            "01fffefffffffdffffff0400000005000000000000000600000000000000",
        ),
        (
            "struct.pack('>!4 b i d s c0', 1, 2, 1.5, 'ab', 'cd')",
            "01000000000000023ff80000000000006162006364",
        ),
    ] {
        assert_eq!(bytes_of(expression), bytes, "{expression}");
    }
    for (script, reply) in [
        ("return {cmsgpack.unpack(cmsgpack.pack(1, {3, {a = 'b'}}))}", "*2|:1|*2|:3|*0"),
        ("return {cmsgpack.unpack_one(cmsgpack.pack(1, 2), 1)}", "*2|:-1|:2"),
        ("return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2)}", "*3|:2|:1|:2"),
        ("return cmsgpack.unpack('\\193')", "-ERR user_script:1: Bad data format in input."),
        ("return select('#', unpack({}, -2147483648, -2147483647))", ":2"),
        ("return select('#', unpack({}, -2, 5))", ":8"),
        ("local t = {} t[2147483647] = 7 return {select(2, unpack(t, 2147483646, 2147483647))}", "*1|:7"),
        // Bounds are truncated to 32 bits.
        ("return {unpack({1, 2, 3}, 4294967297, 9007199254740994)}", "*2|:1|:2"),
        ("return {unpack({}, -2147483648, 2147483647)}", "-ERR user_script:1: too many results to unpack"),
        ("return {unpack({}, -2, 2147483647)}", "-ERR user_script:1: too many results to unpack"),
        ("return {struct.unpack('Bc0xs', '\\3abc_de\\0')}", "*3|$3|abc|$2|de|:9"),
        ("return {struct.unpack('!4Bi', 'a\\0\\0\\0\\1\\0\\0\\0')}", "*3|:97|:1|:9"),
        ("return struct.size('!8bhid')", ":16"),
        (
            "return struct.unpack('i', 'abc')",
            "-ERR user_script:1: bad argument #2 to 'unpack' (data string too short)",
        ),
    ] {
        assert_eq!(run(script), reply, "{script}");
    }
}

#[test]
fn killed_scripts_cannot_catch_the_error_and_the_next_one_runs() {
    let mut interpreter = Interpreter::new(32 * 1024 * 1024, RedisVersion::ANSWERED).unwrap();
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() return 1 end) end",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    ] {
        let answer = run_in(&mut interpreter, script);
        assert!(answer.contains("Script killed by user"), "{script}: {answer}");
        assert_eq!(
            run_in(&mut interpreter, "local n = 0 for i = 1, 100000 do n = n + 1 end return n"),
            ":100000"
        );
    }
}

#[test]
fn script_memory_is_limited_and_freed() {
    let mut interpreter = Interpreter::new(8 * 1024 * 1024, RedisVersion::ANSWERED).unwrap();
    for _ in 0..3 {
        let answer =
            run_in(&mut interpreter, "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end");
        assert!(answer.contains("not enough memory"), "{answer}");
        assert_eq!(run_in(&mut interpreter, "return #('x'):rep(1000000)"), ":1000000");
    }
}

#[test]
fn replies_for_which_there_is_no_memory_are_errors() {
    let mut interpreter = Interpreter::new(8 * 1024 * 1024, RedisVersion::ANSWERED).unwrap();
    for command in ["ECHO", "SHARED"] {
        let fill = format!(
            "local word, kept = ('x'):rep(700000), {{}} while true do kept[#kept + 1] = redis.call('{command}', word) \
             word = word .. '.' end"
        );
        let caught = format!(
            "local word, kept, fine, problem = ('x'):rep(700000), {{}} repeat fine, problem = pcall(function() \
             kept[#kept + 1] = redis.call('{command}', word) word = word .. '.' end) until not fine kept = nil \
             return {{problem, #redis.call('{command}', 'still there')}}"
        );
        let several =
            format!("local t = {{}} for n = 1, 20 do t[n] = redis.call('{command}', n) end return #t");
        for _ in 0..3 {
            let answer = run_in(&mut interpreter, &fill);
            assert!(answer.contains("not enough memory"), "{answer}");
            let answer = run_in(&mut interpreter, &caught);
            assert!(answer.starts_with("*2|") && answer.ends_with("not enough memory|:11"), "{answer}");
            assert_eq!(run_in(&mut interpreter, &several), ":20");
        }
    }
    let many: Vec<&[u8]> = vec![b"0123456789"; 1_000_000];
    assert!(interpreter.given([&many, &[]]).is_err());
    assert_eq!(run_in(&mut interpreter, "return KEYS[1]"), "$3|key");
}
