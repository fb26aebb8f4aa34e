//! Arbitrary bytes, fed in pieces of arbitrary sizes, result in the same commands as parsing the whole input with the
//! reference parser. The first 8 bytes select the limits and the sizes of the pieces.
#![no_main]

use ember_protocol::{BATCH_COMMANDS_MAX, Batch, Limits, ParseStatus, Parser};
use libfuzzer_sys::fuzz_target;

#[path = "../../tests/reference/mod.rs"]
mod reference;

use reference::Reading;

fuzz_target!(|data: &[u8]| {
    let Some((seed, input)) = data.split_first_chunk::<8>() else { return };
    let seed = u64::from_le_bytes(*seed);
    let limits = Limits {
        bulk_len_max: 300,
        multibulk_count_max: 50,
        inline_len_max: 64,
        large_argument_min: 20,
        batch_commands_max: BATCH_COMMANDS_MAX,
        authenticated: seed & 1 == 0,
    };
    assert_eq!(feed(input, &limits, seed), reference::read(input, &limits));
});

fn feed(input: &[u8], limits: &Limits, seed: u64) -> Reading {
    let mut choices = seed | 1;
    let mut choose = |bound: usize| {
        choices = choices.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (choices >> 33) as usize % bound.max(1)
    };
    let (mut parser, mut batch) = (Parser::new(), Batch::new());
    let mut buffer = Vec::new();
    let mut rest = input;
    let mut reading = Reading::default();
    loop {
        let status = parser.parse(&buffer, &mut batch, limits);
        for index in 0..batch.len() {
            reading.commands.push(batch.command(index, &buffer).iter().map(<[u8]>::to_vec).collect());
        }
        batch.clear();
        match status {
            ParseStatus::Full => continue,
            ParseStatus::Err(error) => {
                reading.error = Some(error);
                return reading;
            }
            ParseStatus::NeedMore => {}
            ParseStatus::NeedLarge => {
                if choose(2) == 0 {
                    buffer.truncate(buffer.len() - parser.release_tail());
                }
                if let Some(mut target) = parser.large_mut() {
                    let count = target.extend(&rest[..choose(rest.len() + 1)]);
                    rest = &rest[count..];
                }
            }
        }
        if rest.is_empty() && (status == ParseStatus::NeedMore || parser.large_mut().is_some()) {
            return reading;
        }
        let discarded = choose(parser.consumed() + 1);
        buffer.drain(..discarded);
        parser.discard(discarded);
        let (piece, after) = rest.split_at(rest.len().min(1 + choose(rest.len())));
        buffer.extend_from_slice(piece);
        rest = after;
    }
}
