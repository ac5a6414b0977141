//! Files and items without a user: outputs of programs, modules without a `mod` line, public items without a user.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Extensions of outputs: states of fio, logs, core files, leftovers of an editor or a merge.
const OUTPUTS: [&str; 8] = [".state", ".log", ".core", ".orig", ".rej", ".bak", ".swp", ".profraw"];

/// Crates whose public items are an interface in themselves: the standard's registers.
const INTERFACES: [&str; 1] = ["crates/emmc-regs/"];

/// Files that still have public items without a user. Entries are only removed.
const NOT_YET: [&str; 1] = ["crates/emmc-analysis/"];

/// An output of a program that is in the tree by mistake.
pub(crate) fn output(path: &str) -> Option<String> {
    if path.starts_with("testdata/") {
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_output = OUTPUTS.iter().any(|end| name.ends_with(end)) || name == "core" || name.starts_with("core.");
    is_output.then(|| format!("{path}: an output of a program; delete it"))
}

/// Source files that no `mod` line leads to.
pub(crate) fn orphans(texts: &[(String, String)]) -> Vec<String> {
    let sources: BTreeMap<&str, &str> =
        texts.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(path, text)| (&**path, &**text)).collect();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut next: Vec<String> = sources.keys().filter(|path| is_root(path)).map(|path| path.to_string()).collect();
    while let Some(path) = next.pop() {
        let Some(text) = sources.get(&*path) else { continue };
        if reached.insert(path.clone()) {
            next.extend(modules(&path, text));
        }
    }
    let orphans = sources.keys().filter(|path| !reached.contains(**path));
    orphans.map(|path| format!("{path}: no `mod` line leads here")).collect()
}

/// What cargo builds by its place alone.
fn is_root(path: &str) -> bool {
    let Some((folder, name)) = path.rsplit_once('/') else { return true };
    let parent = folder.rsplit('/').next().unwrap_or(folder);
    let is_target = |folder: &str| ["tests", "benches", "examples", "fuzz_targets", "bin"].contains(&folder);
    let above = folder.rsplit('/').nth(1).unwrap_or_default();
    match name {
        "lib.rs" | "build.rs" => true,
        "main.rs" => parent == "src" || is_target(above),
        _ => is_target(parent),
    }
}

/// The files that the `mod` lines of a file can lead to.
fn modules(path: &str, text: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let has_own_folder = !is_root(path) && stem != "mod";
    let inner = if has_own_folder { format!("{folder}/{stem}") } else { folder.to_string() };
    let mut files = Vec::new();
    let mut placed: Option<(bool, String)> = None;
    for line in text.lines().map(str::trim) {
        if let Some((always, file)) = attribute(line) {
            placed = Some((always, normal(&format!("{folder}/{file}"))));
        } else if let Some(module) = declared(line) {
            let usual = [format!("{inner}/{module}.rs"), format!("{inner}/{module}/mod.rs")];
            match placed.take() {
                Some((true, file)) => files.push(file),
                Some((false, file)) => files.extend(usual.into_iter().chain([file])),
                None => files.extend(usual),
            }
        }
    }
    files
}

/// The file in `#[path = "FILE"]`; `false` if there is a condition (`#[cfg_attr(..., path = "FILE")]`).
fn attribute(line: &str) -> Option<(bool, &str)> {
    let is_attribute = line.starts_with("#[") || line.starts_with("path = ");
    let file = line.split_once("path = \"")?.1.split('"').next()?;
    is_attribute.then_some((line.starts_with("#[path"), file))
}

/// The name in `mod NAME;`, `pub mod NAME;` or `pub(crate) mod NAME;`.
fn declared(line: &str) -> Option<&str> {
    let (before, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
    let is_module = before.is_empty() || before.starts_with("pub") && before.ends_with(' ');
    (is_module && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}

/// A path without `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Public functions and constants of a crate that are named in no other file.
///
/// A name that occurs anywhere else counts as a use, so a reported item certainly has no user.
pub(crate) fn unused(texts: &[(String, String)]) -> Vec<String> {
    let mut files: HashMap<&str, u32> = HashMap::new();
    for (_, text) in texts.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let words: BTreeSet<&str> = code(text).flat_map(words).collect();
        words.into_iter().for_each(|word| *files.entry(word).or_default() += 1);
    }
    let mut found = Vec::new();
    for (path, text) in texts {
        let is_library = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
        if !is_library || INTERFACES.iter().chain(&NOT_YET).any(|begin| path.starts_with(begin)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = public(line).filter(|name| files.get(name).copied().unwrap_or(0) <= 1) {
                found.push(format!("{path}:{}: `{name}` is public and named in no other file", index + 1));
            }
        }
    }
    found
}

/// The name of a public function or constant.
fn public(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest =
        ["const fn ", "unsafe fn ", "fn ", "const ", "static "].iter().find_map(|word| rest.strip_prefix(word))?;
    words(rest).next()
}

fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
    }

    #[test]
    fn outputs_of_programs_are_found() {
        for path in ["crates/a/local-loop-0-verify.state", "core", "core.1234", "bench.log", "a.rs.orig"] {
            assert!(output(path).is_some(), "{path}");
        }
        for path in ["testdata/traces/fio.log", "src/core_clock.rs", "docs/state.md", "crates/a/src/log.rs"] {
            assert_eq!(output(path), None, "{path}");
        }
    }

    #[test]
    fn a_file_without_a_mod_line_is_found() {
        let tree = [
            (
                "crates/a/src/lib.rs",
                "mod x;\npub(crate) mod y;\n#[cfg_attr(\n    b,\n    path = \"c.rs\"\n)]\nmod d;\n",
            ),
            ("crates/a/src/c.rs", ""),
            ("crates/a/src/d.rs", ""),
            ("crates/a/src/x.rs", "#[cfg(test)]\nmod tests;\n"),
            ("crates/a/src/x/tests.rs", ""),
            ("crates/a/src/y/mod.rs", "#[cfg(test)]\n#[path = \"../z/placed.rs\"]\nmod tests;\n"),
            ("crates/a/src/z/placed.rs", ""),
            ("crates/a/tests/it/main.rs", "mod one;\n"),
            ("crates/a/tests/it/one.rs", ""),
        ];
        assert_eq!(orphans(&files(&tree)), [] as [&str; 0]);
        let lost = [&tree[..], &[("crates/a/tests/it/two.rs", ""), ("crates/a/src/x/lost.rs", "")]].concat();
        let found = orphans(&files(&lost));
        let expected = ["crates/a/src/x/lost.rs", "crates/a/tests/it/two.rs"];
        assert_eq!(found, expected.map(|path| format!("{path}: no `mod` line leads here")));
    }

    #[test]
    fn a_public_item_without_a_user_is_found() {
        let tree = [
            ("crates/a/src/lib.rs", "pub fn used() {}\n    pub const fn lost_here() {}\n// lost_here\n"),
            ("crates/a/src/b.rs", "// lost_here is named in a comment only\nuse crate::used;\n"),
            ("crates/emmc-regs/src/lib.rs", "pub fn crc() {}\n"),
        ];
        assert_eq!(unused(&files(&tree)), ["crates/a/src/lib.rs:2: `lost_here` is public and named in no other file"]);
    }
}
