//! Installing as users do: archives as `make dist` makes them, through the real krew, and completion
//! through kubectl.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use zone_lab::{Finished, Invocation, Lab, Namespace, Running};

use crate::docs;
use crate::support::{LONG, RING, ensure_code, ensure_says, group};

const PLUGIN: &str = "kubectl-zone_rollout";
const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugin-manifest");
/// The place in the manifest from where archives are downloaded.
const RELEASES: &str = "https://github.com/zone-rollout/kubectl-zone-rollout/releases/download";

/// A person's machine without the plugin: a folder, krew, and a server that has the releases.
struct Machine<'a> {
    namespace: &'a Namespace,
    folder: TempDir,
    path: String,
    server: String,
    _serving: Running,
}

impl<'a> Machine<'a> {
    async fn new(namespace: &'a Namespace) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["dist/man", "index/plugins"] {
            fs::create_dir_all(folder.path().join(name))?;
        }
        fs::write(
            folder.path().join("dist/man/kubectl-zone-rollout.1"),
            ".TH kubectl-zone-rollout 1\n",
        )?;
        let mut serving = namespace
            .command("python3", ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
            .folder(folder.path())
            .deadline(LONG)
            .start()?;
        let line = serving.line(" port ").await?;
        let port = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next());
        let server = format!("http://127.0.0.1:{}/dist", port.context("the server has no port")?);
        let path = path_without_plugin(&folder.path().join("krew/bin"))?;
        Ok(Self { namespace, folder, path, server, _serving: serving })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Something to run on this machine.
    fn program(&self, name: &str, arguments: &[&str]) -> Invocation {
        self.namespace
            .command(name, arguments.iter().copied())
            .folder(self.folder.path())
            .env("PATH", &self.path)
            .env("KREW_ROOT", &self.file("krew").display().to_string())
            .env("KREW_DEFAULT_INDEX_URI", &self.file("index").display().to_string())
            .env("KREW_NO_UPGRADE_CHECK", "1")
            .deadline(LONG)
    }

    /// Runs it and expects it to succeed.
    async fn run(&self, name: &str, arguments: &[&str]) -> Result<Finished> {
        let finished = self.program(name, arguments).run().await?;
        ensure_code(&finished, 0)?;
        Ok(finished)
    }

    async fn kubectl(&self, arguments: &str) -> Result<Finished> {
        self.run("kubectl", &arguments.split(' ').collect::<Vec<_>>()).await
    }

    /// Makes a release of the built program and puts its manifest into krew's index.
    async fn release(&self, version: &str) -> Result<()> {
        let built = env::split_paths(&env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join(PLUGIN))
            .find(|program| program.exists())
            .context("the plugin is not built")?;
        let built = built.display().to_string();
        // Symbols are most of a debug build.
        self.run("strip", &["-o", PLUGIN, &built]).await?;
        // What is for other machines is installed by the check of the manifest, but never run.
        fs::write(self.file("elsewhere"), "")?;
        for (system, machine, program) in [
            ("linux", "amd64", PLUGIN),
            ("linux", "arm64", "elsewhere"),
            ("darwin", "amd64", "elsewhere"),
            ("darwin", "arm64", "elsewhere"),
            ("windows", "amd64", "elsewhere"),
        ] {
            let archive = ["dist", version, system, machine, program];
            self.run(&format!("{PACKAGING}/archive.sh"), &archive).await?;
        }
        self.run(&format!("{PACKAGING}/manifest.sh"), &["dist", version]).await?;
        let manifest = fs::read_to_string(self.file("dist/zone-rollout.yaml"))?;
        let manifest = manifest.replace(&format!("{RELEASES}/{version}"), &self.server);
        ensure!(manifest.contains(&self.server), "archives come from elsewhere: {manifest}");
        fs::write(self.file("dist/zone-rollout.yaml"), &manifest)?;
        fs::write(self.file("index/plugins/zone-rollout.yaml"), &manifest)?;
        self.run("git", &["-C", "index", "init", "--quiet"]).await?;
        self.run("git", &["-C", "index", "add", "."]).await?;
        let person = ["-C", "index", "-c", "user.name=test", "-c", "user.email=test@example.org"];
        let commit = [&person[..], &["commit", "--quiet", "--message", version]].concat();
        self.run("git", &commit).await?;
        Ok(())
    }

    fn link(&self) -> PathBuf {
        self.file("krew/bin").join(PLUGIN)
    }

    fn ensure_installed(&self, version: &str) -> Result<()> {
        let store = format!("krew/store/zone-rollout/{version}");
        let target = fs::read_link(self.link())?;
        ensure!(target == self.file(&store).join(PLUGIN), "installed is {}", target.display());
        for name in ["LICENSE", "man/kubectl-zone-rollout.1"] {
            ensure!(self.file(&store).join(name).exists(), "{name} is not installed");
        }
        Ok(())
    }

