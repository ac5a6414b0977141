//! A snapshot of this tool, as a saved form.

use super::text::Text;
use crate::{CardData, Format, Origin, Place, Snapshot, SourceError};

/// Whether the text is JSON of this tool.
pub(super) fn recognises(text: &Text) -> bool {
    let all = text.as_str().trim_start();
    all.starts_with('{') && all.contains("\"emmclab.snapshot/")
}

/// Reads the snapshot; where it was taken from becomes a note, the file itself the origin.
///
/// Errors: JSON that is cut or of another shape, a schema that this version does not know, digits that are none.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    // The messages quote the file, which may have anything.
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    let wrong = |at, found: String| {
        let found: String = found.chars().take(200).map(printable).collect();
        SourceError::malformed(text.name, at, "a snapshot of emmclab", found)
    };
    let snapshot: Snapshot = serde_json::from_str(text.as_str())
        .map_err(|error| wrong(Place::Line(error.line() as u64), error.to_string()))?;
    let taken_at = snapshot.taken_at.clone();
    let mut data = CardData::try_from(snapshot).map_err(|error| wrong(Place::Byte(0), error.to_string()))?;
    let mut origin = Origin { name: text.name.into(), format: Format::Snapshot, taken_at, notes: Vec::new() };
    for before in std::mem::take(&mut data.origins) {
        origin.taken_at = origin.taken_at.or(before.taken_at);
        origin.notes.push(format!("taken from {}", before.name));
        origin.notes.extend(before.notes);
    }
    data.origins.push(origin);
    Ok(data)
}
