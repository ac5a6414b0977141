//! What a binary is made of: the crates that cargo resolves for it, as CycloneDX and as the text of their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::metadata::{list, text};
use crate::targets::Target;

/// One crate that is linked in.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    name: String,
    version: String,
    license: String,
    /// SHA-256 of the registry's archive; crates of this repository have none.
    checksum: Option<String>,
    folder: PathBuf,
    /// Names and versions of its own dependencies.
    dependencies: BTreeSet<(String, String)>,
}

impl Part {
    fn purl(name: &str, version: &str) -> String {
        format!("pkg:cargo/{name}@{version}")
    }
}

/// What emmclab is made of on a target, build scripts and macros left out.
pub(super) fn parts(source: &Path, target: &Target) -> anyhow::Result<Vec<Part>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target.triple]);
    cargo.arg("--manifest-path").arg(source.join("crates/emmclab/Cargo.toml"));
    let output = cargo.output().context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let lock = fs::read_to_string(source.join("Cargo.lock")).context("Cargo.lock")?;
    let mut parts = from_metadata(&serde_json::from_slice(&output.stdout)?, &checksums(&lock))?;
    parts.sort();
    Ok(parts)
}

fn from_metadata(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> anyhow::Result<Vec<Part>> {
    let nodes = metadata.get("resolve").map_or(&[][..], |resolve| list(resolve, "nodes"));
    let nodes: BTreeMap<String, &Value> = nodes.iter().map(|node| (text(node, "id"), node)).collect();
    let packages: BTreeMap<String, &Value> =
        list(metadata, "packages").iter().map(|package| (text(package, "id"), package)).collect();
    let key = |id: &str| {
        let package = packages.get(id).with_context(|| format!("{id}: not among the packages"))?;
        anyhow::Ok((text(package, "name"), text(package, "version")))
    };
    let root = packages.iter().find(|(_, package)| text(package, "name") == "emmclab");
    let mut waiting = vec![root.context("no package emmclab")?.0.clone()];
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut parts = Vec::new();
    while let Some(id) = waiting.pop() {
        let package = packages.get(&id).with_context(|| format!("{id}: not among the packages"))?;
        let is_macro =
            list(package, "targets").iter().any(|target| list(target, "kind").iter().any(|kind| kind == "proc-macro"));
        if is_macro {
            continue;
        }
        let node = nodes.get(&id).with_context(|| format!("{id}: not resolved"))?;
        let is_linked = |dependency: &&Value| list(dependency, "dep_kinds").iter().any(|kind| kind["kind"].is_null());
        let linked: Vec<String> =
            list(node, "deps").iter().filter(is_linked).map(|dependency| text(dependency, "pkg")).collect();
        let (name, version) = key(&id)?;
        let folder = PathBuf::from(text(package, "manifest_path"));
        parts.push(Part {
            license: text(package, "license"),
            checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
            folder: folder.parent().unwrap_or(&folder).to_owned(),
            dependencies: linked.iter().map(|id| key(id)).collect::<anyhow::Result<_>>()?,
            name,
            version,
        });
        waiting.extend(linked.into_iter().filter(|id| seen.insert(id.clone())));
    }
    // Macros were dropped above and are no component of others.
    let kept: BTreeSet<(String, String)> = parts.iter().map(|part| (part.name.clone(), part.version.clone())).collect();
    for part in &mut parts {
        part.dependencies.retain(|dependency| kept.contains(dependency));
    }
    Ok(parts)
}

/// The registry's checksums in a Cargo.lock.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.and_then(|line| line.strip_suffix('"')).map(str::to_owned)
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?)))
        .collect()
}

/// CycloneDX 1.5, without serial number, so that two builds of one commit are equal.
pub(super) fn cyclonedx(parts: &[Part], target: &Target, version: &str, epoch: &str) -> anyhow::Result<String> {
    let component = |part: &Part| {
        let purl = Part::purl(&part.name, &part.version);
        let kind = if part.name == "emmclab" { "application" } else { "library" };
        let mut value = json!({
            "type": kind, "bom-ref": purl, "name": part.name, "version": part.version, "purl": purl,
            "licenses": [{ "expression": expression(&part.license) }],
        });
        if let Some(checksum) = &part.checksum {
            value["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        value
    };
    let (own, others): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(|part| part.name == "emmclab");
    let own = own.first().context("no part emmclab")?;
    let dependencies = parts.iter().map(|part| {
        let on = part.dependencies.iter().map(|(name, version)| Part::purl(name, version));
        json!({ "ref": Part::purl(&part.name, &part.version), "dependsOn": on.collect::<Vec<_>>() })
    });
    let (library, license) = c_library(target);
    let c_library = json!({ "type": "library", "name": library, "licenses": [{ "expression": license }] });
    let document = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": timestamp(epoch)?,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist", "version": version }] },
            "component": component(own),
            "properties": [{ "name": "emmclab:target", "value": target.triple }],
        },
        "components": others.iter().map(|part| component(part)).chain([c_library]).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// What is linked statically beside the crates, and its licence.
