//! `sim info`: the internal state of a virtual card.

use emmc_card::condition::Internals;
use emmc_card::nand::StoredContent;
use emmc_units::Instant;

use crate::CommandResult;
use crate::cli::SimInfoArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.sim-info/1";

pub(crate) fn run(args: &SimInfoArgs, output: &mut Output) -> CommandResult {
    let card = args.card.look(StoredContent::Nothing, 1)?;
    let inside = Internals::of(card.card.device(), card.now.since(Instant::START).as_secs_f64());
    output.print(SCHEMA, &inside, emmc_report::present::inside)?;
    Ok(Exit::Good)
}
