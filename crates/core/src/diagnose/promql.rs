//! Label matchers in PromQL, as far as they can be read before a template's arguments are filled in:
//! a query in a template is no PromQL yet, so no parser of PromQL takes it.

/// One `metric{label="value"}` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matcher {
    pub(super) metric: String,
    pub(super) label: String,
    /// `=`, `!=`, `=~` or `!~`.
    pub(super) operator: String,
    pub(super) value: String,
}

/// All matchers of all selectors in a query.
pub(super) fn matchers(query: &str) -> Vec<Matcher> {
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(open) = rest.find('{') {
        let metric = last_word(&rest[..open]);
        let (entries, length) = entries(&rest[open + 1..]);
        found.extend(entries.into_iter().map(|(label, operator, value)| Matcher {
            metric: metric.to_owned(),
            label,
            operator,
            value,
        }));
        rest = &rest[open + 1 + length..];
    }
    found
}

fn last_word(text: &str) -> &str {
    let is_word = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':');
    let text = text.trim_end();
    text.rfind(|character| !is_word(character)).map_or(text, |at| {
        let width = text[at..].chars().next().map_or(1, char::len_utf8);
        &text[at + width..]
    })
}

/// The entries up to the closing brace, and the length of what was read.
fn entries(text: &str) -> (Vec<(String, String, String)>, usize) {
    let mut entries = Vec::new();
    let (mut word, mut operator) = (String::new(), String::new());
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '}' => return (entries, at + 1),
            '"' | '\'' | '`' => {
                let value: String = quoted(&mut characters, character);
                entries.push((word.trim().to_owned(), std::mem::take(&mut operator), value));
                word.clear();
            }
            '=' | '!' | '~' => operator.push(character),
            ',' => word.clear(),
            _ => word.push(character),
        }
    }
    (entries, text.len())
}

fn quoted(characters: &mut std::str::CharIndices<'_>, quote: char) -> String {
    let mut value = String::new();
    while let Some((_, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ if character == quote => break,
            _ => value.push(character),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_are_read_with_their_metric() {
        let query = r#"sum(rate(istio_requests_total{a="x}y", b!~'5..|0',
            c=~"z"}[1m])) / on() up{job = "j"}"#;
        let told: Vec<String> = matchers(query)
            .iter()
            .map(|m| format!("{}.{}{}{}", m.metric, m.label, m.operator, m.value))
            .collect();
        assert_eq!(
            told,
            [
                "istio_requests_total.a=x}y",
                "istio_requests_total.b!~5..|0",
                "istio_requests_total.c=~z",
                "up.job=j"
            ]
        );
        assert_eq!(matchers("up{a=\"unclosed").len(), 1);
        assert_eq!(matchers("sum(up)"), []);
    }
}
