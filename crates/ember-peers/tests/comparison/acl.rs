//! The same random rules create the same users in ember as in redis-server: the same rights, and the same errors for
//! invalid rules.
//!
//! `PEERS_SEED` changes the seed. Redis 7.0.15 describes rules about commands differently from 7.2, and its errors
//! contain "This user" where those of 7.2 contain the user's name; both are excluded from the comparison.

use ember_peers::{Mode, start_ember, start_redis};
use ember_testkit::{Random, RawClient, Value, render};

/// The number of rule changes; after each of them some calls are tried.
const CHANGES: usize = 1500;

const CALLS_TRIED: usize = 12;

const SEED: u64 = 7202;

const CATEGORIES: [&str; 14] = [
    "read",
    "write",
    "keyspace",
    "string",
    "bitmap",
    "admin",
    "dangerous",
    "fast",
    "slow",
    "connection",
    "all",
    "LIST",
    "transaction",
    "nosuch",
];

const COMMANDS: [&str; 24] = [
    "get",
    "set",
    "config",
    "config|get",
    "config|set",
    "del",
    "mget",
    "copy",
    "select|0",
    "select|1",
    "object",
    "object|freq",
    "client|list",
    "acl|whoami",
    "rename",
    "publish",
    "subscribe",
    "multi",
    "client|kill|x",
    "GETRANGE",
    "nosuch",
    "get|",
    "nosuch|x",
    "",
];

const KEYS: [&str; 10] = ["~", "%R~", "%W~", "%RW~", "%r~", "%wR~", "%~", "%X~", "%RW", "%RR~"];

const OTHERS: [&str; 24] = [
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "on",
    "off",
    "nopass",
    ">x",
    "<x",
    ">y",
    "#zz",
    "resetpass",
    "reset",
    "clearselectors",
    "what",
    "",
    "ON",
    "~*",
    "&*",
    "(",
    "()",
    "(on)",
];

const CALLS: &[&str] = &[
    "GET a1",
    "GET b",
    "SET a1 x",
    "SET b x",
    "SET b x GET",
    "SET a1 x KEEPTTL GET",
    "MGET a1 b1 c",
    "COPY a1 b1",
    "RENAME a1 c",
    "CONFIG GET x",
    "CONFIG SET hz 10",
    "SELECT 0",
    "SELECT 1",
    "OBJECT FREQ a1",
    "OBJECT ENCODING zz",
    "CLIENT LIST",
    "ACL WHOAMI",
    "EXISTS a1 b1",
    "DEL c",
    "PUBLISH c1 x",
    "SUBSCRIBE c1 x",
    "PSUBSCRIBE c*",
    "MULTI",
    "BITOP AND a1 b1 c",
    "GETEX a1 PERSIST",
    "TYPE a1",
    "TTL b1",
    "TOUCH ab",
    "AUTH x",
    "PING",
    "FLUSHALL",
    "MSETNX a1 x b1 y",
    "BITFIELD a1 GET u8 0",
    "BITFIELD a1 SET u8 0 1",
    "GETDEL a1",
    "EXPIRE b1 10",
    "SWAPDB 0 1",
    "LCS a1 b1",
    "DBSIZE",
    "KEYS *",
    "EXEC",
    "WATCH a1 b1",
    "HELLO 3",
    "RESET",
    "QUIT",
];

fn rule(random: &mut Random) -> String {
    let sign = if random.chance(50) { "+" } else { "-" };
    match random.below(100) {
        0..25 => format!("{sign}@{}", random.pick(&CATEGORIES)),
        25..55 => format!("{sign}{}", random.pick(&COMMANDS)),
        55..75 => format!("{}{}", random.pick(&KEYS), random.pick(&["a*", "b*", "*", "c", "a[bc]", ""])),
        75..85 => format!("&{}", random.pick(&["c*", "*", "x", ""])),
        _ => random.pick(&OTHERS).to_owned(),
    }
}

fn rules(random: &mut Random) -> Vec<String> {
    let one = |random: &mut Random| match random.chance(85) {
        true => rule(random),
        false => {
            let rules: Vec<String> = (0..=random.below(4)).map(|_| rule(random)).collect();
            format!("({})", rules.join(" "))
        }
    };
    (0..=random.below(5)).map(|_| one(random)).collect()
}

/// Returns the compared part of a reply.
fn compared(reply: &Value) -> String {
    render(reply).replace("This user has", "User alice has")
}

/// Returns the line of ACL LIST for the user, without its rules about commands.
fn described(client: &mut RawClient) -> Option<String> {
    let list = client.run("ACL LIST");
    let mut lines = list.elements().unwrap().iter().map(Value::text);
    let line = lines.find(|line| line.starts_with("user alice "))?.replace("sanitize-payload ", "");
    Some(line.split(" -@all").next()?.split(" +@all").next()?.to_owned())
}

#[test]
fn random_rules_create_the_same_users_as_in_redis() {
    let seed = std::env::var("PEERS_SEED").map_or(SEED, |seed| seed.parse().unwrap());
    let mut random = Random::new(seed);
    let (redis_server, ember_server) = (start_redis(), start_ember(Mode::Concurrent));
    let (mut redis, mut ember) = (redis_server.client(), ember_server.client());
    let mut history = Vec::new();
    for _ in 0..CHANGES {
        if random.chance(15) {
            history.clear();
            assert_eq!(redis.run("ACL DELUSER alice"), ember.run("ACL DELUSER alice"));
        }
        let mut words = vec!["ACL".to_owned(), "SETUSER".to_owned(), "alice".to_owned()];
        words.extend(rules(&mut random));
        history.push(words[3..].join(" "));
        let replies = [redis.command(&words), ember.command(&words)].map(|reply| compared(&reply));
        assert_eq!(replies[0], replies[1], "{history:?}");
        let described = [described(&mut redis), described(&mut ember)];
        assert_eq!(described[0], described[1], "{history:?}");
        for _ in 0..CALLS_TRIED {
            let call = format!("ACL DRYRUN alice {}", random.pick(CALLS));
            let replies = [redis.run(&call), ember.run(&call)].map(|reply| compared(&reply));
            assert_eq!(replies[0], replies[1], "{call} after {history:?}");
        }
    }
}
