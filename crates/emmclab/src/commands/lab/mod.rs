//! `lab`: a real Linux against a virtual card, in simulated time.

mod present;
pub(crate) mod run;

use crate::CommandResult;
use crate::cli::LabCommand;
use crate::output::Output;

pub(crate) fn run(command: &LabCommand, output: &mut Output) -> CommandResult {
    match command {
        LabCommand::Run(args) => run::run(args, output),
    }
}
