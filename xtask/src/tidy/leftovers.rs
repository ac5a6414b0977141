//! Files and items without a user: outputs of programs, modules without a `mod` line, public items without a user.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::files::{code, is_comment};

/// Extensions of outputs: states of fio, logs, core files, leftovers of an editor or a merge.
const OUTPUTS: [&str; 8] = [".state", ".log", ".core", ".orig", ".rej", ".bak", ".swp", ".profraw"];

/// Public functions through which tests of other crates and fuzzing drive a card. Entries are only removed.
const FOR_TESTS: [&str; 3] = [
    "handle_damaged_command", // a command that the bus damaged
    "poll_queue",             // the time that fuzzing advances to
    "spoil",                  // a page that stops reading
];

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

/// Public functions and constants of a crate that nothing uses but tests, or that no other file names.
///
/// A name that occurs anywhere else counts as a use, so a reported item certainly has no user. `tests` are files that
/// belong to tests only.
pub(crate) fn unused(texts: &[(String, String)], tests: &[String]) -> Vec<String> {
    let sources = || texts.iter().filter(|(path, _)| path.ends_with(".rs"));
    let mut in_files: HashMap<&str, u32> = HashMap::new();
    let mut in_product: HashMap<&str, u32> = HashMap::new();
    for (path, text) in sources() {
        let named: BTreeSet<&str> = text.lines().filter(|line| !is_comment(line)).flat_map(words).collect();
        named.into_iter().for_each(|word| *in_files.entry(word).or_default() += 1);
        if !is_test(path, tests) {
            product(text).flat_map(|(_, line)| words(line)).for_each(|word| *in_product.entry(word).or_default() += 1);
        }
    }
    let mut found = Vec::new();
    for (path, text) in sources().filter(|(path, _)| is_library(path) && !is_test(path, tests)) {
        for (index, name) in product(text).filter_map(|(index, line)| Some((index, public(line)?))) {
            let what = match (in_files.get(name), in_product.get(name)) {
                (Some(0 | 1), _) => "is public and named in no other file",
                (_, None | Some(0 | 1)) if !FOR_TESTS.contains(&name) => "is public and used by tests only",
                _ => continue,
            };
            found.push(format!("{path}:{}: `{name}` {what}", index + 1));
        }
    }
    found
}

fn is_library(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/")
}

/// Whether only tests, benchmarks of functions and fuzzing are built of a file.
fn is_test(path: &str, tests: &[String]) -> bool {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let folders = ["/tests/", "/benches/", "/fuzz_targets/"];
    folders.iter().any(|folder| path.contains(folder)) || tests.iter().any(|test| stem.starts_with(test.as_str()))
}

/// The lines of a file outside its own tests, but for what is built for tests only: an item after `#[cfg(test)]`.
fn product(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let above = [""].into_iter().chain(text.lines());
    let is_for_tests = text.lines().zip(above).map(|(_, above)| above.trim() == "#[cfg(test)]");
    let lines: Vec<bool> = is_for_tests.collect();
    code(text).filter(move |(index, _)| !lines.get(*index).is_some_and(|is_for_tests| *is_for_tests))
}

/// The name of a public function or constant.
fn public(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest =
        ["const fn ", "unsafe fn ", "fn ", "const ", "static "].iter().find_map(|word| rest.strip_prefix(word))?;
    words(rest).next()
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
        ];
        let found = ["crates/a/src/lib.rs:2: `lost_here` is public and named in no other file"];
        assert_eq!(unused(&files(&tree), &[]), found);
    }

    #[test]
    fn a_public_item_that_only_tests_use_is_found() {
        let own = "pub fn inline() {}\n#[cfg(test)]\nmod tests {\n    fn a() { super::inline() }\n}\n";
        let tree = [
            ("crates/a/src/lib.rs", "pub fn one() {}\npub fn two() {}\npub fn three() {}\npub fn four() {}\n"),
            ("crates/a/src/b.rs", own),
            ("crates/a/src/c.rs", "#[cfg(test)]\npub fn of_tests() {}\nfn c() { inline_too() }\n"),
            ("crates/a/src/c/tests.rs", "use one;\nuse of_tests;\n"),
            ("crates/b/src/lib.rs", "use four;\n"),
            ("crates/b/tests/it/main.rs", "use two;\nuse inline;\n"),
            ("fuzz/fuzz_targets/x.rs", "use three;\n"),
        ];
        let expected = [("lib.rs:1", "one"), ("lib.rs:2", "two"), ("lib.rs:3", "three"), ("b.rs:1", "inline")];
        let expected =
            expected.map(|(place, name)| format!("crates/a/src/{place}: `{name}` is public and used by tests only"));
        assert_eq!(unused(&files(&tree), &["crates/a/src/c/tests".into()]), expected);
    }
}
