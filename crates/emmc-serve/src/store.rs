//! A card's folder: everything that survives power, recoverable when the process dies at any moment.
//!
//! `profile.toml` describes the card; `card.state` is its complete state; `card.journal` holds the changes since then,
//! in records that are written before a client gets its reply; `card.data` holds the contents. A long journal is merged
//! into the state beside requests (`checkpoint`); meanwhile there are two journals.
//! Every end of a process is a power loss for the card, right after the operations in progress have finished. Data is
//! handed to the operating system, not synced to the disk: it survives the process, not the machine; only the state of
//! an orderly end is synced. Absent on purpose: the content of images and records (`emmc_card`), and when something is
//! recorded (`served`).

mod check;
mod checkpoint;
mod data;
mod error;
mod journal;
mod load;
mod newest;
mod slots;
mod state;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::{Path, PathBuf};

use emmc_card::card::Card;
use emmc_units::Instant;
use rustix::fs::FlockOperation;

pub use check::{FileFinding, check, repair, repair_helps};
use checkpoint::{Checkpoint, Progress};
pub use error::StoreError;
use journal::{Journal, checksum};
use load::load;
use newest::Acknowledged;
use state::{Header, NewState};

/// The profile's file in a card's folder.
const PROFILE_FILE: &str = "profile.toml";
/// The state's file in a card's folder.
pub const STATE_FILE: &str = "card.state";
/// The control socket in a card's folder, while it is served.
pub const SOCKET_FILE: &str = "card.socket";
const JOURNAL_FILE: &str = "card.journal";
/// The journal before that, during a checkpoint.
const EARLIER_JOURNAL_FILE: &str = "card.journal.before";
/// The journal after that, before it has its name.
const NEW_JOURNAL_FILE: &str = "card.journal.new";
const DATA_FILE: &str = "card.data";
const LOCK_FILE: &str = "card.lock";
const NEW_STATE_FILE: &str = ".card.state.new";

/// A journal that grows beyond this is merged into the state. Unit: bytes.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;

/// The same limit while the card is idle. Unit: bytes.
const JOURNAL_BYTES_IDLE: u64 = 32 << 20;
/// Steps of a checkpoint while the card is idle: about a millisecond.
const STEPS_IDLE: u32 = 32;
/// Units in one piece of a state that is written at once. Unit: mapping units.
const PIECE_UNITS: u32 = 1 << 16;

/// The purpose of opening a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Inspection: no file is written, and another process may be using the card.
    Look,
    /// Work without contents, as a simulation does; existing contents stay.
    Simulate,
    /// Serving, with contents.
    Serve,
}

/// The folder of a card that is worked on.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// The highest generation of a state or a journal so far.
    generation: u64,
    /// Of the present state.
    header: Header,
    /// How far the journal is acknowledged; absent: that cannot be noted, or there is no journal.
    notes: Option<Acknowledged>,
    journal: Option<Journal>,
    journal_bytes_max: u64,
    checkpoint: Option<Checkpoint>,
    /// The first steps of a checkpoint: an empty journal, and that it goes on there.
    next_journal: Option<Journal>,
    begins: bool,
    /// Space of the contents is still to be given back.
    tidies: bool,
    /// The disk was full when the store was opened: the earlier state and journal are unchanged until there is space.
    waits_for_room: bool,
    /// Held as long as the store exists.
    _lock: File,
}

impl Store {
    /// Creates a card's files in an existing folder.
    ///
    /// Errors: the system's.
    pub fn create(folder: &Path, profile: &str, card: &Card, now: Instant) -> Result<(), StoreError> {
        let lock = lock(folder)?;
        let path = folder.join(PROFILE_FILE);
        std::fs::write(&path, profile).map_err(|source| io(&path, source))?;
        let header = Header { profile: Some(checksum(profile.as_bytes())), ..Header::default() };
        let mut store = Self::new(folder, header, lock);
        store.write_state(card, now, false, true)
    }

    /// Opens a card for work; it is without power. Also returns the instant of its power-off.
    ///
    /// Errors: no card, in use, damaged.
    pub fn open(folder: &Path, purpose: Purpose) -> Result<(Self, Card, Instant), StoreError> {
        must_be_card(folder)?;
        let lock = lock(folder)?;
        let (card, now, header) = load(folder, purpose)?;
        Ok((Self::new(folder, header, lock), card, now))
    }

    /// The card in its present state, without power, for inspection; changes to it are not saved.
    ///
    /// Errors: no card, damaged.
    pub fn look(folder: &Path) -> Result<(Card, Instant), StoreError> {
        must_be_card(folder)?;
        // A server may merge its journal into the state at any moment; then both are read again.
        let mut found = load(folder, Purpose::Look);
        for _ in 0..3 {
            let is_newest = |generation| state::generation_of(&folder.join(STATE_FILE)) == Some(generation);
            if found.as_ref().is_ok_and(|(.., header)| is_newest(header.generation)) {
                break;
            }
            found = load(folder, Purpose::Look);
        }
        found.map(|(card, now, _)| (card, now))
    }

