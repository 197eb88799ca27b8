//! Signals. The first asks the run to stop after the request that is under way; the second stops it
//! at once. Neither aborts nor promotes anything.

use std::io;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll, poll_fn, select_all};
use zone_rollout_core::promote::StopLevel;

use crate::error::Error;

/// The signals that stop a run.
pub struct Signals {
    numbers: SelectAll<BoxStream<'static, u8>>,
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
        let streams = streams().map_err(|error| {
            Error::unexpected("cannot listen for signals").because(error.to_string())
        })?;
        Ok(Self { numbers: select_all(streams), seen: None, untold: false })
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
        match self.numbers.next().await {
            Some(number) => number,
            None => std::future::pending().await,
        }
    }
}

/// The number of each signal, whenever it comes.
#[cfg(unix)]
fn streams() -> io::Result<Vec<BoxStream<'static, u8>>> {
    use tokio::signal::unix::{SignalKind, signal};

    let kinds =
        [(2, SignalKind::interrupt()), (15, SignalKind::terminate()), (1, SignalKind::hangup())];
    let listen = |(number, kind)| {
        let mut signal = signal(kind)?;
        Ok(poll_fn(move |context| signal.poll_recv(context).map(|seen| seen.map(|()| number)))
            .boxed())
    };
    kinds.into_iter().map(listen).collect()
}

/// What a console of Windows has instead, under the numbers of the signals.
#[cfg(windows)]
fn streams() -> io::Result<Vec<BoxStream<'static, u8>>> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};

    let (mut interrupt, mut terminate, mut hangup) = (ctrl_c()?, ctrl_break()?, ctrl_close()?);
    Ok(vec![
        poll_fn(move |context| interrupt.poll_recv(context).map(|seen| seen.map(|()| 2))).boxed(),
        poll_fn(move |context| terminate.poll_recv(context).map(|seen| seen.map(|()| 15))).boxed(),
        poll_fn(move |context| hangup.poll_recv(context).map(|seen| seen.map(|()| 1))).boxed(),
    ])
}
