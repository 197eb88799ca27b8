//! What `completion` says.

use std::path::Path;

use crate::completion::NAME;

const COMPLETED: &str = "Verbs, flags, contexts, namespaces, groups and zones are completed";
const IN_THE_SHELL: &str =
    "in shells where kubectl's own completion is on: kubectl completion --help";

/// Where it works.
pub fn present(link: &Path) -> String {
    format!(
        "kubectl completes for this plugin by running {}.\n{COMPLETED}\n{IN_THE_SHELL}",
        link.display()
    )
}

/// How to make it work.
pub fn absent(plugin: &Path, link: &Path) -> String {
    let make = if cfg!(windows) { "copy" } else { "ln -s" };
    let target = if cfg!(windows) { Some(plugin.as_os_str()) } else { plugin.file_name() };
    let target = target.unwrap_or_default().display();
    format!(
        "kubectl completes for a plugin by running another program. For this one it is the same \
         program under the name\n{NAME}, which neither krew nor cargo makes. This makes it:\n\n  \
         {make} \"{target}\" \"{}\"\n\n{COMPLETED} then,\n{IN_THE_SHELL}",
        link.display()
    )
}

/// What is missing before that.
pub fn no_plugin(plugin: &str) -> String {
    format!("kubectl completes for plugins that it finds, and no folder in $PATH has {plugin}.")
}