    fn new(folder: &Path, header: Header, lock: File) -> Self {
        Self {
            folder: folder.into(),
            // There may be a journal of the next one.
            generation: header.generation + 1,
            header,
            notes: None,
            journal: None,
            journal_bytes_max: JOURNAL_BYTES_MAX,
            checkpoint: None,
            next_journal: None,
            begins: false,
            tidies: false,
            waits_for_room: false,
            _lock: lock,
        }
    }

    /// The card's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// From now on the card's changes are recorded. On a full disk there is no journal until there is space: see
    /// [`Store::waits_for_room`].
    ///
    /// Errors: the system's.
    pub fn begin(&mut self, card: &mut Card, now: Instant) -> Result<(), StoreError> {
        card.log_changes(now);
        match self.restart(card, now) {
            Err(error) if error.is_full_disk() => {
                self.waits_for_room = true;
                Ok(())
            }
            begun => begun,
        }
    }

    /// Whether there was no space for a journal: the card can be read, but not changed before [`Store::begin`]
    /// succeeds.
    pub fn waits_for_room(&self) -> bool {
        self.waits_for_room
    }

    /// Tries again to begin.
    ///
    /// Errors: as [`Store::begin`].
    pub fn begin_again(&mut self, card: &mut Card, now: Instant) -> Result<(), StoreError> {
        self.restart(card, now)?;
        self.waits_for_room = false;
        Ok(())
    }

