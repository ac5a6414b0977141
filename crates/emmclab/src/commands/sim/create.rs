//! `sim create`: a virtual card stored in a folder.

use std::path::Path;

use anyhow::{Context, bail};
use emmc_card::nand::StoredContent;
use emmc_report::{Document, KeyValue};
use emmc_units::Bytes;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::SimCreateArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::virtual_card::NamedProfile;

pub(crate) const SCHEMA: &str = "emmclab.sim-create/1";

/// What `sim create --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Created {
    /// The folder, as named.
    folder: String,
    /// The profile's name.
    profile: String,
    /// The user area.
    user_bytes: u64,
    /// The seed of the specimen.
    seed: u64,
    /// Used share of its life, in percent.
    used_percent: f64,
}

pub(crate) fn run(args: &SimCreateArgs, output: &mut Output) -> CommandResult {
    let named = NamedProfile::open(args.part.name())?;
    let card = named.make(StoredContent::Orders, args.seed)?;
    let created = Created {
        folder: args.folder.display().to_string(),
        profile: named.profile.name.clone(),
        user_bytes: named.profile.areas.user_bytes,
        seed: args.seed,
        used_percent: named.age * 100.0,
    };
    make_folder(&args.folder)?;
    if let Err(error) = card.create(&args.folder, &named.text) {
        // The folder is new: a partial card is removed.
        let _ = std::fs::remove_dir_all(&args.folder);
        return Err(error);
    }
    output.print(SCHEMA, &created, present)?;
    Ok(Exit::Good)
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            bail!("{}: exists already; a card needs a new folder", folder.display())
        }
        made => made.with_context(|| format!("{}: cannot create the folder", folder.display())),
    }
}

fn present(created: &Created) -> Document {
    let mut document = Document::new(format!("Virtual card {}", created.folder));
    let section = document.section("card", "Card");
    section.push(vec![
        KeyValue::new("profile", created.profile.as_str()),
        KeyValue::new("user area", Bytes(created.user_bytes).to_string()),
        KeyValue::new("specimen", created.seed.to_string()),
        KeyValue::new("life used", format!("{} %", created.used_percent)),
    ]);
    let folder = crate::shell::word(created.folder.as_ref()).unwrap_or_else(|| "FOLDER".into());
    section.paragraph(format!(
        "`emmclab sim run {folder} --job steady-random` works on it, `emmclab sim info {folder}` looks inside, and \
sim:{folder} is a source for every other command."
    ));
    document
}
