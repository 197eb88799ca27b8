//! Signals. The first asks the run to stop after the request that is under way; the second stops it
//! at once. Neither aborts nor promotes anything.

use tokio::signal::unix::{Signal, SignalKind, signal};
use zone_rollout_core::promote::StopLevel;

use crate::error::Error;

/// The signals that stop a run.
pub struct Signals {
    streams: Vec<(u8, Signal)>,
    seen: Option<u8>,
    /// True if the first signal came while the second was awaited, and nobody was told.
    untold: bool,
}

impl Signals {
    /// Starts listening.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn listen() -> Result<Self, Error> {
        let kinds = [
            (2, SignalKind::interrupt()),
            (15, SignalKind::terminate()),
            (1, SignalKind::hangup()),
        ];
        let listen = |(number, kind)| signal(kind).map(|stream| (number, stream));
        let streams = kinds.into_iter().map(listen).collect::<Result<_, _>>().map_err(|error| {
            Error::unexpected("cannot listen for signals").because(error.to_string())
        })?;
        Ok(Self { streams, seen: None, untold: false })
    }

    /// Number of the signal that came first, if one has come.
    pub fn seen(&self) -> Option<u8> {
        self.seen
    }

    /// Waits for the next signal that nobody was told of.
    pub async fn next(&mut self) -> StopLevel {
        if std::mem::take(&mut self.untold) {
            StopLevel::AfterRequest
        } else {
            self.another().await
        }
    }

    /// Waits until a second signal has come. A first one that comes meanwhile is kept for [`Self::next`].
    pub async fn second(&mut self) {
        while self.another().await != StopLevel::Now {
            self.untold = true;
        }
    }

    async fn another(&mut self) -> StopLevel {
        let number = self.any().await;
        match self.seen {
            None => {
                self.seen = Some(number);
                StopLevel::AfterRequest
            }
            Some(_) => StopLevel::Now,
        }
    }

    async fn any(&mut self) -> u8 {
        let waits = self.streams.iter_mut().map(|(number, stream)| {
            let number = *number;
            Box::pin(async move {
                stream.recv().await;
                number
            })
        });
        futures::future::select_all(waits).await.0
    }
}
