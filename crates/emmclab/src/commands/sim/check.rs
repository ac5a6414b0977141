//! `sim check`: what of a card's folder is whole, and going on with that.

use std::path::Path;

use emmc_report::{Cell, Document, Lead, LeadLine, Table, Tone};
use emmc_serve::store::{self, FileFinding};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::SimCheckArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.sim-check/1";

/// What `sim check --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Checked {
    /// The folder.
    folder: String,
    /// Whether the card can be used.
    whole: bool,
    /// What `--repair` did, in words; empty: nothing was to be done, or it was not asked for.
    repaired: Vec<String>,
    /// Whether `--repair` makes a card of it that can be used.
    repair_helps: bool,
    /// The files, and the card that they make.
    files: Vec<File>,
}

/// A file of the folder, or the card.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct File {
    /// Its name.
    name: String,
    whole: bool,
    /// What was found, in words.
    found: String,
}

impl From<FileFinding> for File {
    fn from(found: FileFinding) -> Self {
        Self { name: found.file.into(), whole: !found.is_damage, found: found.what }
    }
}

pub(crate) fn run(args: &SimCheckArgs, output: &mut Output) -> CommandResult {
    let folder = folder(&args.folder);
    let repaired = if args.repair { store::repair(folder)? } else { Vec::new() };
    let files: Vec<File> = store::check(folder)?.into_iter().map(File::from).collect();
    let whole = files.iter().all(|file| file.whole);
    let repair_helps = !whole && store::repair_helps(folder);
    let checked = Checked { folder: folder.display().to_string(), whole, repaired, repair_helps, files };
    output.print(SCHEMA, &checked, present)?;
    Ok(if whole { Exit::Good } else { Exit::Findings })
}

/// `sim:FOLDER` is a card for every command.
fn folder(path: &Path) -> &Path {
    path.to_str().and_then(|text| text.strip_prefix("sim:")).map_or(path, Path::new)
}

fn present(checked: &Checked) -> Document {
    let mut document = Document::new(format!("Folder of virtual card {}", checked.folder));
    let damaged: Vec<&str> = checked.files.iter().filter(|file| !file.whole).map(|file| file.name.as_str()).collect();
    let line = if checked.whole {
        LeadLine::words("WHOLE", Tone::Good, "the card can be used")
    } else {
        let hint = if checked.repair_helps { "; --repair goes on with what is whole" } else { "" };
        let text = format!("{}{hint}", damaged.join(", "));
        LeadLine::words("DAMAGED", Tone::Bad, text)
    };
    document.lead = Some(Lead { lines: vec![line], ..Lead::default() });
    if !checked.repaired.is_empty() {
        let section = document.section("repaired", "Repaired");
        for what in &checked.repaired {
            section.note(Tone::Warn, what.as_str());
        }
    }
    let mut table = Table::new([("file", emmc_report::Align::Left), ("found", emmc_report::Align::Left)]);
    for file in &checked.files {
        let tone = if file.whole { Tone::Plain } else { Tone::Bad };
        table.row([Cell::from(file.name.as_str()), Cell::new(file.found.as_str(), tone)]);
    }
    document.section("files", "Files").push(table);
    document
}
