//! A Linux guest for testing a virtual card: built of Debian packages, run in QEMU.

mod agree;
mod answers;
mod cost;
mod cpio;
mod cuts;
mod driven;
mod firmware;
mod image;
mod machine;
mod options;
mod oracle;
pub(crate) mod packages;
mod programs;
mod qemu;
mod record;
mod rig;
mod run;
mod server;
mod source;
mod spans;
mod story;
mod test;
mod tree;
mod trial;
mod uboot;
mod uml;

use anyhow::{Context, bail, ensure};

use crate::guest::cuts::Extent;
use crate::guest::machine::Show;
use crate::guest::rig::BuildOptions;
use crate::guest::server::{Controller, Emmclab};

/// Power cuts in CI.
const CI_CUTS: u32 = 80;

/// Runs a command of `cargo xtask guest`; the exit status.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<u8> {
    match args {
        ["build", options @ ..] => build(options),
        ["run", options @ ..] => run::run(options),
        ["cuts", rest @ ..] => cuts(rest),
        ["test", rest @ ..] => test::run(rest, None),
        ["cost", rest @ ..] => cost::run(rest),
        ["story", rest @ ..] => story::run(rest),
        ["firmware", rest @ ..] => firmware::run(rest),
        ["u-boot", rest @ ..] => uboot::run(rest),
        _ => bail!("guest: expected build, run, test, cost, story, firmware, u-boot or cuts (docs/guest.md)"),
    }
}

/// Every guest script, for CI; prints why it is skipped without QEMU.
pub(crate) fn ci_trials(day: usize) -> anyhow::Result<()> {
    let Some(rig) = ready() else { return Ok(()) };
    ensure!(test::run(&[], Some(day))? == 0, "guest tests failed");
    let emmclab = Emmclab::build()?;
    firmware::start_with_each(&rig, &emmclab, firmware::SEABIOS)?;
    match rig::u_boot_ready() {
        Ok(_) => uboot::both_ways(&rig, &emmclab),
        Err(why) => {
            println!("SKIPPED: U-Boot: {why:#}");
            Ok(())
        }
    }
}

/// The power cuts that must hold before a change lands.
pub(crate) fn ci_cuts() -> anyhow::Result<()> {
    let Some(rig) = ready() else { return Ok(()) };
    cuts::run(&rig, &Emmclab::build()?, Extent { cuts: CI_CUTS, seed: 1, controller: Controller::Cqe }, Show::Nothing)
}

/// The rig, or why it is missing.
fn ready() -> Option<rig::Rig> {
    match rig::ready() {
        Ok(rig) => Some(rig),
        Err(why) => {
            println!("SKIPPED: the guest: {why:#}");
            None
        }
    }
}

fn cuts(args: &[&str]) -> anyhow::Result<u8> {
    let mut extent = Extent { cuts: CI_CUTS, seed: 1, controller: Controller::Cqe };
    let (mut rest, mut args) = (Vec::new(), args.iter());
    while let Some(&arg) = args.next() {
        match arg {
            "--cuts" | "--seed" => {
                let value = args.next().with_context(|| format!("{arg}: expected a number after it"))?;
                let number: u32 = value.parse().with_context(|| format!("{arg} {value}: expected a number"))?;
                if arg == "--cuts" {
                    extent.cuts = number;
                } else {
                    extent.seed = number.into();
                }
            }
            _ => rest.push(arg),
        }
    }
    let (options, names) = options::parse(&rest).context("guest cuts")?;
    ensure!(names.is_empty(), "guest cuts: unknown argument {names:?}");
    extent.controller = options.controller.unwrap_or(extent.controller);
    let show = if options.show == Show::Console { Show::Console } else { Show::Nothing };
    cuts::run(&rig::ready()?, &Emmclab::build()?, extent, show).map(|()| 0)
}

fn build(args: &[&str]) -> anyhow::Result<u8> {
    let mut options = BuildOptions::default();
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        match (arg, ["--mirror", "--to"].contains(&arg) && !args.as_slice().is_empty()) {
            ("--fetch-qemu", _) => options.fetch_qemu = true,
            ("--uml", _) => options.uml = true,
            ("--u-boot", _) => options.u_boot = true,
            ("--to", true) => options.to = args.next().copied(),
            ("--mirror", true) => options.mirror = args.next().copied(),
            _ => bail!("guest build: unknown or unfinished option {arg}"),
        }
    }
    rig::build(&options)?;
    Ok(0)
}
