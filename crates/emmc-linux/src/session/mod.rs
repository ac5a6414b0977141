//! One session for touching a device or a file: identified, checked, consented, held, saved, overwritten, restored.
//!
//! [`State`] says what may follow what; a step out of its order is an error, and nothing is written before the user
//! agreed. The kernel is asked three more times after the first look: after the consent, when the target is open for
//! writing, and after its content is saved. No step begins after a signal. Dropped before the work, a session leaves
//! the target as it was and removes what it saved. Absent on purpose: the question itself (a callback), signals (the
//! caller sets `stop`), printing.

mod state;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_port::TargetError;

pub use state::{End, Event, State};

use crate::block_io::{BlockIo, Keeper, OpenError, Opening, Saved, TargetHandle, reserve, writable_bytes};
use crate::boot_area::UnlockedArea;
use crate::hold::{self, Point};
use crate::usage::{Holder, Occupied, occupied, read_only};

/// Why a session ended before anything was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// For safety: in use, not agreed to, or changed.
    #[error("{0}")]
    Refused(String),
    /// The target does not work.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A step out of order: a fault of the caller.
    #[error("{name}: cannot {step}: the session is {state}; nothing was written")]
    OutOfOrder {
        /// The target.
        name: String,
        /// What was to be done.
        step: &'static str,
        /// The state's name.
        state: &'static str,
    },
}

impl From<OpenError> for SessionError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::InUse { .. } | OpenError::Changed { .. } => Self::Refused(error.to_string()),
            OpenError::Target(error) => Self::Target(error),
        }
    }
}

/// Where the content is kept that will be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep<'a> {
    /// Nowhere: it is lost, or the work itself restores it.
    Nowhere,
    /// In memory. A process that is killed loses it.
    Memory,
    /// In a new file, complete and synced before the first byte is overwritten.
    File(&'a Path),
}

/// What work on a held target left behind.
#[derive(Debug)]
pub struct Overwritten<R> {
    /// The work's result, or its panic.
    pub result: std::thread::Result<R>,
    /// What became of the saved content.
    pub restore: Restore,
}

/// What became of saved content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restore {
    /// Nothing was saved.
    Nothing,
    /// Written back and compared. Unit: bytes.
    Whole(u64),
    /// Not all of it; the error has the lost parts, and where their content is.
    Lost(TargetError),
}

impl Restore {
    /// The session's end.
    pub const fn end(&self) -> End {
        match self {
            Self::Nothing => End::Written,
            Self::Whole(_) => End::Restored,
            Self::Lost(_) => End::Lost,
        }
    }
}

/// A device or a file from its name to its last restored byte.
pub struct Session {
    state: State,
    target: TargetHandle,
    called: String,
    stop: Arc<AtomicBool>,
    found: Occupied,
    /// What the user agreed to. Unit: bytes.
    range: [u64; 2],
    open: Option<BlockIo>,
    /// Of a file, until its content is restored.
    _lock: Option<std::fs::File>,
    /// Whether it may be a boot area that the kernel holds read-only (`force_ro`), which `hold` unlocks.
    unlocks: bool,
    /// From its opening for writing on.
    unlocked: Option<UnlockedArea>,
    saved: Option<Saved>,
}

impl Session {
    /// Identifies what is at a path and keeps it open; nothing if that is neither a block device nor a regular file.
    /// `stop`: set by a signal.
    ///
    /// Errors: the kernel's.
    pub fn place(path: &Path, called: &str, stop: &Arc<AtomicBool>) -> io::Result<Option<Self>> {
        let Some(target) = TargetHandle::new(path)? else { return Ok(None) };
        Ok(Some(Self {
            state: State::Placed,
            target,
            called: called.into(),
            stop: Arc::clone(stop),
            found: Occupied::default(),
            range: [0; 2],
            open: None,
            _lock: None,
            unlocks: false,
            unlocked: None,
            saved: None,
        }))
    }

