//! `advise worth`: how much is written before and after a change.

use std::path::Path;

use anyhow::Context;
use emmc_analysis::advise::{Worth, worth};
use emmc_analysis::health::parse_history;

use crate::CommandResult;
use crate::cli::AdviseWorthArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.advise-worth/1";

/// A log of samples is read up to this size. Unit: bytes.
const BYTES_MAX: u64 = 64 << 20;

pub(crate) fn run(args: &AdviseWorthArgs, output: &mut Output) -> CommandResult {
    let name = args.samples.display().to_string();
    let points = parse_history(&name, &text(&args.samples)?)?;
    let found = worth(&points, args.split).context(name)?;
    output.print(SCHEMA, &found, |found: &Worth| emmc_report::present::worth(found))?;
    Ok(if found.is_clear && found.saved_percent > 0.0 { Exit::Good } else { Exit::Findings })
}

pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = crate::input::read(path, BYTES_MAX)?;
    String::from_utf8(bytes).with_context(|| format!("{}: is not UTF-8 text", path.display()))
}
