//! A tree of unpacked packages, and running its programs where they lie.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// The tree's own dynamic loader, which needs no library of this machine.
const LOADER: &str = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";

/// A tree of unpacked packages.
pub(crate) struct Tree {
    pub(crate) dir: PathBuf,
}

impl Tree {
    /// The tree at `dir`.
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf() }
    }

    /// A file of the tree.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.join(relative)
    }

    /// A program of the tree, run with the tree's libraries and no change of root.
    pub(crate) fn program(&self, relative: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(self.path(LOADER));
        command.arg("--library-path").arg(self.library_path()?);
        let name = Path::new(relative).file_name().with_context(|| format!("{relative:?} names no program"))?;
        // One file can be several programs, by the name it is called.
        command.arg("--argv0").arg(name).arg(self.path(relative));
        Ok(command)
    }

    /// What a program prints.
    pub(crate) fn output(&self, relative: &str, args: &[&Path]) -> anyhow::Result<Vec<u8>> {
        let output = self.program(relative)?.args(args).output().with_context(|| format!("cannot run {relative}"))?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{relative}: {}: {}", output.status, error.trim());
        Ok(output.stdout)
    }

    /// The files of the libraries that a program is loaded with, its loader among them; empty if it is a static one.
    pub(crate) fn libraries_of(&self, relative: &str) -> anyhow::Result<BTreeSet<PathBuf>> {
        let mut command = Command::new(self.path(LOADER));
        let output = command.arg("--library-path").arg(self.library_path()?).arg("--list").arg(self.path(relative));
        let output = output.output().context("cannot run the tree's loader: the guest can be built on x86-64 only")?;
        let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if error.contains("not a dynamic executable") || text.contains("statically linked") {
            return Ok(BTreeSet::new());
        }
        ensure!(output.status.success(), "{relative}: {}{}", error.trim(), text.trim());
        // NAME => PATH (ADDRESS), or PATH (ADDRESS) for the loader, or a NAME of the kernel's own
        let path = |line: &str| {
            let line = line.trim();
            let path = line.split_once(" => ").map_or(line, |(_, path)| path);
            path.starts_with('/').then(|| PathBuf::from(path.split(" (").next().unwrap_or(path)))
        };
        let mut libraries: BTreeSet<PathBuf> =
            text.lines().filter_map(path).filter(|path| path.starts_with(&self.dir)).collect();
        libraries.insert(self.path(LOADER));
        Ok(libraries)
    }

    /// Every folder of libraries: some packages keep theirs one level below.
    fn library_path(&self) -> anyhow::Result<String> {
        let top = self.path(LIBRARIES);
        let mut folders = vec![top.display().to_string()];
        for entry in fs::read_dir(&top).with_context(|| top.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() && holds_libraries(&path) {
                folders.push(path.display().to_string());
            }
        }
        folders[1..].sort();
        Ok(folders.join(":"))
    }
}

fn holds_libraries(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with("lib") && name.contains(".so")
    })
}
