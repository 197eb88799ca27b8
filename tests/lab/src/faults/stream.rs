//! Answers on their way through the proxy, piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as HttpBody, Bytes, Frame};
use kube::client::Body;
use serde_json::json;

use super::{Asked, Broken, Fault, Rules};

/// The body of an answer.
pub(super) struct Streamed(BoxStream<'static, Result<Bytes, Broken>>);

impl Streamed {
    /// A body that nothing happens to.
    pub(super) fn whole(body: Full<Bytes>) -> Self {
        Self(body.into_data_stream().map(|piece| piece.map_err(Broken::from)).boxed())
    }

    /// A body that meets the faults there are for its request.
    pub(super) fn new(body: Body, asked: Asked, rules: Rules) -> Self {
        let pieces = body.into_data_stream().map(|piece| piece.map_err(|_| Broken)).boxed();
        let way = Way { pieces, asked, rules };
        Self(if way.asked.is_watch { way.watched().boxed() } else { way.listed().boxed() })
    }
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.0.poll_next_unpin(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

struct Way {
    pieces: BoxStream<'static, Result<Bytes, Broken>>,
    asked: Asked,
    rules: Rules,
}

impl Way {
    /// The answer to a read: it may be slow, or end in its middle.
    fn listed(self) -> impl Stream<Item = Result<Bytes, Broken>> + Send {
        let fault =
            self.rules.take(&self.asked, |fault| matches!(fault, Fault::Cut | Fault::Slow(_)));
        self.pieces.flat_map(move |piece| {
            let pieces = match (piece, fault) {
                (Ok(piece), Some(Fault::Cut)) => {
                    vec![
                        (Duration::ZERO, Ok(piece.slice(..piece.len() / 2))),
                        (Duration::ZERO, Err(Broken)),
                    ]
                }
                (Ok(piece), Some(Fault::Slow(late))) => {
                    let half = piece.len() / 2;
                    vec![(late, Ok(piece.slice(..half))), (late, Ok(piece.slice(half..)))]
                }
                (piece, _) => vec![(Duration::ZERO, piece)],
            };
            futures::stream::iter(pieces).then(async |(late, piece)| {
                tokio::time::sleep(late).await;
                piece
            })
        })
    }

    /// The answer to a watch: it may end, fall silent, or be too old, at any time.
    fn watched(self) -> impl Stream<Item = Result<Bytes, Broken>> + Send {
        let changed = self.rules.changed.subscribe();
        futures::stream::unfold((self, changed, false), |(mut way, mut changed, over)| async move {
            if over {
                return None;
            }
            loop {
                let fits = |fault| matches!(fault, Fault::EndWatch | Fault::Silence | Fault::Gone);
                match way.rules.take(&way.asked, fits) {
                    Some(Fault::EndWatch) => return None,
                    Some(Fault::Gone) => return Some((Ok(gone()), (way, changed, true))),
                    Some(_) => return std::future::pending().await,
                    None => {}
                }
                tokio::select! {
                    piece = way.pieces.next() => return Some((piece?, (way, changed, false))),
                    Ok(()) = changed.changed() => {}
                }
            }
        })
    }
}

fn gone() -> Bytes {
    let event = json!({"type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old resource version on purpose",
    }});
    format!("{event}\n").into()
}
