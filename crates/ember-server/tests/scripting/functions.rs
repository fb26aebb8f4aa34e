//! Libraries of functions.

use ember_testkit::Value;

use crate::everywhere;

const COUNTER: &str = "#!lua name=counters\n\
    local function add(keys, args) return redis.call('INCRBY', keys[1], args[1]) end\n\
    redis.register_function('add', add)\n\
    redis.register_function{function_name='read', flags={'no-writes'}, description='Reads.',\n\
      callback=function(keys) return redis.call('GET', keys[1]) end}";

#[test]
fn functions_loaded_by_one_worker_run_on_every_worker() {
    everywhere(&[], |server, client| {
        assert_eq!(client.command(&["FUNCTION", "LOAD", COUNTER]), Value::from("counters"));
        for number in 1..=8 {
            let mut other = server.client();
            assert_eq!(other.run("FCALL add 1 counter 5"), Value::Integer(5 * number));
            assert_eq!(other.run("FCALL_RO read 1 counter"), Value::from(&*(5 * number).to_string()));
        }
        let refused = client.run("FCALL_RO add 1 counter 1");
        assert_eq!(refused.text(), "ERR Can not execute a script with write flag using *_ro command.");
        let changed = COUNTER.replace("args[1]", "args[1] * 2");
        assert_eq!(client.command(&["FUNCTION", "LOAD", "REPLACE", &changed]), Value::from("counters"));
        for number in 1..=4 {
            assert_eq!(server.client().run("FCALL add 1 other 1"), Value::Integer(2 * number));
        }
        assert_eq!(client.run("FUNCTION DELETE counters"), Value::ok());
        assert_eq!(server.client().run("FCALL add 1 counter 1").text(), "ERR Function not found");
    });
}

#[test]
fn a_dump_is_restored_under_each_policy() {
    everywhere(&[], |_, client| {
        client.command(&["FUNCTION", "LOAD", COUNTER]);
        let dump = client.run("FUNCTION DUMP");
        let dump = dump.bytes().unwrap();
        let restore = |client: &mut ember_testkit::RawClient, policy: &[u8]| {
            client.command(&[&b"FUNCTION"[..], b"RESTORE", dump, policy])
        };
        assert_eq!(restore(client, b"APPEND").text(), "ERR Library counters already exists");
        assert_eq!(restore(client, b"REPLACE"), Value::ok());
        assert_eq!(client.run("FUNCTION FLUSH"), Value::ok());
        assert_eq!(restore(client, b"APPEND"), Value::ok());
        let other = "#!lua name=other\nredis.register_function('other', function() return 1 end)";
        client.command(&["FUNCTION", "LOAD", other]);
        assert_eq!(restore(client, b"FLUSH"), Value::ok());
        assert_eq!(client.run("FCALL other 0").text(), "ERR Function not found");
        assert_eq!(client.run("FCALL add 1 k 3"), Value::Integer(3));
        for at in 0..dump.len() {
            let mut damaged = dump.to_vec();
            damaged[at] ^= 0x40;
            assert!(client.command(&[&b"FUNCTION"[..], b"RESTORE", &damaged, b"REPLACE"]).is_error());
        }
    });
}
