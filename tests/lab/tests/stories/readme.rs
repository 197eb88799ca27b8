//! The README, run: every command in it, with the output it shows, by a user with the rights it names.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zone_lab::{Lab, Namespace};

use crate::support::{LONG, RING, ask_all, group};

const README: &str = include_str!("../../../../README.md");

/// A block of commands with the output that each shows.
struct Block {
    /// What it runs on; nothing if it is about the project itself.
    scene: Option<String>,
    commands: Vec<(String, String)>,
}

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut scene = None;
    let mut inside = false;
    for line in README.lines() {
        if let Some(name) = line.strip_prefix("<!-- run: ") {
            scene = name.strip_suffix(" -->").map(str::to_owned);
        } else if line == "```console" {
            inside = true;
            blocks.push(Block { scene: scene.take(), commands: Vec::new() });
        } else if line.starts_with("```") {
            inside = false;
        } else if let Some(block) = blocks.last_mut().filter(|_| inside) {
            match line.strip_prefix("$ ") {
                Some(command) => block.commands.push((command.to_owned(), String::new())),
                None => {
                    if let Some((_, output)) = block.commands.last_mut() {
                        output.push_str(line);
                        output.push('\n');
                    }
                }
            }
        }
    }
    blocks
}

/// The rules of the YAML objects of this kind.
fn rules(kind: &str) -> Result<Vec<Value>> {
    let yaml = README.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    for text in yaml {
        let object: Value = serde_saphyr::from_str(text)?;
        if object["kind"] == kind {
            return Ok(object["rules"].as_array().cloned().unwrap_or_default());
        }
    }
    anyhow::bail!("the README has no {kind}")
}

/// What differs from run to run, made the same: times and spans.
fn normal(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("  waiting: "));
    let words = |line: &str| {
        line.split(' ').map(normal_word).collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    lines.map(words).collect::<Vec<_>>().join("\n").trim_end().to_owned()
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

/// The last column of a table of zones is an age.
fn without_ages(text: &str) -> String {
    let is_age = |word: &str| {
        word.ends_with('s') && word.bytes().next().is_some_and(|byte| byte.is_ascii_digit())
    };
    let line = |line: &str| match line.rsplit_once("   ") {
        Some((row, age)) if row.contains("test-") && is_age(age) => format!("{row}   4s"),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

async fn prepared(lab: &Lab, scene: &str) -> Result<Namespace> {
    let namespace = group(lab, "readme", RING).await?;
    match scene {
        "three zones at their gates" => ask_all(&namespace, "myapp:v2").await?,
        "three zones at rest" => {}
        other => anyhow::bail!("the README runs on `{other}`, which no test knows"),
    }
    Ok(namespace)
}

async fn shown(namespace: &Namespace, user: &Path, command: &str) -> Result<String> {
    let arguments = command
        .strip_prefix("kubectl zone-rollout ")
        .with_context(|| format!("`{command}` is not run by this test"))?;
    let program = namespace.kubectl_plugin(arguments.split_whitespace());
    let finished = program.kubeconfig(user).deadline(LONG).run().await?;
    ensure!(finished.code() == Some(0), "`{command}`: {finished}");
    let text = format!("{}\n{}", finished.stderr.trim_end(), finished.stdout.trim_end());
    let text =
        text.replace(&format!(" -n {}", namespace.name()), "").replace(namespace.name(), "default");
    Ok(text.trim_start().to_owned())
}

/// Set to anything, it writes what the commands show into the README instead of comparing.
const UPDATE: &str = "ZONE_LAB_UPDATE_README";

#[tokio::test]
async fn its_commands_show_what_it_says() -> Result<()> {
    let lab = Lab::connect().await?;
    let (rules, cluster_rules) = (rules("Role")?, rules("ClusterRole")?);
    let mut readme = README.to_owned();
    for block in blocks() {
        let Some(scene) = &block.scene else { continue };
        let namespace = prepared(&lab, scene).await?;
        let user = namespace.user("promoter", &rules, &cluster_rules).await?;
        for (command, says) in &block.commands {
            let shows = shown(&namespace, &user, command).await?;
            if std::env::var_os(UPDATE).is_some() {
                readme = readme.replacen(
                    &format!("$ {command}\n{says}"),
                    &format!("$ {command}\n{shows}\n"),
                    1,
                );
                continue;
            }
            let same = without_ages(&normal(&shows)) == without_ages(&normal(says));
            ensure!(same, "`{command}` shows\n{shows}\n\nand the README says\n{says}");
        }
    }
    if readme != README {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"), readme)?;
    }
    Ok(())
}

/// Commands about the project itself are targets of its Makefile.
#[tokio::test]
async fn its_make_targets_exist() -> Result<()> {
    let makefile = include_str!("../../../../Makefile");
    for (command, _) in
        blocks().into_iter().filter(|block| block.scene.is_none()).flat_map(|block| block.commands)
    {
        let target = command
            .strip_prefix("make ")
            .with_context(|| format!("`{command}` is not run by a test"))?;
        ensure!(
            makefile.lines().any(|line| line.starts_with(&format!("{target}:"))),
            "no target `{target}`"
        );
    }
    Ok(())
}
