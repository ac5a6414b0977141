//! What of a card's folder is whole, and going on with that.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::journal::Found;
use super::state::FoundState;
use super::{
    DATA_FILE, EARLIER_JOURNAL_FILE, JOURNAL_FILE, NEW_JOURNAL_FILE, NEW_STATE_FILE, PROFILE_FILE, Profile, Purpose,
    STATE_FILE, Store, StoreError, io, load, lock, must_be_card, newest,
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
    let mut found = vec![profile(folder)?];
    let path = folder.join(STATE_FILE);
    let state = FoundState::parse(std::fs::read(&path).map_err(|source| io(&path, source))?);
    found.push(match &state {
        Ok(state) => {
            let records = match state.follow {
                Some(true) => "; records follow",
                Some(false) => "; complete",
                None => "; of an earlier build",
            };
            let pieces = state.pieces().count();
            FileFinding::whole(STATE_FILE, format!("generation {}, {pieces} pieces{records}", state.generation))
        }
        Err(expected) => FileFinding::damaged(STATE_FILE, format!("expected {expected}")),
    });
    for file in [EARLIER_JOURNAL_FILE, JOURNAL_FILE] {
        found.extend(journal(folder, file, state.as_ref().ok())?);
    }
    found.push(card(folder));
    Ok(found)
}

fn profile(folder: &Path) -> Result<FileFinding, StoreError> {
    let path = folder.join(PROFILE_FILE);
    let text = std::fs::read_to_string(&path).map_err(|source| io(&path, source))?;
    Ok(match Profile::from_toml(&text) {
        Ok(profile) => FileFinding::whole(PROFILE_FILE, profile.name),
        Err(error) => FileFinding::damaged(PROFILE_FILE, error.to_string()),
    })
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
        (_, Some(state)) if of < state.generation => {
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
/// records are missing, or that is older than one before, is taken as it is. Returns what was done, in words.
///
/// Errors: no card, in use, the system's; a damaged state, which nothing replaces.
pub fn repair(folder: &Path) -> Result<Vec<String>, StoreError> {
    must_be_card(folder)?;
    let path = folder.join(STATE_FILE);
    let _lock = lock(folder)?;
    let bytes = std::fs::read(&path).map_err(|source| io(&path, source))?;
    let state = FoundState::parse(bytes).map_err(|expected| StoreError::Damaged { path: path.clone(), expected })?;
    let mut done = Vec::new();
    if let Ok((state, journals)) = load::found(folder) {
        let (card, _) = load::card(folder, Purpose::Look, &state, &journals)?;
        if load::other_content(&state, &journals, &card).is_some() {
            write_whole(folder, STATE_FILE, &state.without_samples())?;
            done.push(format!("{DATA_FILE}: taken as it is, with contents that are not those of {STATE_FILE}"));
        }
        return Ok(done);
    }
    let read = |file: &str, generation: u64| {
        let path = folder.join(file);
        let found = Found::read(&path).map_err(|source| io(&path, source))?;
        Ok(found.filter(|found| found.generation() == generation))
    };
    // Each step leaves a folder that is refused until the last one, so a repair that was killed can be repeated.
    let (first, second) = match read(EARLIER_JOURNAL_FILE, state.generation)? {
        Some(earlier) => ((EARLIER_JOURNAL_FILE, Some(earlier)), Some(JOURNAL_FILE)),
        None => ((JOURNAL_FILE, read(JOURNAL_FILE, state.generation)?), None),
    };
    let (file, Some(found)) = first else {
        for file in [EARLIER_JOURNAL_FILE, JOURNAL_FILE] {
            if state.follow == Some(true) && folder.join(file).exists() {
                set_aside(folder, file, &mut done)?;
            }
        }
        take_state(folder, &state, &mut done)?;
        return Ok(done);
    };
    if let Some(later) = second {
        let goes_on = read(later, state.generation + 1)?;
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
    Ok(done)
}

/// Takes a state as it is: without records that are missing, and as the newest.
fn take_state(folder: &Path, state: &FoundState, done: &mut Vec<String>) -> Result<(), StoreError> {
    let has_records = [EARLIER_JOURNAL_FILE, JOURNAL_FILE, NEW_JOURNAL_FILE].iter().any(|file| {
        let found = Found::read(&folder.join(file)).ok().flatten();
        found.is_some_and(|found| found.generation() == state.generation)
    });
    if state.follow == Some(true) && !has_records {
        write_whole(folder, STATE_FILE, &state.without_records())?;
        done.push(format!("{STATE_FILE}: taken without the records that followed it"));
    }
    if state.generation < newest::noted(folder) {
        newest::note(folder, state.generation);
        done.push(format!("{STATE_FILE}: generation {} is taken for the newest", state.generation));
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
