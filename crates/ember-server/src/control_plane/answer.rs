//! HTTP responses with a complete body or a streamed body.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

const PLAIN: &str = "text/plain; charset=utf-8";

/// A streamed body. A piece is requested only when the client can receive it.
pub(super) trait Pieces: Send {
    /// Returns the next piece; `None` at the end of the body.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

/// The body of a response.
pub(super) enum AnswerBody {
    Whole(Full<Bytes>),
    Stream(Box<dyn Pieces>),
}

impl AnswerBody {
    /// Whether the body is a stream, which continues until the client or the server ends it.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, AnswerBody::Stream(_))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            AnswerBody::Whole(text) => Pin::new(text).poll_frame(context),
            AnswerBody::Stream(pieces) => {
                pieces.poll_next(context).map(|next| next.map(|text| Ok(Frame::data(text))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            AnswerBody::Whole(text) => text.is_end_stream(),
            AnswerBody::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole(text) => text.size_hint(),
            AnswerBody::Stream(_) => SizeHint::default(),
        }
    }
}

/// Returns the response to a request with another method than `allowed`.
pub(super) fn not_allowed(allowed: &'static str) -> Response<Full<Bytes>> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Returns a plain-text response.
pub(super) fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    of_type(status, PLAIN, text)
}

/// Returns a response with this media type.
pub(super) fn of_type(
    status: StatusCode,
    content_type: &'static str,
    text: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Wraps a response with a complete body, for functions that may also return a stream.
pub(super) fn whole(response: Response<Full<Bytes>>) -> Response<AnswerBody> {
    response.map(AnswerBody::Whole)
}
