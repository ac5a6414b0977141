//! Every test that docs/safety.md names exists.

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

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/safety.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut count = 0;
    for command in page.split('`').skip(1).step_by(2) {
        let words: Vec<&str> = command.split(' ').collect();
        let (folder, filter) = match words[..] {
            ["T", filter] if filter != "NAME" => ("crates/emmclab/tests/it".to_owned(), filter),
            ["cargo", "test", "-p", name, .., filter] if filter != "NAME" => (format!("crates/{name}"), filter),
            _ => continue,
        };
        let mut found = Vec::new();
        sources(&root.join(&folder), &mut found);
        assert!(runs(filter, &found), "docs/safety.md: `{command}`: no such test in {folder}");
        count += 1;
    }
    assert!(count > 30, "{count} tests are named");
    let mut found = Vec::new();
    sources(&root.join("crates/emmclab/tests/it"), &mut found);
    for unknown in ["bench_real::no_such_test", "no_such_module::", "no_such_test"] {
        assert!(!runs(unknown, &found), "{unknown}");
    }
}
