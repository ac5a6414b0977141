//! What of a card's folder is whole, and going on with that.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::journal::{Found, checksum};
use super::state::{FoundState, Header};
use super::{
    DATA_FILE, EARLIER_JOURNAL_FILE, JOURNAL_FILE, NEW_JOURNAL_FILE, NEW_STATE_FILE, PROFILE_FILE, Purpose, STATE_FILE,
    Store, StoreError, io, load, lock, must_be_card, newest,
};

/// What was found of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFinding {
    /// Its name in the folder.
    pub file: &'static str,
    /// In words.
    pub what: String,
    /// Whether the card cannot be used like that.
    pub is_damage: bool,
}

impl FileFinding {
    fn whole(file: &'static str, what: impl Into<String>) -> Self {
        Self { file, what: what.into(), is_damage: false }
    }

    fn damaged(file: &'static str, what: impl Into<String>) -> Self {
        Self { file, what: what.into(), is_damage: true }
    }
}

/// Looks at every file of a card's folder, and at the card that they make. No file is changed.
///
/// Errors: no card; the system's.
pub fn check(folder: &Path) -> Result<Vec<FileFinding>, StoreError> {
    must_be_card(folder)?;
    let path = folder.join(STATE_FILE);
    let state = FoundState::parse(std::fs::read(&path).map_err(|source| io(&path, source))?);
    let mut found = vec![profile(folder, state.as_ref().ok())?];
    found.push(match &state {
        Ok(state) => {
            let records = match state.header.follow {
                Some(true) => "; records follow",
                Some(false) => "; complete",
                None => "; of an earlier build",
            };
            let pieces = state.pieces().count();
            FileFinding::whole(STATE_FILE, format!("generation {}, {pieces} pieces{records}", state.header.generation))
        }
        Err(expected) => FileFinding::damaged(STATE_FILE, format!("expected {expected}")),
    });
    for file in [EARLIER_JOURNAL_FILE, JOURNAL_FILE] {
        found.extend(journal(folder, file, state.as_ref().ok())?);
    }
    found.extend(contents(folder));
    found.push(card(folder));
    Ok(found)
}

/// Whether [`repair`] makes a card of this folder that can be used.
pub fn repair_helps(folder: &Path) -> bool {
    // With the records before any damage.
    let journals = |generation: u64| {
        let read = |file: &'static str, of: u64| {
            let found = Found::read(&folder.join(file)).ok().flatten();
            found.filter(|found| found.generation() == of).map(|found| (file, found))
        };
        match read(EARLIER_JOURNAL_FILE, generation) {
            Some(earlier) => [Some(earlier), read(JOURNAL_FILE, generation + 1)],
            None => [read(JOURNAL_FILE, generation), None],
        }
    };
    let helps = || {
        let state = FoundState::parse(std::fs::read(folder.join(STATE_FILE)).ok()?).ok()?;
        let (text, profile) = load::profile(folder).ok()?;
        let (card, _) = load::card(folder, profile, Purpose::Look, &state, &journals(state.header.generation)).ok()?;
        let is_short = load::missing_contents(&folder.join(DATA_FILE), &card).is_some();
        let needs_header = is_short
            || load::other_profile(&state, &text).is_some()
            || !state.header.accepts && load::other_contents(&card).is_some();
        let is_hopeless = is_short && !card.contents_have_sums() || needs_header && state.header.profile.is_none();
        (!is_hopeless && (needs_header || Store::look(folder).is_err())).then_some(())
    };
    must_be_card(folder).is_ok() && helps().is_some()
}

fn profile(folder: &Path, state: Option<&FoundState>) -> Result<FileFinding, StoreError> {
    Ok(match load::profile(folder) {
        Ok((text, profile)) => match state.and_then(|state| load::other_profile(state, &text)) {
            Some(expected) => FileFinding::damaged(PROFILE_FILE, format!("expected {expected}")),
            None => FileFinding::whole(PROFILE_FILE, profile.name),
        },
        Err(StoreError::Profile { source, .. }) => FileFinding::damaged(PROFILE_FILE, source.to_string()),
        Err(error) => return Err(error),
    })
}

/// All contents, compared with their checksums; `None`: there are none, or the card is another finding.
fn contents(folder: &Path) -> Option<FileFinding> {
    if !folder.join(DATA_FILE).exists() {
        return None;
    }
    let whole = |what: &str| Some(FileFinding::whole(DATA_FILE, what));
    let Ok(_lock) = lock(folder) else { return whole("not compared: the folder is in use, or cannot be written") };
    let (card, _) = Store::look(folder).ok()?;
    let found = card.check_contents(None);
    let without = match found.without {
        0 => String::new(),
        units => format!("; {units} units of an earlier build have none"),
    };
    let Some(first) = found.wrong.first() else {
        return whole(&format!("{} units agree with their checksums{without}", found.compared));
    };
    let at = u64::from(*first) * u64::from(card.device().profile().ftl.unit_bytes);
    let wrong = found.wrong.len();
    let what = format!(
        "{wrong} of {} units do not agree with their checksums, the first at byte {at}: reading them is an \
         uncorrectable error of the card{without}",
        found.compared
    );
    Some(FileFinding::damaged(DATA_FILE, what))
}

