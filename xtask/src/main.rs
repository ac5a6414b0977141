//! What the repository does to itself: `cargo xtask tidy`, `ci`, `fuzz`, `guest`, `sim`, `mutants`,
//! `size`, `cross`, `dist`, `recipes`, `bench`.

mod bench;
mod ci;
mod cross;
mod dist;
mod fuzz;
mod guest;
mod metadata;
mod mutants;
mod probe_truth;
mod recipes;
mod seeds;
mod sim;
mod size;
mod targets;
mod tidy;
mod twin_table;
mod twin_truth;

use std::process::ExitCode;

use crate::ci::Extent;

const USAGE: &str = "usage: cargo xtask <tidy | ci [--quick | --after-tests] | fuzz [--seconds N] [TARGET...]
                           | guest <build | run | test | cuts> [OPTION...]
                           | sim [--workloads N] [--cuts N] [--seed N] | mutants [NAME...]
                           | probe-truth [--cards N] [--seed S] [--card N]
                           | twin-table [--folder DIR] [--hold-out every-second|columns]
                           | twin-truth [--cards N] [--seed S] | size [TARGET...]
                           | cross [TARGET...] | dist [--once] [--quick] [--install] [TARGET...]
                           | recipes [--check] | bench [--quick] [NAME...]>
  tidy   the rules of style that a program can check
  ci     everything that must hold before a change lands; --quick leaves out what takes minutes
  fuzz   every fuzz target, or those named, for 60 s or N s each
  guest  a Linux in QEMU with a virtual card in it (docs/guest.md)
  sim    cuts power at every step of 50 or N workloads and 100000 or N times at random; --seed alone: one case again
  mutants  puts known faults into a copy of the tree, one at a time: the torture or a test must fail on each
  probe-truth  random virtual cards: how many of their parameters `probe` finds; --card shows one
  twin-table  fits of the nine published cards (kept in target/twin), and what they predict of cells left out
  twin-truth  fits of random virtual cards with noise, beside their true parameters and behaviour
  size   builds what goes onto a board, for this machine or for targets, and prints its size
  cross  builds the whole tool for other processors and compares its answers under qemu-user with this machine's
  dist   packages of the commit, made twice and compared; --install tries one in a bare Debian (docs/packages.md)
  recipes  writes what follows from Cargo.lock into contrib; --check tries the recipes
  bench  the card's speed, NBD beside nbdkit, bench beside fio: one table with what is asked of each row
targets: x86_64, aarch64, armv7, riscv64";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["tidy"] => tidy::run(),
        ["ci"] => ci::run(Extent::Whole),
        ["ci", "--quick"] => ci::run(Extent::Quick),
        ["ci", "--after-tests"] => ci::run(Extent::AfterTests),
        ["fuzz", "--seconds", seconds, targets @ ..] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds, targets),
            Err(_) => return usage(),
        },
        ["fuzz", targets @ ..] => fuzz::run(60, targets),
        ["guest", rest @ ..] => match guest::run(rest) {
            Ok(status) => return ExitCode::from(status),
            Err(error) => Err(error),
        },
        ["sim", options @ ..] => sim::run(options),
        ["mutants", names @ ..] => mutants::run(names),
        ["probe-truth", options @ ..] => probe_truth::run(options),
        ["twin-truth", options @ ..] => twin_truth::run(options),
        ["twin-table", options @ ..] => twin_table::run(options),
        ["size", targets @ ..] => size::run(targets),
        ["cross", targets @ ..] => cross::run(targets),
        ["dist", options @ ..] => dist::run(options),
        ["bench", options @ ..] => bench::run(options),
        ["recipes", options @ ..] => recipes::run(options),
        _ => return usage(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
