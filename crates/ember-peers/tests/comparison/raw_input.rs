//! ember replies with the same bytes as Redis to any bytes that a client sends, well-formed or not, whole or in pieces.

use ember_peers::{Mode, start_ember, start_redis};
use ember_testkit::{Random, Server, quote};

/// Inputs to compare. They do not include a NUL in an inline command: Redis searches for the line end with a C function
/// that stops at a NUL, and then waits for a line end forever.
const CASES: &[&[u8]] = &[
    // Inline commands.
    b"PING\r\n",
    b"PING\n",
    b"\r\n\r\nPING\r\n",
    b"   PING   \r\n",
    b"SET a \"x\\x00\\n y\"\r\nGET a\r\n",
    b"SET a 'it\\'s'\r\nGET a\r\n",
    b"GET 'a'b\r\n",
    b"GET \"a\r\n",
    b"ECHO \"\"\r\n",
    b"echo a b c\r\nPING\r\n",
    b"nosuch\tcommand\r\n",
    b"+OK\r\n",
    b"GET",
    // Arrays of bulk strings.
    b"*1\r\n$4\r\nPING\r\n",
    b"*0\r\n*1\r\n$4\r\nPING\r\n",
    b"*-1\r\n*1\r\n$4\r\nPING\r\n",
    b"*-5\r\nPING\r\n",
    b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
    b"*2\r\n$4\r\nECHO\r\n$4\r\n\x00\r\n\xff\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\nGET k\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\n",
    b"*2\r\n$3\r\nGET\r\n",
    b"*2\r\n",
    b"*",
    // Damaged lengths: an error, then the server closes the connection.
    b"*abc\r\nPING\r\n",
    b"*\r\n",
    b"*1.5\r\n",
    b"* 1\r\n",
    b"*+1\r\n$4\r\nPING\r\n",
    b"*01\r\n$4\r\nPING\r\n",
    b"*1048577\r\n",
    b"*2147483648\r\n",
    b"*9223372036854775808\r\n",
    b"*1\r\n:1\r\n",
    b"*1\r\n+PING\r\n",
    b"*1\r\n*1\r\n",
    b"*1\r\nPING\r\n",
    b"*1\r\n\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$abc\r\n",
    b"*1\r\n$\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$9223372036854775807\r\n",
    b"*1\r\n$99999999999999999999\r\n",
    b"*1\r\n$+4\r\nPING\r\n",
    b"*2\r\n$4\r\nECHO\r\n$-2\r\n",
    // A valid command before a damaged one receives its reply.
    b"PING\r\n*1\r\n$4\r\nPING\r\n*x\r\nPING\r\n",
    // Commands after QUIT receive no reply.
    b"PING\r\nQUIT\r\nPING\r\n",
    b"*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n",
    // HTTP clients are disconnected.
    b"POST / HTTP/1.1\r\nPING\r\n",
    b"Host: localhost\r\nPING\r\n",
];

/// The number of bytes that a server reads at once. Of longer input, a part can be unread when the server closes the
/// connection.
const SOCKET_READ_BYTES: usize = 16 * 1024;

fn answer(server: &Server, pieces: &[&[u8]]) -> String {
    let mut client = server.client();
    for piece in pieces {
        // A server may close the connection before it has read all input.
        if client.send(piece).is_err() {
            break;
        }
    }
    let _ = client.finish_sending();
    client.read_to_close().map_or_else(|error| format!("no end: {error}"), |bytes| quote(&bytes))
}

fn compare(mode: Mode) {
    let (redis, ember) = (start_redis(), start_ember(mode));
    let mut random = Random::new(11);
    let mut differences = Vec::new();
    let long_lines = [
        // Redis accepts a line longer than 64 kB if its end arrives with the read that crosses that limit.
        [&b"GET "[..], &vec![b'x'; 100_000], b"\r\n"].concat(),
        vec![b'x'; 70_000],
        [&b"*"[..], &vec![b'1'; 70_000]].concat(),
        [&b"*1\r\n$"[..], &vec![b'1'; 70_000]].concat(),
    ];
    for case in CASES.iter().copied().chain(long_lines.iter().map(Vec::as_slice)) {
        let cut = random.below(case.len());
        let single: Vec<&[u8]> = case.chunks(1).collect();
        let [front, back] = [&case[..cut], &case[cut..]];
        let mut ways: Vec<&[&[u8]]> = vec![];
        let whole = [case];
        let halves = [front, back];
        ways.push(&whole);
        ways.push(&halves);
        if single.len() < 200 {
            ways.push(&single);
        }
        let expected = answer(&redis, &[case]);
        for pieces in ways {
            let got = answer(&ember, pieces);
            // A server that closes a connection with unread input resets it, and then the last reply may be lost.
            let reset = case.len() > SOCKET_READ_BYTES;
            let same_again = || (0..20).any(|_| answer(&ember, pieces) == answer(&redis, &[case]));
            if got != expected && !(reset && same_again()) {
                let shown = quote(&case[..case.len().min(100)]);
                differences
                    .push(format!("{shown} in {} pieces\n  redis {expected}\n  ember {got}", pieces.len()));
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn concurrent_mode_answers_any_bytes_as_redis_does() {
    compare(Mode::Concurrent);
}

#[test]
fn sharded_mode_answers_any_bytes_as_redis_does() {
    compare(Mode::Sharded);
}
