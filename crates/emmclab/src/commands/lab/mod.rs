//! `lab`: a real Linux against a virtual card, in simulated time.

pub(crate) mod calibrate;
mod cell;
mod orders;
mod present;
mod present_sweep;
pub(crate) mod run;
pub(crate) mod sweep;

use crate::CommandResult;
use crate::cli::LabCommand;
use crate::output::Output;

pub(crate) fn run(command: &LabCommand, output: &mut Output) -> CommandResult {
    match command {
        LabCommand::Run(args) => run::run(args, output),
        LabCommand::Sweep(args) => sweep::run(args, output),
        LabCommand::Calibrate(args) => calibrate::run(args, output),
    }
}
