//! Tests of the changes that the crate `ember_lua` makes to Lua, and of Lua bugs that scripts cannot exploit.

use std::time::{Duration, Instant};

use ember_protocol::{Protocol, Reply};
use emberkv_core::redis_version::RedisVersion;

use super::super::interpreter::Interpreter;
use super::super::scripts::sha_of;
use super::{Echo, run};

/// Runs a script that is ended at the check whether to continue with the number `questions`.
fn run_for(questions: usize, script: &str) -> String {
    let mut interpreter = Interpreter::new(256 * 1024 * 1024, RedisVersion::ANSWERED).unwrap();
    let body = interpreter.script(&sha_of(script.as_bytes()), script.as_bytes()).unwrap();
    let mut reply = Reply::new(Protocol::Resp3);
    let mut runner = Echo { questions_left: questions };
    let given = interpreter.given([&[], &[]]).unwrap();
    match interpreter.run(&body, false, given, &mut runner, &mut reply) {
        Ok(()) => String::from_utf8_lossy(&reply.to_vec()).trim_end().replace("\r\n", "|"),
        Err(failure) => format!("-{}", String::from_utf8_lossy(&failure.text)),
    }
}

/// Lua code that creates a long list.
const LIST: &str = "local t = {} for i = 1, 10000 do t[i] = i end";

/// The number of checks whether to continue depends on the work of a script, not on its number of Lua instructions.
/// Unmodified Lua makes less than a tenth as many checks.
#[test]
fn work_in_functions_written_in_c_is_counted() {
    // The length of source text is limited to 1 MiB, and the work of building it is counted, too.
    for (questions, script) in [
        (200, "string.find(('a'):rep(200), ('.-'):rep(5) .. 'b')"),
        (200, "string.match(('a'):rep(300), ('a-'):rep(4) .. 'b')"),
        (200, "string.find(('('):rep(4000), '%b()')"),
        (200, "string.gsub(('a'):rep(200), 'a*a*a*b', '')"),
        (200, "for _ in string.gmatch(('a'):rep(200), 'a*a*a*b') do end"),
        (200, "string.find(('a'):rep(2000), '[' .. ('b'):rep(20000) .. ']*c')"),
        (100, "string.find(('a'):rep(20000), '(a*)%1b')"),
        (100, "string.find(('a'):rep(40000), ('a'):rep(20000) .. 'b', 1, true)"),
        (500, "string.rep('', 10000000)"),
        (500, "for i = 1, 20 do string.rep('xy', 500000) end"),
        (100, "string.rep('xy', 50000000)"),
        (100, "string.upper(('x'):rep(2000000))"),
        (100, "string.format(('x'):rep(2000000))"),
        (100, "string.format('%q', ('x'):rep(2000000))"),
        (100, "local t = {} for i = 1, 10000 do t[i] = '' end for i = 1, 100 do table.concat(t) end"),
        (50, "local t = {} for i = 1, 20000 do t[i] = i % 100 end table.sort(t)"),
        (100, "LIST for i = 1, 100 do table.insert(t, 1, i) end"),
        (100, "LIST for i = 1, 100 do table.remove(t, 1) end"),
        (500, "pcall(table.insert, {}, -2147483646, 1)"),
        (
            100,
            "local t = {} for i = 1, 10000 do t[i] = 'x' end for i = 1, 50 do table.foreach(t, string.match) end",
        ),
        (
            100,
            "local t = {} for i = 1, 10000 do t[i] = 'x' end for i = 1, 50 do table.foreachi(t, string.match) end",
        ),
        (100, "LIST for i = 1, 50 do table.maxn(t) end"),
        (100, "local s = ('x'):rep(1000000) for i = 1, 200 do local copy = s .. 'y' end"),
        (
            100,
            "local s = ('\\0'):rep(1000000) local a, b = s .. 'a', s .. 'b' for i = 1, 200 do local less = a < b end",
        ),
        (100, "local s = ('0'):rep(100000) .. '1' for i = 1, 200 do local number = s + 1 end"),
        (100, "local s = (' '):rep(100000) .. '1' for i = 1, 200 do local number = tonumber(s, 16) end"),
        (
            100,
            "LIST for i = 1, 9999 do t[i] = nil end \
               for i = 1, 200 do next(t) end",
        ),
        (
            100,
            "local t = {} for i = 1, 4096 do t['k' .. i] = 1 end \
               for i = 1, 4096 do t['k' .. i] = nil t['n' .. i] = 1 end",
        ),
        (30, "local t = {} for i = 1, 20000 do t[i] = {} end for i = 1, 20 do collectgarbage() end"),
        (
            30,
            "local t = {} for i = 1, 20000 do t[i] = {} end for i = 1, 20 do collectgarbage('step', 1000000) end",
        ),
        (
            100,
            "local t = {} for i = 1, 20000 do t[i] = {} end collectgarbage('setpause', 0) \
               collectgarbage('setstepmul', 0) for i = 1, 2000 do local garbage = {{}} end",
        ),
        (
            100,
            "local function f(...) return 1 end local function g(...) for i = 1, 500 do f(...) end end \
               g(unpack({}, 1, 7000))",
        ),
        (180, "loadstring(('x = 1 '):rep(170000))"),
        (500, "while true do loadstring(('x = 1 '):rep(170000)) end"),
        (210, "loadstring('--[[' .. ('x'):rep(1000000) .. ']]')"),
        (
            100,
            "local function work() for i = 1, 2000 do end end \
               for i = 1, 1000 do coroutine.wrap(work)() end",
        ),
    ] {
        let answer = run_for(questions, &script.replace("LIST", LIST));
        assert!(answer.contains("Script killed by user"), "{script}: {answer}");
    }
}

