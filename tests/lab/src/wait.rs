//! The one place that waits for something to become true: a name for what is awaited, a deadline,
//! and what was seen last when the deadline passes.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::{Instant, sleep, timeout_at};

/// Short enough to keep tests quick, long enough to leave the machine to what is awaited.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Waits until `look` finds something. An error counts as "not yet": components that restart answer
/// with errors for a while. The last one is told when time is up.
///
/// # Errors
///
/// When nothing was found `within` that time.
pub async fn until<T>(
    what: impl Display,
    within: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + within;
    let mut last = None;
    while Instant::now() < end {
        match timeout_at(end, look()).await {
            Ok(Ok(Some(found))) => return Ok(found),
            Ok(Ok(None)) => last = None,
            Ok(Err(error)) => last = Some(error),
            Err(_) => last = Some(anyhow!("no answer until the deadline")),
        }
        sleep(BETWEEN_LOOKS).await;
    }
    let late = anyhow!("waited {} s in vain for {what}", within.as_secs_f32());
    Err(match last {
        Some(error) => error.context(late),
        None => late,
    })
}
