//! The recipes in `contrib`: the parts derived from other files, and the trials without their build systems.

mod trial;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata;

/// Yocto's list of crates.
const CRATES: &str = "contrib/yocto/meta-emmclab/recipes-bsp/emmclab/emmclab-crates.inc";
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
/// Each with the line that must hold this version.
const VERSIONS: [(&str, &str); 2] = [
    ("contrib/buildroot/emmclab/emmclab.mk", concat!("EMMCLAB_VERSION = ", env!("CARGO_PKG_VERSION"))),
    ("contrib/openwrt/emmclab/Makefile", concat!("PKG_VERSION:=", env!("CARGO_PKG_VERSION"))),
];
/// Its name holds the version.
const BITBAKE: &str =
    concat!("contrib/yocto/meta-emmclab/recipes-bsp/emmclab/emmclab_", env!("CARGO_PKG_VERSION"), ".bb");
const BUILDROOT_SUMS: &str = "contrib/buildroot/emmclab/emmclab.hash";

/// Writes the derived parts; with `--check`, tries the recipes.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let workspace = metadata::workspace()?;
    match options {
        [] => {
            let lock = fs::read_to_string(workspace.root.join("Cargo.lock")).context("Cargo.lock")?;
            let path = workspace.root.join(CRATES);
            fs::write(&path, crates(&lock)).with_context(|| path.display().to_string())
        }
        ["--check"] => {
            let violations = violations(&workspace.root)?;
            ensure!(violations.is_empty(), "{}", violations.join("\n"));
            trial::openwrt(&workspace)?;
            trial::buildroot(&workspace)
        }
        _ => anyhow::bail!("unknown {options:?}; expected nothing or --check"),
    }
}

/// The parts of the recipes that disagree with other files.
pub(crate) fn violations(root: &Path) -> anyhow::Result<Vec<String>> {
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let mut violations = Vec::new();
    if read(CRATES)? != crates(&read("Cargo.lock")?) {
        violations.push(format!("{CRATES}: is not what Cargo.lock says (cargo xtask recipes)"));
    }
    for (path, line) in VERSIONS {
        if !read(path)?.lines().any(|found| found == line) {
            violations.push(format!("{path}: no line {line:?}"));
        }
    }
    for (program, path) in [("md5sum", BITBAKE), ("sha256sum", BUILDROOT_SUMS)] {
        let recipe = read(path)?;
        for license in LICENSES {
            let output = Command::new(program).arg(license).current_dir(root).output().context(program)?;
            let sum = String::from_utf8_lossy(&output.stdout);
            let sum = sum.split(' ').next().unwrap_or_default().to_owned();
            ensure!(output.status.success() && !sum.is_empty(), "{program} {license}: {}", output.status);
            if !recipe.contains(&sum) {
                violations.push(format!("{path}: the sum of {license} is {sum}"));
            }
        }
    }
    Ok(violations)
}

/// What `bitbake -c update_crates` makes of a Cargo.lock.
fn crates(lock: &str) -> String {
    // Yocto's own name of the registry.
    let registry = concat!("crates", ".io");
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.and_then(|line| line.strip_suffix('"')).map(str::to_owned)
    };
    let blocks = lock.split("[[package]]").skip(1);
    let found: Vec<[String; 3]> = blocks
        .filter_map(|block| Some([value(block, "name")?, value(block, "version")?, value(block, "checksum")?]))
        .collect();
    let mut text = String::from("# Made by `cargo xtask recipes`.\n\n# from Cargo.lock\nSRC_URI += \" \\\n");
    for [name, version, _] in &found {
        text += &format!("    crate://{registry}/{name}/{version};name={name}-{version} \\\n");
    }
    text += "\"\n";
    for [name, version, sum] in &found {
        text += &format!("\nSRC_URI[{name}-{version}.sha256sum] = \"{sum}\"");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_crates_has_the_form_of_bitbake() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.2.3\"\nsource = \"x\"\nchecksum = \"0f\"\n\n\
                    [[package]]\nname = \"own\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n]\n";
        let expected = concat!(
            "# Made by `cargo xtask recipes`.\n\n# from Cargo.lock\nSRC_URI += \" \\\n    crate://crates",
            ".io/a/1.2.3;name=a-1.2.3 \\\n\"\n\nSRC_URI[a-1.2.3.sha256sum] = \"0f\"\n"
        );
        assert_eq!(crates(lock), expected);
    }
}
