//! A simple model of a server, which computes the expected reply to each command of a connection.

use std::collections::HashMap;

use ember_testkit::Random;

use crate::bulk;

/// The state that one connection sees, if no other connection uses its keys.
#[derive(Default)]
pub(crate) struct Model {
    values: HashMap<(usize, Vec<u8>), Vec<u8>>,
    database: usize,
    is_resp3: bool,
}

impl Model {
    /// Returns the reply to a command; `None` for a command whose reply the model does not predict.
    pub(crate) fn answer(&mut self, command: &[Vec<u8>]) -> Option<Vec<u8>> {
        let key = |index: usize| (self.database, command[index].clone());
        Some(match command[0].as_slice() {
            b"PING" => b"+PONG\r\n".to_vec(),
            b"ECHO" => bulk(&command[1]),
            b"SET" => {
                self.values.insert(key(1), command[2].clone());
                b"+OK\r\n".to_vec()
            }
            b"GET" => self.value(&key(1)),
            b"MSET" => {
                for index in (1..command.len()).step_by(2) {
                    self.values.insert((self.database, command[index].clone()), command[index + 1].clone());
                }
                b"+OK\r\n".to_vec()
            }
            b"MGET" => {
                let mut reply = format!("*{}\r\n", command.len() - 1).into_bytes();
                (1..command.len()).for_each(|index| reply.extend(self.value(&key(index))));
                reply
            }
            b"DEL" => {
                let removed = (1..command.len())
                    .filter(|&index| self.values.remove(&(self.database, command[index].clone())).is_some());
                format!(":{}\r\n", removed.count()).into_bytes()
            }
            b"APPEND" => {
                let value = self.values.entry(key(1)).or_default();
                value.extend_from_slice(&command[2]);
                format!(":{}\r\n", value.len()).into_bytes()
            }
            b"STRLEN" => format!(":{}\r\n", self.values.get(&key(1)).map_or(0, Vec::len)).into_bytes(),
            b"SELECT" => {
                self.database = std::str::from_utf8(&command[1]).unwrap().parse().unwrap();
                b"+OK\r\n".to_vec()
            }
            b"HELLO" => {
                self.is_resp3 = command[1] == b"3";
                return None;
            }
            b"NOSUCH" => b"-ERR unknown command 'NOSUCH', with args beginning with: \r\n".to_vec(),
            other => panic!("the model does not know {}", String::from_utf8_lossy(other)),
        })
    }

    fn value(&self, key: &(usize, Vec<u8>)) -> Vec<u8> {
        match self.values.get(key) {
            Some(value) => bulk(value),
            None if self.is_resp3 => b"_\r\n".to_vec(),
            None => b"$-1\r\n".to_vec(),
        }
    }
}

/// Returns a random command on keys that begin with `prefix`.
pub(crate) fn random_command(random: &mut Random, prefix: &str) -> Vec<Vec<u8>> {
    let key = |random: &mut Random| format!("{prefix}{}", random.below(60)).into_bytes();
    let value = |random: &mut Random| {
        let length = match random.below(200) {
            0 => random.below(100_000),
            1..10 => random.below(5000),
            _ => random.below(40),
        };
        random.bytes(length)
    };
    let mut command: Vec<Vec<u8>> = Vec::new();
    match random.below(100) {
        0..35 => command.extend([b"GET".to_vec(), key(random)]),
        35..60 => command.extend([b"SET".to_vec(), key(random), value(random)]),
        60..66 => {
            command.push(b"MSET".to_vec());
            for _ in 0..=random.below(5) {
                command.extend([key(random), value(random)]);
            }
        }
        66..74 => {
            command.push(b"MGET".to_vec());
            (0..=random.below(6)).for_each(|_| command.push(key(random)));
        }
        74..78 => {
            command.push(b"DEL".to_vec());
            (0..=random.below(3)).for_each(|_| command.push(key(random)));
        }
        78..84 => command.extend([b"APPEND".to_vec(), key(random), random.bytes(7)]),
        84..88 => command.extend([b"STRLEN".to_vec(), key(random)]),
        88..92 => command.push(b"PING".to_vec()),
        92..95 => command.extend([b"ECHO".to_vec(), value(random)]),
        95..97 => command.extend([b"SELECT".to_vec(), random.below(3).to_string().into_bytes()]),
        97..99 => command.extend([b"HELLO".to_vec(), if random.chance(50) { b"2" } else { b"3" }.to_vec()]),
        _ => command.push(b"NOSUCH".to_vec()),
    }
    command
}
