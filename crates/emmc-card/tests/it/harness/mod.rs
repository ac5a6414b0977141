//! Runs card scripts; the format is described in `scripts.rs`.

mod answer;
mod bytes;
mod run;
mod step;

use std::path::Path;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;

use run::Session;
use step::{Line, Step};

/// Runs a script; `through_images`: at each loss of power the card is saved as an image and restored from it.
///
/// Errors: the line, with the expected and the found content.
pub(crate) fn run(profiles: &Path, text: &str, through_images: bool) -> Result<(), String> {
    let (mut profile, mut keep) = ("sector".to_owned(), StoredContent::Data);
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.strip_prefix("profile ") {
            Some(name) => profile = name.trim().to_owned(),
            None if line == "no data" => keep = StoredContent::Nothing,
            None if line.is_empty() => {}
            None => {
                let step = Step::parse(line).map_err(|fault| format!("{number}: {fault}"))?;
                lines.push(Line { number, step });
            }
        }
    }
    let path = profiles.join(format!("{profile}.toml"));
    let text = std::fs::read_to_string(&path).map_err(|error| format!("1: {}: {error}", path.display()))?;
    let profile = Profile::from_toml(&text).map_err(|error| format!("1: {error}"))?;
    let card = Card::new(profile, DeviceOptions { keep, seed: 1 }).map_err(|error| format!("1: {error}"))?;
    let mut session = Session::new(card);
    // Plain simulation has no content that could be saved.
    session.through_images = through_images && keep != StoredContent::Nothing;
    session.play(&lines)?;
    session.card.device().audit().map_err(|fault| format!("end: audit: {fault}"))
}
