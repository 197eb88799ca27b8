//! Questions to a person. The answer is read on a plain thread: an asynchronous read of standard
//! input would keep the program from ending.

use std::io::{BufRead, Write};

use tokio::sync::oneshot;

use crate::render::Io;

/// Asks and waits for the answer; everything but yes is no.
pub async fn confirm(io: &mut Io, question: &str) -> bool {
    io.prompt(question);
    let (sender, answer) = oneshot::channel();
    std::thread::spawn(move || {
        let _unread = sender.send(read_answer());
    });
    answer.await.unwrap_or(false)
}

/// Asks and hands the answer over when it comes.
pub(super) fn ask(question: String, answered: impl FnOnce(bool) + Send + 'static) {
    std::thread::spawn(move || {
        let mut err = std::io::stderr();
        let _unreported = write!(err, "{question}").and_then(|()| err.flush());
        answered(read_answer());
    });
}

fn read_answer() -> bool {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
