//! emmclab's own JSON: a snapshot, or the document of another command, which carries the card's data under `card`.

use serde::Deserialize;

use super::text::{Text, excerpt};
use crate::{CardData, Format, Origin, Place, Snapshot, SourceError};

/// What every document of emmclab has, and a report's data.
#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    card: Option<Snapshot>,
}

/// Whether the text is JSON of this tool.
pub(super) fn recognises(text: &Text) -> bool {
    let all = text.as_str().trim_start();
    // The schema is always the first key, also in a reformatted document.
    let start = all.char_indices().nth(200).map_or(all.len(), |(at, _)| at);
    all.starts_with('{') && (all.get(..start).is_some_and(|start| start.contains("\"emmclab.")) || is_snapshot(text))
}

fn is_snapshot(text: &Text) -> bool {
    text.as_str().contains("\"emmclab.snapshot/")
}

/// Reads the card's data; the file becomes the origin, and its own source a note.
///
/// Errors: JSON that is cut or of another shape, a schema that this version does not know, digits that are none, and
/// documents that hold conclusions only.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    // The messages quote the file, which may have anything.
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    let wrong = |at, expected: &str, found: String| {
        let found: String = found.chars().take(200).map(printable).collect();
        SourceError::malformed(text.name, at, expected, found)
    };
    const SNAPSHOT: &str = "a snapshot of emmclab";
    let cut = |error: serde_json::Error, expected| wrong(Place::Line(error.line() as u64), expected, error.to_string());
    let report: Report = serde_json::from_str(text.as_str()).map_err(|error| cut(error, SNAPSHOT))?;
    let name = report.schema.split('/').next().unwrap_or_default().trim_start_matches("emmclab.");
    let snapshot: Snapshot = match report.card {
        Some(card) => card,
        None if name == "snapshot" || name.is_empty() => {
            serde_json::from_str(text.as_str()).map_err(|error| cut(error, SNAPSHOT))?
        }
        None => {
            let expected = "the JSON of emmclab snapshot, show, study or health, which hold the card's registers";
            return Err(wrong(Place::Line(1), expected, format!("{}, which holds none", excerpt(&report.schema))));
        }
    };
    let taken_at = snapshot.taken_at.clone();
    let mut data = CardData::try_from(snapshot).map_err(|error| wrong(Place::Byte(0), SNAPSHOT, error.to_string()))?;
    let mut origin = Origin { taken_at, ..Origin::new(text.name, Format::Snapshot) };
    for before in std::mem::take(&mut data.origins) {
        origin.taken_as.extend(before.forms());
        origin.taken_at = origin.taken_at.or(before.taken_at);
        origin.notes.push(format!("taken from {}", before.name));
        origin.notes.extend(before.notes);
    }
    data.origins.push(origin);
    Ok(data)
}
