//! The rules of style that a program can check, over every file that git knows or would add.

mod crates;
mod files;
mod leftovers;
mod modules;
mod pages;
mod registers;
mod words;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata::{self, Workspace};

/// Prints every violation; fails if there is one.
pub(crate) fn run() -> anyhow::Result<()> {
    let violations = violations()?;
    for violation in &violations {
        eprintln!("{violation}");
    }
    ensure!(violations.is_empty(), "{} violations of the rules in xtask/src/tidy", violations.len());
    Ok(())
}

fn violations() -> anyhow::Result<Vec<String>> {
    let Workspace { root, packages, .. } = metadata::workspace()?;
    let mut texts = Vec::new();
    let mut test_data = Vec::new();
    let mut violations = Vec::new();
    for path in tracked(&root)? {
        // Deleted but unstaged files are skipped; a link is checked at its target.
        let file = root.join(&path);
        if file.is_symlink() || !file.is_file() {
            continue;
        }
        violations.extend(leftovers::output(&path));
        let bytes = std::fs::read(&file).with_context(|| path.clone())?;
        test_data.extend(path.strip_prefix("testdata/").map(str::to_string));
        texts.extend(String::from_utf8(bytes).ok().map(|text| (path, text)));
    }
    let tests: Vec<String> = texts.iter().flat_map(|(path, text)| files::test_files(path, text)).collect();
    violations.extend(texts.iter().flat_map(|(path, text)| files::check(path, text, &tests)));
    violations.extend(texts.iter().flat_map(|(path, text)| words::check(path, text)));
    violations.extend(texts.iter().flat_map(|(path, text)| pages::wide(path, text)));
    violations.extend(pages::missing(&texts));
    let fields = registers::fields(&texts);
    violations.extend(texts.iter().flat_map(|(path, text)| registers::check(path, text, &tests, &fields)));
    let is_test = |path: &str| tests.iter().any(|test| path.starts_with(test.as_str()));
    violations.extend(texts.iter().flat_map(|(path, text)| modules::check(path, text, is_test(path))));
    violations.extend(leftovers::orphans(&texts));
    violations.extend(leftovers::unused(&texts, &tests));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    violations.extend(files::provenance(&test_data, &read("testdata/README.md")));
    violations.extend(files::changelog(&read("CHANGELOG.md")));
    violations.extend(crates::check(&packages));
    violations.extend(crate::recipes::violations(&root)?);
    Ok(violations)
}

fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let output = git.output().context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    let mut paths: Vec<String> = String::from_utf8(output.stdout)?.split_terminator('\0').map(str::to_string).collect();
    paths.dedup();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let violations = super::violations().unwrap();
        assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
    }
}
