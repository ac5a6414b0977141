//! The size of the binary for a board.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata::{self, Workspace};
use crate::targets::{self, Target, output};

/// Features that a board does not need: relocation, unwind tables, and the messages of panics. Errors are not panics
/// and keep their messages.
const SMALL_FLAGS: &str =
    "-C relocation-model=static -C force-unwind-tables=no -Zunstable-options -Cpanic=immediate-abort";

/// What a static board binary with a standard library made for size may be. Unit: bytes.
const BYTES_MAX: u64 = 1_500_000;

const BOARD: [&str; 3] = ["--profile", "board", "--no-default-features"];
const STD_ARGS: [&str; 2] = ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"];

/// Builds it as any user would, for this machine or the named targets, and, where Rust's own source is installed, with
/// the standard library built for size. Fails where the static binary is larger than it may be.
pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    let workspace = metadata::workspace()?;
    if names.is_empty() {
        return host(&workspace);
    }
    targets::named(names, &[])?.iter().try_for_each(|target| foreign(&workspace, target))
}

fn host(workspace: &Workspace) -> anyhow::Result<()> {
    let args = ["build", "--locked", "--quiet", "--package", "emmclab"];
    build(workspace, Command::new("cargo").args(args).args(BOARD))?;
    print(&workspace.target.join("board/emmclab"), "cargo build --profile board")?;

    let host = output("rustc", &["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    if !has_std_source()? {
        return Ok(());
    }
    let mut cargo = Command::new("cargo");
    cargo.args(args).args(BOARD).args(["--target", host]).env("RUSTFLAGS", SMALL_FLAGS);
    with_std(workspace, cargo)?;
    print(&workspace.target.join("small").join(host).join("board/emmclab"), "the same with std built for size")?;
    Ok(())
}

fn foreign(workspace: &Workspace, target: &Target) -> anyhow::Result<()> {
    if let Some(reason) = target.missing_to_build() {
        println!("SKIPPED: the board build for {}: {reason}", target.name);
        return Ok(());
    }
    let place = Path::new(target.triple).join("board/emmclab");
    if has_std_source()? {
        let mut cargo = target.cargo_build(&format!("{SMALL_FLAGS} {}", target.small_links()));
        cargo.args(BOARD);
        with_std(workspace, cargo)?;
        let what = format!("{}, static, std built for size", target.triple);
        let bytes = print(&workspace.target.join("small").join(place), &what)?;
        ensure!(bytes <= BYTES_MAX, "{}: {bytes} bytes; a board build has at most {BYTES_MAX}", target.name);
    } else {
        build(workspace, target.cargo_build("").args(BOARD))?;
        print(&workspace.target.join(place), &format!("{}, static", target.triple))?;
    }
    Ok(())
}

/// Building std is not stable; the variable lets the stable compiler do it all the same.
fn with_std(workspace: &Workspace, mut cargo: Command) -> anyhow::Result<()> {
    cargo.args(STD_ARGS).env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", workspace.target.join("small"));
    build(workspace, &mut cargo)
}

fn build(workspace: &Workspace, cargo: &mut Command) -> anyhow::Result<()> {
    let status = cargo.current_dir(&workspace.root).status().context("cannot run cargo build")?;
    ensure!(status.success(), "the board build failed");
    Ok(())
}

fn has_std_source() -> anyhow::Result<bool> {
    let sysroot = output("rustc", &["--print", "sysroot"])?;
    let is_there = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library").is_dir();
    if !is_there {
        println!("SKIPPED: the build with std made for size needs its source (rustup component add rust-src)");
    }
    Ok(is_there)
}

fn print(binary: &Path, how: &str) -> anyhow::Result<u64> {
    let bytes = binary.metadata().with_context(|| binary.display().to_string())?.len();
    println!("{bytes} bytes ({:.2} MB)  {how}", bytes as f64 / 1e6);
    Ok(bytes)
}
