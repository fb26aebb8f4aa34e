//! Requests through the public interface: for all splits, discards and large arguments, the commands equal those that
//! the reference parser reads from the whole input.

mod reference;

use ember_protocol::{
    BATCH_COMMANDS_MAX, Batch, LARGE_ARGUMENT_MIN, Limits, OwnedBatch, ParseStatus, Parser, ProtocolError,
};
use proptest::prelude::*;
use reference::Reading;

/// Returns low limits, so that short inputs reach all of them.
fn small_limits() -> Limits {
    Limits {
        bulk_len_max: 300,
        multibulk_count_max: 50,
        inline_len_max: 64,
        large_argument_min: 20,
        batch_commands_max: BATCH_COMMANDS_MAX,
        authenticated: true,
    }
}

/// Feeds a parser as a caller does: one piece of the input after the other, of sizes that `choose` determines.
fn feed(input: &[u8], limits: &Limits, mut choose: impl FnMut(usize) -> usize) -> Reading {
    let mut parser = Parser::new();
    let mut batch = Batch::new();
    let mut copies = OwnedBatch::new();
    let mut buffer: Vec<u8> = Vec::new();
    let mut rest = input;
    let mut reading = Reading::default();
    loop {
        let status = parser.parse(&buffer, &mut batch, limits);
        copies.clear();
        for index in 0..batch.len() {
            let args = batch.command(index, &buffer);
            reading.commands.push(args.iter().map(<[u8]>::to_vec).collect());
            copies.append(args);
            assert_eq!(copies.command(index).iter().collect::<Vec<_>>(), args.iter().collect::<Vec<_>>());
            let mut request = Vec::new();
            args.encode(&mut request);
            assert_eq!(request, encode(&args.iter().map(<[u8]>::to_vec).collect::<Vec<_>>()));
            for argument in 0..args.len() {
                if let Some(shared) = args.shared(argument) {
                    assert_eq!(shared.as_slice(), args.at(argument));
                    assert!(shared.len() as u64 >= limits.large_argument_min);
                    assert_eq!(shared.capacity(), shared.len());
                }
            }
        }
        batch.clear();
        match status {
            ParseStatus::Err(error) => {
                assert_eq!(parser.parse(&buffer, &mut batch, limits), ParseStatus::Err(error));
                assert!(batch.is_empty());
                reading.error = Some(error);
                return reading;
            }
            ParseStatus::Full => {
                if choose(2) == 0 {
                    buffer.drain(..parser.consumed());
                    parser.discard(parser.consumed());
                }
                continue;
            }
            ParseStatus::NeedMore => assert!(parser.large_mut().is_none()),
            ParseStatus::NeedLarge => {
                if choose(2) == 0 {
                    assert_eq!(parser.position(), buffer.len());
                    buffer.truncate(buffer.len() - parser.release_tail());
                    assert_eq!(parser.position(), buffer.len());
                }
                if choose(2) == 0 {
                    rest = read_large(&mut parser, rest, &mut choose);
                }
            }
        }
        let discarded = choose(parser.consumed() + 1);
        buffer.drain(..discarded);
        parser.discard(discarded);
        if rest.is_empty() && parser.large_mut().is_none_or(|target| target.missing() > 0) {
            // One last call, in case the large argument has just become complete.
            if let ParseStatus::Full | ParseStatus::Err(_) = parser.parse(&buffer, &mut batch, limits) {
                panic!("the parser had no input left");
            }
            assert!(batch.is_empty());
            return reading;
        }
        let piece = rest.len().min(1 + choose(rest.len().max(1)));
        buffer.extend_from_slice(&rest[..piece]);
        rest = &rest[piece..];
    }
}

/// Reads some of `rest` into the large argument as a socket read would; returns the remainder.
fn read_large<'a>(
    parser: &mut Parser,
    mut rest: &'a [u8],
    choose: &mut impl FnMut(usize) -> usize,
) -> &'a [u8] {
    while let Some(mut target) = parser.large_mut() {
        let missing = target.missing();
        let count = if choose(2) == 0 {
            target.extend(&rest[..choose(rest.len() + 1)])
        } else {
            let buffer = target.buffer();
            let spare = buffer.capacity() - buffer.len();
            assert!((1..=missing).contains(&spare));
            let count = choose(spare.min(rest.len()) + 1);
            buffer.extend_from_slice(&rest[..count]);
            count
        };
        rest = &rest[count..];
        if choose(4) == 0 || rest.is_empty() {
            break;
        }
    }
    rest
}

/// Returns deterministic choices (xorshift64*).
fn chooser(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |bound| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound.max(1)
    }
}