fn journal(folder: &Path, file: &'static str, state: Option<&FoundState>) -> Result<Option<FileFinding>, StoreError> {
    let path = folder.join(file);
    if !path.exists() {
        return Ok(None);
    }
    let Some(found) = Found::read(&path).map_err(|source| io(&path, source))? else {
        return Ok(Some(FileFinding::damaged(file, "expected \"emmclab records2\" at byte 0")));
    };
    let (records, of) = (found.records().len(), found.generation());
    Ok(Some(match (found.damage(), state) {
        // Part of the state; a later start removes it.
        (_, Some(state)) if of < state.header.generation => {
            FileFinding::whole(file, format!("of generation {of}, which the state contains: not needed"))
        }
        (Some(damage), _) => FileFinding::damaged(file, format!("{records} records, and then expected {damage}")),
        (None, _) => FileFinding::whole(file, format!("{records} records after generation {of}")),
    }))
}

/// The card itself: that its files belong together, and its own tables agree.
fn card(folder: &Path) -> FileFinding {
    let (mut card, off) = match Store::look(folder) {
        Ok(found) => found,
        Err(StoreError::Damaged { path, expected }) => {
            let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            return FileFinding::damaged("the card", format!("{name}: expected {expected}"));
        }
        Err(error) => return FileFinding::damaged("the card", error.to_string()),
    };
    let units = card.contents_end();
    match card.power_on(off).map_err(|error| error.to_string()).and_then(|_| card.device().audit()) {
        Ok(()) => {
            FileFinding::whole("the card", format!("starts, and its tables agree; {units} places in {DATA_FILE}"))
        }
        Err(what) => FileFinding::damaged("the card", format!("its tables do not agree: {what}")),
    }
}

/// Goes on with what is whole: records from the first damaged one on are set aside (`NAME.damaged`), and a state whose
/// records are missing, or that is older than one before, is taken as it is. Contents of another card or another time
/// are taken, too: units that do not agree with their checksums are read as uncorrectable. Returns what was done, in
/// words.
///
/// Errors: no card, in use, the system's; a damaged state or profile, which nothing replaces; missing contents without
/// checksums.
pub fn repair(folder: &Path) -> Result<Vec<String>, StoreError> {
    must_be_card(folder)?;
    let path = folder.join(STATE_FILE);
    let _lock = lock(folder)?;
    let bytes = std::fs::read(&path).map_err(|source| io(&path, source))?;
    let state = FoundState::parse(bytes).map_err(|expected| StoreError::Damaged { path: path.clone(), expected })?;
    let mut done = Vec::new();
    if load::found(folder).is_ok() {
        take_profile_and_contents(folder, &mut done)?;
        return Ok(done);
    }
    // Refused before anything is changed.
    load::profile(folder)?;
    let read = |file: &str, generation: u64| {
        let path = folder.join(file);
        let found = Found::read(&path).map_err(|source| io(&path, source))?;
        Ok(found.filter(|found| found.generation() == generation))
    };
    // Each step leaves a folder that is refused until the last one, so a repair that was killed can be repeated.
    let generation = state.header.generation;
    let (first, second) = match read(EARLIER_JOURNAL_FILE, generation)? {
        Some(earlier) => ((EARLIER_JOURNAL_FILE, Some(earlier)), Some(JOURNAL_FILE)),
        None => ((JOURNAL_FILE, read(JOURNAL_FILE, generation)?), None),
    };
    let (file, Some(found)) = first else {
        for file in [EARLIER_JOURNAL_FILE, JOURNAL_FILE] {
            if state.header.follow == Some(true) && folder.join(file).exists() {
                set_aside(folder, file, &mut done)?;
            }
        }
        take_state(folder, &state, &mut done)?;
        take_profile_and_contents(folder, &mut done)?;
        return Ok(done);
    };
    if let Some(later) = second {
        let goes_on = read(later, generation + 1)?;
        let goes_on = goes_on.filter(|_| found.damage().is_none() && found.cut_at().is_none());
        match goes_on {
            // Only its end is damaged.
            Some(later) => {
                if let Some(damage) = later.damage() {
                    cut(folder, JOURNAL_FILE, damage.at, later.records().len(), &mut done)?;
                }
            }
            None => {
                // An empty one is on its way, as after the first step of a checkpoint.
                let new = folder.join(NEW_JOURNAL_FILE);
                std::fs::write(&new, b"").map_err(|source| io(&new, source))?;
                if folder.join(later).exists() {
                    set_aside(folder, later, &mut done)?;
                }
            }
        }
    }
    if let Some(damage) = found.damage() {
        cut(folder, file, damage.at, found.records().len(), &mut done)?;
    }
    take_state(folder, &state, &mut done)?;
    take_profile_and_contents(folder, &mut done)?;
    Ok(done)
}