#[test]
fn long_strings_are_joined_in_pieces() {
    let same = "local a = ('ab'):rep(1000000) local b, c, d = a .. 'ab', 'ab' .. a, 'a' .. ('ba'):rep(1000000) .. 'b' \
                return table.concat({#b, tostring(b == c), tostring(b == d), b:sub(1, 3), b:sub(-3), #(b .. 12 .. c)}, ' ')";
    assert_eq!(run(same), "$33|2000002 true true aba bab 4000006");
    // An ended script frees its memory wherever it is ended: otherwise a tenth of the rounds would reach the memory
    // limit.
    let mut interpreter = Interpreter::new(256 * 1024 * 1024, RedisVersion::ANSWERED).unwrap();
    let script = b"local s = ('x'):rep(10000000) while true do local t = s .. s end";
    let body = interpreter.script(&sha_of(script), script).unwrap();
    for questions in 100..200 {
        let mut reply = Reply::new(Protocol::Resp3);
        let given = interpreter.given([&[], &[]]).unwrap();
        interpreter.collect_if_short();
        let failure =
            interpreter.run(&body, false, given, &mut Echo { questions_left: questions }, &mut reply);
        let text = String::from_utf8_lossy(&failure.unwrap_err().text).into_owned();
        assert!(text.contains("Script killed by user"), "{questions}: {text}");
    }
}

#[test]
fn adversarial_tables_are_not_slow() {
    // In unmodified Lua, the length operator takes linear time on tables that are constructed for that.
    let length = "local t = {} for i = 31, 0, -1 do t[2 ^ i] = 1 end for i = 100000, 1, -1 do t[i] = 1 end \
                  local n = #t return t[n] == 1 and t[n + 1] == nil";
    assert_eq!(run(length), ":1");
    assert_eq!(
        run("local t = {} for i = 30, 0, -1 do t[2 ^ i] = 1 end t[2147483645] = 1 return #t > 0"),
        ":1"
    );
}

#[test]
fn patterns_nested_too_deep_are_errors() {
    for pattern in
        ["('a?'):rep(200000)", "('a-'):rep(200000) .. 'b'", "('x*'):rep(200000)", "('a?'):rep(1001)"]
    {
        let answer = run(&format!("return string.find(('a'):rep(200000), {pattern})"));
        assert_eq!(answer, "-ERR user_script:1: pattern too complex", "{pattern}");
    }
    assert_eq!(run("return #string.match(('a'):rep(2000), ('a?'):rep(900))"), ":900");
    assert_eq!(run("return select('#', string.find(('a'):rep(50), ('(a)'):rep(32)))"), ":34");
    assert_eq!(run("return string.find('a', ('('):rep(33))"), "-ERR user_script:1: too many captures");
    // The depth of one match does not count towards the next match.
    assert_eq!(run("return select(2, string.gsub(('a'):rep(5000), 'a?', ''))"), ":5001");
    // Even at the maximum call depth, the stack is large enough.
    let nested = "local function f(n) pcall(string.find, ('a'):rep(999), ('a?'):rep(999)) \
                  return (('x'):gsub('x', function() return f(n + 1) end)) end return f(1)";
    assert!(run(nested).contains("C stack overflow"));
}

/// Returns the shortest time of three runs of a script.
fn time_of(script: &str) -> Duration {
    let timed = || {
        let started = Instant::now();
        assert_eq!(run_for(usize::MAX, script), "#t", "{script}");
        started.elapsed()
    };
    (0..3).map(|_| timed()).min().unwrap()
}

/// Asserts that the first script takes less than ten times as long as the second. Both process the same amount of data;
/// quadratic implementations took a hundred times as long.
#[track_caller]
fn assert_no_slower(script: &str, than: &str) {
    let (time, usual) = (time_of(script), time_of(than));
    assert!(time < 10 * usual, "{time:?} and not {usual:?}: {script}");
}