fn encode(command: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[track_caller]
fn parses_to(input: &[u8], limits: &Limits, commands: &[&[&[u8]]], error: Option<ProtocolError>) {
    let expected = Reading {
        commands: commands.iter().map(|command| command.iter().map(|word| word.to_vec()).collect()).collect(),
        error,
    };
    assert_eq!(reference::read(input, limits), expected, "the reference itself");
    assert_eq!(feed(input, limits, |bound| bound - 1), expected, "in one piece");
    assert_eq!(feed(input, limits, |_| 0), expected, "byte by byte");
}

#[track_caller]
fn fails(input: &[u8], error: ProtocolError) {
    parses_to(input, &Limits::default(), &[], Some(error));
}

fn arb_request() -> impl Strategy<Value = Vec<u8>> {
    let argument = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..12),
        1 => prop::collection::vec(any::<u8>(), 15..120),
        1 => Just(b"\r\n$3\r\n".to_vec()),
    ];
    let command = prop::collection::vec(argument, 1..12).prop_map(|command| encode(&command));
    let inline = prop::collection::vec("[a-z\"' \\\\x0-9]{1,8}", 1..4)
        .prop_flat_map(|words| (Just(words), any::<bool>()))
        .prop_map(|(words, crlf)| (words.join(" ") + if crlf { "\r\n" } else { "\n" }).into_bytes());
    let plain = "[a-z]{1,5}( [a-z]{1,5}){0,3}\r?\n".prop_map(String::into_bytes);
    let quoted = Just(b"SET \"a\\x00b\" 'it\\'s'\r\n".to_vec());
    let empty = prop::sample::select(vec!["*0\r\n", "*-1\r\n", "\r\n", "\n", "  \n"]);
    prop_oneof![
        12 => command,
        3 => plain,
        1 => quoted,
        1 => inline,
        2 => empty.prop_map(|text| text.as_bytes().to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), ..ProptestConfig::default() })]

    #[test]
    fn any_split_parses_to_the_same_commands(
        requests in prop::collection::vec(arb_request(), 0..20),
        cut in 0usize..40,
        seed: u64,
        authenticated in prop::bool::weighted(0.8),
    ) {
        let mut input = requests.concat();
        input.truncate(input.len().saturating_sub(cut.saturating_sub(20)));
        let limits = Limits { authenticated, ..small_limits() };
        let expected = reference::read(&input, &limits);
        prop_assert_eq!(&feed(&input, &limits, chooser(seed)), &expected);
        prop_assert_eq!(&feed(&input, &limits, |bound| bound - 1), &expected);
        prop_assert_eq!(&feed(&input, &limits, |_| 0), &expected);
    }

    #[test]
    fn random_bytes_are_parsed_as_by_the_reference(
        input in prop::collection::vec(
            prop_oneof![prop::sample::select(b"*$\r\n0123456789-\"' ".to_vec()), any::<u8>()],
            0..200,
        ),
        seed: u64,
    ) {
        let limits = small_limits();
        prop_assert_eq!(feed(&input, &limits, chooser(seed)), reference::read(&input, &limits));
    }
}

/// Tests 200,000 mutated inputs, the same in every run.
#[test]
fn mutated_requests_are_parsed_as_by_the_reference() {
    let seeds: Vec<Vec<u8>> = vec![
        b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n".to_vec(),
        b"PING\r\nSET \"a b\" 'c\\'d'\nGET x\r\n\r\n*1\r\n$4\r\nQUIT\r\n".to_vec(),
        encode(&[b"SET".to_vec(), b"k".to_vec(), vec![b'v'; 45], b"EX".to_vec(), vec![b'9'; 21]]),
        b"*0\r\n*-1\r\n*10\r\n$0\r\n\r\n$1\r\na\r\n$12\r\nabcdefghijkl\r\n$299\r\n".to_vec(),
    ];
    let tokens: [&[u8]; 16] = [
        b"\r\n",
        b"\r",
        b"\n",
        b"*",
        b"$",
        b"*3\r\n",
        b"$3\r\n",
        b"$0\r\n",
        b"-1",
        b"0",
        b"\"",
        b"'",
        b"\\x41",
        b"2147483648",
        b"99999999999999999999",
        b"\0",
    ];
    let mut choose = chooser(0x5eed);
    for round in 0..200_000 {
        let mut input = seeds[choose(seeds.len())].clone();
        for _ in 0..1 + choose(4) {
            let at = choose(input.len() + 1);
            match choose(5) {
                0 => input.truncate(at),
                1 if at < input.len() => input[at] = choose(256) as u8,
                2 if at < input.len() => drop(input.remove(at)),
                3 => drop(input.splice(at..at, seeds[choose(seeds.len())].iter().copied())),
                _ => drop(input.splice(at..at, tokens[choose(tokens.len())].iter().copied())),
            }
        }
        let limits = Limits { authenticated: choose(8) != 0, ..small_limits() };
        let expected = reference::read(&input, &limits);
        let fed = feed(&input, &limits, &mut choose);
        assert_eq!(fed, expected, "round {round}: {}", input.escape_ascii());
    }
}