fn c_library(target: &Target) -> (&'static str, &'static str) {
    if target.triple.ends_with("musl") { ("musl", "MIT") } else { ("glibc", "LGPL-2.1-or-later") }
}

/// Crates older than SPDX expressions separate licences with a slash.
fn expression(license: &str) -> String {
    license.replace('/', " OR ").replace("  OR  ", " OR ")
}

/// Seconds since 1970 as CycloneDX wants a time.
fn timestamp(epoch: &str) -> anyhow::Result<String> {
    let time = crate::targets::output("date", &["-u", "-d", &format!("@{epoch}"), "+%Y-%m-%dT%H:%M:%SZ"])?;
    Ok(time.trim().to_owned())
}

/// The licence files of every crate from a registry, and of the scripts in the report; a text that several share is
/// included once.
pub(super) fn licences(parts: &[Part], target: &Target, bundled: &Path) -> anyhow::Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::new();
    for part in parts.iter().filter(|part| part.checksum.is_some()) {
        let title = format!("{} {}", part.name, part.version);
        list += &format!("  {title}: {}\n", expression(&part.license));
        let files = licence_files(&part.folder)?;
        for file in files {
            let text = String::from_utf8_lossy(&fs::read(&file)?).replace("\r\n", "\n");
            let users = texts.entry(text.trim_end().to_owned()).or_default();
            if !users.contains(&title) {
                users.push(title.clone());
            }
        }
    }
    let mut texts: Vec<(String, Vec<String>)> = texts.into_iter().collect();
    texts.sort_by(|one, two| one.1.cmp(&two.1).then_with(|| one.0.cmp(&two.0)));
    let line = "-".repeat(80);
    let texts = texts.iter().map(|(text, users)| format!("{line}\n{}\n{line}\n{text}\n\n", users.join(", ")));
    let (library, license) = c_library(target);
    let bundled = fs::read_to_string(bundled).with_context(|| bundled.display().to_string())?;
    Ok(format!(
        "emmclab contains these crates:\n{list}\nand these, linked statically: Rust's standard library (MIT OR Apache-2.0), \
         {library} ({license}; the source of emmclab is free to be linked with another one).\n\nTheir licences:\n\n{}\
         {line}\nThe chart library in HTML reports\n{line}\n{bundled}",
        texts.collect::<String>()
    ))
}

fn licence_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_text = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|word| name.starts_with(word));
        if is_text && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::TARGETS;

    fn sample() -> Vec<Part> {
        let package = |name: &str, kind: &str| {
            json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                    "manifest_path": format!("/x/{name}/Cargo.toml"), "targets": [{ "kind": [kind] }] })
        };
        let on = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("emmclab", "bin"), package("a", "lib"), package("m", "proc-macro"), package("t", "lib")],
            "resolve": { "nodes": [
                { "id": "emmclab", "deps": [on("a", Value::Null), on("m", Value::Null), on("t", json!("dev"))] },
                { "id": "a", "deps": [] }, { "id": "m", "deps": [on("t", Value::Null)] }, { "id": "t", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"0a\"\n";
        from_metadata(&metadata, &checksums(lock)).unwrap()
    }

    #[test]
    fn components_are_the_linked_crates() {
        let parts = sample();
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["emmclab", "a"]);
        assert_eq!(parts[0].dependencies, BTreeSet::from([("a".to_owned(), "1.0.0".to_owned())]));
        assert_eq!((parts[0].checksum.as_deref(), parts[1].checksum.as_deref()), (None, Some("0a")));
    }

    #[test]
    fn the_bill_of_materials_names_each_component_once() {
        let bom: Value = serde_json::from_str(&cyclonedx(&sample(), &TARGETS[0], "0.1.0", "86400").unwrap()).unwrap();
        assert_eq!(bom["metadata"]["timestamp"], "1970-01-02T00:00:00Z");
        assert_eq!(bom["metadata"]["component"]["name"], "emmclab");
        let names: Vec<&str> =
            bom["components"].as_array().unwrap().iter().flat_map(|part| part["name"].as_str()).collect();
        assert_eq!(names, ["a", "musl"]);
        let part = &bom["components"][0];
        assert_eq!((&part["purl"], &part["hashes"][0]["content"]), (&json!("pkg:cargo/a@1.0.0"), &json!("0a")));
        assert_eq!(part["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bom["dependencies"][0]["dependsOn"], json!(["pkg:cargo/a@1.0.0"]));
    }
}
