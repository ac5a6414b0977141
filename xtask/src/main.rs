//! What the repository does to itself: `cargo xtask tidy`, `cargo xtask ci [--quick]`, `cargo xtask size`.

mod ci;
mod metadata;
mod size;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <tidy | ci [--quick] | size>
  tidy   the rules of style that a program can check
  ci     everything that must hold before a change lands; --quick leaves out what takes minutes
  size   builds what goes onto a board and prints its size";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["tidy"] => tidy::run(),
        ["ci"] => ci::run(false),
        ["ci", "--quick"] => ci::run(true),
        ["size"] => size::run(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
