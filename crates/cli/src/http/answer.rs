//! Answers: a whole text, or a stream that goes on while there is news.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};

use super::socket::{Pulse, Stage};

/// The next of a stream.
pub enum StreamPiece {
    /// Bytes.
    Bytes(Bytes),
    /// There is nothing new: the stream is asked again later.
    Nothing,
    /// The stream has ended.
    End,
}

/// A stream of news, which is asked for the next whenever the client can take it.
pub trait EventStream: Send {
    /// The next.
    fn next(&mut self) -> StreamPiece;
}

enum Content {
    Whole(Bytes),
    Stream(Box<dyn EventStream>),
}

/// An answer to a request. It is not to be kept by caches, nor to be taken for another type than its own.
pub struct Answer {
    response: Response<()>,
    content: Content,
}

impl Answer {
    /// `content` of a type, such as `text/html; charset=utf-8`.
    pub fn whole(status: StatusCode, content_type: &'static str, content: impl Into<Bytes>) -> Answer {
        Answer::new(status, content_type, Content::Whole(content.into()))
    }

    /// Content that others share.
    pub fn shared(content_type: &'static str, content: Arc<Vec<u8>>) -> Answer {
        Answer::whole(StatusCode::OK, content_type, Bytes::from_owner(SharedBytes(content)))
    }

    /// A line of text that says what `status` says.
    pub fn refusal(status: StatusCode) -> Answer {
        Answer::whole(status, "text/plain; charset=utf-8", format!("{status}\n"))
    }

    /// The news of `stream`, as server-sent events.
    pub fn events(stream: Box<dyn EventStream>) -> Answer {
        Answer::new(StatusCode::OK, "text/event-stream; charset=utf-8", Content::Stream(stream))
    }

    fn new(status: StatusCode, content_type: &'static str, content: Content) -> Answer {
        let mut response = Response::new(());
        *response.status_mut() = status;
        let answer = Answer { response, content };
        answer
            .with(CONTENT_TYPE, HeaderValue::from_static(content_type))
            .with(CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
    }

    /// The same with a header.
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Answer {
        self.response.headers_mut().insert(name, value);
        self
    }

    /// The same with a header, unless it has one of that name.
    pub fn with_default(self, name: HeaderName, value: HeaderValue) -> Answer {
        if self.response.headers().contains_key(&name) { self } else { self.with(name, value) }
    }

    pub(super) fn response(self, pulse: Rc<Pulse>) -> Response<AnswerBody> {
        if matches!(self.content, Content::Stream(_)) {
            pulse.enter(Stage::Streaming);
        }
        let content = self.content;
        self.response.map(|()| AnswerBody { content, pulse })
    }
}

struct SharedBytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What hyper takes an answer from.
pub(super) struct AnswerBody {
    content: Content,
    pulse: Rc<Pulse>,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().content {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Stream(stream) => match stream.next() {
                StreamPiece::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                // The loop asks again after a while.
                StreamPiece::Nothing => Poll::Pending,
                StreamPiece::End => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.pulse.enter(Stage::Reading);
    }
}
