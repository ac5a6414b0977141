//! `snapshot`: saves all data of a source in a file, which is a source itself.

use std::path::Path;

#[cfg(feature = "html")]
use anyhow::ensure;
use emmc_port::Snapshot;
use emmc_units::printable_json;

use crate::CommandResult;
#[cfg(feature = "html")]
use crate::cli::SavedForm;
use crate::cli::SnapshotArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::deliver;
use crate::source;

pub(crate) fn run(args: &SnapshotArgs, output: &mut Output) -> CommandResult {
    let card = source::open(&args.source)?;
    let mut snapshot = Snapshot::from(&card);
    snapshot.tool = Some(concat!("emmclab ", env!("CARGO_PKG_VERSION")).into());
    let text = printable_json(serde_json::to_string_pretty(&snapshot)?) + "\n";
    let path = args.save.output.as_deref().unwrap_or(Path::new("-"));
    #[cfg(feature = "html")]
    ensure!(
        SavedForm::of(path, SavedForm::Json) == SavedForm::Json,
        "{}: a snapshot is JSON; `study -o` writes pages",
        path.display()
    );
    let saved = deliver(output, path, &text, args.save.force, &args.source.files())?;
    if saved && !output.is_json() {
        output.said(&format!("{}: saved {} ({} bytes)", path.display(), card.name(), text.len()))?;
    }
    Ok(Exit::Good)
}
