//! Measures the latency of PING as a coloured spectrum: a column for each range of times (`--latency-dist`).

use std::time::{Duration, Instant};

use super::failure::Failure;
use super::latency::ping;
use crate::pause::pause;
use ember_client::Connection;
use ember_client::put;

/// The pause between two PINGs.
const PAUSE: Duration = Duration::from_millis(1);
/// The default interval between two lines of output.
const PERIOD: Duration = Duration::from_secs(1);
/// Lines between two legends.
const LINES: u64 = 20;

/// The columns: the maximum latency in µs, and the character. The last column has no upper limit.
const COLUMNS: [(u64, char); 31] = [
    (10, '.'),
    (125, '-'),
    (250, '*'),
    (500, '#'),
    (1_000, '1'),
    (2_000, '2'),
    (3_000, '3'),
    (4_000, '4'),
    (5_000, '5'),
    (6_000, '6'),
    (7_000, '7'),
    (8_000, '8'),
    (9_000, '9'),
    (10_000, 'A'),
    (20_000, 'B'),
    (30_000, 'C'),
    (40_000, 'D'),
    (50_000, 'E'),
    (100_000, 'F'),
    (200_000, 'G'),
    (300_000, 'H'),
    (400_000, 'I'),
    (500_000, 'J'),
    (1_000_000, 'K'),
    (2_000_000, 'L'),
    (4_000_000, 'M'),
    (8_000_000, 'N'),
    (16_000_000, 'O'),
    (30_000_000, 'P'),
    (60_000_000, 'Q'),
    (u64::MAX, '?'),
];

/// Colours of a 256-colour terminal for shares from zero to one.
const COLOURS: [u8; 19] =
    [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196];

/// Prints lines until the connection ends.
pub(super) fn run(connection: &mut Connection, interval: Duration) -> Result<(), Failure> {
    let period = if interval.is_zero() { PERIOD } else { interval };
    for number in 0u64.. {
        let mut counts = [0u64; COLUMNS.len()];
        let begin = Instant::now();
        while begin.elapsed() < period {
            counts[column(ping(connection)?)] += 1;
            pause(PAUSE);
        }
        if number.is_multiple_of(LINES) {
            put(legend().as_bytes());
        }
        put(line(&counts).as_bytes());
    }
    Ok(())
}

fn column(time: Duration) -> usize {
    let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    COLUMNS.iter().position(|(most_us, _)| time_us <= *most_us).unwrap_or(COLUMNS.len() - 1)
}

fn line(counts: &[u64]) -> String {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let mut text = "\x1b[38;5;0m".to_owned();
    for (count, (_, sign)) in counts.iter().zip(COLUMNS) {
        let share = *count as f64 / total * (COLOURS.len() - 1) as f64;
        text += &format!("\x1b[48;5;{}m{sign}", COLOURS[share.ceil() as usize]);
    }
    text + "\x1b[0m\n"
}

fn legend() -> String {
    let rule = "-".repeat(45);
    let colours: String = COLOURS.iter().map(|colour| format!("\x1b[48;5;{colour}m ")).collect();
    format!(
        "{rule}\n\
         . - * #          .01 .125 .25 .5 milliseconds\n\
         1,2,3,...,9      from 1 to 9     milliseconds\n\
         A,B,C,D,E        10,20,30,40,50  milliseconds\n\
         F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n\
         K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n\
         From 0 to 100%: {colours}\x1b[0m\n{rule}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_has_its_column_and_each_share_its_colour() {
        assert_eq!(COLUMNS[column(Duration::from_micros(10))].1, '.');
        assert_eq!(COLUMNS[column(Duration::from_micros(11))].1, '-');
        assert_eq!(COLUMNS[column(Duration::from_secs(3))].1, 'M');
        assert_eq!(COLUMNS[column(Duration::from_secs(100))].1, '?');
        let mut counts = [0; COLUMNS.len()];
        (counts[1], counts[2]) = (2, 18);
        let text = line(&counts);
        assert!(text.starts_with("\x1b[38;5;0m\x1b[48;5;0m.\x1b[48;5;234m-\x1b[48;5;202m*\x1b[48;5;0m#"));
        assert!(text.ends_with("\x1b[48;5;0m?\x1b[0m\n"));
    }
}
