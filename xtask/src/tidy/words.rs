//! Plain words: phrases that the field does not use, comments that are too wide, module names without meaning.
//!
//! The glossary in CONTRIBUTING.md has the word to use for each phrase.

/// A line of comment is not wider than a line of code.
const COLUMNS_MAX: usize = 120;

/// A phrase, and its replacement.
const PHRASES: [(&str, &str); 27] = [
    ("by chance", "random, at random"),
    ("in order or", "sequential or"),
    ("or in order", "or sequential"),
    ("random and in order", "random and sequential"),
    ("told by", "reported by, source"),
    ("so many", "N, this many, or the number"),
    ("so-manieth", "nth"),
    ("half within", "within a factor of"),
    ("is what it is the mean of", "averaged over"),
    ("hang together", "are correlated"),
    ("hangs together", "is correlated"),
    ("of 100 cases", "95 % confidence interval"),
    ("the machine's its", "name both clocks"),
    ("which only root may", "requires root"),
    ("forget fresh", "drop recent entries"),
    ("under way", "in progress, outstanding"),
    ("put back", "restored, written back"),
    ("puts back", "restores"),
    ("taken back", "undone, cleared"),
    ("on record", "recorded"),
    ("by then", "at that time, earlier"),
    ("skipped aloud", "skipped with a message"),
    ("layer behind", "main layer"),
    ("by whomever", "by any program"),
    ("goes on working", "still works"),
    ("go on working", "still work"),
    ("anew", "again"),
];

/// A module is named by a noun for what it holds, or by a verb for what it does.
const MODULES: [&str; 22] = [
    "acknowledged",
    "cells",
    "class6",
    "direct",
    "flushed",
    "held",
    "helper",
    "helpers",
    "in_use",
    "inside",
    "kept",
    "later",
    "legal",
    "look",
    "made",
    "plausible",
    "sound",
    "told",
    "trimmed",
    "unacknowledged",
    "util",
    "utils",
];

/// Files that quote the phrases.
const QUOTES: [&str; 3] = ["CONTRIBUTING.md", "CHANGELOG.md", "xtask/src/tidy/words.rs"];

/// Everything wrong with the words of the file at `path`.
pub(crate) fn check(path: &str, text: &str) -> Vec<String> {
    violations(path, text)
}

fn violations(path: &str, text: &str) -> Vec<String> {
    let is_rust = path.ends_with(".rs");
    let is_text = is_rust || path.ends_with(".md") || path.ends_with(".sh") || path == ".ci/run" || path == "setup";
    let is_exempt = path.starts_with("testdata/") || QUOTES.contains(&path);
    if !is_text || is_exempt {
        return Vec::new();
    }
    let mut violations = phrases(path, text);
    if is_rust {
        violations.extend(wide_comments(path, text));
        violations.extend(module_name(path));
    }
    violations
}

/// Phrases are also found where a line ends inside them.
fn phrases(path: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(content).collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let two = format!("{line} {}", lines.get(index + 1).unwrap_or(&"")).to_lowercase();
        for (phrase, instead) in PHRASES {
            if two.match_indices(phrase).any(|(at, _)| at < line.len() && is_whole(&two, at, phrase)) {
                found.push(format!("{path}:{}: {phrase:?}; write: {instead}", index + 1));
            }
        }
    }
    found
}

/// Whether a match is not part of longer words.
fn is_whole(text: &str, at: usize, phrase: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + phrase.len()..].chars().next())
}

/// A line without the marks of a comment.
fn content(line: &str) -> &str {
    let line = line.trim();
    ["///", "//!", "//", "#"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim()
}

/// A word that no line can hold, and a row of a table, may be wider.
fn wide_comments(path: &str, text: &str) -> Vec<String> {
    let is_wide = |line: &&str| line.chars().count() > COLUMNS_MAX;
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let can_break = |line: &str| !content(line).starts_with('|') && content(line).contains(' ');
    let lines = text.lines().enumerate().filter(|(_, line)| is_wide(line) && is_comment(line) && can_break(line));
    lines.map(|(index, _)| format!("{path}:{}: a comment of more than {COLUMNS_MAX} columns", index + 1)).collect()
}

fn module_name(path: &str) -> Option<String> {
    let stem = path.strip_suffix("/mod.rs").or_else(|| path.strip_suffix(".rs"))?;
    let name = stem.rsplit('/').next()?;
    MODULES.contains(&name).then(|| format!("{path}:1: module `{name}`: name it by a noun for what it holds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_names_the_line() {
        let wide = format!("fn a() {{}}\n// {}\n", "word ".repeat(30));
        for (path, text, expected) in [
            ("docs/a.md", "one\nwritten by chance\n", "docs/a.md:2: \"by chance\""),
            ("docs/a.md", "Told\nby the card\n", "docs/a.md:1: \"told by\""),
            (
                "crates/a/src/a.rs",
                "/// It is done so\n/// many times.\nfn a() {}\n",
                "crates/a/src/a.rs:1: \"so many\"",
            ),
            ("crates/a/src/a.rs", "fn a() {\n    say(\"so many\");\n}\n", "crates/a/src/a.rs:2: \"so many\""),
            ("crates/a/src/a.rs", &wide, "crates/a/src/a.rs:2: a comment of more than 120"),
            ("crates/a/src/held.rs", "", "crates/a/src/held.rs:1: module `held`"),
            ("crates/a/src/held/mod.rs", "", "crates/a/src/held/mod.rs:1: module `held`"),
        ] {
            let found = violations(path, text);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{path}: {found:?}");
        }
    }

    #[test]
    fn a_clean_file_passes() {
        let table = format!("//! | {} |\n", "cell | ".repeat(30));
        for (path, text) in [
            ("docs/a.md", "Random writes; a stand-by chances nothing.\n"),
            ("crates/a/src/handle.rs", "/// Opened once.\nfn a() {}\n"),
            ("crates/a/src/a.rs", &table),
            ("testdata/README.md", "told by\n"),
        ] {
            assert_eq!(violations(path, text), [] as [&str; 0], "{path}");
        }
    }
}
