//! What of a card's folder is whole, and going on with that.

use std::path::Path;

use super::journal::Found;
use super::state::FoundState;
use super::{
    DATA_FILE, EARLIER_JOURNAL_FILE, JOURNAL_FILE, NEW_JOURNAL_FILE, NEW_STATE_FILE, PROFILE_FILE, Profile, STATE_FILE,
    Store, StoreError, io, lock, newest,
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
    if !folder.join(STATE_FILE).is_file() {
        return Err(StoreError::NoCard(folder.into()));
    }
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
/// Errors: no card, in use, the system's; a damaged state or profile, which nothing replaces; files set aside before,
/// which are still there.
pub fn repair(folder: &Path) -> Result<Vec<String>, StoreError> {
    let path = folder.join(STATE_FILE);
    if !path.is_file() {
        return Err(StoreError::NoCard(folder.into()));
    }
    let _lock = lock(folder)?;
    let bytes = std::fs::read(&path).map_err(|source| io(&path, source))?;
    let state = FoundState::parse(bytes).map_err(|expected| StoreError::Damaged { path: path.clone(), expected })?;
    let mut done = Vec::new();
    let read = |file: &str, generation: u64| {
        let path = folder.join(file);
        let found = Found::read(&path).map_err(|source| io(&path, source))?;
        Ok(found.filter(|found| found.generation() == generation))
    };
    let (mut follow, mut is_broken) = (false, false);
    for (file, generation) in [
        (EARLIER_JOURNAL_FILE, state.generation),
        (JOURNAL_FILE, state.generation),
        (JOURNAL_FILE, state.generation + 1),
    ] {
        let Some(found) = read(file, generation)? else { continue };
        if is_broken {
            // It goes on from records that are gone.
            set_aside(folder, file, &mut done)?;
            continue;
        }
        follow |= generation == state.generation;
        if let Some(damage) = found.damage() {
            let copy = set_aside(folder, file, &mut done)?;
            let mut whole = std::fs::read(&copy).map_err(|source| io(&copy, source))?;
            whole.truncate(damage.at as usize);
            let path = folder.join(file);
            std::fs::write(&path, whole).map_err(|source| io(&path, source))?;
            done.push(format!("{file}: kept {} records before byte {}", found.records().len(), damage.at));
            is_broken = true;
        }
    }
    if !is_broken && follow && folder.join(EARLIER_JOURNAL_FILE).exists() {
        // The second journal is not one of this state: nothing follows the first.
        if folder.join(JOURNAL_FILE).exists() && read(JOURNAL_FILE, state.generation + 1)?.is_none() {
            set_aside(folder, JOURNAL_FILE, &mut done)?;
            is_broken = true;
        }
    }
    if is_broken {
        // Without the second journal, an empty one is expected to come.
        let new = folder.join(NEW_JOURNAL_FILE);
        std::fs::write(&new, b"").map_err(|source| io(&new, source))?;
    }
    if state.follow == Some(true) && !follow {
        for file in [EARLIER_JOURNAL_FILE, JOURNAL_FILE] {
            if folder.join(file).exists() {
                set_aside(folder, file, &mut done)?;
            }
        }
        let new = folder.join(NEW_STATE_FILE);
        std::fs::write(&new, state.without_records()).map_err(|source| io(&new, source))?;
        std::fs::rename(&new, &path).map_err(|source| io(&path, source))?;
        done.push(format!("{STATE_FILE}: taken without the records that followed it"));
    }
    if state.generation < newest::noted(folder) {
        newest::note(folder, state.generation);
        done.push(format!("{STATE_FILE}: generation {} is taken for the newest", state.generation));
    }
    Ok(done)
}

/// Gives a file another name; returns its path.
fn set_aside(folder: &Path, file: &str, done: &mut Vec<String>) -> Result<std::path::PathBuf, StoreError> {
    let (path, aside) = (folder.join(file), folder.join(format!("{file}.damaged")));
    if aside.exists() {
        let source = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it was set aside before: move it away");
        return Err(io(&aside, source));
    }
    std::fs::rename(&path, &aside).map_err(|source| io(&path, source))?;
    done.push(format!("{file}: set aside as {file}.damaged"));
    Ok(aside)
}
