//! `diff`: two sources, field by field and bit by bit.

use emmc_analysis::comparison::compare;

use crate::CommandResult;
use crate::cli::DiffArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.diff/1";

pub(crate) fn run(args: &DiffArgs, output: &mut Output) -> CommandResult {
    anyhow::ensure!(args.a != "-" || args.b != "-", "standard input can be only one of the two sources");
    let (a, b) = (source::open_one(&args.a, None)?, source::open_one(&args.b, None)?);
    let comparison = compare(&a, &b);
    let comparison = if args.persistent { comparison.persistent() } else { comparison };
    let differs = !comparison.differences.is_empty();
    output.print(SCHEMA, &comparison, emmc_report::present::comparison)?;
    Ok(match (differs, comparison.compared) {
        (true, _) => Exit::Findings,
        (false, 0) => Exit::Unknown,
        (false, _) => Exit::Good,
    })
}
