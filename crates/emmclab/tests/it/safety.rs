//! Every test that docs/safety.md and ARCHITECTURE.md name exists.

use std::path::{Path, PathBuf};

/// The sources under a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Whether `cargo test` would run something for this filter among these sources.
fn runs(filter: &str, sources: &[PathBuf]) -> bool {
    let (module, name) = filter.rsplit_once("::").unwrap_or(("", filter));
    let last = module.rsplit("::").next().unwrap_or_default();
    let is_in = |path: &&PathBuf| {
        last.is_empty() || path.components().any(|part| Path::new(part.as_os_str()).file_stem() == Some(last.as_ref()))
    };
    let mut places = sources.iter().filter(is_in);
    places.any(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let mut tests = text.split("#[test]").skip(1).filter_map(|after| after.split_once("fn ")).map(|(_, name)| name);
        tests.any(|test| test.starts_with(name) || module.is_empty() && test.split('(').next().unwrap().contains(name))
    })
}

/// The tests that a page names: `T FILTER` and `cargo test -p CRATE ... FILTER`. Each must exist; returns their number.
fn named_by(name: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join(name)).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut count = 0;
    for command in page.split('`').skip(1).step_by(2) {
        let words: Vec<&str> = command.split(' ').collect();
        let (folder, filter) = match words[..] {
            ["T", filter] if filter != "NAME" => ("crates/emmclab/tests/it".to_owned(), filter),
            ["cargo", "test", "-p", name, .., filter] if filter != "NAME" && !filter.starts_with("--") => {
                (format!("crates/{name}"), filter)
            }
            _ => continue,
        };
        let mut found = Vec::new();
        sources(&root.join(&folder), &mut found);
        assert!(runs(filter, &found), "{name}: `{command}`: no such test in {folder}");
        count += 1;
    }
    count
}

#[test]
fn every_test_that_a_page_names_exists() {
    for (name, at_least) in [("docs/safety.md", 30), ("ARCHITECTURE.md", 30)] {
        let count = named_by(name);
        assert!(count > at_least, "{name}: {count} tests are named");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    sources(&root.join("tests/it"), &mut found);
    for unknown in ["bench_real::no_such_test", "no_such_module::", "no_such_test"] {
        assert!(!runs(unknown, &found), "{unknown}");
    }
}