    /// The same for a boot area: from `hold` on, after the consent, it is unlocked (`force_ro`) until the session ends.
    pub fn unlocking(mut self) -> Self {
        self.unlocks = true;
        self
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// What is kept open: never its name, which may now lead elsewhere.
    pub fn handle(&self) -> &TargetHandle {
        &self.target
    }

    /// The target for inspection, and for measurements that only read. A file may be opened for writing, to find out
    /// whether it supports holes; nothing is written.
    ///
    /// Errors: those of [`TargetHandle::open`].
    pub fn look(&self, opening: &Opening) -> Result<BlockIo, SessionError> {
        Ok(self.target.open(&self.called, opening)?)
    }

    /// placed -> checked: asks the kernel who uses it.
    ///
    /// Errors: in use; it is gone.
    pub fn check(&mut self) -> Result<&Occupied, SessionError> {
        self.expect(State::Placed, "check who uses it")?;
        match self.free(Holder::Nobody) {
            Ok(found) => {
                self.found = found;
                self.step(Event::Free);
                Ok(&self.found)
            }
            Err(error) => self.failed(error),
        }
    }

    /// checked -> consented: asks the user about this range, and looks again, because the question may take minutes.
    ///
    /// Errors: the callback's refusal; in use.
    pub fn consent(
        &mut self,
        range: [u64; 2],
        ask: impl FnOnce(&Occupied) -> Result<(), String>,
    ) -> Result<(), SessionError> {
        self.expect(State::Checked, "ask for consent")?;
        if let Err(refusal) = ask(&self.found) {
            return self.failed(SessionError::Refused(refusal));
        }
        hold::reached(Point::Confirmed, &self.stop);
        match self.free(Holder::Nobody) {
            Ok(_) => {
                self.range = range;
                self.step(Event::Agreed);
                Ok(())
            }
            Err(error) => self.failed(error),
        }
    }

    /// consented -> held: opens it for writing, so that nobody else can mount or open it exclusively, or locks a file,
    /// and looks again.
    ///
    /// Errors: in use; a limit of this process that could also prevent the restore (`ulimit -f`); the kernel's.
    pub fn hold(&mut self, opening: &Opening) -> Result<&BlockIo, SessionError> {
        self.expect(State::Consented, "open it for writing")?;
        match self.opened(opening) {
            Ok((lock, open)) => {
                self._lock = lock;
                self.step(Event::Opened);
                Ok(self.open.insert(open))
            }
            Err(error) => self.failed(error),
        }
    }

    fn opened(&mut self, opening: &Opening) -> Result<(Option<std::fs::File>, BlockIo), SessionError> {
        let path = &self.target.path().to_owned();
        if let Some(most) = writable_bytes().filter(|most| path.is_file() && *most < self.range[1]) {
            let what = format!("writes would reach byte {}, but `ulimit -f` allows {most}", self.range[1]);
            return Err(self.error(format!("{what}: nothing was written")));
        }
        let lock = if path.is_file() { Some(reserve(path, &self.called)?) } else { None };
        let unlocked = self.unlocks.then(|| UnlockedArea::new(&self.found.name)).transpose();
        self.unlocked = unlocked.map_err(|error| self.error(format!("force_ro: {error}; nothing was written")))?;
        let open = self.target.open(&self.called, &Opening { write: true, ..opening.clone() })?;
        self.free(Holder::Us)?;
        Ok((lock, open))
    }

    /// held -> saved: keeps the content of the range that will be overwritten, and looks a last time, because saving
    /// may have taken minutes. Returns what it keeps. Unit: bytes.
    ///
    /// Errors: a range that the user did not agree to; content that cannot be read or kept; stopped; in use. The
    /// content saved so far is removed: all of it is still on the target.
    pub fn save(&mut self, range: [u64; 2], keep: Keep<'_>, keeper: &mut dyn Keeper) -> Result<u64, SessionError> {
        self.expect(State::Held, "save its content")?;
        match self.kept(range, keep, keeper) {
            Ok(saved) => {
                let bytes = saved.as_ref().map_or(0, Saved::size_bytes);
                self.saved = saved;
                self.step(Event::Kept);
                Ok(bytes)
            }
            Err(error) => self.failed(error),
        }
    }

    /// What [`Session::save`] would keep of a held target, without holes of a file. Unit: bytes.
    ///
    /// Errors: not held; the kernel's.
    pub fn bytes_to_save(&self, range: [u64; 2]) -> Result<u64, SessionError> {
        let Some(target) = &self.open else { return Err(self.out_of_order("save its content")) };
        Ok(Saved::bytes_of(target, range[0], range[1])?)
    }

    fn kept(&self, range: [u64; 2], keep: Keep<'_>, keeper: &mut dyn Keeper) -> Result<Option<Saved>, SessionError> {
        let Some(target) = &self.open else { return Err(self.out_of_order("save its content")) };
        if range[0] < self.range[0] || range[1] > self.range[1] {
            let what = "changed before the confirmation: nothing was written";
            return Err(SessionError::Refused(format!("{}: {what}", self.called)));
        }
        let file = match keep {
            Keep::Nowhere => None,
            Keep::Memory => Some(None),
            Keep::File(path) => Some(Some(path)),
        };
        let file = file.filter(|_| range[0] < range[1]);
        let saved = file.map(|file| Saved::take(target, range, file, keeper.watch())).transpose()?;
        if saved.is_some() {
            hold::reached(Point::Saved, &self.stop);
        }
        match self.free(Holder::Us) {
            Ok(_) => Ok(saved),
            Err(error) => {
                saved.into_iter().for_each(Saved::forget);
                Err(error)
            }
        }
    }

    /// saved -> running -> restoring -> done: does the work, and whatever comes of it, restores what was saved. The
    /// target is opened again for that, because the handle of the work may have stopped permanently.
    ///
    /// Errors: out of order; then nothing is written.
    pub fn overwrite<R>(
        mut self,
        work: impl FnOnce(BlockIo, &TargetHandle) -> R,
        keeper: &mut dyn Keeper,
    ) -> Result<Overwritten<R>, SessionError> {
        self.expect(State::Saved, "overwrite it")?;
        let Some(open) = self.open.take() else { return Err(self.out_of_order("overwrite it")) };
        self.step(Event::Began);
        let target = &self.target;
        // What the work made (mounts, other handles) is dropped in it, before the restore.
        let result = catch_unwind(AssertUnwindSafe(|| work(open, target)));
        hold::reached(Point::Worked, &self.stop);
        let saved = self.saved.take();
        self.step(Event::Ended { is_kept: saved.is_some() });
        let restore = match saved {
            None => Restore::Nothing,
            Some(saved) => self.restored(saved, keeper),
        };
        if self.state == State::Restoring {
            self.step(if matches!(restore, Restore::Lost(_)) { Event::Partial } else { Event::Whole });
        }
        Ok(Overwritten { result, restore })
    }

    fn restored(&self, saved: Saved, keeper: &mut dyn Keeper) -> Restore {
        let bytes = saved.size_bytes();
        // Nothing stops a restore.
        let done = match self.target.open(&self.called, &Opening::plain(true, &Arc::default())) {
            Ok(target) => saved.put_back(&target, keeper),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.strip_prefix(&format!("{}: ", self.called)).unwrap_or(&reason);
                let what = format!("its content was not restored; {}: {reason}", saved.rescue(reason, keeper));
                Err(TargetError::Failed { name: self.called.clone(), reason: what })
            }
        };
        done.map_or_else(Restore::Lost, |()| Restore::Whole(bytes))
    }

