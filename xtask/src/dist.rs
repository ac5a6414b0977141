//! What a release consists of: a static archive and a Debian package for each processor, made twice and compared.
//!
//! Everything is made of the commit, not of the working tree: of two copies of it in two folders, each with its own
//! target folder. What depends on folder, time or user therefore shows as a difference.

mod archive;
mod bom;
mod chroot;
mod debian;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::metadata;
use crate::targets::{self, QUICK, TARGETS, Target, output};

/// One of the two times that everything is made.
struct Copy {
    source: PathBuf,
    target: PathBuf,
    /// What was made.
    out: PathBuf,
    /// Seconds since 1970 of the commit: the time of every file in every archive.
    epoch: String,
    version: String,
    profile: &'static str,
}

/// Makes and compares the named targets, or all; `--once` makes them once, `--install` installs this machine's package
/// in a bare Debian, `--quick` does not optimise: a trial of everything else.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let has = |option: &str| options.contains(&option);
    let names: Vec<&str> = options.iter().copied().filter(|option| !option.starts_with("--")).collect();
    let known = |option: &&&str| ["--once", "--install", "--quick"].contains(*option);
    let unknown = options.iter().find(|option| option.starts_with("--") && !known(option));
    ensure!(unknown.is_none(), "unknown option {unknown:?}; expected --once, --install or --quick");
    let profile = if has("--quick") { "dev" } else { "release" };
    let workspace = metadata::workspace()?;
    let root = &workspace.root;
    let epoch = output("git", &["-C", &root.to_string_lossy(), "log", "-1", "--format=%ct"])?.trim().to_owned();
    let base = workspace.target.join("dist");
    let copies = if has("--once") { vec!["first"] } else { vec!["first", "second"] };
    let copies = copies.iter().map(|name| Copy::new(root, &base.join(name), &epoch, profile));
    let copies = copies.collect::<anyhow::Result<Vec<Copy>>>()?;

    let mut built = Vec::new();
    for target in targets::named(&names, &TARGETS)? {
        if let Some(reason) = target.missing_to_build().or_else(|| target.missing_to_run()) {
            println!("SKIPPED: packages for {}: {reason}", target.name);
            continue;
        }
        for copy in &copies {
            let start = Instant::now();
            let binary = copy.build(&target)?;
            let bytes = binary.metadata().with_context(|| binary.display().to_string())?.len();
            println!("{}: {bytes} bytes, built in {:.0} s", target.triple, start.elapsed().as_secs_f64());
            let start = Instant::now();
            let tree = archive::tree(copy, &target, &binary)?;
            archive::pack(copy, &tree)?;
            debian::package(copy, &target, &tree)?;
            println!("{}: packed in {:.0} s", target.triple, start.elapsed().as_secs_f64());
        }
        built.push(target);
    }
    if built.is_empty() {
        return Ok(());
    }
    let sums = copies.iter().map(|copy| sums(&copy.out)).collect::<anyhow::Result<Vec<String>>>()?;
    let (first, others) = sums.split_first().context("nothing was made")?;
    for other in others {
        let pairs = first.lines().zip(other.lines()).filter(|(one, two)| one != two);
        let different: Vec<String> = pairs.map(|(one, two)| format!("{one}\n{two}")).collect();
        ensure!(first == other, "two builds differ:\n{}", different.join("\n"));
    }
    let out = workspace.target.join("dist/out");
    replace(&copies[0].out, &out)?;
    fs::write(out.join("SHA256SUMS"), first)?;
    for path in files(&out)? {
        println!("{:>10} bytes  {}", path.metadata()?.len(), path.display());
    }
    let how = if others.is_empty() { "made once" } else { "two builds in two folders are equal byte for byte" };
    println!("{} targets: {how}", built.len());
    let own = built.iter().find(|target| target.name == std::env::consts::ARCH);
    match own {
        Some(target) if has("--install") => chroot::trial(root, &base, &out, target),
        None if has("--install") => {
            println!("SKIPPED: installation in a bare Debian: no package for this machine was made");
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Copy {
    /// Lays the commit's files out in `folder`.
    fn new(root: &Path, folder: &Path, epoch: &str, profile: &'static str) -> anyhow::Result<Self> {
        let (source, out) = (folder.join("source"), folder.join("out"));
        for folder in [&source, &out] {
            if folder.exists() {
                fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
            }
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let archive = folder.join("source.tar");
        run_all(Command::new("git").args(["archive", "--output"]).arg(&archive).arg("HEAD").current_dir(root))?;
        run_all(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&source))?;
        fs::remove_file(&archive)?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Self { source, target: folder.join("target"), out, epoch: epoch.to_owned(), version, profile })
    }

    /// Builds the whole tool.
    fn build(&self, target: &Target) -> anyhow::Result<PathBuf> {
        let home = output("rustc", &["--print", "sysroot"])?;
        // Registry and standard library too: their paths are in the messages of panics.
        let cargo_home =
            std::env::var("CARGO_HOME").or_else(|_| Ok::<_, std::env::VarError>(std::env::var("HOME")? + "/.cargo"))?;
        let flags = format!(
            "-C strip=symbols --remap-path-prefix={}=/emmclab --remap-path-prefix={cargo_home}=/cargo --remap-path-prefix={}=/rust",
            self.source.display(),
            home.trim()
        );
        let mut cargo = target.cargo_build(&flags);
        cargo.args(["--profile", self.profile]).current_dir(&self.source);
        cargo.env("CARGO_TARGET_DIR", &self.target).env("SOURCE_DATE_EPOCH", &self.epoch);
        if self.profile == "dev" {
            cargo.args(QUICK);
        }
        run_all(&mut cargo)?;
        let folder = if self.profile == "dev" { "debug" } else { self.profile };
        Ok(self.target.join(target.triple).join(folder).join("emmclab"))
    }
}

/// The lines of a SHA256SUMS, sorted by name.
fn sums(folder: &Path) -> anyhow::Result<String> {
    let mut lines = String::new();
    for path in files(folder)? {
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let name = path.strip_prefix(folder)?.display();
        lines += &format!("{}  {name}\n", archive::sha256(&bytes));
    }
    Ok(lines)
}

/// All files below a folder, sorted.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn replace(from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for path in files(from)? {
        let name = path.file_name().context("a file without a name")?;
        fs::copy(&path, to.join(name)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Runs a command to its good end.
fn run_all(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    ensure!(status.success(), "{program} {:?}: {status}", command.get_args().collect::<Vec<_>>());
    Ok(())
}
