//! A card from its folder: the state, its pieces among the records of the journals, and the contents.

use std::path::Path;

use emmc_card::card::{Card, Part};
use emmc_card::nand::{Geometry, Payload};
use emmc_card::profile::{Layout, Partitioning, Profile};
use emmc_units::Instant;

use super::data::DataFile;
use super::journal::Found;
use super::state::FoundState;
use super::{DATA_FILE, EARLIER_JOURNAL_FILE, JOURNAL_FILE, PROFILE_FILE, Purpose, STATE_FILE, StoreError, io};

/// The card in a folder, without power, the instant of its power-off, and the generation of its state.
pub(super) fn load(folder: &Path, purpose: Purpose) -> Result<(Card, Instant, u64), StoreError> {
    let profile_path = folder.join(PROFILE_FILE);
    let text = std::fs::read_to_string(&profile_path).map_err(|source| io(&profile_path, source))?;
    let profile = Profile::from_toml(&text).map_err(|source| StoreError::Profile { path: profile_path, source })?;
    let path = folder.join(STATE_FILE);
    let state = std::fs::read(&path).map_err(|source| io(&path, source))?;
    let state = FoundState::parse(state).map_err(|expected| StoreError::Damaged { path: path.clone(), expected })?;
    let journals = journals(folder, state.generation)?;
    let data_path = folder.join(DATA_FILE);
    let has_data = data_path.exists();
    let payload = match has_data || purpose == Purpose::Serve {
        true => Some(open_data(&profile, &data_path, purpose).map_err(|source| io(&data_path, source))?),
        false => None,
    };
    let unit_bytes = u64::from(profile.ftl.unit_bytes);
    let (card, now) = Card::from_image(profile, state.outline(), &parts(&state, &journals), payload)
        .map_err(|source| StoreError::Image { path, source })?;
    let needed = u64::from(card.contents_end()) * unit_bytes;
    let size = std::fs::metadata(&data_path).map_or(0, |found| found.len());
    if size < needed {
        let expected = format!("at least {needed} bytes, found {size}");
        return Err(StoreError::Damaged { path: data_path, expected });
    }
    Ok((card, now, state.generation))
}

/// The journal that follows a state, and the one after that: a checkpoint was in progress.
fn journals(folder: &Path, generation: u64) -> Result<[Found; 2], StoreError> {
    let read = |file: &str, generation: u64| {
        let path = folder.join(file);
        Found::read(&path, generation).map_err(|source| io(&path, source))
    };
    let earlier = read(EARLIER_JOURNAL_FILE, generation)?;
    if earlier.exists() {
        return Ok([earlier, read(JOURNAL_FILE, generation + 1)?]);
    }
    Ok([read(JOURNAL_FILE, generation)?, earlier])
}

/// What follows a state's outline: its pieces, each at its place among the records.
fn parts<'a>(state: &'a FoundState, [first, second]: &'a [Found; 2]) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let mut pieces = state.pieces().peekable();
    for (at, record) in first.records().into_iter().filter(|(at, _)| *at >= state.start) {
        while let Some((_, piece)) = pieces.next_if(|(position, _)| *position <= at) {
            parts.push(Part::Blocks(piece));
        }
        parts.push(Part::Changes(record));
    }
    parts.extend(pieces.map(|(_, piece)| Part::Blocks(piece)));
    parts.extend(second.records().into_iter().map(|(_, record)| Part::Changes(record)));
    parts
}

fn open_data(profile: &Profile, path: &Path, purpose: Purpose) -> std::io::Result<Box<dyn Payload>> {
    // The blocks do not depend on the partitioning; a profile that makes no card is refused elsewhere.
    let blocks = Layout::new(profile, &Partitioning::default(), 0).map_or(1, |layout| layout.blocks);
    let geometry = Geometry::new(&profile.nand, blocks, profile.ftl.unit_bytes);
    let units = u64::from(blocks) * u64::from(geometry.units_per_block());
    Ok(Box::new(DataFile::open(path, geometry.unit_bytes, units, purpose != Purpose::Look)?))
}
