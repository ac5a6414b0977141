//! A card from its folder: the state, its pieces among the records of the journals, and the contents.

use std::path::Path;

use emmc_card::card::{Card, Part};
use emmc_card::nand::{Geometry, Payload};
use emmc_card::profile::{Layout, Partitioning, Profile};
use emmc_units::Instant;

use super::data::DataFile;
use super::journal::{Found, checksum};
use super::state::{FoundState, Header};
use super::{
    DATA_FILE, EARLIER_JOURNAL_FILE, JOURNAL_FILE, NEW_JOURNAL_FILE, PROFILE_FILE, Purpose, STATE_FILE, StoreError, io,
    newest,
};

/// Units whose contents are compared at a start. Each costs one read from the disk.
const SAMPLES: usize = 256;
/// A file of contents is another one, and not a damaged one, from this number of wrong samples on, if they are also
/// more than one in this many.
const WRONG_MIN: usize = 4;
const WRONG_SHARE: usize = 4;

/// The card in a folder, without power, the instant of its power-off, and the header of its state.
pub(super) fn load(folder: &Path, purpose: Purpose) -> Result<(Card, Instant, Header), StoreError> {
    let (state, journals) = found(folder)?;
    let (text, profile) = profile(folder)?;
    if let Some(expected) = other_profile(&state, &text) {
        return Err(StoreError::Damaged { path: folder.join(PROFILE_FILE), expected: format!("{expected}; {REPAIR}") });
    }
    let (card, now) = card(folder, profile, purpose, &state, &journals)?;
    let path = folder.join(DATA_FILE);
    if let Some((size, needed)) = missing_contents(&path, &card) {
        let expected = format!("at least {needed} bytes, found {size}; {REPAIR}");
        return Err(StoreError::Damaged { path, expected });
    }
    // A server may be writing what is looked at.
    let may_change = purpose == Purpose::Look && journals.iter().any(Option::is_some);
    if let Some(slot) = other_contents(&card).filter(|_| !state.header.accepts && !may_change) {
        let unit_bytes = card.device().profile().ftl.unit_bytes;
        let at = u64::from(slot) * u64::from(unit_bytes);
        let expected = format!(
            "the contents that {STATE_FILE} (generation {}) was stored with; the {unit_bytes} bytes at byte {at} are \
             others, as many are, so it is of another card or another time; {REPAIR}",
            state.header.generation
        );
        return Err(StoreError::Damaged { path, expected });
    }
    // A card that starts with damaged units stays the card, however few others it will have at a later start.
    let accepts = state.header.accepts || !may_change && !card.check_contents(Some(SAMPLES)).wrong.is_empty();
    // A state of an earlier build does not say which profile it is of.
    Ok((card, now, Header { profile: Some(checksum(text.as_bytes())), accepts, ..state.header }))
}

/// The text of the profile, and the profile.
pub(super) fn profile(folder: &Path) -> Result<(String, Profile), StoreError> {
    let path = folder.join(PROFILE_FILE);
    let text = std::fs::read_to_string(&path).map_err(|source| io(&path, source))?;
    let profile = Profile::from_toml(&text).map_err(|source| StoreError::Profile { path, source })?;
    Ok((text, profile))
}

/// What was expected, if a state was stored with another profile.
pub(super) fn other_profile(state: &FoundState, text: &str) -> Option<String> {
    let [expected, found] = [state.header.profile?, checksum(text.as_bytes())].map(u32::from_le_bytes);
    let generation = state.header.generation;
    (expected != found).then(|| {
        format!("the text that {STATE_FILE} (generation {generation}) was stored with: CRC-32 {expected:08x}, found {found:08x}")
    })
}

/// The card that state, journals and contents make, and the instant of its power-off. Its contents may be missing.
pub(super) fn card(
    folder: &Path,
    profile: Profile,
    purpose: Purpose,
    state: &FoundState,
    journals: &Journals,
) -> Result<(Card, Instant), StoreError> {
    let path = folder.join(STATE_FILE);
    let data_path = folder.join(DATA_FILE);
    let has_data = data_path.exists();
    let payload = match has_data || purpose == Purpose::Serve {
        true => Some(open_data(&profile, &data_path, purpose).map_err(|source| io(&data_path, source))?),
        false => None,
    };
    Card::from_image(profile, state.outline(), &parts(state, journals), payload)
        .map_err(|source| StoreError::Image { path, source })
}

/// The size of a file of contents, and how many bytes it must have at least, if it has fewer.
pub(super) fn missing_contents(path: &Path, card: &Card) -> Option<(u64, u64)> {
    let needed = u64::from(card.contents_end()) * u64::from(card.device().profile().ftl.unit_bytes);
    let size = std::fs::metadata(path).map_or(0, |found| found.len());
    (size < needed).then_some((size, needed))
}

/// A slot whose bytes are not those that the card was stored with, if the file is another one.
pub(super) fn other_contents(card: &Card) -> Option<u32> {
    let found = card.check_contents(Some(SAMPLES));
    let wrong = found.wrong.len();
    let is_other = wrong >= WRONG_MIN && (wrong * WRONG_SHARE) as u64 > found.compared;
    found.wrong.first().copied().filter(|_| is_other)
}

