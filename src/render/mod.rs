//! Everything that is printed goes through here: where it goes, how it looks, and the words.

pub mod completion;
pub mod document;
pub mod findings;
pub mod io;
pub mod manifests;
pub mod matrix;
pub mod plan;
pub mod report;
pub mod status;
mod table;
pub mod timeline;
pub mod version;
pub mod view;
pub mod words;

pub use io::{Io, Terminal, Voice};
pub use view::{GroupView, ZoneView};