    /// What kubectl completes.
    async fn completed(&self, words: &[&str]) -> Result<Finished> {
        self.run("kubectl", &[&["__complete", "zone-rollout"], words].concat()).await
    }
}

/// The lab's `PATH` with another folder in front, and without those that have the plugin.
fn path_without_plugin(first: &Path) -> Result<String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let others = env::split_paths(&path).filter(|folder| !folder.join(PLUGIN).exists());
    let path = env::join_paths([first.to_owned()].into_iter().chain(others))?;
    path.into_string().ok().context("PATH is not UTF-8")
}

#[tokio::test]
async fn krew_installs_upgrades_and_removes_it() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "krew", RING).await?;
    let machine = Machine::new(&namespace).await?;
    let absent = machine.program("kubectl", &["zone-rollout", "status"]).run().await?;
    ensure_code(&absent, 1)?;

    machine.release("v1.0.0").await?;
    machine.kubectl("krew update").await?;
    let check = ["-manifest", "dist/zone-rollout.yaml"];
    let checked = machine.run("validate-krew-manifest", &check).await?;
    ensure_says(&checked, "all 5 spec.platforms installed fine")?;
    for command in docs::commands("krew")? {
        machine.run("sh", &["-c", &command]).await?;
    }
    machine.ensure_installed("v1.0.0")?;
    ensure_says(&machine.kubectl("plugin list").await?, PLUGIN)?;
    let status = format!("zone-rollout status -n {}", namespace.name());
    ensure_says(&machine.kubectl(&status).await?, "test-a")?;
    machine.kubectl("krew uninstall zone-rollout").await?;

    machine.kubectl("krew install zone-rollout").await?;
    machine.ensure_installed("v1.0.0")?;
    machine.release("v1.10.0").await?;
    machine.kubectl("krew upgrade").await?;
    machine.ensure_installed("v1.10.0")?;
    ensure_says(&machine.kubectl(&status).await?, "test-a")?;

    machine.kubectl("krew uninstall zone-rollout").await?;
    ensure!(!machine.link().exists() && !machine.file("krew/store/zone-rollout").exists());
    Ok(())
}

#[tokio::test]
async fn archives_are_the_same_whoever_makes_them() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = lab.namespace("archive").await?;
    let machine = Machine::new(&namespace).await?;
    machine.release("v1.0.0").await?;
    let archive = format!("dist/{PLUGIN}_v1.0.0_linux_amd64.tar.gz");
    let listed = machine.run("tar", &["--utc", "--full-time", "-tvzf", &archive]).await?;
    let entries = listed.stdout.lines().map(|line| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.remove(2);
        words.join(" ")
    });
    let entries: Vec<String> = entries.collect();
    let expected = [
        "-rw-r--r-- 0/0 2000-01-01 00:00:00 LICENSE",
        "drwxr-xr-x 0/0 2000-01-01 00:00:00 man/",
        "-rw-r--r-- 0/0 2000-01-01 00:00:00 man/kubectl-zone-rollout.1",
        "-rwxr-xr-x 0/0 2000-01-01 00:00:00 kubectl-zone_rollout",
    ];
    ensure!(entries == expected, "{listed}");
    let bytes = fs::read(machine.file(&archive))?;
    ensure!(bytes[4..8] == [0; 4], "gzip has written the time");
    Ok(())
}

#[tokio::test]
async fn kubectl_completes() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "completion", RING).await?;
    let machine = Machine::new(&namespace).await?;
    machine.release("v1.0.0").await?;
    machine.kubectl("krew install zone-rollout").await?;
    ensure!(machine.completed(&["sta"]).await?.stdout.lines().all(|line| !line.starts_with("sta")));

    let explained = machine.kubectl("zone-rollout completion").await?;
    let link = explained.stdout.lines().map(str::trim).find(|line| line.starts_with("ln "));
    machine.run("sh", &["-c", link.context("it names no command")?]).await?;
    machine.release("v1.1.0").await?;
    machine.kubectl("krew upgrade").await?;
    ensure_says(&machine.kubectl("zone-rollout completion").await?, "kubectl completes")?;

    let name = namespace.name();
    for (words, candidate) in [
        (&["sta"][..], "status\t"),
        (&["promote", "--seq"], "--sequential\t"),
        (&["status", "--context", ""], "lab"),
        (&["status", "-n", name], name),
        (&["status", "-n", name, ""], "test\tzones a, b, c"),
        (&["status", "-n", name, "test/"], "test/b\tRollout test-b"),
        (&["promote", "-n", name, "--order", "c,"], "c,a\t"),
    ] {
        let completed = machine.completed(words).await?;
        let found = completed.stdout.lines().any(|line| line.starts_with(candidate));
        ensure!(found, "{words:?} is not completed to `{candidate}`: {completed}");
        ensure!(completed.stdout.ends_with(":4\n"), "{words:?}: {completed}");
    }
    Ok(())
}
