//! A card's folder: everything that survives power, recoverable when the process dies at any moment.
//!
//! `profile.toml` describes the card; `card.state` is its complete state at an instant; `card.journal` holds the
//! changes since then, in records that are written before a client gets its reply; `card.data` holds the contents.
//! Every end of a process is a power loss for the card, right after the operations in progress have finished. Data is
//! handed to the operating system, not synced to the disk: it survives the process, not the machine; only the state of
//! an orderly end is synced. Absent on purpose: the content of images and records (`emmc_card`), and when something is
//! recorded (`served`).

mod data;
mod journal;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use emmc_card::card::Card;
use emmc_card::device::ImageError;
use emmc_card::nand::{Geometry, Payload};
use emmc_card::profile::{Layout, Partitioning, Profile, ProfileError};
use emmc_units::Instant;
use rustix::fs::FlockOperation;

use data::DataFile;
use journal::{CHECKSUM, Found, Journal};

/// The profile's file in a card's folder.
const PROFILE_FILE: &str = "profile.toml";
/// The state's file in a card's folder.
pub const STATE_FILE: &str = "card.state";
/// The control socket in a card's folder, while it is served.
pub const SOCKET_FILE: &str = "card.socket";
const JOURNAL_FILE: &str = "card.journal";
const DATA_FILE: &str = "card.data";
const LOCK_FILE: &str = "card.lock";
const NEW_STATE_FILE: &str = ".card.state.new";

/// Magic of the state file; the state's generation and the image's checksum follow.
const MAGIC: &[u8; 14] = b"emmclab state\n";
const HEADER_BYTES: usize = MAGIC.len() + 8 + 4;
/// A journal that grows beyond this is merged into the state. Unit: bytes.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;

/// The same limit while the card is idle. Unit: bytes.
const JOURNAL_BYTES_IDLE: u64 = 32 << 20;

/// Why a path is not the folder of a card.
fn why_no_card(path: &Path) -> String {
    let create = "`emmclab sim create` makes a card; sim:PROFILE is a new one";
    match path.is_dir() {
        true => format!("expected {STATE_FILE} in the folder; {create}"),
        false => format!("there is no such folder; {create}"),
    }
}

/// Why a card's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system's error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No card is in it.
    #[error("{}: no virtual card: {}", .0.display(), why_no_card(.0))]
    NoCard(PathBuf),
    /// Another process works on the card.
    #[error("{}: the card is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The profile breaks a rule.
    #[error("{}: {source}", path.display())]
    Profile {
        /// Its file.
        path: PathBuf,
        /// Which rule.
        source: ProfileError,
    },
    /// State or records are damaged, or belong to another card.
    #[error("{}: {source}", path.display())]
    Image {
        /// The state's file.
        path: PathBuf,
        /// What is wrong.
        source: ImageError,
    },
    /// The state file is not as expected.
    #[error("{}: expected {expected}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: String,
    },
    /// Contents cannot be stored.
    #[error("{}: {what}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// The system's error.
        what: String,
    },
}

