//! What can be tried of the recipes without the build systems they are for.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata::Workspace;

/// What OpenWrt's own files define for a package of a Rust program, as far as the recipe uses it.
const STAND_INS: [(&str, &str); 3] = [
    ("rules.mk", "INCLUDE_DIR:=$(TOPDIR)/include\n"),
    (
        "include/package.mk",
        "define BuildPackage\nall:\n\t@echo '$(1) $(PKG_VERSION) $(PKG_SOURCE)'\n\t@echo '$(Build/Compile)'\nendef\n",
    ),
    (
        "feeds/packages/lang/rust/rust-package.mk",
        "define Build/Compile/Cargo\ncargo install --path $(1) $(2)\nendef\ndefine RustBinPackage\nendef\n",
    ),
];

/// Has `make` read the recipe.
pub(super) fn openwrt(workspace: &Workspace) -> anyhow::Result<()> {
    let top = fresh(workspace, "openwrt")?;
    for (place, text) in STAND_INS {
        let path = top.join(place);
        fs::create_dir_all(path.parent().context("a file without a folder")?)?;
        fs::write(path, text)?;
    }
    let mut make = Command::new("make");
    make.arg("-C").arg(workspace.root.join("contrib/openwrt/emmclab")).arg(format!("TOPDIR={}", top.display()));
    let output = make.args(["--silent", "--no-print-directory", "--warn-undefined-variables", "all"]).output();
    let output = output.context("cannot run make")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "contrib/openwrt: {}", String::from_utf8_lossy(&output.stderr).trim());
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("emmclab {version} emmclab-{version}.tar.gz");
    ensure!(text.lines().any(|line| line == expected), "contrib/openwrt: no {expected:?} in {text:?}");
    let line = text.lines().find(|line| line.starts_with("cargo install")).unwrap_or_default();
    ensure!(line == "cargo install --path crates/emmclab --no-default-features", "contrib/openwrt: {line:?}");
    println!("openwrt: make reads the recipe; it runs {line}");
    Ok(())
}

/// Vendors the crates, and builds as Buildroot does: without network, and without earlier downloads.
pub(super) fn buildroot(workspace: &Workspace) -> anyhow::Result<()> {
    let folder = fresh(workspace, "buildroot")?;
    let recipe = fs::read_to_string(workspace.root.join("contrib/buildroot/emmclab/emmclab.mk"))?;
    let value = |key: &str| {
        let line = recipe.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.with_context(|| format!("emmclab.mk: no {key}"))
    };
    let archive = folder.join("source.tar");
    run(Command::new("git").args(["archive", "--output"]).arg(&archive).arg("HEAD").current_dir(&workspace.root))?;
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&folder))?;
    let source = folder.join(value("EMMCLAB_SUBDIR")?);
    let mut vendor = Command::new("cargo");
    vendor.args(["vendor", "--locked", "--manifest-path"]).arg(source.join("Cargo.toml"));
    let output = vendor.arg("vendor").current_dir(&folder).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo vendor: {}", String::from_utf8_lossy(&output.stderr).trim());
    // The settings that cargo prints are appended to those of the repository.
    let config = folder.join(".cargo/config.toml");
    let mut text = fs::read(&config).with_context(|| config.display().to_string())?;
    text.extend(output.stdout);
    fs::write(config, text)?;
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--offline", "--locked", "--manifest-path", "Cargo.toml"]);
    build.args(value("EMMCLAB_CARGO_BUILD_OPTS")?.split(' ')).current_dir(&source);
    // Its own home, without earlier downloads.
    build.env("CARGO_HOME", folder.join("home")).env("CARGO_TARGET_DIR", folder.join("built"));
    run(&mut build)?;
    let binary = folder.join("built/debug/emmclab");
    run(Command::new(&binary).arg("--version"))?;
    println!("buildroot: vendored, built without network: {}", binary.display());
    Ok(())
}

fn fresh(workspace: &Workspace, name: &str) -> anyhow::Result<std::path::PathBuf> {
    let folder = workspace.target.join("recipes").join(name);
    if Path::new(&folder).exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    ensure!(status.success(), "{program} {:?}: {status}", command.get_args().collect::<Vec<_>>());
    Ok(())
}
