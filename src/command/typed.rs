//! A command line that is printed, to be typed again.

/// Flags whose value is a secret.
const SECRETS: [&str; 2] = ["--token", "--password"];

/// A command line, to be typed again: without secrets, quoted for a shell.
pub(super) fn again(words: impl Iterator<Item = String>) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut hide = false;
    for word in words {
        let (flag, value) = word.split_once('=').unwrap_or((&word, ""));
        if std::mem::take(&mut hide) {
            told.push("...".to_owned());
        } else if SECRETS.contains(&flag) {
            hide = value.is_empty() && !word.contains('=');
            told.push(if hide { flag.to_owned() } else { format!("{flag}=...") });
        } else {
            told.push(quoted(&word));
        }
    }
    told.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_repeated_without_secrets() {
        let told = |words: &[&str]| again(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(
            told(&["promote", "--token", "s3cret", "--check", "curl -f x", "-n", "shop"]),
            "promote --token ... --check 'curl -f x' -n shop"
        );
        assert_eq!(told(&["promote", "--token=s3cret", "it's"]), r"promote --token=... 'it'\''s'");
    }
}
