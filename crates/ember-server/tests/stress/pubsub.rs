//! Messages: every subscriber receives each message, in the order in which its publisher sent them.

use std::collections::BTreeMap;

use ember_testkit::{Random, RawClient, Server, Value};

use crate::batch::{Batch, ask, words};
use crate::book::{Book, items};
use crate::connect;

/// The number of channels; the last is a shard channel.
pub(crate) const CHANNEL_COUNT: usize = 3;

const SHARD_CHANNEL: usize = CHANNEL_COUNT - 1;

/// The text of a channel's last message.
const END: &str = "end";

/// The kinds of subscribers: the subscribing command, whether RESP3 is used, and the number of channels.
const SUBSCRIPTIONS: [(&str, &[&str], bool, usize); 4] = [
    ("SUBSCRIBE", &["channel:0", "channel:1"], false, 2),
    ("SUBSCRIBE", &["channel:0", "channel:1"], true, 2),
    ("PSUBSCRIBE", &["channel:*"], true, 2),
    ("SSUBSCRIBE", &["channel:2"], false, 1),
];

/// The number of received messages of each channel and publisher.
pub(crate) type Received = BTreeMap<(usize, usize), u64>;

/// Adds a message.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let channel = random.below(CHANNEL_COUNT);
    book.published[channel] += 1;
    let text = format!("{} {} {}", book.me, book.published[channel], "x".repeat(random.below(40)));
    batch.call(words![command(channel), format!("channel:{channel}"), text], move |_, reply| {
        assert_eq!(*reply, Value::Integer(receivers(channel)), "all subscribers are counted");
    });
}

fn command(channel: usize) -> &'static str {
    if channel == SHARD_CHANNEL { "SPUBLISH" } else { "PUBLISH" }
}

fn receivers(channel: usize) -> i64 {
    if channel == SHARD_CHANNEL { 1 } else { SUBSCRIPTIONS.len() as i64 - 1 }
}

/// Opens subscribed connections, each with the number of its channels.
pub(crate) fn subscribers(server: &Server) -> Vec<(RawClient, usize)> {
    let subscriber = |(name, channels, is_resp3, count): (&str, &[&str], bool, usize)| {
        let mut client = connect(server, is_resp3);
        let mut call = words![name];
        call.extend(channels.iter().map(|channel| channel.as_bytes().to_vec()));
        client.send_command(&call).unwrap();
        channels.iter().for_each(|_| drop(client.read_value().unwrap()));
        (client, count)
    };
    SUBSCRIPTIONS.into_iter().map(subscriber).collect()
}

/// Receives messages until the last message of each channel.
pub(crate) fn receive(mut client: RawClient, channel_count: usize) -> Received {
    let mut received = Received::new();
    let mut ended = 0;
    while ended < channel_count {
        let message = client.read_value().unwrap();
        let [.., channel, text] = items(&message) else { panic!("no message: {message:?}") };
        let text = text.text();
        if text == END {
            ended += 1;
            continue;
        }
        let channel = channel.text().strip_prefix("channel:").and_then(|text| text.parse().ok());
        let mut numbers = text.split(' ').map_while(|word| word.parse().ok());
        let (Some(channel), Some(publisher), Some(number)) = (channel, numbers.next(), numbers.next()) else {
            panic!("not a message of these tests: {message:?}");
        };
        let latest = received.entry((channel, publisher as usize)).or_default();
        assert_eq!(number, *latest + 1, "the next message of publisher {publisher} in channel {channel}");
        *latest = number;
    }
    received
}

/// Publishes the last message of each channel.
pub(crate) fn end(client: &mut RawClient) {
    for channel in 0..CHANNEL_COUNT {
        ask(client, &words![command(channel), format!("channel:{channel}"), END]);
    }
}

/// Compares the records with the received messages.
pub(crate) fn check(books: &[Book], received: &[Received]) {
    for (received, (name, _, _, channel_count)) in received.iter().zip(SUBSCRIPTIONS) {
        let channels = if channel_count == 1 { SHARD_CHANNEL..CHANNEL_COUNT } else { 0..SHARD_CHANNEL };
        for book in books {
            for channel in channels.clone() {
                let count = received.get(&(channel, book.me)).copied().unwrap_or(0);
                assert_eq!(count, book.published[channel], "{name}: messages of {} in {channel}", book.me);
            }
        }
    }
}
