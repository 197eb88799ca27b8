//! The README and all pages of docs/, run: every command in them, with the output it shows, and every
//! script, by a user with the rights that the pages name.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zone_lab::{Lab, Namespace};

use crate::support::{LONG, RING, ask_all, group, open_gate, zone};

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Set to anything, it writes what the commands show into the pages instead of comparing.
const UPDATE: &str = "ZONE_LAB_UPDATE_DOCS";

/// A fenced block of a page.
struct Block {
    /// What it runs on, if it says so in a comment above it.
    scene: Option<String>,
    language: String,
    text: String,
}

/// The README and the pages of docs/.
fn pages() -> Result<Vec<(PathBuf, String)>> {
    let mut paths = vec![PathBuf::from(PROJECT).join("README.md")];
    for entry in std::fs::read_dir(Path::new(PROJECT).join("docs"))? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|it| it == "md"));
    paths.sort();
    paths.into_iter().map(|path| Ok((path.clone(), std::fs::read_to_string(path)?))).collect()
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut scene, mut inside) = (None, false);
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("<!-- run: ") {
            scene = name.strip_suffix(" -->").map(str::to_owned);
        } else if let (Some(language), false) = (line.strip_prefix("```"), inside) {
            inside = true;
            let language = language.to_owned();
            blocks.push(Block { scene: scene.take(), language, text: String::new() });
        } else if line == "```" {
            inside = false;
        } else if let Some(block) = blocks.last_mut().filter(|_| inside) {
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    blocks
}

impl Block {
    /// The commands of a console block, with the output that each shows.
    fn commands(&self) -> Vec<(&str, String)> {
        let mut commands: Vec<(&str, String)> = Vec::new();
        for line in self.text.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => commands.push((command, String::new())),
                None => {
                    if let Some((_, output)) = commands.last_mut() {
                        output.push_str(line);
                        output.push('\n');
                    }
                }
            }
        }
        commands
    }
}

/// All commands that run on this.
pub(crate) fn commands(scene: &str) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    for (_, page) in pages()? {
        for block in blocks(&page) {
            if block.scene.as_deref() == Some(scene) {
                commands.extend(block.commands().into_iter().map(|(line, _)| line.to_owned()));
            }
        }
    }
    Ok(commands)
}

/// The rules of a `ClusterRole` of docs/rbac.md.
pub(crate) fn rules(name: &str) -> Result<Vec<Value>> {
    let page = std::fs::read_to_string(Path::new(PROJECT).join("docs/rbac.md"))?;
    for block in blocks(&page) {
        let object: Value = serde_saphyr::from_str(&block.text)?;
        if object["metadata"]["name"] == name {
            return Ok(object["rules"].as_array().cloned().unwrap_or_default());
        }
    }
    anyhow::bail!("docs/rbac.md has no {name}")
}

async fn prepared(lab: &Lab, scene: &str) -> Result<(Namespace, PathBuf)> {
    let namespace = group(lab, "docs", RING).await?;
    match scene {
        "three zones at their gates" => ask_all(&namespace, "myapp:v2").await?,
        "three zones at rest" | "three zones whose version arrives" => {}
        other => anyhow::bail!("a page runs on `{other}`, which no test knows"),
    }
    let (rules, nodes) = (rules("zone-rollout-promoter")?, rules("zone-rollout-nodes")?);
    let user = namespace.user("promoter", &rules, &nodes).await?;
    Ok((namespace, user))
}

/// What a command shows, run in the namespace of the user's kubeconfig.
async fn shown(namespace: &Namespace, user: &Path, command: &str) -> Result<String> {
    let program = namespace.command("bash", ["-c", command]);
    let finished = program.kubeconfig(user).deadline(LONG).run().await?;
    ensure!(finished.code() == Some(0), "`{command}`: {finished}");
    let text = format!("{}\n{}", finished.stderr.trim_end(), finished.stdout.trim_end());
    Ok(text.replace(namespace.name(), "default").trim_start().to_owned())
}