impl StoreError {
    /// Whether the disk, or this user's quota, is full.
    fn is_full_disk(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            Self::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            // The system's error is only text here; so the disk is queried.
            Self::Contents { path, .. } => rustix::fs::statvfs(path).is_ok_and(|found| found.f_bavail == 0),
            _ => false,
        }
    }
}

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
    generation: u64,
    journal: Option<Journal>,
    journal_bytes_max: u64,
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
        write(&folder.join(PROFILE_FILE), &[profile.as_bytes()])?;
        let mut store = Self::new(folder, 0, lock);
        store.write_state(card, now, true)
    }

    /// Opens a card for work; it is without power. Also returns the instant of its power-off.
    ///
    /// Errors: no card, in use, damaged.
    pub fn open(folder: &Path, purpose: Purpose) -> Result<(Self, Card, Instant), StoreError> {
        if !folder.join(STATE_FILE).is_file() {
            return Err(StoreError::NoCard(folder.into()));
        }
        let lock = lock(folder)?;
        let (card, now, generation) = load(folder, purpose)?;
        Ok((Self::new(folder, generation, lock), card, now))
    }

    /// The card in its present state, without power, for inspection; changes to it are not saved.
    ///
    /// Errors: no card, damaged.
    pub fn look(folder: &Path) -> Result<(Card, Instant), StoreError> {
        if !folder.join(STATE_FILE).is_file() {
            return Err(StoreError::NoCard(folder.into()));
        }
        // A server may merge its journal into the state at any moment; then both are read again.
        let mut found = load(folder, Purpose::Look);
        for _ in 0..3 {
            if found.is_ok() {
                break;
            }
            found = load(folder, Purpose::Look);
        }
        found.map(|(card, now, _)| (card, now))
    }

    fn new(folder: &Path, generation: u64, lock: File) -> Self {
        let journal_bytes_max = JOURNAL_BYTES_MAX;
        Self { folder: folder.into(), generation, journal: None, journal_bytes_max, waits_for_room: false, _lock: lock }
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
        match self.checkpoint(card, now) {
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
    /// Errors: as [`Store::checkpoint`].
    pub fn begin_again(&mut self, card: &mut Card, now: Instant) -> Result<(), StoreError> {
        self.checkpoint(card, now)?;
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
        card.changes_are_kept();
        if journal.size_bytes() > self.journal_bytes_max {
            self.shorten(card, now);
        }
        Ok(())
    }

    /// Whether something could not be written yet.
    pub fn is_behind(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| !journal.is_settled())
    }

    /// The card is idle: a long journal is merged into the state.
    pub fn rest(&mut self, card: &mut Card, now: Instant) {
        if self.journal.as_ref().is_some_and(|journal| journal.size_bytes() > JOURNAL_BYTES_IDLE) {
            self.shorten(card, now);
        }
    }

    /// Merges the journal into the state. If there is no space for that, the existing records stay valid.
    fn shorten(&mut self, card: &mut Card, now: Instant) {
        self.journal_bytes_max = match self.checkpoint(card, now) {
            Ok(()) => JOURNAL_BYTES_MAX,
            Err(_) => self.journal_bytes_max.saturating_mul(2),
        };
    }

    /// Writes the card's state and starts a new journal.
    ///
    /// Errors: the system's; the old state and its journal stay valid.
    pub fn checkpoint(&mut self, card: &mut Card, now: Instant) -> Result<(), StoreError> {
        self.keep(card, now, false)?;
        let path = self.folder.join(JOURNAL_FILE);
        let started = Journal::start(&path, self.generation);
        self.journal = Some(started.map_err(|source| StoreError::Io { path, source })?);
        Ok(())
    }

    /// Writes the card's state at the end, synced to the disk.
    ///
    /// Errors: as [`Store::checkpoint`].
    pub fn finish(mut self, card: &mut Card, now: Instant) -> Result<(), StoreError> {
        match self.keep(card, now, true) {
            // Nothing changed the card: the state and journal of before still hold it.
            Err(error) if self.waits_for_room && error.is_full_disk() => return Ok(()),
            kept => kept?,
        }
        let path = self.folder.join(JOURNAL_FILE);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(StoreError::Io { path, source }),
            _ => Ok(()),
        }
    }

    fn keep(&mut self, card: &mut Card, now: Instant, forces: bool) -> Result<(), StoreError> {
        let path = self.folder.join(DATA_FILE);
        card.settle_contents().map_err(|what| StoreError::Contents { path: path.clone(), what })?;
        // Changes that were not recorded yet are in the state.
        card.take_changes(&mut Vec::new(), true, now);
        if forces && path.exists() {
            let synced = File::open(&path).and_then(|file| file.sync_data());
            synced.map_err(|source| StoreError::Io { path, source })?;
        }
        self.write_state(card, now, forces)?;
        card.changes_are_kept();
        card.tidy_contents();
        Ok(())
    }

    fn write_state(&mut self, card: &Card, now: Instant, forces: bool) -> Result<(), StoreError> {
        let (new, path) = (self.folder.join(NEW_STATE_FILE), self.folder.join(STATE_FILE));
        let generation = self.generation + 1;
        let image = card.to_image(now);
        let checksum = CHECKSUM.checksum(&image).to_le_bytes();
        let written = write(&new, &[MAGIC, &generation.to_le_bytes(), &checksum, &image]).and_then(|file| {
            let synced = if forces { file.sync_all() } else { Ok(()) };
            synced.and_then(|()| std::fs::rename(&new, &path)).map_err(|source| StoreError::Io { path, source })
        });
        if let Err(error) = written {
            // A partial state takes space that the journal may need.
            let _ = std::fs::remove_file(&new);
            return Err(error);
        }
        self.generation = generation;
        Ok(())
    }
}

