//! Requests through the public door.

use ember_protocol::{Batch, Limits, ParseStatus, Parser};

#[test]
fn a_pipeline_is_parsed_whole() {
    let input = b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\nhello world!\r\nGET \"k\"\r\n*0\r\n*2\r\n$3\r\nGE";
    let mut parser = Parser::new();
    let mut batch = Batch::new();
    assert_eq!(parser.parse(input, &mut batch, &Limits::default()), ParseStatus::NeedMore);
    assert_eq!(batch.len(), 3);
    assert_eq!(batch.command(1, input).iter().collect::<Vec<_>>(), [&b"SET"[..], b"k", b"hello world!"]);
    assert_eq!(batch.command(2, input).at(1), b"k");
    assert_eq!(parser.consumed(), input.len() - 10);
}
