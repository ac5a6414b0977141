//! The package in a bare Debian: installed, run, purged; afterwards no file of it is left.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, ensure};

use super::run_all;
use crate::guest::packages::{RELEASE, own_mirror};
use crate::targets::Target;

/// A real part's registers, and the output of `check`.
const DUMP: &str = "testdata/ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex";

/// Does it, or says why not.
pub(super) fn trial(root: &Path, base: &Path, out: &Path, target: &Target) -> anyhow::Result<()> {
    let deb = format!("emmclab_{}_{}.deb", env!("CARGO_PKG_VERSION"), target.debian);
    let reason = if !out.join(&deb).exists() {
        Some("no package was made")
    } else if !is_root()? {
        Some("only root may chroot")
    } else if Command::new("mmdebstrap").arg("--version").output().is_err() {
        Some("no mmdebstrap (apt-get install mmdebstrap)")
    } else {
        None
    };
    if let Some(reason) = reason {
        println!("SKIPPED: installation in a bare Debian: {reason}");
        return Ok(());
    }
    let bare = base.join("bare");
    remove(&bare)?;
    make(&bare)?;
    let result = in_it(&bare, &out.join(&deb), &deb, &root.join(DUMP));
    remove(&bare)?;
    result
}

/// The smallest Debian that can install packages.
fn make(bare: &Path) -> anyhow::Result<()> {
    let mirror = own_mirror()?;
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--mode=root", "--variant=essential"]);
    run_all(command.args(["--format=directory", RELEASE]).arg(bare).arg(mirror))
}

fn in_it(bare: &Path, deb: &Path, name: &str, dump: &Path) -> anyhow::Result<()> {
    fs::copy(deb, bare.join("tmp").join(name))?;
    fs::copy(dump, bare.join("tmp/ext_csd.hex"))?;
    let before = tree(bare)?;
    answers(bare, &["dpkg", "--install", &format!("/tmp/{name}")], 0)?;
    let listed = answers(bare, &["dpkg", "--listfiles", "emmclab"], 0)?;
    for file in [
        "/usr/bin/emmclab",
        "/usr/share/man/man1/emmclab.1.gz",
        "/usr/share/bash-completion/completions/emmclab",
        "/usr/share/doc/emmclab/LICENSE-APACHE",
        "/usr/share/doc/emmclab/emmclab.cdx.json",
    ] {
        ensure!(listed.lines().any(|line| line == file), "{name} has no {file}");
        ensure!(bare.join(file.trim_start_matches('/')).is_file(), "{file} was not installed");
    }
    answers(bare, &["emmclab", "--version"], 0)?;
    let show = answers(bare, &["emmclab", "show", "/tmp/ext_csd.hex"], 0)?;
    ensure!(show.contains("8GME4R") || show.contains("SEC_COUNT"), "show: {show}");
    let check = answers(bare, &["emmclab", "check", "/tmp/ext_csd.hex"], 0)?;
    ensure!(check.starts_with("EMMC OK - "), "check: {check}");
    answers(bare, &["dpkg", "--purge", "emmclab"], 0)?;
    let after = tree(bare)?;
    let left: Vec<_> = after.difference(&before).collect();
    ensure!(left.is_empty(), "after the purge there is still {left:?}");
    let gone: Vec<_> = before.difference(&after).collect();
    ensure!(gone.is_empty(), "the purge took {gone:?} with it");
    println!("{name}: installed in a bare Debian {RELEASE}, run ({}), purged: nothing is left", check.trim());
    Ok(())
}

/// What a command in the chroot prints, if it ends with `code`.
fn answers(bare: &Path, command: &[&str], code: i32) -> anyhow::Result<String> {
    let mut chroot = Command::new("chroot");
    chroot.arg(bare).args(command).env_clear().env("LC_ALL", "C.UTF-8");
    chroot.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("DEBIAN_FRONTEND", "noninteractive");
    let Output { status, stdout, stderr } = chroot.output().context("cannot run chroot")?;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.code() == Some(code), "in the bare Debian: {command:?}: {status}\n{stdout}{stderr}");
    Ok(stdout.into_owned())
}

/// Every file and folder but dpkg's own records, which remember that there was a package.
fn tree(bare: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![bare.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if ["proc", "sys", "dev", "var/lib/dpkg", "var/log"].iter().any(|own| path == bare.join(own)) {
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path.clone());
            }
            found.insert(path);
        }
    }
    Ok(found)
}

fn remove(bare: &Path) -> anyhow::Result<()> {
    if !bare.exists() {
        return Ok(());
    }
    // A failed bootstrap may have left mounts; no file below them may be removed.
    let mounts = fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
    let inside =
        mounts.lines().find(|line| line.split(' ').nth(1).is_some_and(|place| Path::new(place).starts_with(bare)));
    ensure!(inside.is_none(), "{}: something is mounted in it: {inside:?}", bare.display());
    fs::remove_dir_all(bare).with_context(|| bare.display().to_string())
}

fn is_root() -> anyhow::Result<bool> {
    Ok(crate::targets::output("id", &["-u"])?.trim() == "0")
}