/// The card in a folder, without power, the instant of its power-off, and the generation of its state.
fn load(folder: &Path, purpose: Purpose) -> Result<(Card, Instant, u64), StoreError> {
    let profile_path = folder.join(PROFILE_FILE);
    let text = std::fs::read_to_string(&profile_path).map_err(|source| io(&profile_path, source))?;
    let profile = Profile::from_toml(&text).map_err(|source| StoreError::Profile { path: profile_path, source })?;
    let path = folder.join(STATE_FILE);
    let state = std::fs::read(&path).map_err(|source| io(&path, source))?;
    let header = || StoreError::Damaged { path: path.clone(), expected: "\"emmclab state\" at byte 0".into() };
    let (start, image) = state.split_at_checked(HEADER_BYTES).ok_or_else(header)?;
    let numbers = start.strip_prefix(MAGIC).and_then(|rest| Some((rest.first_chunk()?, rest.last_chunk()?)));
    let (generation, checksum): (&[u8; 8], &[u8; 4]) = numbers.ok_or_else(header)?;
    let (generation, checksum) = (u64::from_le_bytes(*generation), u32::from_le_bytes(*checksum));
    if CHECKSUM.checksum(image) != checksum {
        let expected = format!("an image with checksum {checksum:08x}: it is cut off or damaged");
        return Err(StoreError::Damaged { path, expected });
    }
    let journal_path = folder.join(JOURNAL_FILE);
    let found = Found::read(&journal_path, generation).map_err(|source| io(&journal_path, source))?;
    let data_path = folder.join(DATA_FILE);
    let has_data = data_path.exists();
    let payload = match has_data || purpose == Purpose::Serve {
        true => Some(open_data(&profile, &data_path, purpose).map_err(|source| io(&data_path, source))?),
        false => None,
    };
    let unit_bytes = u64::from(profile.ftl.unit_bytes);
    let (card, now) = Card::from_image(profile, image, &found.records(), payload)
        .map_err(|source| StoreError::Image { path, source })?;
    let needed = u64::from(card.contents_end()) * unit_bytes;
    let size = std::fs::metadata(&data_path).map_or(0, |found| found.len());
    if size < needed {
        let expected = format!("at least {needed} bytes, found {size}");
        return Err(StoreError::Damaged { path: data_path, expected });
    }
    Ok((card, now, generation))
}

fn open_data(profile: &Profile, path: &Path, purpose: Purpose) -> std::io::Result<Box<dyn Payload>> {
    // The blocks do not depend on the partitioning; a profile that makes no card is refused elsewhere.
    let blocks = Layout::new(profile, &Partitioning::default(), 0).map_or(1, |layout| layout.blocks);
    let geometry = Geometry::new(&profile.nand, blocks, profile.ftl.unit_bytes);
    let units = u64::from(blocks) * u64::from(geometry.units_per_block());
    Ok(Box::new(DataFile::open(path, geometry.unit_bytes, units, purpose != Purpose::Look)?))
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

fn write(path: &Path, parts: &[&[u8]]) -> Result<File, StoreError> {
    let written = File::create(path).and_then(|mut file| {
        parts.iter().try_for_each(|part| file.write_all(part))?;
        Ok(file)
    });
    written.map_err(|source| io(path, source))
}
