//! A Linux guest that a virtual card is tried in: built of Debian packages, run in QEMU.

mod cpio;
mod folder;
mod image;
mod machine;
mod options;
mod packages;
mod programs;
mod qemu;
mod rig;
mod run;
mod server;
mod test;
mod tree;
mod trial;

use anyhow::bail;

use crate::guest::rig::BuildOptions;

/// Runs a command of `cargo xtask guest`; the exit status.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<u8> {
    match args {
        ["build", options @ ..] => build(options),
        ["run", options @ ..] => run::run(options),
        ["test", rest @ ..] => test::run(rest),
        _ => bail!("guest: expected build, run or test (docs/guest.md)"),
    }
}

fn build(args: &[&str]) -> anyhow::Result<u8> {
    let mut options = BuildOptions::default();
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        match (arg, arg == "--mirror" && !args.as_slice().is_empty()) {
            ("--fetch-qemu", _) => options.fetch_qemu = true,
            ("--mirror", true) => options.mirror = args.next().copied(),
            _ => bail!("guest build: unknown or unfinished option {arg}"),
        }
    }
    rig::build(&options)?;
    Ok(0)
}
