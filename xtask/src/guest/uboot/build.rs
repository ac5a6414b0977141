//! U-Boot as the firmware of QEMU's PC, built from Debian's source with its driver for SD host controllers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::guest::source::{check_options, finish, needs};

/// Debian's source package.
pub(crate) const PACKAGE: &str = "u-boot";

const CONFIG: &str = include_str!("../../../guest/uboot/u-boot.config");

/// What must change when this builder changes.
pub(crate) const RECIPE: &str = concat!(include_str!("build.rs"), include_str!("../../../guest/uboot/u-boot.config"));

const NEEDED: [(&str, &str); 6] = [
    ("gcc", "gcc"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bzip2", "bzip2"),
    ("swig", "swig python3-dev python3-setuptools python3-pyelftools"),
];

/// Builds the image from the packed source into the file `rom`, in the folder `work`.
pub(crate) fn build(packed: &Path, work: &Path, rom: &Path) -> anyhow::Result<()> {
    needs("U-Boot", &NEEDED)?;
    let mut tar = Command::new("nice");
    tar.args(["tar", "--extract", "--bzip2", "--strip-components=1", "--file"])
        .arg(packed)
        .arg("--directory")
        .arg(work);
    finish(&mut tar, "unpacking U-Boot's source")?;
    finish(make(work).arg("qemu-x86_defconfig"), "configuring U-Boot")?;
    let options: PathBuf = work.join("emmclab.config");
    fs::write(&options, CONFIG)?;
    let mut merge = Command::new("scripts/kconfig/merge_config.sh");
    finish(merge.args(["-m", ".config"]).arg(&options).current_dir(work), "configuring U-Boot")?;
    finish(make(work).arg("olddefconfig"), "configuring U-Boot")?;
    check_options(work, CONFIG)?;
    finish(&mut make(work), "building U-Boot")?;
    fs::copy(work.join("u-boot.rom"), rom).context("U-Boot's image")?;
    Ok(())
}

/// `make` with what makes the image the same wherever it is built.
fn make(source: &Path) -> Command {
    let mut command = Command::new("nice");
    command.args(["make", "--silent", "-j2"]).current_dir(source);
    command.env("SOURCE_DATE_EPOCH", "1704067200").env("LC_ALL", "C");
    // An outer make's jobs are not ours.
    command.env_remove("MAKEFLAGS");
    command
}
