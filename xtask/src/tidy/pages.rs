//! Rules for Markdown pages: the width of prose; paths and types that exist.

use std::collections::BTreeSet;

/// Values that the language names.
const PRELUDE: [&str; 4] = ["None", "Some", "Ok", "Err"];

/// Prose is not wider than code.
const COLUMNS_MAX: usize = 120;

/// Pages whose paths and types are compared with the tree.
const MAPS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];

/// Lines of prose that are too wide; tables, code, headings and addresses cannot be wrapped.
pub(crate) fn wide(path: &str, text: &str) -> Vec<String> {
    if !path.ends_with(".md") {
        return Vec::new();
    }
    let is_fixed = |line: &str| ["|", "#", "```"].iter().any(|start| line.starts_with(start)) || line.contains("://");
    let is_wide = |line: &str| line.chars().count() > COLUMNS_MAX && !is_fixed(line.trim_start());
    let lines = prose(text).filter(|(_, line)| is_wide(line));
    lines.map(|(index, _)| format!("{path}:{}: more than {COLUMNS_MAX} columns of prose", index + 1)).collect()
}

/// The lines outside fenced code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Paths and types in backticks that do not exist; `texts` are all files with their contents.
pub(crate) fn missing(texts: &[(String, String)]) -> Vec<String> {
    let places: BTreeSet<&str> = texts.iter().flat_map(|(path, _)| with_folders(path)).collect();
    let types: BTreeSet<&str> = texts
        .iter()
        .filter(|(path, _)| path.ends_with(".rs"))
        .flat_map(|(_, text)| text.lines().filter_map(type_name))
        .collect();
    let mut found = Vec::new();
    for (page, text) in texts.iter().filter(|(path, _)| MAPS.contains(&path.as_str())) {
        for (index, line) in prose(text) {
            let folders = row_folders(line);
            for span in spans(line) {
                for path in alternatives(span).into_iter().filter(|path| is_path(path)) {
                    if !exists(&path, &folders, &places) {
                        found.push(format!("{page}:{}: `{path}` does not exist", index + 1));
                    }
                }
                if let Some(name) = type_of(span).filter(|name| !types.contains(name) && !PRELUDE.contains(name)) {
                    found.push(format!("{page}:{}: no type is named `{name}`", index + 1));
                }
            }
        }
    }
    found
}

/// A file and every folder above it.
fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain([path])
}

/// The contents of the pairs of backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// `a/{b,c}` as `a/b` and `a/c`.
fn alternatives(span: &str) -> Vec<String> {
    let parts = span.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (names, after))) = parts else { return vec![span.trim_end_matches('/').to_owned()] };
    names.split(',').map(|name| format!("{before}{name}{after}").trim_end_matches('/').to_owned()).collect()
}

/// Whether a span can only be a path of this repository.
fn is_path(span: &str) -> bool {
    let is_plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
    let has_source = span.contains("src/") || span.starts_with("crates/") || span.starts_with("emmc-");
    is_plain && !span.starts_with("target/") && (has_source && span.contains('/') || span.ends_with(".rs"))
}

/// The folders that the first cell of a table's row names; the other cells are relative to them.
fn row_folders(line: &str) -> Vec<String> {
    let Some(first) = line.strip_prefix('|').and_then(|row| row.split('|').next()) else { return Vec::new() };
    spans(first).flat_map(alternatives).collect()
}

/// A path is a file or a folder, or the end of one; in a row it is below, or beside, the folder that the row names.
fn exists(path: &str, folders: &[String], places: &BTreeSet<&str>) -> bool {
    let end = format!("/{}", path.trim_start_matches("../"));
    let crates = |place: &str, folder: &str| {
        let name = folder.split('/').next().unwrap_or(folder);
        place.split('/').any(|part| part == name)
    };
    let is_near = |place: &str| folders.is_empty() || folders.iter().any(|folder| crates(place, folder));
    let is_it = |place: &str| place == path || place.ends_with(&end);
    let without_ending = |place: &str| place.strip_suffix(".rs").is_some_and(is_it);
    places.iter().any(|place| (is_it(place) || without_ending(place)) && (*place == path || is_near(place)))
}

/// The type in `Name` or `Name::item`; names in capitals are registers.
fn type_of(span: &str) -> Option<&str> {
    let name = span.split("::").next()?;
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric()) && name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_item = span.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
    (is_word && is_item && name.contains(|c: char| c.is_ascii_lowercase())).then_some(name)
}

/// The name that a line of code declares as a type or a trait.
fn type_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let is_type = ["struct", "enum", "trait", "type"].contains(&words.next()?);
    let name = words.next()?.split(|c: char| !c.is_alphanumeric()).next()?;
    is_type.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_prose_is_found_outside_tables_and_code() {
        let wide = "word ".repeat(30);
        let page = format!("# T\n{wide}\n| {wide} |\n```sh\n{wide}\n```\n- {wide}\nsee https://x/ {wide}\n");
        let found = super::wide("docs/a.md", &page);
        assert_eq!(found, [2, 7].map(|line| format!("docs/a.md:{line}: more than 120 columns of prose")));
        assert_eq!(super::wide("a.txt", &page), [] as [&str; 0]);
    }

    #[test]
    fn missing_paths_and_types_are_found() {
        let tree = |page: &str| {
            let files = [
                ("ARCHITECTURE.md", page),
                ("crates/emmc-card/src/card/mod.rs", "pub struct Card;\npub(crate) trait Ftl {}\n"),
                ("crates/emmc-card/src/sim/run.rs", ""),
                ("crates/emmc-port/src/lib.rs", "mod card_data;\n"),
            ];
            missing(&files.map(|(path, text)| (path.to_owned(), text.to_owned())))
        };
        for page in [
            "| `emmc-card/src/{card,sim}` | `Card`, `Ftl::write` | `mod.rs`, `run.rs` |\n",
            "`crates/emmc-card/src/card/mod.rs`, `card/mod.rs`, `emmc-port/src/`, `SEC_COUNT`, `None`, `sim/run`\n",
            "```sh\n`crates/none`\n```\n",
        ] {
            assert_eq!(tree(page), [] as [&str; 0], "{page}");
        }
        for (page, expected) in [
            ("x\n`crates/none/src/a.rs`\n", "ARCHITECTURE.md:2: `crates/none/src/a.rs` does not exist"),
            ("| `emmc-port` | x | `run.rs` |\n", "ARCHITECTURE.md:1: `run.rs` does not exist"),
            ("| `emmc-card/src/{card,held}` | x |\n", "ARCHITECTURE.md:1: `emmc-card/src/held` does not exist"),
            ("a `RegisterSource::read`\n", "ARCHITECTURE.md:1: no type is named `RegisterSource`"),
        ] {
            assert_eq!(tree(page), [expected], "{page}");
        }
    }
}
