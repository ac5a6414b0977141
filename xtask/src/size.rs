//! How large the binary for a board is.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::metadata;

/// What a board gains nothing from: addresses that move, and tables for unwinding where a panic ends the program.
const SMALL_FLAGS: &str = "-C relocation-model=static -C force-unwind-tables=no";

/// Builds it as any user would and, where Rust's own source is installed, with the standard library built for size.
pub(crate) fn run() -> anyhow::Result<()> {
    let workspace = metadata::workspace()?;
    let args = ["build", "--locked", "--quiet", "--profile", "board", "--package", "emmclab", "--no-default-features"];
    let built = |cargo: &mut Command| -> anyhow::Result<()> {
        let status = cargo.current_dir(&workspace.root).status().context("cannot run cargo build")?;
        ensure!(status.success(), "the board build failed");
        Ok(())
    };
    built(Command::new("cargo").args(args))?;
    print(&workspace.target.join("board/emmclab"), "cargo build --profile board")?;

    let host = output("rustc", &["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let sysroot = output("rustc", &["--print", "sysroot"])?;
    if !std::path::Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library").is_dir() {
        println!("SKIPPED: the build with std made for size needs its source (rustup component add rust-src)");
        return Ok(());
    }
    let std_args = ["--target", host, "-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"];
    // Building std is not stable; the flag lets the stable compiler do it all the same.
    let mut cargo = Command::new("cargo");
    cargo.args(args).args(std_args).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", SMALL_FLAGS);
    cargo.env("CARGO_TARGET_DIR", workspace.target.join("small"));
    built(&mut cargo)?;
    print(&workspace.target.join("small").join(host).join("board/emmclab"), "the same with std built for size")
}

fn print(binary: &std::path::Path, how: &str) -> anyhow::Result<()> {
    let bytes = binary.metadata().with_context(|| binary.display().to_string())?.len();
    println!("{bytes} bytes ({:.2} MB)  {how}", bytes as f64 / 1e6);
    Ok(())
}

fn output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new(program).args(args).stderr(Stdio::inherit()).output().with_context(|| program.to_owned())?;
    ensure!(output.status.success(), "{program} {}: {}", args.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?)
}
