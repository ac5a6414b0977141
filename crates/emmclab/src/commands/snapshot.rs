//! `snapshot`: saves all data of a source in a file, which is a source itself.

use emmc_port::Snapshot;

use crate::CommandResult;
use crate::cli::SnapshotArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::deliver;
use crate::source;

pub(crate) fn run(args: &SnapshotArgs, output: &mut Output) -> CommandResult {
    let card = source::open(&args.source)?;
    let mut snapshot = Snapshot::from(&card);
    snapshot.tool = Some(concat!("emmclab ", env!("CARGO_PKG_VERSION")).into());
    let text = serde_json::to_string_pretty(&snapshot)? + "\n";
    let saved = deliver(output, &args.output, &text, args.force, &args.source.files())?;
    if saved && !output.is_json() {
        output.said(&format!("{}: saved {} ({} bytes)", args.output.display(), card.name(), text.len()))?;
    }
    Ok(Exit::Good)
}