#[test]
fn a_pipeline_is_parsed_completely() {
    parses_to(
        b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\nhello world!\r\nGET \"k\"\r\n*0\r\n\r\n*-1\r\n*2\r\n$3\r\nGE",
        &Limits::default(),
        &[&[b"PING"], &[b"SET", b"k", b"hello world!"], &[b"GET", b"k"]],
        None,
    );
}

#[test]
fn line_ends_that_redis_ignores_are_ignored() {
    let expected: &[&[&[u8]]] = &[&[b"PING"], &[b"PING"]];
    parses_to(b"*1\r\n$4\r\nPINGXX*1\rX$4\rXPING\r\n", &Limits::default(), expected, None);
}

#[test]
fn lengths_must_be_canonical_numbers_within_their_limits() {
    for line in [
        "*x",
        "*",
        "*1 ",
        "*01",
        "*+1",
        "*-0",
        "*2147483648",
        "*99999999999999999999",
        "*1\n$4",
        "*-99999999999999999999",
    ] {
        fails(format!("{line}\r\n").as_bytes(), ProtocolError::InvalidMultibulkLength);
    }
    for line in ["$-1", "$", "$a", "$04", "$-0", "$536870913", "$9223372036854775807", "$1\n"] {
        fails(format!("*1\r\n{line}\r\n").as_bytes(), ProtocolError::InvalidBulkLength);
    }
    for input in ["*2147483647\r\n", "*-5\r\n", "*1\r\n$536870912\r\n"] {
        parses_to(input.as_bytes(), &Limits::default(), &[], None);
    }
}

#[test]
fn an_argument_must_begin_with_a_dollar() {
    fails(b"*1\r\nx4\r\n", ProtocolError::ExpectedDollar(b'x'));
    fails(b"*1\r\n*1\r\n", ProtocolError::ExpectedDollar(b'*'));
    fails(b"*1\r\n\r\n", ProtocolError::ExpectedDollar(b'\r'));
    fails(b"*1\r\n\xff\r\n", ProtocolError::ExpectedDollar(0xff));
}

#[test]
fn lines_have_a_maximum_length() {
    let one_piece = |input: &[u8]| feed(input, &Limits::default(), |bound| bound - 1).error;
    let ones = |head: &str, count: usize| [head.as_bytes(), &vec![b'1'; count]].concat();
    assert_eq!(one_piece(&ones("*", 65535)), None);
    assert_eq!(one_piece(&ones("*", 65536)), Some(ProtocolError::TooBigMultibulkCount));
    assert_eq!(one_piece(&ones("*1\r\n$", 65535)), None);
    assert_eq!(one_piece(&ones("*1\r\n$", 65536)), Some(ProtocolError::TooBigBulkCount));
    assert_eq!(one_piece(&ones("a", 65535)), None);
    assert_eq!(one_piece(&ones("a", 65536)), Some(ProtocolError::TooBigInline));
    let longest = [&ones("a", 65535)[..], b"\n"].concat();
    assert_eq!(feed(&longest, &Limits::default(), chooser(3)).commands, [[&longest[..65536]]]);
}

#[test]
fn unauthenticated_requests_are_short_and_parsed_one_at_a_time() {
    let limits = Limits::unauthenticated();
    parses_to(b"*11\r\n", &limits, &[], Some(ProtocolError::UnauthenticatedMultibulkLength));
    parses_to(b"*1\r\n$16385\r\n", &limits, &[], Some(ProtocolError::UnauthenticatedBulkLength));
    parses_to(b"*2147483648\r\n", &limits, &[], Some(ProtocolError::InvalidMultibulkLength));
    parses_to(b"*1\r\n$536870913\r\n", &limits, &[], Some(ProtocolError::InvalidBulkLength));
    parses_to(b"*10\r\n$16384\r\n", &limits, &[], None);

    let input = b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n*11\r\n";
    let mut parser = Parser::new();
    let mut batch = Batch::new();
    assert_eq!(parser.parse(input, &mut batch, &limits), ParseStatus::Full);
    assert_eq!(batch.len(), 1);
    batch.clear();
    assert_eq!(parser.parse(input, &mut batch, &Limits::default()), ParseStatus::NeedMore);
}

#[test]
fn commands_before_an_error_are_in_the_batch() {
    parses_to(
        b"*1\r\n$4\r\nPING\r\nPING\n*x\r\n*1\r\n$4\r\nPING\r\n",
        &Limits::default(),
        &[&[b"PING"], &[b"PING"]],
        Some(ProtocolError::InvalidMultibulkLength),
    );
    parses_to(b"PING\nECHO \"a\n", &Limits::default(), &[&[b"PING"]], Some(ProtocolError::UnbalancedQuotes));
}

