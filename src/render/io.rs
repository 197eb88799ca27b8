//! Standard output and standard error, and what kind of terminal they are. Results go to standard
//! output, everything said on the way to standard error.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// What the surroundings can show, decided once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Whether a person can be asked: standard input and standard error are a terminal.
    pub can_ask: bool,
    /// Whether standard error shows lines that change.
    pub live: bool,
    /// Whether standard output is a terminal.
    pub output_is_terminal: bool,
    /// Whether standard output is coloured.
    pub color: bool,
    /// Whether characters beyond ASCII are shown.
    pub unicode: bool,
    /// Columns of standard output, if it is a terminal.
    pub width: Option<u16>,
}

/// What the surroundings say about themselves.
#[derive(Debug, Clone, Default)]
struct Surroundings {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    no_color: bool,
    force_color: bool,
    dumb: bool,
    ci: bool,
    locale: String,
    width: Option<u16>,
}

impl Surroundings {
    fn read() -> Self {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let first = |names: &[&str]| {
            names.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()))
        };
        Self {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
            no_color: set("NO_COLOR"),
            force_color: env::var("CLICOLOR_FORCE")
                .is_ok_and(|value| !value.is_empty() && value != "0"),
            dumb: env::var("TERM").is_ok_and(|term| term == "dumb"),
            ci: set("CI"),
            locale: first(&["LC_ALL", "LC_CTYPE", "LANG"]).unwrap_or_default(),
            width: console_width(),
        }
    }

    /// | what | when |
    /// |---|---|
    /// | ask a person | standard input and error are terminals |
    /// | lines that change | standard error is a terminal, not `TERM=dumb`, not in CI |
    /// | colour | `CLICOLOR_FORCE`, else standard output is a terminal and not `TERM=dumb`; never with `NO_COLOR` |
    /// | beyond ASCII | the locale is UTF-8 |
    fn resolve(&self) -> Terminal {
        let locale = self.locale.to_ascii_lowercase();
        Terminal {
            can_ask: self.stdin && self.stderr,
            live: self.stderr && !self.dumb && !self.ci,
            output_is_terminal: self.stdout,
            color: !self.no_color && (self.force_color || (self.stdout && !self.dumb)),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            width: self.width.filter(|_| self.stdout),
        }
    }
}

fn console_width() -> Option<u16> {
    // comfy-table asks the terminal itself; a table without a terminal has no width.
    comfy_table::Table::new().width()
}

/// Standard error, shared by all that have something to say on the way.
#[derive(Clone)]
pub struct Voice {
    err: Arc<Mutex<Box<dyn Write + Send>>>,
}

impl Voice {
    /// Prints something said on the way. There is nowhere to report that this failed.
    pub fn note(&self, text: &str) {
        self.print(&format!("{text}\n"));
    }

    fn print(&self, text: &str) {
        let mut err = self.err.lock().unwrap_or_else(PoisonError::into_inner);
        let _unreported = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}

/// The two outputs of the program.
pub struct Io {
    out: Box<dyn Write + Send>,
    voice: Voice,
    terminal: Terminal,
    out_closed: bool,
}

impl Io {
    /// The process's own.
    pub fn system() -> Self {
        Self::new(Box::new(io::stdout()), Box::new(io::stderr()), Surroundings::read().resolve())
    }

    /// Others, for tests.
    pub fn new(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>, terminal: Terminal) -> Self {
        Self { out, voice: Voice { err: Arc::new(Mutex::new(err)) }, terminal, out_closed: false }
    }

    /// What the surroundings can show.
    pub fn terminal(&self) -> Terminal {
        self.terminal
    }

    /// Lines that change are replaced by plain ones, for output that others write between them.
    pub fn keep_lines(&mut self) {
        self.terminal.live = false;
    }

    /// Standard error, for those who cannot have the whole.
    pub fn voice(&self) -> Voice {
        self.voice.clone()
    }

    /// Prints a result. A reader that has gone away is remembered, not an error.
    pub fn result(&mut self, text: &str) {
        if self.out_closed {
            return;
        }
        let written = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| if text.ends_with('\n') { Ok(()) } else { self.out.write_all(b"\n") })
            .and_then(|()| self.out.flush());
        self.out_closed |= written.is_err();
    }

    /// Prints something said on the way.
    pub fn note(&mut self, text: &str) {
        self.voice.note(text);
    }

    /// Asks without a line break, before an answer is read.
    pub fn prompt(&mut self, text: &str) {
        self.voice.print(text);
    }

    /// True once nobody reads standard output any more.
    pub fn is_closed(&self) -> bool {
        self.out_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(change: impl FnOnce(&mut Surroundings)) -> Terminal {
        let mut surroundings = Surroundings {
            stdin: true,
            stdout: true,
            stderr: true,
            locale: "en_US.UTF-8".to_owned(),
            width: Some(100),
            ..Surroundings::default()
        };
        change(&mut surroundings);
        surroundings.resolve()
    }

    #[test]
    fn a_terminal_shows_everything() {
        let terminal = resolved(|_| {});
        assert!(terminal.can_ask && terminal.live && terminal.color && terminal.unicode);
        assert_eq!(terminal.width, Some(100));
    }

    #[test]
    fn each_limit_is_respected() {
        assert!(!resolved(|s| s.stdin = false).can_ask);
        assert!(!resolved(|s| s.stderr = false).can_ask);
        assert!(!resolved(|s| s.stderr = false).live);
        assert!(!resolved(|s| s.ci = true).live);
        assert!(!resolved(|s| s.dumb = true).live);
        assert!(!resolved(|s| s.dumb = true).color);
        assert!(!resolved(|s| s.no_color = true).color);
        assert!(!resolved(|s| s.stdout = false).color);
        assert_eq!(resolved(|s| s.stdout = false).width, None);
        assert!(!resolved(|s| s.locale = "C".to_owned()).unicode);
        let forced = resolved(|s| (s.stdout, s.force_color) = (false, true));
        assert!(forced.color);
        let both = resolved(|s| (s.force_color, s.no_color) = (true, true));
        assert!(!both.color, "NO_COLOR wins");
    }

    #[test]
    fn a_closed_output_is_remembered() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut io = Io::new(Box::new(Closed), Box::new(io::sink()), Terminal::default());
        io.result("text");
        assert!(io.is_closed());
    }
}
