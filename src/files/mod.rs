//! Objects from files: a file, a folder, or standard input; YAML or JSON, several documents, Lists,
//! and the output of kustomize and helm. What cannot be read is told with its file and line, and
//! hides nothing else.

mod document;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zone_rollout_core::scene::{Found, Origin, Scene, Unreadable};
use zone_rollout_core::time::Moment;

use crate::error::Error;

/// Ends of the names of files that are read in a folder, as for kubectl.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// What files hold.
#[derive(Debug, Default)]
pub struct Documents {
    /// The objects.
    pub objects: Vec<Found>,
    /// Documents that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

impl Documents {
    /// The scene of the objects, and everything that cannot be read.
    pub fn into_scene(self, namespace: &str, now: Moment) -> (Scene, Vec<Unreadable>) {
        let (scene, more) = Scene::of_objects(self.objects, namespace, now);
        let mut unreadable = self.unreadable;
        unreadable.extend(more);
        (scene, unreadable)
    }
}

/// Reads these files and folders; `-` is standard input. Of folders their own files are read, with
/// `recursive` also those below.
///
/// # Errors
/// If a path does not exist or cannot be read, or a folder holds no file to read.
pub fn read(paths: &[String], recursive: bool) -> Result<Documents, Error> {
    let mut documents = Documents::default();
    for path in paths {
        if path == "-" {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| unread("standard input", &error))?;
            document::read(&text, &Arc::from("-"), &mut documents);
            continue;
        }
        for file in files_of(Path::new(path), recursive)? {
            let name = file.display().to_string();
            let text = fs::read_to_string(&file).map_err(|error| unread(&name, &error))?;
            document::read(&text, &Arc::from(name), &mut documents);
        }
    }
    Ok(documents)
}

fn unread(what: &str, error: &std::io::Error) -> Error {
    Error::usage(format!("cannot read `{what}`")).because(error.to_string())
}

fn files_of(path: &Path, recursive: bool) -> Result<Vec<PathBuf>, Error> {
    let name = path.display().to_string();
    let kind = fs::metadata(path).map_err(|error| unread(&name, &error))?;
    if !kind.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    collect(path, recursive, &mut files).map_err(|error| unread(&name, &error))?;
    files.sort();
    if files.is_empty() {
        return Err(Error::usage(format!("folder `{name}` holds no .yaml, .yml or .json file"))
            .hint("read folders below it as well: --recursive"));
    }
    Ok(files)
}

fn collect(folder: &Path, recursive: bool, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            if recursive {
                collect(&path, recursive, files)?;
            }
        } else if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) {
            files.push(path);
        }
    }
    Ok(())
}

/// An origin in a file.
fn at(path: &Arc<str>, line: usize) -> Origin {
    Origin::File { path: Arc::clone(path), line: u32::try_from(line).unwrap_or(u32::MAX) }
}
