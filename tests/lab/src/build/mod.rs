//! Builds the programs of the lab into the cache: one folder for each component, named after a hash
//! of everything that decides what comes out, so that a new version rebuilds that component alone.

mod component;
mod crds;
mod envoy;
mod golang;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::paths;
use crate::terminal::say;
use component::{COMPONENTS, Component};
pub(crate) use crds::FILE as CRDS;

/// A component in the cache.
pub(crate) struct Built {
    /// Name of the component.
    pub(crate) name: &'static str,
    /// Its folder: programs in `bin`, other files in `share`.
    pub(crate) folder: PathBuf,
}

/// Builds what is missing and returns all components.
pub(crate) async fn build_all(verbose: bool) -> Result<Vec<Built>> {
    let cache = paths::cache()?;
    fs::create_dir_all(&cache)
        .with_context(|| format!("cannot create the cache {}", cache.display()))?;
    let mut built = Vec::new();
    for component in COMPONENTS {
        let folder = build(component, &cache, verbose)
            .await
            .with_context(|| format!("cannot build {}", component.name))?;
        built.push(Built { name: component.name, folder });
    }
    Ok(built)
}

async fn build(component: &Component, cache: &Path, verbose: bool) -> Result<PathBuf> {
    let folder = cache.join(format!("{}-{}", component.name, component.key()?));
    // Two builds of the same component at once would do the work twice and trip over each other.
    let lock = File::create(cache.join(format!("{}.lock", component.name)))?;
    lock.lock()?;
    if folder.exists() {
        if verbose {
            say(format_args!("{:<14} already built", component.name));
        }
        return Ok(folder);
    }
    say(format_args!("{:<14} building (about {} from nothing)", component.name, component.takes));
    let start = Instant::now();
    let unfinished = cache.join(format!("{}.unfinished", component.name));
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    component.build_into(&unfinished).await?;
    fs::rename(&unfinished, &folder)?;
    say(format_args!("{:<14} built in {:.1} s", component.name, start.elapsed().as_secs_f64()));
    Ok(folder)
}
