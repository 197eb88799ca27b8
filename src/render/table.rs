//! Plain tables in kubectl's look.

use comfy_table::{Cell, Color, ContentArrangement, Table, presets};

use super::io::Terminal;

/// How a cell is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Busy,
    Bad,
}

/// A table of these rows; the words carry the meaning, colour repeats it.
pub(super) fn table(header: &[&str], rows: Vec<Vec<(String, Tone)>>, terminal: Terminal) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().map(Cell::new));
    if terminal.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    if let Some(width) = terminal.width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    for row in rows {
        table.add_row(row.into_iter().map(cell));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn cell((text, tone): (String, Tone)) -> Cell {
    let cell = Cell::new(text);
    match tone {
        Tone::Plain => cell,
        Tone::Good => cell.fg(Color::Green),
        Tone::Busy => cell.fg(Color::Yellow),
        Tone::Bad => cell.fg(Color::Red),
    }
}