    /// Records the card's changes since the last call; `looks_closer`: more than the flash may have changed.
    ///
    /// Errors: the system's; then none of them may be acknowledged, and the next call tries again.
    pub fn commit(&mut self, card: &mut Card, looks_closer: bool, now: Instant) -> Result<(), StoreError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        journal.add(|out| card.take_changes(out, looks_closer, now));
        if journal.is_settled() {
            return Ok(());
        }
        let data = self.folder.join(DATA_FILE);
        card.settle_contents().map_err(|what| StoreError::Contents { path: data, what })?;
        journal.settle().map_err(|source| StoreError::Io { path: self.folder.join(JOURNAL_FILE), source })?;
        if let Some(notes) = &self.notes {
            notes.note(journal.generation(), journal.size_bytes());
        }
        card.changes_are_kept();
        let is_long = journal.size_bytes() > self.journal_bytes_max;
        if is_long || self.has_steps() {
            self.shorten(card, now);
        }
        Ok(())
    }

    /// Whether a checkpoint goes on with every commit.
    fn has_steps(&self) -> bool {
        self.checkpoint.is_some() || self.tidies || self.begins || self.next_journal.is_some()
    }

    /// Whether something could not be written yet.
    pub fn is_behind(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| !journal.is_settled())
    }

    /// The card is idle, and everything is recorded: a long journal is merged into the state.
    pub fn rest(&mut self, card: &mut Card, now: Instant) {
        if !self.journal.as_ref().is_some_and(Journal::is_settled) {
            return;
        }
        let is_long = |store: &Self| store.journal.as_ref().is_some_and(|it| it.size_bytes() > JOURNAL_BYTES_IDLE);
        for _ in 0..STEPS_IDLE {
            if self.has_steps() || is_long(self) {
                self.shorten(card, now);
            }
        }
    }

    /// Takes a step of merging the journal into the state. If there is no space for that, the existing records stay
    /// valid, and it is tried again when the journal is twice as long.
    fn shorten(&mut self, card: &mut Card, now: Instant) {
        if let Err(_error) = self.try_to_shorten(card, now) {
            // A partial state takes space that the journal may need.
            let _ = std::fs::remove_file(self.folder.join(NEW_STATE_FILE));
            (self.next_journal, self.begins) = (None, false);
            self.journal_bytes_max = self.journal_bytes_max.saturating_mul(2);
        }
    }

    fn try_to_shorten(&mut self, card: &mut Card, now: Instant) -> std::io::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if let Some(checkpoint) = self.checkpoint.take() {
            let (going, progress) = checkpoint.step(&self.folder, journal, card)?;
            self.checkpoint = going;
            if let Progress::Done(generation) = progress {
                (self.header.generation, self.journal_bytes_max) = (generation, JOURNAL_BYTES_MAX);
                self.tidies = true;
            }
        } else if self.tidies {
            self.tidies = !card.tidy_some_contents();
        } else if let Some(next) = self.next_journal.take() {
            let [new, name, earlier] =
                [NEW_JOURNAL_FILE, JOURNAL_FILE, EARLIER_JOURNAL_FILE].map(|file| self.folder.join(file));
            journal.go_on_in(next, &new, &name, &earlier)?;
            self.generation = self.generation.max(journal.generation());
            self.begins = true;
        } else if journal.generation() == self.header.generation && !self.begins {
            self.next_journal = Some(Journal::start(&self.folder.join(NEW_JOURNAL_FILE), journal.generation() + 1)?);
        } else {
            // Without `begins` a checkpoint has failed since, and the journal goes on as it is.
            self.begins = false;
            self.checkpoint = Some(Checkpoint::begin(&self.folder, journal, self.header, card, now)?);
        }
        Ok(())
    }

    /// Writes the card's state and starts a new journal, at once.
    ///
    /// Errors: the system's; the old state and its journal stay valid.
    fn restart(&mut self, card: &mut Card, now: Instant) -> Result<(), StoreError> {
        // The journal is there before the state that says so, under another name: until then the one of before counts.
        let [new, path] = [NEW_JOURNAL_FILE, JOURNAL_FILE].map(|file| self.folder.join(file));
        let started = Journal::start(&new, self.generation + 1);
        let journal = started.map_err(|source| StoreError::Io { path: new.clone(), source })?;
        if let Err(error) = self.keep(card, now, true, false) {
            let _ = std::fs::remove_file(&new);
            return Err(error);
        }
        std::fs::rename(&new, &path).map_err(|source| StoreError::Io { path, source })?;
        self.journal = Some(journal);
        self.notes = Acknowledged::open(&self.folder);
        self.remove(EARLIER_JOURNAL_FILE)
    }

    /// Writes the card's state at the end, synced to the disk.
    ///
    /// Errors: as [`Store::begin`].
    pub fn finish(mut self, card: &mut Card, now: Instant) -> Result<(), StoreError> {
        match self.keep(card, now, false, true) {
            // Nothing changed the card: the state and journal of before still hold it.
            Err(error) if self.waits_for_room && error.is_full_disk() => return Ok(()),
            kept => kept?,
        }
        self.remove(JOURNAL_FILE)?;
        self.remove(NEW_JOURNAL_FILE)?;
        self.remove(EARLIER_JOURNAL_FILE)
    }

    /// Removes a file of the folder, if it is there.
    fn remove(&self, file: &str) -> Result<(), StoreError> {
        let path = self.folder.join(file);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(StoreError::Io { path, source }),
            _ => Ok(()),
        }
    }

    /// `follow`: there is an empty journal of the state's generation.
    fn keep(&mut self, card: &mut Card, now: Instant, follow: bool, forces: bool) -> Result<(), StoreError> {
        // What a checkpoint has begun is not needed; what it is about to end, it ends.
        (self.checkpoint, self.next_journal, self.begins) = (None, None, false);
        let path = self.folder.join(DATA_FILE);
        card.settle_contents().map_err(|what| StoreError::Contents { path: path.clone(), what })?;
        // Changes that were not recorded yet are in the state.
        card.take_changes(&mut Vec::new(), true, now);
        if forces && path.exists() {
            let synced = File::open(&path).and_then(|file| file.sync_data());
            synced.map_err(|source| StoreError::Io { path, source })?;
        }
        self.write_state(card, now, follow, forces)?;
        card.changes_are_kept();
        card.tidy_contents();
        Ok(())
    }

    fn write_state(&mut self, card: &Card, now: Instant, follow: bool, forces: bool) -> Result<(), StoreError> {
        let (new, path) = (self.folder.join(NEW_STATE_FILE), self.folder.join(STATE_FILE));
        let generation = self.generation + 1;
        let header = Header { generation, start: 0, follow: Some(follow), ..self.header };
        let whole = || {
            let mut state = NewState::create(&new, header, &card.to_outline(now))?;
            let mut next = 0;
            while next < card.blocks_to_store() {
                next = checkpoint::add_piece(&mut state, card, next, PIECE_UNITS, 0)?;
            }
            state.place(&path, forces)
        };
        if let Err(source) = whole() {
            // A partial state takes space that the journal may need.
            let _ = std::fs::remove_file(&new);
            return Err(StoreError::Io { path, source });
        }
        (self.generation, self.header) = (generation, header);
        newest::note(&self.folder, generation);
        Ok(())
    }
}

/// Everything in the folder that a card's files may be is a file: opening anything else could wait for ever.
///
/// Errors: no card; something else has the name of one of its files.
fn must_be_card(folder: &Path) -> Result<(), StoreError> {
    if !folder.join(STATE_FILE).exists() {
        return Err(StoreError::NoCard(folder.into()));
    }
    let names = [
        STATE_FILE,
        PROFILE_FILE,
        LOCK_FILE,
        DATA_FILE,
        JOURNAL_FILE,
        EARLIER_JOURNAL_FILE,
        NEW_JOURNAL_FILE,
        NEW_STATE_FILE,
    ];
    let mut paths = names.iter().map(|name| folder.join(name));
    match paths.find(|path| std::fs::metadata(path).is_ok_and(|found| !found.is_file())) {
        Some(path) => Err(StoreError::Damaged { path, expected: "a regular file".into() }),
        None => Ok(()),
    }
}

fn io(path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { path: path.into(), source }
}

/// Locks a folder; the lock ends with the process.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK_FILE);
    let file = File::options().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|source| io(&path, source))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse(folder.into())),
        Err(errno) => Err(io(&path, errno.into())),
    }
}