    /// Looks who uses it now.
    fn free(&self, holder: Holder) -> Result<Occupied, SessionError> {
        let mut found = occupied(self.target.path(), holder).map_err(|error| self.error(error.to_string()))?;
        if self.unlocks && self.unlocked.is_none() {
            // Of a boot area it is the kernel's rule, and what is read-only for another reason stays so when unlocked.
            found.uses.retain(|text| *text != read_only(&found.name));
        }
        match found.uses.is_empty() {
            true => Ok(found),
            false => Err(SessionError::Refused(format!("{}: in use: {}", self.called, found.uses.join("; ")))),
        }
    }

    fn error(&self, reason: String) -> SessionError {
        TargetError::Failed { name: self.called.clone(), reason }.into()
    }

    fn out_of_order(&self, step: &'static str) -> SessionError {
        SessionError::OutOfOrder { name: self.called.clone(), step, state: self.state.name() }
    }

    /// Before each step.
    fn expect(&mut self, state: State, step: &'static str) -> Result<(), SessionError> {
        if self.state != state {
            return Err(self.out_of_order(step));
        }
        if self.stop.load(Ordering::Relaxed) {
            return self.failed(self.error("stopped by a signal; nothing was written".into()));
        }
        Ok(())
    }

    /// The end without a write.
    fn failed<T>(&mut self, error: SessionError) -> Result<T, SessionError> {
        let is_stopped = self.stop.load(Ordering::Relaxed);
        self.step(if is_stopped { Event::Stopped } else { Event::Failed });
        (self.open, self._lock) = (None, None);
        self.unlocked = None;
        Err(error)
    }

    fn step(&mut self, event: Event) {
        let next = self.state.after(event);
        debug_assert!(next.is_some(), "{:?} in {:?}", event, self.state);
        self.state = next.unwrap_or(self.state);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.state.may_be_written() {
            // All of it is still on the target.
            self.saved.take().into_iter().for_each(Saved::forget);
        }
    }
}
