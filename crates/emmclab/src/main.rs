//! emmclab: parses arguments, makes one library call, prints a document and returns an exit code.

mod cli;
mod commands;
mod exit;
#[cfg(any(feature = "bench", feature = "sim", feature = "trace"))]
mod input;
mod markdown;
mod observations;
mod output;
mod pager;
mod pipe;
#[cfg(any(feature = "bench", feature = "sim"))]
mod progress;
mod save;
mod shell;
#[cfg(any(feature = "bench", feature = "sim", feature = "trace"))]
mod signals;
mod source;
mod topics;
#[cfg(feature = "sim")]
mod virtual_card;

use std::process::ExitCode;

use crate::cli::Command;
use crate::exit::Exit;
use crate::output::Output;

/// If set, only the arguments are parsed: for the test of documented commands that cannot run here.
const PARSE_ONLY: &str = "EMMCLAB_PARSE_ONLY";

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    if std::env::var_os(PARSE_ONLY).is_some() {
        return ExitCode::SUCCESS;
    }
    let mut output = Output::new(cli.json, cli.color).paged(!cli.no_pager);
    #[cfg(any(feature = "bench", feature = "sim"))]
    if cli.json {
        progress::be_quiet();
    }
    let exit = match cli.command {
        Command::List(args) => commands::list::run(&args, &mut output),
        Command::Show(args) => commands::show::run(&args, &mut output),
        Command::Snapshot(args) => commands::snapshot::run(&args, &mut output),
        Command::Diff(args) => commands::diff::run(&args, &mut output),
        Command::Health(args) => commands::health::run(&args, &mut output),
        Command::Check(args) => commands::check::run(&args, &mut output),
        Command::Monitor(args) => commands::monitor::run(&args, &mut output),
        Command::Plan(command) => commands::plan::run(&command, &mut output),
        #[cfg(feature = "bench")]
        Command::Apply(args) => commands::apply::run(&args, &mut output),
        #[cfg(feature = "clone")]
        Command::Clone(args) => commands::clone::run(&args, &mut output),
        #[cfg(feature = "clone")]
        Command::Restore(args) => commands::clone::restore(&args, &mut output),
        #[cfg(feature = "clone")]
        Command::Erase(args) => commands::erase::run(&args, &mut output),
        #[cfg(feature = "bench")]
        Command::Rpmb(command) => commands::rpmb::run(&command, &mut output),
        #[cfg(feature = "bench")]
        Command::Ffu(args) => commands::ffu::run(&args, &mut output),
        #[cfg(feature = "bench")]
        Command::Lock(command) => commands::lock::run(&command, &mut output),
        Command::Study(args) => commands::study::run(&args, &mut output),
        #[cfg(feature = "bench")]
        Command::Bench(args) => commands::bench::run(&args, &mut output),
        #[cfg(feature = "bench")]
        Command::Compare(args) => commands::compare::run(&args, &mut output),
        #[cfg(feature = "bench")]
        Command::Import(args) => commands::compare::import(&args, &mut output),
        #[cfg(feature = "bench")]
        Command::Probe(args) => commands::probe::run(&args, &mut output),
        #[cfg(feature = "bench")]
        Command::Trim(command) => commands::trim::run(&command, &mut output),
        #[cfg(feature = "bench")]
        Command::Bus(args) => commands::bus::run(&args, &mut output),
        #[cfg(feature = "bench")]
        Command::Trust(args) => commands::trust::run(&args, &mut output),
        #[cfg(feature = "sim")]
        Command::Sim(command) => commands::sim::run(&command, &mut output),
        #[cfg(feature = "trace")]
        Command::Trace(command) => commands::trace::run(&command, &mut output),
        #[cfg(feature = "bench")]
        Command::Advise(command) => commands::advise::run(&command, &mut output),
        #[cfg(feature = "twin")]
        Command::Twin(command) => commands::twin::run(&command, &mut output),
        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::run(&args, &mut output),
        #[cfg(feature = "serve")]
        Command::Lab(command) => commands::lab::run(&command, &mut output),
        Command::Help(args) => commands::help::run(&args, &mut output),
        #[cfg(feature = "schema")]
        Command::Schema(args) => commands::schema::run(&args, &mut output),
        #[cfg(feature = "pages")]
        Command::Completions(args) => commands::pages::completions(&args, &mut output),
        #[cfg(feature = "pages")]
        Command::Man(args) => commands::pages::man(&args),
    };
    match exit {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error, &output),
    }
}

/// The result of a command.
type CommandResult = anyhow::Result<Exit>;
