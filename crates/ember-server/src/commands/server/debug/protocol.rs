//! DEBUG PROTOCOL: returns one value of each protocol type.

use ember_protocol::Reply;

use crate::clients::push::Push;
use crate::clients::subscriptions::Address;
use crate::executor::session::{Outcome, Session, SessionResult};

#[expect(clippy::approx_constant, reason = "what Redis answers")]
pub(super) fn protocol(session: &mut Session<'_>) -> SessionResult {
    let reply = &mut *session.reply;
    match session.args.at(2).to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12_345),
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            if !reply.is_resp3() {
                return Err("ERR RESP2 is not supported by this command".into());
            }
            reply.bulk(b"Some real reply following the push reply");
            let mut push = Reply::new(reply.protocol());
            push.push(2);
            push.bulk(b"server-cpu-usage");
            push.integer(42);
            let receiver = Address::of(&session.client.view);
            session.server.push(Push::Encoded(push.to_vec()), vec![(receiver, None)]);
        }
        b"verbatim" => reply.verbatim(b"txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err("ERR Wrong protocol type name. Please use one of the following: \
                        string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
                .into());
        }
    }
    Ok(Outcome::Done)
}
