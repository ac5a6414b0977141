//! The Debian package: made by cargo-deb from the files of the archive.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;

use super::{Copy, files, run_all};
use crate::targets::Target;

/// Where `crates/emmclab/Cargo.toml` says that the files are.
const STAGE: &str = "target/debian-files";

/// Makes the package, or says why not.
pub(super) fn package(copy: &Copy, target: &Target, tree: &Path) -> anyhow::Result<()> {
    let version = Command::new("cargo").args(["deb", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        println!("SKIPPED: .deb for {}: no cargo-deb (cargo install --locked cargo-deb)", target.name);
        return Ok(());
    }
    let stage = copy.source.join(STAGE);
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    for file in files(&tree.join("share"))? {
        let place = stage.join(file.strip_prefix(tree)?);
        fs::create_dir_all(place.parent().context("a file without a folder")?)?;
        fs::copy(&file, place)?;
    }
    let name = format!("emmclab_{}_{}.deb", copy.version, target.debian);
    let mut cargo = Command::new("cargo");
    cargo.args([
        "deb",
        "--quiet",
        "--no-build",
        "--no-strip",
        "--locked",
        "--package",
        "emmclab",
        "--target",
        target.triple,
    ]);
    cargo.args(["--profile", copy.profile, "--output"]).arg(copy.out.join(name)).current_dir(&copy.source);
    run_all(cargo.env("CARGO_TARGET_DIR", &copy.target).env("SOURCE_DATE_EPOCH", &copy.epoch))
}
