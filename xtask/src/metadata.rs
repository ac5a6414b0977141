//! What `cargo metadata` says about this workspace.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// The workspace.
pub(crate) struct Workspace {
    /// The folder of the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    /// Its packages.
    pub(crate) packages: Vec<Package>,
}

/// One crate.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) rust_version: String,
    pub(crate) edition: String,
    pub(crate) license: String,
    /// Its dependencies, without dev-dependencies.
    pub(crate) dependencies: Vec<String>,
}

/// Reads the workspace that this program was built in.
pub(crate) fn workspace() -> anyhow::Result<Workspace> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(Workspace {
        root: text(&metadata, "workspace_root").into(),
        target: text(&metadata, "target_directory").into(),
        packages: list(&metadata, "packages").iter().map(package).collect(),
    })
}

fn package(package: &Value) -> Package {
    let dependencies = list(package, "dependencies").iter().filter(|dependency| text(dependency, "kind") != "dev");
    Package {
        name: text(package, "name"),
        rust_version: text(package, "rust_version"),
        edition: text(package, "edition"),
        license: text(package, "license"),
        dependencies: dependencies.map(|dependency| text(dependency, "name")).collect(),
    }
}

pub(crate) fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_string()
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
