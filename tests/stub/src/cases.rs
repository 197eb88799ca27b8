//! The cases: what a user has, and types, to connect.

use anyhow::Result;
use serde_json::{Value, json};

use crate::SECRET;
use crate::bench::{Bench, Invocation, NAME, Server, User};

/// One case.
pub struct Case {
    /// What the user has or types, for people.
    pub name: &'static str,
    set_up: fn() -> Result<(Bench, Invocation)>,
}

impl Case {
    /// Sets it up.
    ///
    /// # Panics
    /// When a port, a file or a certificate cannot be had.
    pub fn set_up_now(&self) -> (Bench, Invocation) {
        (self.set_up)().expect("the case can be set up")
    }
}

type SetUp = Result<(Bench, Invocation)>;

/// All cases.
pub fn cases() -> Vec<Case> {
    let mut all = credentials();
    all.extend(identities());
    all.extend(files());
    all.extend(servers());
    all.extend(proxies());
    all.extend(answers());
    all
}

fn case(name: &'static str, set_up: fn() -> SetUp) -> Case {
    Case { name, set_up }
}

fn credentials() -> Vec<Case> {
    vec![
        case("a token", || user(User::Token)),
        case("`tokenFile`", || user(User::TokenFile)),
        case("a client certificate", || user(User::Certificate)),
        case("a credential plugin", || user(User::Plugin)),
        case("a credential plugin whose token expires", || user(User::ExpiringPlugin)),
        case("a credential plugin that gives a certificate", || user(User::CertificatePlugin)),
        case("a credential plugin through a proxy", || {
            with(Server::Proper, User::ExpiringPlugin, |bench, config| {
                config["clusters"][0]["cluster"]["proxy-url"] = json!(bench.proxy());
                Ok(Invocation::default())
            })
        }),
        case("a credential plugin that fails", || user(User::FailingPlugin)),
        case("a credential plugin that is not installed", || user(User::AbsentPlugin)),
        case("a credential plugin that needs a terminal, without one", || {
            user(User::InteractivePlugin)
        }),
        case("a plain HTTP server, and a token", || {
            with(Server::Plain, User::Token, |_, _| Ok(Invocation::default()))
        }),
    ]
}

fn identities() -> Vec<Case> {
    vec![
        case("`--token`, over a credential plugin", || {
            flags(User::Plugin, &["--token", &secret("flag")])
        }),
        case("`--token`, over a client certificate", || {
            flags(User::Certificate, &["--token", &secret("flag")])
        }),
        case("`--username` and `--password`", || {
            flags(User::Nobody, &["--username", "me", "--password", SECRET])
        }),
        case("`--client-certificate` and `--client-key`", || {
            with(Server::Proper, User::Nobody, |bench, _| {
                let (certificate, key) = bench.certificate("flag")?;
                let path = |path: std::path::PathBuf| path.display().to_string();
                Ok(typed(&["--client-certificate", &path(certificate), "--client-key", &path(key)]))
            })
        }),
        case("`--as`, `--as-group`, `--as-uid`", || {
            flags(User::Token, &["--as", "ops", "--as-group", "dev", "--as-uid", "7"])
        }),
        case("`--as` and `--as-user-extra`", || {
            flags(User::Token, &["--as", "ops", "--as-user-extra", "scope=a"])
        }),
        case("`--as-group` without `--as`", || flags(User::Token, &["--as-group", "dev"])),
        case("an empty `--token=`", || flags(User::Token, &["--token="])),
    ]
}

fn files() -> Vec<Case> {
    vec![
        case("`--context`", || {
            with(Server::Proper, User::Token, |_, config| {
                config["current-context"] = json!("absent");
                Ok(typed(&["--context", "main"]))
            })
        }),
        case("`--cluster` and `--user`", || {
            with(Server::Proper, User::Token, |_, config| {
                config["contexts"][0]["context"] = json!({"cluster": "absent", "user": "absent"});
                Ok(typed(&["--cluster", "main", "--user", "kubeconfig"]))
            })
        }),
        case("two files in `KUBECONFIG`, the second with the user", || {
            with(Server::Proper, User::Token, |bench, config| {
                let users = config["users"].take();
                let path = bench.write("second", &json!({"kind": "Config", "users": users}))?;
                Ok(listed(&[&bench.path("config").display().to_string(), &path]))
            })
        }),
        case("a missing file in `KUBECONFIG`", || {
            with(Server::Proper, User::Token, |bench, _| {
                Ok(listed(&["/absent", &bench.path("config").display().to_string()]))
            })
        }),
        case("`--kubeconfig` names a missing file", || {
            flags(User::Token, &["--kubeconfig", "/absent"])
        }),
        case("no current context", || {
            with(Server::Proper, User::Token, |_, config| {
                config["current-context"] = json!("");
                Ok(Invocation::default())
            })
        }),
        case("no kubeconfig, but `--server`", || {
            let bench = Bench::new(Server::Proper)?;
            let authority = bench.path("ca.crt").display().to_string();
            let token = secret("flag");
            let flags = [
                "--server",
                &bench.url(),
                "--certificate-authority",
                &authority,
                "--token",
                &token,
            ];
            let invocation = typed(&flags);
            Ok((bench, invocation))
        }),
    ]
}