#[test]
fn strings_that_differ_in_the_middle_are_no_slower() {
    let strings = |string: &str| {
        format!(
            "redis.setresp(3) local a, b, t = ('a'):rep(496), ('b'):rep(496), {{}} \
             for i = 1, 10000 do local n = ('%08d'):format(i) t[{string}] = i end return true"
        )
    };
    let differ_everywhere = strings("n:rep(125)");
    for string in ["a .. n .. b", "a .. b .. n", "n .. a .. b"] {
        assert_no_slower(&strings(string), &differ_everywhere);
    }
}

#[test]
fn colliding_numbers_are_no_slower() {
    // Lua 5.1.5 hashes a number as the sum of its two 32-bit halves, so these numbers collide there.
    let numbers = |expression: &str| {
        format!("redis.setresp(3) local t = {{}} for i = 1, 20000 do t[{expression}] = i end return true")
    };
    assert_no_slower(&numbers("2^52 + i * 2^32 + 2^20 - i"), &numbers("2^52 + i * 2^32 + i * i"));
}

#[test]
fn the_collector_runs_while_source_text_is_compiled() {
    let script = "collectgarbage('setpause', 0) collectgarbage('setstepmul', 100000) local sum = 0 \
        for i = 1, 300 do \
          local name = '=' .. ('n'):rep(30) .. i \
          local text = 'local a' .. i .. ' = \"' .. ('s'):rep(i) .. '\" ' .. ('local t = {\"x' .. i .. '\", [[y]]} '):rep(20) \
            .. 'error(\"here\")' \
          local _, problem = pcall(assert(loadstring(text, name))) \
          if problem ~= ('n'):rep(30) .. i .. ':1: here' then return problem end \
          local read = 0 \
          local chunk = load(function() collectgarbage() read = read + 1 \
            if read < 5 then return 'local s' .. read .. ' = \"' .. i .. '\" ' end return nil end, name .. 'b') \
          chunk() sum = sum + read end return sum";
    assert_eq!(run_for(usize::MAX, script), ":1500");
}

#[test]
fn calls_nested_too_deep_are_errors() {
    for (script, words) in [
        ("local function f() return coroutine.wrap(f)() end return f()", "C stack overflow"),
        (
            "local function f() local c = coroutine.create(f) return assert(coroutine.resume(c)) end f()",
            "C stack overflow",
        ),
        ("local function f() return (('x'):gsub('x', f)) end return f()", "C stack overflow"),
        ("local t = {1, 2, 3} local function f() table.sort(t, f) end f()", "C stack overflow"),
        (
            "local t = setmetatable({}, {__index = function(t, k) return t[k] end}) return t.x",
            "C stack overflow",
        ),
        ("local function f() return f() + 1 end return f()", "stack overflow"),
        ("return #(loadstring(('('):rep(100000)))", "get length of a nil value"),
    ] {
        let answer = run(script);
        assert!(answer.contains(words), "{script}: {answer}");
    }
    // There are as many results as nested calls: each call adds one result.
    assert_eq!(run("local function f() return pcall(f) end return (f())"), ":1");
    assert_eq!(run("local function f() return xpcall(f, tostring) end return (f())"), ":1");
    assert_eq!(run("return select('#', pcall(unpack, {}, 1, 7990))"), ":7991");
    // A function with many fixed parameters is called with few arguments.
    let names: Vec<String> = (1..200).map(|number| format!("p{number}")).collect();
    let names = names.join(", ");
    let script = format!(
        "local function f({names}, ...) return p1, p199, select('#', ...) end \
         for i = 1, 50 do coroutine.wrap(function() f() f(1) f(unpack({{}}, 1, 300)) end)() end return {{f(1)}}"
    );
    assert_eq!(run(&script), "*1|:1");
}

#[test]
fn errors_of_any_type_are_described() {
    for (script, answer) in [
        ("error()", "-ERR nil"),
        ("error({})", "-ERR unknown error"),
        ("error({err = {}})", "-ERR unknown error"),
        ("error(true)", "-ERR true"),
        ("error(setmetatable({}, {__index = function() error('again') end}))", "-ERR unknown error"),
    ] {
        assert_eq!(run(script), answer, "{script}");
    }
}

#[test]
fn libraries_in_rust_reject_overflowing_arguments() {
    for (script, answer) in [
        ("return bit.tohex(65535, -2147483648)", "$8|0000FFFF"),
        ("return bit.tohex(65535, 2147483647)", "$8|0000ffff"),
        ("return struct.unpack('I', 'abcd', 4294967297)", "!"),
        ("return struct.pack('>I2147483648', 10)", "!"),
        ("return struct.unpack('c2147483647', 'x')", "!"),
        ("return cmsgpack.unpack(('\\145'):rep(100000))", "!"),
        ("local t = {} for i = 1, 10000 do t = {t} end return #cmsgpack.pack(t)", ""),
        ("return cjson.decode(('['):rep(100000))", "!"),
        ("return #cjson.encode(('\\1'):rep(1000000))", ":6000002"),
    ] {
        let got = run(script);
        let is_right = if answer == "!" { got.starts_with('-') } else { got.starts_with(answer) };
        assert!(is_right, "{script}: {got}");
    }
}
