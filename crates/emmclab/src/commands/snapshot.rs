//! `snapshot`: saves all that a source tells, to be a source later.

use std::path::Path;

use emmc_port::Snapshot;

use crate::CommandResult;
use crate::cli::SnapshotArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::write_whole;
use crate::source;

pub(crate) fn run(args: &SnapshotArgs, output: &mut Output) -> CommandResult {
    let card = source::open(&args.source)?;
    let mut snapshot = Snapshot::from(&card);
    snapshot.tool = Some(concat!("emmclab ", env!("CARGO_PKG_VERSION")).into());
    let text = serde_json::to_string_pretty(&snapshot)? + "\n";
    if args.output == Path::new("-") {
        output.write(&text)?;
    } else {
        write_whole(&args.output, text.as_bytes(), args.force)?;
        if !output.is_json() {
            output.said(&format!("{}: saved {} ({} bytes)", args.output.display(), card.name(), text.len()))?;
        }
    }
    Ok(Exit::Good)
}
