//! `advise`: what to change in a system above a card, and whether it was worth it; parts for a load, and layouts.

#[cfg(feature = "twin")]
pub(crate) mod layout;
#[cfg(feature = "twin")]
pub(crate) mod part;
pub(crate) mod system;
pub(crate) mod worth;

use crate::CommandResult;
use crate::cli::AdviseCommand;
use crate::output::Output;

pub(crate) fn run(command: &AdviseCommand, output: &mut Output) -> CommandResult {
    match command {
        AdviseCommand::System(args) => system::run(args, output),
        AdviseCommand::Worth(args) => worth::run(args, output),
        #[cfg(feature = "twin")]
        AdviseCommand::Part(args) => part::run(args, output),
        #[cfg(feature = "twin")]
        AdviseCommand::Layout(args) => layout::run(args, output),
    }
}