#[test]
fn a_batch_is_full_at_its_capacity() {
    let input = b"*1\r\n$4\r\nPING\r\n".repeat(BATCH_COMMANDS_MAX + 1);
    let mut parser = Parser::new();
    let mut batch = Batch::new();
    assert_eq!(parser.parse(&input, &mut batch, &Limits::default()), ParseStatus::Full);
    assert_eq!(batch.len(), BATCH_COMMANDS_MAX);
    assert_eq!(parser.parse(&input, &mut batch, &Limits::default()), ParseStatus::Full);
    batch.clear();
    assert_eq!(parser.parse(&input, &mut batch, &Limits::default()), ParseStatus::NeedMore);
    assert_eq!((batch.len(), parser.consumed()), (1, input.len()));
}

#[test]
fn announced_sizes_allocate_almost_nothing() {
    let limits = Limits { bulk_len_max: i64::MAX as u64, ..Limits::default() };
    let mut batch = Batch::new();
    for input in ["*2147483647\r\n$3\r\nGET\r\n", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9223372036854775807\r\nab"]
    {
        let mut parser = Parser::new();
        let _ = parser.parse(input.as_bytes(), &mut batch, &limits);
        assert!(parser.retained_bytes() < 1024);
        if let Some(mut target) = parser.large_mut() {
            assert_eq!(target.missing(), i64::MAX as usize - 2);
            assert!(target.buffer().capacity() <= 1 << 20);
        }
    }
}

#[test]
fn a_large_argument_is_received_into_a_separate_buffer() {
    let len = 5_000_000;
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${len}\r\n");
    let mut input = head.clone().into_bytes();
    input.extend_from_slice(b"abc");
    let mut parser = Parser::new();
    let mut batch = Batch::new();
    let limits = Limits::default();
    assert_eq!(parser.parse(&input, &mut batch, &limits), ParseStatus::NeedLarge);
    input.truncate(input.len() - parser.release_tail());
    assert_eq!(input, head.as_bytes());

    let mut received = 3;
    let mut growths = 0;
    while let Some(mut target) = parser.large_mut() {
        assert_eq!(target.missing(), len - received);
        let buffer = target.buffer();
        let spare = buffer.capacity() - buffer.len();
        assert!(spare <= len - received);
        buffer.resize(buffer.capacity(), b'x');
        received += spare;
        growths += 1;
    }
    assert_eq!(received, len);
    // The buffer doubles from 64 KiB.
    assert!(growths <= 8, "{growths}");
    assert!(parser.retained_bytes() >= len);
    assert_eq!(parser.parse(&input, &mut batch, &limits), ParseStatus::NeedMore);
    input.extend_from_slice(b"\r");
    assert_eq!(parser.parse(&input, &mut batch, &limits), ParseStatus::NeedMore);
    assert!(parser.retained_bytes() >= len);
    input.extend_from_slice(b"\n*1\r\n$4\r\nPING\r\n");
    assert_eq!(parser.parse(&input, &mut batch, &limits), ParseStatus::NeedMore);
    assert_eq!(batch.len(), 2);
    let args = batch.command(0, &input);
    assert_eq!((args.at(1), args.at(2).len(), &args.at(2)[..4]), (&b"k"[..], len, &b"abcx"[..]));
    assert!(args.shared(1).is_none());
    assert_eq!(args.shared(2).map(|value| value.capacity()), Some(len));
    assert_eq!(batch.command(1, &input).at(0), b"PING");
    assert!(parser.retained_bytes() < 1024);
}

#[test]
fn a_completely_received_large_argument_needs_no_second_call() {
    let command = [b"SET".to_vec(), b"k".to_vec(), vec![b'v'; LARGE_ARGUMENT_MIN as usize]];
    let input = encode(&command).repeat(3);
    let mut parser = Parser::new();
    let mut batch = Batch::new();
    assert_eq!(parser.parse(&input, &mut batch, &Limits::default()), ParseStatus::NeedMore);
    assert_eq!((batch.len(), parser.consumed()), (3, input.len()));
    for index in 0..3 {
        let args = batch.command(index, &input);
        assert_eq!(args.iter().collect::<Vec<_>>(), command);
        assert!(args.shared(2).is_some());
    }
}

#[test]
#[should_panic(expected = "still needed")]
fn bytes_of_the_incomplete_command_cannot_be_discarded() {
    let mut parser = Parser::new();
    let _ = parser.parse(b"*1\r\n$4\r\n", &mut Batch::new(), &Limits::default());
    parser.discard(1);
}
