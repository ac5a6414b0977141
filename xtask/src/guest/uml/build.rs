//! The kernel of User-Mode Linux, built from Debian's kernel source.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::guest::source::{check_options, finish, needs};

/// The source: the same version as the kernel of the guest in QEMU.
pub(crate) const PACKAGES: [&str; 1] = ["linux-source-6.12"];
const SOURCE: &str = "linux-source-6.12";

/// Options, changes and our own file: the last two are under the kernel's licence, GPL-2.0.
const CONFIG: &str = include_str!("../../../guest/uml/kernel.config");
const EDITS: &str = include_str!("../../../guest/uml/edits");
const SIMULATED: &str = include_str!("../../../guest/uml/simulated.c");
const SIMULATED_AT: &str = "arch/um/kernel/simulated.c";

/// What must change when this builder changes.
pub(crate) const RECIPE: &str = concat!(
    include_str!("build.rs"),
    include_str!("../../../guest/uml/kernel.config"),
    include_str!("../../../guest/uml/edits"),
    include_str!("../../../guest/uml/simulated.c")
);

/// Programs that the build runs, and their Debian packages.
const NEEDED: [(&str, &str); 6] =
    [("gcc", "gcc"), ("make", "make"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("xz", "xz-utils")];

/// Errors: programs are missing; all are named.
pub(crate) fn check_host() -> anyhow::Result<()> {
    needs("User-Mode Linux", &NEEDED)
}

/// Builds the kernel of the source in `tree` into the file `kernel`, in the folder `work`.
pub(crate) fn build(tree: &Path, work: &Path, kernel: &Path) -> anyhow::Result<()> {
    let packed = tree.join(format!("usr/src/{SOURCE}.tar.xz"));
    let mut tar = Command::new("nice");
    tar.args(["tar", "--extract", "--xz", "--file"]).arg(&packed).arg("--directory").arg(work);
    finish(&mut tar, "unpacking the kernel's source")?;
    let source = work.join(SOURCE);
    edit(&source, EDITS)?;
    fs::write(source.join(SIMULATED_AT), SIMULATED)?;
    let options = work.join("kernel.config");
    fs::write(&options, CONFIG)?;
    let mut config = make(&source);
    config.arg("allnoconfig").env("KCONFIG_ALLCONFIG", &options);
    finish(&mut config, "configuring the kernel")?;
    check_options(&source, CONFIG)?;
    finish(make(&source).arg("linux"), "building the kernel")?;
    let mut strip = Command::new("strip");
    finish(strip.arg("-o").arg(kernel).arg(source.join("linux")), "stripping the kernel")
}

/// `make` with what makes the kernel the same wherever it is built.
fn make(source: &Path) -> Command {
    let mut command = Command::new("nice");
    command.args(["make", "--silent", "-j2", "ARCH=um"]).current_dir(source);
    for (name, value) in [
        ("KBUILD_BUILD_TIMESTAMP", "2024-01-01"),
        ("KBUILD_BUILD_USER", "emmclab"),
        ("KBUILD_BUILD_HOST", "emmclab"),
        ("LC_ALL", "C"),
    ] {
        command.env(name, value);
    }
    // An outer make's jobs are not ours.
    command.env_remove("MAKEFLAGS");
    command
}

/// Makes the changes.
///
/// Errors: a piece is not in its file, so the source is another one than they were written for.
fn edit(source: &Path, edits: &str) -> anyhow::Result<()> {
    let mut path = source.to_path_buf();
    let mut piece = None;
    for line in edits.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (kind, text) = line.split_once(' ').with_context(|| format!("edits: {line:?}"))?;
        let text = text.replace("\\n", "\n").replace("\\t", "\t");
        match (kind, piece.take()) {
            ("file", None) => path = source.join(text),
            ("-", None) => piece = Some(text),
            ("+", Some(old)) => {
                let content = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                ensure!(content.contains(&old), "{}: {old:?} is not there", path.display());
                fs::write(&path, content.replace(&old, &text))?;
            }
            ("end", None) => {
                let content = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                fs::write(&path, format!("{content}{text}\n"))?;
            }
            _ => bail!("edits: {line:?} is out of place"),
        }
    }
    ensure!(piece.is_none(), "edits: the last piece has no replacement");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new folder, which the test removes.
    fn folder() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("emmclab-edits-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn changes_are_made_or_refused() {
        let folder = folder();
        fs::write(folder.join("a"), "one\ttwo\none\n").unwrap();
        edit(&folder, "# comment\n\nfile a\n- one\n+ 1\\n\nend last\n- \\ttwo\n+ 2\n").unwrap();
        assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "1\n2\n1\n\nlast\n");
        for bad in
            ["file a\n- none\n+ x\n", "file b\n- 1\n+ x\n", "file a\n+ x\n", "file a\n- 1\n", "file a\n- 1\n- 2\n"]
        {
            assert!(edit(&folder, bad).is_err(), "{bad:?}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_edits_are_well_formed() {
        let kinds: Vec<&str> = EDITS.lines().filter_map(|line| line.split(' ').next()).collect();
        let count = |kind: &str| kinds.iter().filter(|found| **found == kind).count();
        assert_eq!(count("-"), count("+"));
        assert!(count("file") > 0 && EDITS.starts_with("# SPDX-License-Identifier: GPL-2.0"));
        assert!(SIMULATED.starts_with("// SPDX-License-Identifier: GPL-2.0"));
        assert!(CONFIG.lines().filter(|line| line.starts_with("CONFIG_")).count() > 40);
    }
}
