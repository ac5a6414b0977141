//! `check`: one line for a monitoring system.

use emmc_analysis::health::{HealthOptions, check};

use crate::CommandResult;
use crate::cli::CheckArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.check/1";

pub(crate) fn run(args: &CheckArgs, output: &mut Output) -> CommandResult {
    match checked(args, output) {
        Ok(exit) => Ok(exit),
        Err(error) => {
            // A monitoring system reads standard output and takes 3 for UNKNOWN; 2 would page somebody.
            let reason = format!("{error:#}").replace('|', " ");
            if output.is_json() {
                output.error(&reason);
            } else {
                // Where standard output is gone, the code alone must do.
                let _ = output.said(&format!("EMMC UNKNOWN - {reason}"));
            }
            Ok(Exit::Nagios(3))
        }
    }
}

fn checked(args: &CheckArgs, output: &mut Output) -> CommandResult {
    let options = HealthOptions::from_given(args.warning, args.critical)?;
    let card = source::open(&args.source)?;
    let result = check(&card, &options);
    if output.is_json() {
        output.line(&crate::output::json(SCHEMA, &result)?)?;
    } else {
        output.line(&result.line)?;
    }
    Ok(Exit::Nagios(result.exit_code))
}
