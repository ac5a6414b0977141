//! `list`: the cards of this machine.

use crate::CommandResult;
use crate::cli::ListArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.list/1";

pub(crate) fn run(args: &ListArgs, output: &mut Output) -> CommandResult {
    let list = emmc_linux::list(args.sysroot.as_deref())?;
    output.print(SCHEMA, &list, emmc_report::present::list)?;
    Ok(Exit::Good)
}