fn servers() -> Vec<Case> {
    vec![
        case("`--server`", || {
            with(Server::Proper, User::Token, |bench, config| {
                config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
                Ok(typed(&["--server", &bench.url()]))
            })
        }),
        case("`--certificate-authority`", || {
            with(Server::Proper, User::Token, |bench, config| {
                config["clusters"][0]["cluster"]["certificate-authority"] = Value::Null;
                let path = bench.path("ca.crt").display().to_string();
                Ok(typed(&["--certificate-authority", &path]))
            })
        }),
        case("a certificate of an unknown authority", || server(Server::Unknown)),
        case("the same, with `--insecure-skip-tls-verify`", || {
            with(Server::Unknown, User::Token, |_, config| {
                config["clusters"][0]["cluster"]["certificate-authority"] = Value::Null;
                Ok(typed(&["--insecure-skip-tls-verify"]))
            })
        }),
        case("a certificate for another name", || server(Server::Named)),
        case("the same, with `--tls-server-name`", || {
            with(Server::Named, User::Token, |_, _| Ok(typed(&["--tls-server-name", NAME])))
        }),
        case("a certificate that has expired", || server(Server::Expired)),
        case("a certificate that is its own authority", || server(Server::SelfSigned)),
        case("nothing listens", || {
            with(Server::Proper, User::Token, |_, config| {
                config["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
                Ok(Invocation::default())
            })
        }),
    ]
}

fn proxies() -> Vec<Case> {
    vec![
        case("`proxy-url`", || {
            named(|bench, config| {
                config["clusters"][0]["cluster"]["proxy-url"] = json!(bench.proxy());
                Vec::new()
            })
        }),
        case("`proxy-url` with a password", || {
            named(|bench, config| {
                let url = bench.proxy().replace("http://", &format!("http://me:{SECRET}@"));
                config["clusters"][0]["cluster"]["proxy-url"] = json!(url);
                Vec::new()
            })
        }),
        case("`HTTPS_PROXY`", || named(|bench, _| vec![("HTTPS_PROXY", bench.proxy())])),
        case("`HTTPS_PROXY`, and `NO_PROXY` names another host", || {
            named(|bench, _| {
                vec![
                    ("HTTPS_PROXY", bench.proxy()),
                    ("NO_PROXY", "127.0.0.1,example.com".to_owned()),
                ]
            })
        }),
        case("`HTTPS_PROXY`, and `NO_PROXY` names the server's domain", || {
            named(|bench, _| {
                vec![("HTTPS_PROXY", bench.proxy()), ("NO_PROXY", ".stub.test".to_owned())]
            })
        }),
        case("`HTTPS_PROXY`, and `NO_PROXY` ends in a comma", || {
            named(|bench, _| {
                vec![("HTTPS_PROXY", bench.proxy()), ("NO_PROXY", "localhost,".to_owned())]
            })
        }),
        case("`HTTPS_PROXY`, and a server on this machine", || {
            with(Server::Proper, User::Token, |bench, _| {
                Ok(Invocation {
                    environment: vec![("HTTPS_PROXY".to_owned(), bench.proxy())],
                    ..Invocation::default()
                })
            })
        }),
        case("`proxy-url`, and `NO_PROXY` names the server", || {
            named(|bench, config| {
                config["clusters"][0]["cluster"]["proxy-url"] = json!(bench.proxy());
                vec![("NO_PROXY", NAME.to_owned())]
            })
        }),
    ]
}

fn answers() -> Vec<Case> {
    vec![
        case("the server answers 401", || server(Server::Unauthorized)),
        case("the server answers 503", || server(Server::Busy)),
        case("the server answers 429 and asks to come again", || server(Server::ComeAgain)),
        case("the server never answers, and `--request-timeout 1s`", || {
            with(Server::Silent, User::Token, |_, _| Ok(typed(&["--request-timeout", "1s"])))
        }),
    ]
}

fn secret(owner: &str) -> String {
    format!("{SECRET}-{owner}")
}

fn typed(flags: &[&str]) -> Invocation {
    let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    Invocation { flags, ..Invocation::default() }
}

fn listed(paths: &[&str]) -> Invocation {
    let environment = vec![("KUBECONFIG".to_owned(), paths.join(":"))];
    Invocation { environment, ..Invocation::default() }
}

fn user(user: User) -> SetUp {
    with(Server::Proper, user, |_, _| Ok(Invocation::default()))
}

fn server(server: Server) -> SetUp {
    with(server, User::Token, |_, _| Ok(Invocation::default()))
}

fn flags(user: User, flags: &[&str]) -> SetUp {
    with(Server::Proper, user, |_, _| Ok(typed(flags)))
}

/// A server that is known by its name, which only the proxy can find.
fn named(change: fn(&Bench, &mut Value) -> Vec<(&'static str, String)>) -> SetUp {
    with(Server::Proper, User::Token, |bench, config| {
        config["clusters"][0]["cluster"]["server"] = json!(bench.named_url());
        let environment = change(bench, config);
        let environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value));
        Ok(Invocation { environment: environment.collect(), ..Invocation::default() })
    })
}

/// One user at one server; its kubeconfig, changed, is the one in `KUBECONFIG` or the only one.
fn with(
    server: Server,
    user: User,
    change: impl FnOnce(&mut Bench, &mut Value) -> Result<Invocation>,
) -> SetUp {
    let mut bench = Bench::new(server)?;
    let mut config = bench.kubeconfig("kubeconfig", user)?;
    let mut invocation = change(&mut bench, &mut config)?;
    let path = bench.write("config", &config)?;
    if invocation.environment.iter().all(|(name, _)| name != "KUBECONFIG") {
        invocation.environment.push(("KUBECONFIG".to_owned(), path));
    }
    Ok((bench, invocation))
}