/// What helps.
const REPAIR: &str = "`emmclab sim check FOLDER` says what is whole, and with --repair goes on with that";

/// The journals of a folder: the one that follows its state, and the one after that if a checkpoint was in progress.
pub(super) type Journals = [Option<(&'static str, Found)>; 2];

/// State and journals of a folder.
///
/// Errors: damage; files that do not belong together.
pub(super) fn found(folder: &Path) -> Result<(FoundState, Journals), StoreError> {
    // Before the state: a server may place the next one at any moment.
    let noted = newest::noted(folder);
    let path = folder.join(STATE_FILE);
    let state = std::fs::read(&path).map_err(|source| io(&path, source))?;
    let damaged = |file: &str, expected: String| StoreError::Damaged { path: folder.join(file), expected };
    let state = FoundState::parse(state).map_err(|expected| damaged(STATE_FILE, expected))?;
    let Header { generation, follow, .. } = state.header;
    if generation < noted.generation {
        let newest = noted.generation;
        let expected =
            format!("generation {newest} or later, which was here before; found the older {generation}; {REPAIR}");
        return Err(damaged(STATE_FILE, expected));
    }
    let journals = journals(folder, generation)?;
    if follow == Some(true) && journals[0].is_none() {
        let expected =
            format!("the records that follow {STATE_FILE} (generation {generation}): they are missing; {REPAIR}");
        return Err(damaged(JOURNAL_FILE, expected));
    }
    for (file, journal) in journals.iter().flatten() {
        if let Some(damage) = journal.damage() {
            return Err(damaged(file, format!("{damage}; {REPAIR}")));
        }
        if let Some(expected) = journal.missing_end(noted.acknowledged(journal.generation())) {
            return Err(damaged(file, format!("{expected}; {REPAIR}")));
        }
    }
    Ok((state, journals))
}

fn journals(folder: &Path, generation: u64) -> Result<Journals, StoreError> {
    let read = |file: &'static str, generation: u64| {
        let path = folder.join(file);
        let found = Found::read(&path).map_err(|source| io(&path, source))?;
        Ok(found.filter(|found| found.generation() == generation).map(|found| (file, found)))
    };
    if let Some(earlier) = read(EARLIER_JOURNAL_FILE, generation)? {
        let later = read(JOURNAL_FILE, generation + 1)?;
        // Before it has its name, nothing is in it.
        let is_coming = !folder.join(JOURNAL_FILE).exists() && folder.join(NEW_JOURNAL_FILE).exists();
        if later.is_none() && !is_coming {
            let (path, of) = (folder.join(JOURNAL_FILE), generation + 1);
            let expected = format!("the records that follow {EARLIER_JOURNAL_FILE} (generation {of}); {REPAIR}");
            return Err(StoreError::Damaged { path, expected });
        }
        // It was complete when the later one began.
        if let (true, Some(at)) = (later.is_some(), earlier.1.cut_at()) {
            let path = folder.join(EARLIER_JOURNAL_FILE);
            let expected = format!("a whole record at byte {at}, because {JOURNAL_FILE} goes on from there; {REPAIR}");
            return Err(StoreError::Damaged { path, expected });
        }
        return Ok([Some(earlier), later]);
    }
    let journal = match read(JOURNAL_FILE, generation)? {
        // The process died before the first journal of this state had its name.
        None => read(NEW_JOURNAL_FILE, generation)?,
        journal => journal,
    };
    Ok([journal, None])
}

/// What follows a state's outline: its pieces, each at its place among the records.
fn parts<'a>(state: &'a FoundState, [first, second]: &'a Journals) -> Vec<Part<'a>> {
    let records = |journal: &'a Option<(&str, Found)>| journal.as_ref().map_or(Vec::new(), |(_, it)| it.records());
    let mut parts = Vec::new();
    let mut pieces = state.pieces().peekable();
    for (at, record) in records(first).into_iter().filter(|(at, _)| *at >= state.header.start) {
        while let Some((_, piece)) = pieces.next_if(|(position, _)| *position <= at) {
            parts.push(Part::Blocks(piece));
        }
        parts.push(Part::Changes(record));
    }
    parts.extend(pieces.map(|(_, piece)| Part::Blocks(piece)));
    parts.extend(records(second).into_iter().map(|(_, record)| Part::Changes(record)));
    parts
}

fn open_data(profile: &Profile, path: &Path, purpose: Purpose) -> std::io::Result<Box<dyn Payload>> {
    // The blocks do not depend on the partitioning; a profile that makes no card is refused elsewhere.
    let blocks = Layout::new(profile, &Partitioning::default(), 0).map_or(1, |layout| layout.blocks);
    let geometry = Geometry::new(&profile.nand, blocks, profile.ftl.unit_bytes);
    let units = u64::from(blocks) * u64::from(geometry.units_per_block());
    Ok(Box::new(DataFile::open(path, geometry.unit_bytes, units, purpose != Purpose::Look)?))
}
