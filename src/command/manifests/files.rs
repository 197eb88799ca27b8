//! Files in a folder: all of them or none, and never over what is there.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::error::Error;

/// A file to be written.
pub(super) struct File {
    /// Name within its folder.
    pub(super) name: String,
    /// What is in it.
    pub(super) text: String,
    /// Whether it is an object of the layout.
    pub(super) is_object: bool,
}

/// Writes files into a folder, which is made if it is missing.
pub(super) fn write(folder: &Path, files: &[File], force: bool) -> Result<(), Error> {
    let there: Vec<&str> = files
        .iter()
        .filter(|file| fs::symlink_metadata(folder.join(&file.name)).is_ok())
        .map(|file| file.name.as_str())
        .collect();
    if let (Some(first), false) = (there.first(), force) {
        let first = folder.join(first);
        return Err(Error::refused(format!("`{}` is there already", first.display()))
            .hint("to write over the files that are there: --force"));
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for file in files {
        let path = folder.join(&file.name);
        put(&path, &file.text, force).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

fn put(path: &Path, text: &str, force: bool) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    // Somebody may have made it just now.
    let options =
        if force { options.create(true).truncate(true) } else { options.create_new(true) };
    options.open(path)?.write_all(text.as_bytes())
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::unexpected(format!("cannot write `{}`", path.display())).because(error.to_string())
}
