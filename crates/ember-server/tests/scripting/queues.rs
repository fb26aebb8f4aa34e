//! Scripts as job queues and rate limiters use them: keys built from arguments, many types, many concurrent callers.

use std::thread;

use ember_testkit::Value;

use crate::{eval, everywhere};

/// A script that takes a job as BullMQ does: it moves the job from the waiting list to the active list, with keys
/// derived from a prefix.
const TAKE: &str = "local prefix = ARGV[1]\n\
    local id = redis.call('RPOPLPUSH', prefix .. ':wait', prefix .. ':active')\n\
    if not id then return nil end\n\
    local key = prefix .. ':' .. id\n\
    redis.call('HSET', key, 'state', 'active', 'worker', ARGV[2])\n\
    redis.call('ZADD', prefix .. ':locks', ARGV[3], id)\n\
    redis.call('XADD', prefix .. ':events', '*', 'event', 'active', 'id', id)\n\
    return {id, redis.call('HGETALL', key)}";

#[test]
fn each_job_is_taken_once_by_scripts_with_undeclared_keys() {
    everywhere(&[], |server, client| {
        const JOBS: usize = 200;
        for number in 0..JOBS {
            client.run(&format!("LPUSH queue:wait {number}"));
        }
        let sha = client.command(&["SCRIPT", "LOAD", TAKE]).text();
        let taken: usize = thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|taker| {
                    let (mut client, sha, taker) = (server.client(), &sha, taker.to_string());
                    scope.spawn(move || {
                        let mut count = 0;
                        while client.command(&["EVALSHA", sha, "0", "queue", &taker, "7"]) != Value::Null {
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(taken, JOBS);
        assert_eq!(client.run("LLEN queue:active"), Value::Integer(JOBS as i64));
        assert_eq!(client.run("ZCARD queue:locks"), Value::Integer(JOBS as i64));
        assert_eq!(client.run("XLEN queue:events"), Value::Integer(JOBS as i64));
    });
}

#[test]
fn scripts_are_atomic_under_transactions_and_single_commands() {
    everywhere(&[], |server, client| {
        client.run("MSET a 1000 b 1000");
        let transfer = "local a, b = redis.call('GET', 'a'), redis.call('GET', 'b')\n\
            if a + b ~= 2000 then return redis.error_reply('torn: ' .. a .. ' ' .. b) end\n\
            redis.call('SET', 'a', a - ARGV[1]) redis.call('SET', 'b', b + ARGV[1]) return 'OK'";
        thread::scope(|scope| {
            for amount in ["1", "-2", "3"] {
                let mut client = server.client();
                scope.spawn(move || {
                    for _ in 0..300 {
                        assert_eq!(client.command(&["EVAL", transfer, "0", amount]), Value::from("OK"));
                        client.run("MULTI");
                        client.run("INCR a");
                        client.run("DECR b");
                        assert_eq!(client.run("EXEC").elements().map(<[Value]>::len), Some(2));
                    }
                });
            }
        });
        let sum = eval(client, "return redis.call('GET', 'a') + redis.call('GET', 'b')");
        assert_eq!(sum, Value::Integer(2000));
    });
}

#[test]
fn scripts_are_compiled_after_any_number_of_instructions() {
    everywhere(&[], |_, client| {
        // The interrupt hook is due once every few hundred of these scripts, sometimes while a script runs and
        // sometimes while one is compiled.
        let commands: Vec<_> = (0..6000)
            .map(|number| {
                let script = format!("return {number}");
                if number % 2 == 0 {
                    vec!["EVAL".to_owned(), script, "0".to_owned()]
                } else {
                    vec!["SCRIPT".to_owned(), "LOAD".to_owned(), script]
                }
            })
            .collect();
        for (index, commands) in commands.chunks(500).enumerate() {
            let replies = client.pipeline(commands).unwrap();
            assert_eq!(replies[0], Value::Integer(index as i64 * 500));
            assert!(replies[1..].iter().all(|reply| !reply.is_error()));
        }
    });
}

#[test]
fn a_push_in_a_script_serves_waiters_after_its_end() {
    everywhere(&[], |server, client| {
        let mut waiting = server.client();
        waiting.send(b"BLPOP waited 0\r\n").unwrap();
        crate::wait_until("a client waits", || {
            client.run("INFO clients").text().contains("blocked_clients:1")
        });
        let script =
            "redis.call('RPUSH', 'waited', 'first') redis.call('LPUSH', 'waited', 'second') return 1";
        assert_eq!(eval(client, script), Value::Integer(1));
        let served = waiting.read_value().unwrap();
        assert_eq!(served.elements().unwrap()[1], Value::from("second"));
    });
}

#[test]
fn restricted_users_may_do_no_more_in_scripts() {
    everywhere(&[], |server, client| {
        assert_eq!(client.run("ACL SETUSER worker on >secret ~queue:* +@all -set"), Value::ok());
        let mut worker = server.client();
        assert_eq!(worker.run("AUTH worker secret"), Value::ok());
        assert_eq!(eval(&mut worker, "return redis.call('INCR', 'queue:n')"), Value::Integer(1));
        let refused = eval(&mut worker, "return redis.call('SET', 'queue:n', 1)").text();
        assert!(refused.starts_with("ERR ACL failure in script: "), "{refused}");
        let refused = eval(&mut worker, "return redis.call('INCR', 'other')").text();
        assert!(
            refused.starts_with("ERR ACL failure in script: No permissions to access a key"),
            "{refused}"
        );
        let asked = "return {redis.acl_check_cmd('GET', 'queue:a'), redis.acl_check_cmd('GET', 'b')}";
        assert_eq!(eval(&mut worker, asked), Value::Array(vec![Value::Integer(1), Value::Null]));
    });
}