/// What differs from run to run, made the same: times, spans and ages, and what is a matter of chance:
/// heartbeats, and changes that the controller misses.
fn normal(text: &str) -> String {
    let by_chance = ["  waiting: ", "  touched it: the controller has missed"];
    let lines = text.lines().filter(|line| !by_chance.iter().any(|chance| line.contains(chance)));
    lines.map(normal_line).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn normal_line(line: &str) -> String {
    let is_age = |word: &str| {
        word.ends_with('s') && word.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
    };
    // The last column of a table of zones is an age.
    let line = match line.rsplit_once("   ") {
        Some((row, age)) if row.contains("test-") && is_age(age) => row,
        _ => line,
    };
    line.split(' ').map(normal_word).collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

fn normal_word(word: &str) -> String {
    let is_time = |text: &str| {
        text.len() == 9
            && text.ends_with('Z')
            && text.bytes().filter(|byte| *byte == b':').count() == 2
    };
    let core = word.trim_end_matches(',');
    let span = core.strip_prefix('(').and_then(|core| core.strip_suffix("s)"));
    if is_time(core) {
        word.replace(core, "12:00:00Z")
    } else if span.is_some_and(|span| span.bytes().all(|byte| byte.is_ascii_digit())) {
        "(10s)".to_owned()
    } else {
        word.to_owned()
    }
}

#[tokio::test]
async fn commands_show_what_the_pages_say() -> Result<()> {
    let lab = Lab::connect().await?;
    for (path, page) in pages()? {
        let mut updated = page.clone();
        for block in blocks(&page).into_iter().filter(|block| block.language == "console") {
            // What is for krew is run where krew is.
            let scene = block.scene.as_deref().filter(|scene| *scene != "krew");
            let Some(scene) = scene else { continue };
            let (namespace, user) = prepared(&lab, scene).await?;
            for (command, says) in block.commands() {
                let shows = shown(&namespace, &user, command).await?;
                if std::env::var_os(UPDATE).is_some() {
                    let (before, after) =
                        (format!("$ {command}\n{says}"), format!("$ {command}\n{shows}\n"));
                    updated = updated.replacen(&before, &after, 1);
                } else if normal(&shows) != normal(&says) {
                    anyhow::bail!("`{command}` shows\n{shows}\n\n{} says\n{says}", path.display());
                }
            }
        }
        if updated != page {
            std::fs::write(&path, updated)?;
        }
    }
    Ok(())
}

/// The scripts in manifests that say what they run on.
#[tokio::test]
async fn scripts_in_manifests_work() -> Result<()> {
    let lab = Lab::connect().await?;
    let mut ran = 0;
    for (path, page) in pages()? {
        for block in blocks(&page).into_iter().filter(|block| block.language == "yaml") {
            let Some(scene) = &block.scene else { continue };
            let manifest: Value = serde_saphyr::from_str(&block.text)?;
            for script in scripts(&manifest) {
                run_script(&lab, scene, script)
                    .await
                    .with_context(|| format!("a script of {}", path.display()))?;
                ran += 1;
            }
        }
    }
    ensure!(ran >= 3, "the pages have only {ran} scripts");
    Ok(())
}

/// All texts of a manifest that call the plugin.
fn scripts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) if text.contains("kubectl zone-rollout") => vec![text],
        Value::Array(items) => items.iter().flat_map(scripts).collect(),
        Value::Object(fields) => fields.values().flat_map(scripts).collect(),
        _ => Vec::new(),
    }
}

async fn run_script(lab: &Lab, scene: &str, script: &str) -> Result<()> {
    let (namespace, user) = prepared(lab, scene).await?;
    let folder = std::env::temp_dir().join(namespace.name());
    std::fs::create_dir_all(&folder)?;
    let script = format!("cd {} && {script}", folder.display());
    let program = namespace.command("bash", ["-eo", "pipefail", "-c", &script]);
    let mut running = program.kubeconfig(&user).deadline(LONG).start()?;
    if scene == "three zones whose version arrives" {
        running.line("waiting for myapp:v2 to arrive").await?;
        ask_all(&namespace, "myapp:v2").await?;
    }
    let finished = running.finish().await?;
    ensure!(finished.code() == Some(0), "{finished}");
    Ok(())
}

/// Commands about the project itself are targets of its Makefile.
#[tokio::test]
async fn make_targets_exist() -> Result<()> {
    let makefile = include_str!("../../../../Makefile");
    for (path, page) in pages()? {
        for block in blocks(&page).into_iter().filter(|block| block.language == "console") {
            for (command, _) in block.commands().into_iter().filter(|_| block.scene.is_none()) {
                let target = command.strip_prefix("make ").with_context(|| {
                    format!("`{command}` of {} is not run by a test", path.display())
                })?;
                let is_target = |line: &str| line.starts_with(&format!("{target}:"));
                ensure!(makefile.lines().any(is_target), "no target `{target}`");
            }
        }
    }
    Ok(())
}

/// Each role suffices for what its page says, and for no more.
#[tokio::test]
async fn roles_suffice_for_what_they_are_for() -> Result<()> {
    let lab = Lab::connect().await?;
    let (namespace, promoter) = prepared(&lab, "three zones at their gates").await?;
    let nodes = rules("zone-rollout-nodes")?;
    let reader = namespace.user("reader", &rules("zone-rollout-reader")?, &nodes).await?;
    let emergency = namespace.user("emergency", &rules("zone-rollout-emergency")?, &nodes).await?;
    let promote = ["promote", "a", "--yes", "--first-soak", "1s"];
    for (user, arguments, code) in [
        (&reader, &["status"][..], 0),
        (&reader, &["promote", "--sequential", "--dry-run"], 0),
        (&reader, &promote, 5),
        (&emergency, &["status"], 0),
        (&emergency, &promote, 5),
        (&promoter, &promote, 0),
    ] {
        let run = namespace.plugin(arguments.iter().copied()).kubeconfig(user).deadline(LONG);
        let finished = run.run().await?;
        ensure!(finished.code() == Some(code), "{arguments:?}: {finished}");
        ensure!(!finished.stdout.contains("Not seen"), "{finished}");
    }
    open_gate(&namespace, zone("b"), 10).await?;
    let aborted = namespace.plugin(["abort", "b"]).kubeconfig(&emergency).run().await?;
    ensure!(aborted.code() == Some(0), "{aborted}");
    Ok(())
}