/// Takes a profile and contents as they are, where they are not those that the state was stored with.
fn take_profile_and_contents(folder: &Path, done: &mut Vec<String>) -> Result<(), StoreError> {
    let (state, journals) = load::found(folder)?;
    let (text, profile) = load::profile(folder)?;
    let (card, _) = load::card(folder, profile, Purpose::Look, &state, &journals)?;
    let mut header = state.header;
    if load::other_profile(&state, &text).is_some() {
        header.profile = Some(checksum(text.as_bytes()));
        done.push(format!("{PROFILE_FILE}: taken as it is, although {STATE_FILE} was stored with another text"));
    }
    let path = folder.join(DATA_FILE);
    let missing = load::missing_contents(&path, &card);
    if let Some((size, needed)) = missing {
        if !card.contents_have_sums() {
            let expected = format!(
                "at least {needed} bytes, found {size}; some units have no checksums, by which \
                 those that are missing would be known"
            );
            return Err(StoreError::Damaged { path, expected });
        }
        let grown = File::options().write(true).open(&path).and_then(|file| file.set_len(needed));
        grown.map_err(|source| io(&path, source))?;
        done.push(format!("{DATA_FILE}: {} missing bytes at its end are errors of the card now", needed - size));
    }
    if !header.accepts && (missing.is_some() || load::other_contents(&card).is_some()) {
        header.accepts = true;
        done.push(format!("{DATA_FILE}: taken as it is; units that {STATE_FILE} does not know are errors of the card"));
    }
    if header != state.header {
        if let Some(changed) = state.with_header(header) {
            write_whole(folder, STATE_FILE, &changed)?;
        }
    }
    Ok(())
}

/// Takes a state as it is: without records that are missing, and as the newest.
fn take_state(folder: &Path, state: &FoundState, done: &mut Vec<String>) -> Result<(), StoreError> {
    let has_records = [EARLIER_JOURNAL_FILE, JOURNAL_FILE, NEW_JOURNAL_FILE].iter().any(|file| {
        let found = Found::read(&folder.join(file)).ok().flatten();
        found.is_some_and(|found| found.generation() == state.header.generation)
    });
    let Header { generation, follow, .. } = state.header;
    if follow == Some(true) && !has_records {
        if let Some(alone) = state.with_header(Header { follow: Some(false), ..state.header }) {
            write_whole(folder, STATE_FILE, &alone)?;
            done.push(format!("{STATE_FILE}: taken without the records that followed it"));
        }
    }
    let noted = newest::noted(folder);
    if generation < noted.generation {
        newest::note(folder, generation);
        done.push(format!("{STATE_FILE}: generation {generation} is taken for the newest"));
    }
    for file in [EARLIER_JOURNAL_FILE, JOURNAL_FILE] {
        let Some(found) = Found::read(&folder.join(file)).map_err(|source| io(&folder.join(file), source))? else {
            continue;
        };
        if found.missing_end(noted.acknowledged(found.generation())).is_some() {
            newest::forget_journals(folder);
            // What was cut off above is reported there.
            if !done.iter().any(|line| line.starts_with(&format!("{file}: kept"))) {
                done.push(format!("{file}: taken without the records that are missing at its end"));
            }
        }
    }
    Ok(())
}

/// Keeps a journal's first bytes; the whole one is set aside.
fn cut(folder: &Path, file: &str, bytes: u64, records: usize, done: &mut Vec<String>) -> Result<(), StoreError> {
    let path = folder.join(file);
    let mut whole = std::fs::read(&path).map_err(|source| io(&path, source))?;
    whole.truncate(bytes as usize);
    let aside = aside(folder, file);
    std::fs::hard_link(&path, &aside).or_else(|_| std::fs::copy(&path, &aside).map(drop)).map_err(|e| io(&aside, e))?;
    write_whole(folder, file, &whole)?;
    let name = aside.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    done.push(format!("{file}: kept {records} records, up to byte {bytes}; the whole file is now {name}"));
    Ok(())
}

/// Replaces a file completely or not at all.
fn write_whole(folder: &Path, file: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let (new, path) = (folder.join(NEW_STATE_FILE), folder.join(file));
    let written = File::create(&new).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    let placed = written.and_then(|()| std::fs::rename(&new, &path));
    placed.map_err(|source| {
        // A partial file is of no use.
        let _ = std::fs::remove_file(&new);
        io(&path, source)
    })
}

/// Gives a file another name.
fn set_aside(folder: &Path, file: &str, done: &mut Vec<String>) -> Result<(), StoreError> {
    let (path, aside) = (folder.join(file), aside(folder, file));
    std::fs::rename(&path, &aside).map_err(|source| io(&path, source))?;
    let name = aside.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    done.push(format!("{file}: set aside as {name}"));
    Ok(())
}

/// A name that nothing has: `NAME.damaged`, `NAME.damaged.2` and so on.
fn aside(folder: &Path, file: &str) -> PathBuf {
    let names = (2..).map(|number| format!("{file}.damaged.{number}"));
    let mut paths = std::iter::once(format!("{file}.damaged")).chain(names).map(|name| folder.join(name));
    paths.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| folder.join(format!("{file}.damaged")))
}
