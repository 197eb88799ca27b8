//! Collects what a program prints while it runs.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const LINGERING: Duration = Duration::from_secs(2);

/// A stream that is read as it is written.
pub(super) struct Lines {
    text: Arc<Mutex<String>>,
    reader: JoinHandle<io::Result<()>>,
}

impl Lines {
    pub(super) fn read(stream: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let text = Arc::default();
        let reader = tokio::spawn(collect(BufReader::new(stream), Arc::clone(&text)));
        Self { text, reader }
    }

    pub(super) fn so_far(&self) -> String {
        self.text.lock().expect("nothing panics while it holds the lock").clone()
    }

    pub(super) fn with(&self, wanted: &str) -> Option<String> {
        self.so_far().lines().find(|line| line.contains(wanted)).map(str::to_owned)
    }

    /// True once nothing can be printed any more.
    pub(super) fn is_over(&self) -> bool {
        self.reader.is_finished()
    }

    /// Everything, once the program has ended.
    pub(super) async fn all(&mut self) -> Result<String> {
        // A child that it left behind may hold the stream open for as long as it likes.
        if let Ok(read) = timeout(LINGERING, &mut self.reader).await {
            read??;
        }
        Ok(self.so_far())
    }
}

async fn collect(
    mut stream: BufReader<impl AsyncRead + Unpin>,
    text: Arc<Mutex<String>>,
) -> io::Result<()> {
    let mut line = Vec::new();
    while stream.read_until(b'\n', &mut line).await? > 0 {
        let read = String::from_utf8_lossy(&line).into_owned();
        text.lock().expect("nothing panics while it holds the lock").push_str(&read);
        line.clear();
    }
    Ok(())
}
